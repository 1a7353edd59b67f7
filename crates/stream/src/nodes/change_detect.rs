//! `changeDetect`: points at which one of some fields differs from the point passed on before.
//!
//! A field that a point lacks does not count as a change. Each window starts again.

use crate::Value;
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::Column;
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::What;
use crate::node::series::Series;
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
    /// The fields.
    pub fields: Vec<Arc<str>>,
}

impl<'p> Chain<'p> {
    /// Adds a `changeDetect` of these fields.
    pub fn change_detect<F: Into<Arc<str>>>(self, fields: impl IntoIterator<Item = F>) -> Chain<'p> {
        let fields = fields.into_iter().map(Into::into).collect();
        self.then(ChangeDetect { fields })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<What> {
    let fields = program.parser.list(Parser::field)?;
    Ok(What::from(ChangeDetect { fields }))
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

/// The fields of the point of a group that was passed on last; empty at first.
type Last = Vec<Option<Value>>;

/// The operator of a `changeDetect`.
struct ChangeDetectOperator {
    fields: Vec<Arc<str>>,
    last: Series<Last>,
}

impl ChangeDetectOperator {
    fn changed(&self, batch: &Batch, last: &mut Last) -> Batch {
        let columns: Vec<Option<&Column>> = self
            .fields
            .iter()
            .map(|name| batch.block.fields().find(|column| column.name == *name))
            .collect();
        let mut rows = Vec::new();
        for row in batch.rows.iter() {
            let values = columns.iter().map(|column| column.and_then(|c| c.data.get(row)));
            let values: Last = values.collect();
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
        if let Flow::Window(_) = flow {
            let mut last = Last::new();
            out.extend(flow.map(|batch| self.changed(&batch, &mut last)));
            return;
        }
        drop(self.last.expired());
        let group = flow.group().clone();
        let entry = self.last.entry(&group, flow.points(), Last::new);
        let Some(mut last) = entry.map(std::mem::take) else {
            return;
        };
        out.extend(flow.map(|batch| self.changed(&batch, &mut last)));
        if let Some(entry) = self.last.get_mut(&group) {
            *entry = last;
        }
    }

    fn counters(&self) -> Counters {
        self.last.counters()
    }

    fn save(&self) -> Option<State> {
        let last = self.last.iter();
        let last: Vec<(&Group, &Last)> = last.map(|(group, last)| (&**group, last)).collect();
        Some(State::new(0, &last))
    }

    fn restore(&mut self, state: &State) {
        let last: Option<Vec<(Group, Last)>> = state.read();
        for (group, last) in last.into_iter().flatten() {
            self.last.entry(&group.into(), 0, || last);
        }
    }
}
