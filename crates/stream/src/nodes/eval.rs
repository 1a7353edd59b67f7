//! `eval`: fields that are computed from others.
//!
//! A point for which an expression has no value is left out.

use crate::Value;
use crate::batch::{Batch, Flow, Rows};
use crate::block::{Block, Column, Data, Words};
use crate::expression::Expression;
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::evaluate::{evaluate, with_field};
use crate::node::faults::Faults;
use crate::node::memory::{Memories, Memory, Remembered};
use crate::node::definition::AnyDefinition;
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Writer, distinct};
use rustc_hash::FxHashMap;
use std::fmt::{self, Display};
use std::sync::Arc;

/// The properties of an `eval`; see the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["eval"],
    properties: &["as", "tags", "keep"],
    parse,
};

/// Fields that are computed from others.
///
/// ```
/// use corsair_stream::expression::key;
/// use corsair_stream::pipeline::{Eval, Pipeline};
///
/// let pipeline = Pipeline::build(|stream| {
///     let ratio = Eval::new([("ratio", key("errors") / key("requests"))]).keep();
///     stream.from().eval_with(ratio);
/// })?;
/// assert_eq!(
///     pipeline.to_string(),
///     "stream | from() | eval(errors / requests).as('ratio').keep()",
/// );
/// # Ok::<(), corsair_stream::pipeline::PipelineError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Eval {
    /// The name and the expression of each result. An expression may refer to earlier results.
    pub fields: Vec<(Arc<str>, Expression)>,
    /// Results that become tags.
    pub tags: Vec<Arc<str>>,
    /// The other fields of the point that are passed on.
    pub keep: Keep,
}

/// The fields that an `eval` passes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Only the results.
    #[default]
    Results,
    /// The results and all fields of the point.
    All,
    /// These results or fields of the point.
    These(Vec<Arc<str>>),
}

impl Eval {
    /// Creates an `eval` with results under these names, which replace the fields of the point.
    pub fn new<N: Into<Arc<str>>, E: Into<Expression>>(
        fields: impl IntoIterator<Item = (N, E)>,
    ) -> Eval {
        let field = |(name, expression): (N, E)| (name.into(), expression.into());
        Eval {
            fields: fields.into_iter().map(field).collect(),
            tags: Vec::new(),
            keep: Keep::Results,
        }
    }

    /// Also passes on the fields of the point.
    #[must_use]
    pub fn keep(self) -> Eval {
        let keep = Keep::All;
        Eval { keep, ..self }
    }
}

impl<'p> Chain<'p> {
    /// Adds an `eval` with results under these names, which replace the fields of the point.
    pub fn eval<N: Into<Arc<str>>, E: Into<Expression>>(
        self,
        fields: impl IntoIterator<Item = (N, E)>,
    ) -> Chain<'p> {
        self.eval_with(Eval::new(fields))
    }

    /// Adds an `eval` with its properties.
    pub fn eval_with(self, eval: Eval) -> Chain<'p> {
        self.then(eval)
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let expressions = parser.list(Parser::condition)?;
    let (mut names, mut tags, mut keep) = (None, None, None);
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "as" => set(&mut names, parser.names(expressions.len(), span)?, "as", span)?,
            "tags" => set(&mut tags, parser.list(Parser::string)?, "tags", span)?,
            _ => {
                let these = parser.list(Parser::string)?;
                let given = match these.is_empty() {
                    true => Keep::All,
                    false => Keep::These(these),
                };
                set(&mut keep, given, "keep", span)?;
            }
        }
    }
    let Some(names) = names else {
        return call.missing("a name for each result: `eval(value * 2).as('double')`");
    };
    Ok(AnyDefinition::from(Eval {
        fields: names.into_iter().zip(expressions).collect(),
        tags: tags.unwrap_or_default(),
        keep: keep.unwrap_or_default(),
    }))
}

impl Definition for Eval {
    fn name(&self) -> &'static str {
        "eval"
    }

    fn check(&mut self) -> Result<(), Rule> {
        if self.fields.is_empty() {
            return Err(Rule::NoExpressions);
        }
        distinct(self.fields.iter().map(|(name, _)| name))?;
        let has = |tag: &&Arc<str>| self.fields.iter().any(|(name, _)| name == *tag);
        match self.tags.iter().find(|tag| !has(tag)) {
            Some(tag) => Err(Rule::NoResult(tag.clone())),
            None => distinct(&self.tags),
        }
    }

    fn expressions(&mut self) -> Vec<&mut Expression> {
        let fields = self.fields.iter_mut();
        fields.map(|(_, expression)| expression).collect()
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let fields = self.fields.iter();
        let expressions: Vec<&dyn Display> = fields.map(|(_, e)| e as &dyn Display).collect();
        out.arguments(&expressions)?;
        out.names("as", self.fields.iter().map(|(name, _)| name))?;
        if !self.tags.is_empty() {
            out.names("tags", &self.tags)?;
        }
        match &self.keep {
            Keep::Results => Ok(()),
            Keep::All => out.flag("keep", true),
            Keep::These(names) => out.names("keep", names),
        }
    }

    fn remembers(&self) -> bool {
        true
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let (mut eval, mut calls) = (self.clone(), 0);
        let fields = eval.fields.iter_mut();
        let remembered =
            fields.map(|(_, expression)| Remembered::take_from(expression, &mut calls));
        Built::from(EvalOperator {
            remembered: remembered.collect(),
            memories: Memories::new(calls, context.limits),
            eval,
            faults: context.faults.clone(),
        })
    }
}

