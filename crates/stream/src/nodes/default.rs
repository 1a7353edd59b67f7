//! `default`: values for fields and tags that a point does not have.

use crate::Value;
use crate::batch::{Batch, Flow};
use crate::block::{Block, Column, Data, Words};
use crate::expression::Expression;
use crate::language::{Call, Parsed, Program};
use crate::node::definition::AnyDefinition;
use crate::node::{Built, Context, Definition, Kind, Operator};
use crate::pipeline::{Rule, Text, Writer, distinct};
use std::fmt;
use std::sync::Arc;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["default"],
    properties: &["field", "tag"],
    parse,
};

/// Values for fields and tags that a point does not have. An empty tag counts as missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Default {
    /// Name and value of each field.
    pub fields: Vec<(Arc<str>, Value)>,
    /// Name and value of each tag.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    parser.nothing()?;
    let (mut fields, mut tags) = (Vec::new(), Vec::new());
    while let Some((property, _)) = parser.property(KIND.properties)? {
        parser.argument(|parser| {
            let name = parser.string()?;
            parser.expect(",", "`,` and a value")?;
            match property {
                "field" => fields.push((name, parser.value()?)),
                _ => tags.push((name, parser.string()?)),
            }
            Ok(())
        })?;
    }
    Ok(AnyDefinition::from(Default { fields, tags }))
}

impl Definition for Default {
    fn name(&self) -> &'static str {
        "default"
    }

    fn check(&mut self) -> Result<(), Rule> {
        if self.fields.is_empty() && self.tags.is_empty() {
            return Err(Rule::NoDefaults);
        }
        distinct(self.fields.iter().map(|(name, _)| name))?;
        distinct(self.tags.iter().map(|(name, _)| name))
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[])?;
        for (name, value) in &self.fields {
            let value = Expression::Literal(value.clone());
            out.property("field", &[&Text(name), &value])?;
        }
        for (name, value) in &self.tags {
            out.names("tag", [name, value])?;
        }
        Ok(())
    }

    fn build(&self, _: &Context<'_>) -> Built {
        Built::from(DefaultOperator(self.clone()))
    }
}

/// The operator of a `default`.
struct DefaultOperator(Default);

impl Operator for DefaultOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        out.extend(flow.map(|batch| self.filled(batch)));
    }
}

impl DefaultOperator {
    fn filled(&self, mut batch: Batch) -> Batch {
        let missing = |column: Option<&Column>| match column {
            None => true,
            Some(column) => batch.rows.iter().any(|row| match column.data.get(row) {
                None => true,
                Some(Value::Text(word)) => column.is_tag() && word.is_empty(),
                Some(_) => false,
            }),
        };
        let block = &batch.block;
        let field = |name: &Arc<str>| block.fields().find(|column| column.name == *name);
        let tag = |name: &Arc<str>| block.tags().find(|column| column.name == *name);
        let fields = self.0.fields.iter().filter(|(name, _)| missing(field(name)));
        let fields: Vec<_> = fields.collect();
        let tags = self.0.tags.iter().filter(|(name, _)| missing(tag(name)));
        let tags: Vec<_> = tags.collect();
        if fields.is_empty() && tags.is_empty() {
            return batch;
        }
        // Columns have a cell for every row of their block.
        if batch.rows.len() * 2 < batch.block.rows() {
            batch = Batch::all(Arc::new(batch.to_block()), batch.group);
        }
        let mut block = Block::clone(&batch.block);
        for (name, value) in fields {
            let known = block
                .columns
                .iter()
                .position(|c| !c.is_tag() && c.name == *name);
            let cell = |row| known.and_then(|at| block.columns[at].data.get(row));
            let cells = (0..block.rows()).map(|row| cell(row).or_else(|| Some(value.clone())));
            let data = Data::from(cells.collect::<Vec<_>>());
            put(&mut block, known, name, data);
        }
        for (name, value) in tags {
            let known = block
                .columns
                .iter()
                .position(|c| c.is_tag() && c.name == *name);
            let mut words = match known.map(|at| &*block.columns[at].data) {
                Some(Data::Tag(words)) => words.clone(),
                _ => Words {
                    codes: vec![Words::MISSING; block.rows()],
                    words: Vec::new(),
                },
            };
            // Each word must be stored only once.
            let place = words.words.iter().position(|word| word == value);
            let code = place.unwrap_or(words.words.len()) as u32;
            let empty = words.words.iter().position(|word| word.is_empty());
            let empty = empty.map_or(Words::MISSING, |at| at as u32);
            if place.is_none() {
                words.words.push(value.clone());
            }
            for known in &mut words.codes {
                if *known == Words::MISSING || *known == empty {
                    *known = code;
                }
            }
            put(&mut block, known, name, Data::Tag(words));
        }
        batch.block = Arc::new(block);
        batch
    }
}

/// Replaces the column at `place`, or adds a new column: a tag before the fields, a field at the
/// end.
fn put(block: &mut Block, place: Option<usize>, name: &Arc<str>, data: Data) {
    let is_tag = matches!(data, Data::Tag(_));
    let column = Column {
        name: name.clone(),
        data: Arc::new(data),
    };
    match place {
        Some(place) => block.columns[place] = column,
        None if is_tag => block.columns.insert(block.tags().count(), column),
        None => block.columns.push(column),
    }
}
