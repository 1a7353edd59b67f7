//! `default`: values for fields and tags that a point does not have.

use super::Operator;
use crate::Value;
use crate::batch::{Batch, Flow};
use crate::block::{Block, Column, Data, Words};
use std::sync::Arc;

/// See the [module](self). A tag that is empty counts as missing.
pub(crate) struct Default {
    pub(crate) fields: Vec<(Arc<str>, Value)>,
    pub(crate) tags: Vec<(Arc<str>, Arc<str>)>,
}

impl Operator for Default {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        out.extend(flow.map(|batch| self.filled(batch)));
    }
}

impl Default {
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
        let fields = self.fields.iter().filter(|(name, _)| missing(field(name)));
        let fields: Vec<_> = fields.collect();
        let tags = self.tags.iter().filter(|(name, _)| missing(tag(name)));
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
            // No word stands twice.
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

/// A column in place of another, or a new one: tags before fields.
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