/// The operator of an `eval`.
struct EvalOperator {
    eval: Eval,
    /// For each expression, its calls of functions that remember earlier points.
    remembered: Vec<Remembered>,
    memories: Memories,
    faults: Faults,
}

/// The reasons why a point is dropped.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("`{0}` has no value: a field or tag is missing")]
    Missing(Arc<str>),
    #[error("`{0}` is not a string; a tag must be a string")]
    Tag(Arc<str>),
    #[error("there is no field `{0}` to keep")]
    Keep(Arc<str>),
}

impl Operator for EvalOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let mut memories = std::mem::take(&mut self.memories);
        if let Some(memory) = memories.of(&flow) {
            out.extend(flow.map(|batch| self.evaluated(batch, memory)));
        }
        self.memories = memories;
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("errors", self.faults.counter())];
        counters.extend(self.memories.counters());
        counters
    }

    fn save(&self) -> Option<State> {
        self.memories.save()
    }

    fn restore(&mut self, state: &State) {
        self.memories.restore(state);
    }
}

impl EvalOperator {
    fn evaluated(&self, mut batch: Batch, mut memory: &mut [Memory]) -> Batch {
        // A new column has a cell for every row of its block. If many groups share a block, each
        // group would create columns for the rows of all groups, so the rows are copied first.
        if batch.rows.len() * 2 < batch.block.rows() {
            batch = Batch::all(Arc::new(batch.to_block()), batch.group);
        }
        let before = batch.block.clone();
        // In this order, because an expression may refer to earlier results.
        for ((name, expression), remembered) in self.eval.fields.iter().zip(&self.remembered) {
            let (own, rest) = memory.split_at_mut(remembered.len());
            memory = rest;
            batch = remembered.add(batch, own, &self.faults);
            let (rows, data) = evaluate(expression, false, &batch, &self.faults, |rows| {
                expression.column(&batch.block, rows)
            });
            let missing = Fault::Missing(name.clone());
            batch.rows = self.without(rows, &missing, |row| data.get(row).is_some());
            if batch.rows.is_empty() {
                return batch;
            }
            let column = Column {
                name: name.clone(),
                data: Arc::new(data),
            };
            batch.block = Arc::new(with_field(&remembered.without(&batch.block), column));
        }
        self.kept(batch, &before)
    }

    /// Returns the rows for which the condition holds; all others are counted as faults.
    fn without(&self, rows: Rows, fault: &Fault, holds: impl Fn(usize) -> bool) -> Rows {
        let bad = rows.iter().filter(|&row| !holds(row)).count();
        if bad == 0 {
            return rows;
        }
        self.faults.add(bad, fault);
        let good = rows.iter().filter(|&row| holds(row));
        Rows::from_iter(good.map(|row| row as u32))
    }

    /// Returns the kept columns of the point and the results.
    fn kept(&self, mut batch: Batch, before: &Block) -> Batch {
        let Eval { fields, tags, keep } = &self.eval;
        let block = batch.block.clone();
        let result = |name: &Arc<str>| fields.iter().any(|(field, _)| field == name);
        let mut columns: Vec<Column> = block.tags().cloned().collect();
        for tag in tags {
            let Some(column) = block.fields().find(|column| column.name == *tag) else {
                continue;
            };
            let fault = Fault::Tag(tag.clone());
            let is_text = |row| matches!(column.data.get(row), Some(Value::Text(_)));
            batch.rows = self.without(batch.rows, &fault, is_text);
            columns.retain(|known| known.name != *tag);
            columns.push(tag_column(column, &batch.rows));
        }
        match keep {
            Keep::Results => {
                let results = fields.iter().filter(|(name, _)| !tags.contains(name));
                for (name, _) in results {
                    columns.extend(block.fields().find(|column| column.name == *name).cloned());
                }
            }
            Keep::All => columns.extend(block.fields().cloned()),
            Keep::These(names) => {
                for name in names {
                    let of = match result(name) {
                        true => &*block,
                        false => before,
                    };
                    let found = of.fields().find(|column| column.name == *name);
                    let has = |row| found.is_some_and(|column| column.data.get(row).is_some());
                    let fault = Fault::Keep(name.clone());
                    batch.rows = self.without(batch.rows, &fault, has);
                    columns.extend(found.cloned());
                }
            }
        }
        batch.block = Arc::new(Block {
            columns,
            ..(*block).clone()
        });
        batch
    }
}

/// Converts a field of strings to a tag.
fn tag_column(field: &Column, rows: &Rows) -> Column {
    let mut codes = vec![Words::MISSING; field.data.rows()];
    let mut places: FxHashMap<Arc<str>, u32> = FxHashMap::default();
    let mut words = Vec::new();
    for row in rows.iter() {
        if let Some(Value::Text(word)) = field.data.get(row) {
            codes[row] = *places.entry(word).or_insert_with_key(|word| {
                words.push(word.clone());
                words.len() as u32 - 1
            });
        }
    }
    Column {
        name: field.name.clone(),
        data: Arc::new(Data::Tag(Words { codes, words })),
    }
}
