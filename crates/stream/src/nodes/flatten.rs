//! `flatten`: combines the points of one time into one point, whose fields are named after their tags.
//!
//! Times are rounded to the nearest multiple of the tolerance. Points of a group with the same rounded time are
//! collected until a point of another time arrives. A field of the result is named after the values of the tags in `on`
//! and the field, for example `auth.server01.value`; of two fields with the same name the later one is kept. A point
//! without one of the tags is left out and counted.

use super::moments::{Moment, Moments, Results};
use crate::Value;
use crate::batch::{Batch, Window};
use crate::block::{Block, Column, Data};
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::faults::Faults;
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Rule, Time, Writer, distinct, fits};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["flatten"],
    properties: &["on", "tolerance", "delimiter", "dropOriginalFieldName"],
    parse,
};

/// Combines the points of one time into one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Flatten {
    /// The tags whose values name the fields.
    pub on: Vec<Arc<str>>,
    /// Times are rounded to the nearest multiple of this.
    pub tolerance: Duration,
    /// The separator between the parts of a name.
    pub delimiter: Arc<str>,
    /// True if the names of the result omit the original field name.
    pub drop_original_field_name: bool,
}

impl Flatten {
    /// Creates a `flatten` whose fields are named after the values of these tags.
    pub fn new<T: Into<Arc<str>>>(on: impl IntoIterator<Item = T>) -> Flatten {
        Flatten {
            on: on.into_iter().map(Into::into).collect(),
            tolerance: Duration::ZERO,
            delimiter: ".".into(),
            drop_original_field_name: false,
        }
    }
}

impl<'p> Chain<'p> {
    /// Adds a `flatten`.
    pub fn flatten(self, flatten: Flatten) -> Chain<'p> {
        self.then(flatten)
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    parser.nothing()?;
    let (mut on, mut tolerance, mut delimiter, mut drop) = (None, None, None, false);
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "on" => set(&mut on, parser.list(Parser::string)?, "on", span)?,
            "tolerance" => {
                let duration = parser.argument(Parser::duration)?;
                set(&mut tolerance, duration, "tolerance", span)?;
            }
            "delimiter" => {
                let text = parser.argument(Parser::string)?;
                set(&mut delimiter, text, "delimiter", span)?;
            }
            _ => {
                parser.nothing()?;
                drop = true;
            }
        }
    }
    let Some(on) = on.filter(|on| !on.is_empty()) else {
        return call.missing("the tags that name the fields: `flatten().on('host', 'port')`");
    };
    Ok(AnyDefinition::from(Flatten {
        on,
        tolerance: tolerance.unwrap_or_default(),
        delimiter: delimiter.unwrap_or_else(|| ".".into()),
        drop_original_field_name: drop,
    }))
}

impl Definition for Flatten {
    fn name(&self) -> &'static str {
        "flatten"
    }

    fn check(&mut self) -> Result<(), Rule> {
        fits("tolerance", self.tolerance)?;
        distinct(&self.on)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[])?;
        out.names("on", &self.on)?;
        if !self.tolerance.is_zero() {
            out.property("tolerance", &[&Time(self.tolerance)])?;
        }
        out.text("delimiter", (*self.delimiter != *".").then_some(&self.delimiter))?;
        out.flag("dropOriginalFieldName", self.drop_original_field_name)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(Moments::new(self.clone(), self.tolerance, context))
    }
}

/// The reason why a point is left out.
#[derive(Debug, thiserror::Error)]
#[error("a point has no tag `{0}`, which `on` names")]
struct MissingTag(Arc<str>);

impl Moment for Flatten {
    const RESULTS: Results = Results::LikeInput;

    /// Returns the combined point of points of one time; `None` if none of them has all tags and a field.
    fn result(&self, moment: &Window, faults: &Faults) -> Option<Batch> {
        let mut fields = BTreeMap::new();
        for batch in &moment.batches {
            for row in batch.rows.iter() {
                self.add(&batch.block, row, faults, &mut fields);
            }
        }
        let columns = fields.into_iter().map(|(name, value)| Column {
            name: name.into(),
            data: Arc::new(Data::from(value)),
        });
        let columns: Vec<Column> = columns.collect();
        (!columns.is_empty()).then(|| moment.batches[0].of_group([moment.end].into(), columns))
    }

}

impl Flatten {
    /// Adds the fields of one point.
    fn add(&self, block: &Block, row: usize, faults: &Faults, fields: &mut BTreeMap<String, Value>) {
        let Flatten { on, delimiter, .. } = self;
        let mut prefix = String::new();
        for tag in on {
            let column = block.tags().find(|column| column.name == *tag);
            let Some(Value::Text(value)) = column.and_then(|column| column.data.get(row)) else {
                faults.add(1, &MissingTag(tag.clone()));
                return;
            };
            if !prefix.is_empty() {
                prefix.push_str(delimiter);
            }
            prefix.push_str(&value);
        }
        for column in block.fields() {
            let Some(value) = column.data.get(row) else {
                continue;
            };
            let name = match self.drop_original_field_name {
                true => prefix.clone(),
                false => format!("{prefix}{delimiter}{}", column.name),
            };
            fields.insert(name, value);
        }
    }
}
