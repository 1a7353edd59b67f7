//! `delete`: removes fields and tags from points.
//!
//! A deleted tag is no longer part of the group. A point without remaining fields is left out.

use crate::batch::{Batch, Flow, Group};
use crate::block::Block;
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::AnyDefinition;
use crate::node::{Built, Context, Definition, Kind, Operator};
use crate::pipeline::{Chain, Rule, Writer, distinct};
use std::fmt;
use std::sync::Arc;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["delete"],
    properties: &["field", "tag"],
    parse,
};

/// Deletes fields and tags of points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delete {
    /// The names of the fields.
    pub fields: Vec<Arc<str>>,
    /// The names of the tags.
    pub tags: Vec<Arc<str>>,
}

impl<'p> Chain<'p> {
    /// Adds a `delete`.
    pub fn delete(self, delete: Delete) -> Chain<'p> {
        self.then(delete)
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    parser.nothing()?;
    let mut delete = Delete::default();
    while let Some((property, _)) = parser.property(KIND.properties)? {
        let name = parser.argument(Parser::string)?;
        match property {
            "field" => delete.fields.push(name),
            _ => delete.tags.push(name),
        }
    }
    Ok(AnyDefinition::from(delete))
}

impl Definition for Delete {
    fn name(&self) -> &'static str {
        "delete"
    }

    fn check(&mut self) -> Result<(), Rule> {
        distinct(&self.fields)?;
        distinct(&self.tags)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[])?;
        for field in &self.fields {
            out.text("field", Some(field))?;
        }
        for tag in &self.tags {
            out.text("tag", Some(tag))?;
        }
        Ok(())
    }

    fn build(&self, _: &Context<'_>) -> Built {
        Built::from(DeleteOperator(self.clone()))
    }
}

/// The operator of a `delete`.
struct DeleteOperator(Delete);

impl DeleteOperator {
    fn without(&self, batch: &Batch) -> Batch {
        let Delete { fields, tags } = &self.0;
        let mut block: Block = batch.to_block();
        block.columns.retain(|column| {
            let names = if column.is_tag() { tags } else { fields };
            !names.contains(&column.name)
        });
        let mut group = Group::clone(&batch.group);
        group.tags.retain(|(name, _)| !tags.contains(name));
        let some = |row: &u32| {
            let mut fields = block.fields();
            fields.any(|column| column.data.get(*row as usize).is_some())
        };
        let rows: Vec<u32> = (0..block.rows() as u32).filter(some).collect();
        let block = match rows.len() == block.rows() {
            true => block,
            false => block.gather(&rows),
        };
        Batch::all(Arc::new(block), Arc::new(group))
    }
}

impl Operator for DeleteOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        out.extend(flow.map(|batch| self.without(&batch)));
    }
}
