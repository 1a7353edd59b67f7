//! `top` and `bottom`: the points of a window with the largest or smallest values of a field, the most extreme first.
//!
//! The result is a window of points. Their fields are the value, and the requested fields and tags. Without a `window`,
//! points of one time count as a window. Of equal values, the earlier point comes first.

use super::moments::{Moment, Moments, Results};
use crate::Value;
use crate::batch::{Batch, Window};
use crate::block::{Column, Data};
use crate::expression::as_float;
use crate::language::{Call, Parsed, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::faults::Faults;
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Field, MAX_COUNT, Rule, Writer, distinct};
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["top", "bottom"],
    properties: &["as", "usePointTimes"],
    parse,
};

/// Selects the points with the most extreme values of a field.
///
/// ```
/// use corsair_stream::pipeline::Top;
///
/// let text = "stream | from('scores') | window(1m) | top(5, score, player)";
/// let pipeline = corsair_stream::language::parse(text)?;
/// let top = pipeline.nodes()[2].what.get::<Top>().expect("a top node");
/// assert_eq!((top.largest, top.count, &*top.into), (true, 5, "top"));
/// # Ok::<(), corsair_stream::language::LanguageError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Top {
    /// True for the largest values, false for the smallest.
    pub largest: bool,
    /// The maximum number of points.
    pub count: u64,
    /// The field whose values are compared.
    pub field: Arc<str>,
    /// Fields and tags that the points keep, as fields.
    pub others: Vec<Arc<str>>,
    /// The name of the value in the results.
    pub into: Arc<str>,
    /// True if results keep their times, false if they get the end of the window.
    pub point_times: bool,
}

impl<'p> Chain<'p> {
    /// Adds a `top` or `bottom`.
    pub fn top(self, top: Top) -> Chain<'p> {
        self.then(top)
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let (count, field, others) = parser.argument(|parser| {
        let count = parser.count()?;
        parser.expect(",", "`,` and the name of a field, as in `top(5, 'score')`")?;
        let field = parser.field()?;
        let mut others = Vec::new();
        while parser.eat(",") {
            others.push(parser.field()?);
        }
        Ok((count, field, others))
    })?;
    let (mut into, mut point_times) = (None, false);
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "as" => set(&mut into, parser.one_name(span)?, "as", span)?,
            _ => {
                parser.nothing()?;
                point_times = true;
            }
        }
    }
    let largest = call.name == KIND.names[0];
    Ok(AnyDefinition::from(Top {
        largest,
        count,
        field,
        others,
        into: into.unwrap_or_else(|| KIND.names[usize::from(!largest)].into()),
        point_times,
    }))
}

impl Definition for Top {
    fn name(&self) -> &'static str {
        KIND.names[usize::from(!self.largest)]
    }

    fn gives_windows(&self, _: bool) -> bool {
        true
    }

    fn check(&mut self) -> Result<(), Rule> {
        let (property, count, most) = ("count", self.count, MAX_COUNT);
        match count {
            0 => return Err(Rule::NotPositive { property }),
            1..=MAX_COUNT => {}
            _ => return Err(Rule::TooMany { property, count, most }),
        }
        distinct(self.others.iter().chain([&self.into]))
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let fields = [&self.field].into_iter().chain(&self.others);
        let fields: Vec<Field<'_>> = fields.map(|name| Field(name)).collect();
        let mut arguments: Vec<&dyn Display> = vec![&self.count];
        arguments.extend(fields.iter().map(|field| field as &dyn Display));
        out.arguments(&arguments)?;
        if *self.into != *Definition::name(self) {
            out.text("as", Some(&self.into))?;
        }
        out.flag("usePointTimes", self.point_times)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(Moments::new(self.clone(), Duration::ZERO, context))
    }
}

/// A point, with the value that is compared.
struct Ranked<'a> {
    value: f64,
    shown: Value,
    batch: &'a Batch,
    row: usize,
}

impl Moment for Top {
    const RESULTS: Results = Results::OfWindows;

    fn result(&self, window: &Window, faults: &Faults) -> Option<Batch> {
        let mut ranked = Vec::new();
        for batch in &window.batches {
            let mut columns = batch.block.fields();
            let Some(column) = columns.find(|column| column.name == self.field) else {
                continue;
            };
            for row in batch.rows.iter() {
                let Some(shown) = column.data.get(row) else {
                    continue;
                };
                match as_float(&shown) {
                    Some(value) => ranked.push(Ranked { value, shown, batch, row }),
                    None => {
                        let why = format!("`{}` is a {}, which has no rank", self.field, shown.kind());
                        faults.add(1, &why);
                    }
                }
            }
        }
        match self.largest {
            true => ranked.sort_by(|a, b| b.value.total_cmp(&a.value)),
            false => ranked.sort_by(|a, b| a.value.total_cmp(&b.value)),
        }
        ranked.truncate(usize::try_from(self.count).unwrap_or(usize::MAX));
        let first = &window.batches[0];
        let times = ranked.iter().map(|point| match self.point_times {
            true => point.batch.block.times[point.row],
            false => window.end,
        });
        let times = times.collect();
        let other = |name: &Arc<str>| {
            let cells = ranked.iter().map(|point| {
                let column = point.batch.block.column(name)?;
                column.data.get(point.row)
            });
            column(name, cells.collect())
        };
        let mut columns: Vec<Column> = self.others.iter().map(other).collect();
        let values = ranked.iter().map(|point| Some(point.shown.clone()));
        columns.push(column(&self.into, values.collect()));
        (!ranked.is_empty()).then(|| first.of_group(times, columns))
    }
}

fn column(name: &Arc<str>, cells: Vec<Option<Value>>) -> Column {
    Column {
        name: name.clone(),
        data: Arc::new(Data::from(cells)),
    }
}
