//! `changeDetect`: passes on a point if one of the given fields differs from the previous point
//! that was passed on.
//!
//! A field that a point lacks does not count as a change. Each window is treated separately.

use crate::Value;
use crate::batch::{Batch, Flow, Rows};
use crate::block::Column;
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::AnyDefinition;
use crate::node::series::{PerGroup, Series};
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Text, Writer, distinct};
use std::fmt::{self, Display};
use std::sync::Arc;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["changeDetect"],
    properties: &[],
    parse,
};

/// Passes on the points of each group at which a field changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeDetect {
    /// The names of the fields to compare.
    pub fields: Vec<Arc<str>>,
}

impl<'p> Chain<'p> {
    /// Adds a `changeDetect` of these fields.
    pub fn change_detect<F: Into<Arc<str>>>(self, fields: impl IntoIterator<Item = F>) -> Chain<'p> {
        let fields = fields.into_iter().map(Into::into).collect();
        self.then(ChangeDetect { fields })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let fields = program.parser.list(Parser::field)?;
    Ok(AnyDefinition::from(ChangeDetect { fields }))
}

impl Definition for ChangeDetect {
    fn name(&self) -> &'static str {
        "changeDetect"
    }

    fn check(&mut self) -> Result<(), Rule> {
        match self.fields.is_empty() {
            true => Err(Rule::EmptyName),
            false => distinct(&self.fields),
        }
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let fields: Vec<Text<'_>> = self.fields.iter().map(|field| Text(field)).collect();
        let fields: Vec<&dyn Display> = fields.iter().map(|field| field as _).collect();
        out.arguments(&fields)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(ChangeDetectOperator {
            fields: self.fields.clone(),
            last: Series::new(context.limits),
        })
    }
}

/// The fields of the last point of a group that was passed on; empty at first.
type LastFields = Vec<Option<Value>>;

/// The operator of a `changeDetect`.
struct ChangeDetectOperator {
    fields: Vec<Arc<str>>,
    last: Series<LastFields>,
}

impl PerGroup for ChangeDetectOperator {
    type Value = LastFields;

    fn series(&mut self) -> &mut Series<LastFields> {
        &mut self.last
    }

    fn results(&self, batch: &Batch, last: &mut LastFields) -> Batch {
        let columns: Vec<Option<&Column>> = self
            .fields
            .iter()
            .map(|name| batch.block.fields().find(|column| column.name == *name))
            .collect();
        let mut rows = Vec::new();
        for row in batch.rows.iter() {
            let values = columns.iter().map(|column| column.and_then(|c| c.data.get(row)));
            let values: LastFields = values.collect();
            let differs = |(at, value): (usize, &Option<Value>)| {
                value.is_some() && last.get(at).is_none_or(|before| before != value)
            };
            if values.iter().enumerate().any(differs) {
                *last = values;
                rows.push(row as u32);
            }
        }
        batch.with_rows(Rows::List(rows.into()))
    }
}

impl Operator for ChangeDetectOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        self.map(flow, out);
    }

    fn counters(&self) -> Counters {
        self.last.counters()
    }

    fn save(&self) -> Option<State> {
        Some(self.last.save())
    }

    fn restore(&mut self, state: &State) {
        self.restore_groups(state);
    }
}
