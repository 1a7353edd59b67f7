//! `groupBy`: separates points by the values of tags.

use super::Operator;
use super::series::Limits;
use crate::batch::{Batch, Flow, Group, Rows};
use crate::block::{Block, Data, Words};
use hashbrown::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Separates points by the values of these tags, ordered by name; points that were grouped before
/// are grouped anew. A tag that a point does not have counts as empty.
pub(crate) struct GroupBy {
    tags: Vec<Arc<str>>,
    /// Groups that there have been, by the values of their tags, so that they need not be made again.
    /// Forgotten as a whole when there are too many, and from time to time.
    groups: HashMap<Vec<Arc<str>>, Arc<Group>>,
    /// About how much memory they take.
    bytes: usize,
    limits: Limits,
    forgotten: Instant,
    empty: Arc<str>,
}

/// The rows of one group.
struct Part {
    codes: Vec<u32>,
    rows: Vec<u32>,
}

impl GroupBy {
    pub(crate) fn new(tags: Vec<Arc<str>>, limits: Limits) -> GroupBy {
        GroupBy {
            tags,
            groups: HashMap::new(),
            bytes: 0,
            limits,
            forgotten: Instant::now(),
            empty: Arc::from(""),
        }
    }

    /// The batches of each group, in the order in which the groups appear.
    fn separate(&mut self, batch: &Batch) -> Vec<Batch> {
        if self.forgotten.elapsed() > self.limits.idle {
            self.forget();
        }
        let columns: Vec<Option<&Words>> = self
            .tags
            .iter()
            .map(|tag| tag_words(&batch.block, tag))
            .collect();
        match columns.as_slice() {
            [None] => vec![Batch {
                group: self.group(&columns, &[Words::MISSING]),
                ..batch.clone()
            }],
            [Some(words)] => self.separate_by_one(batch, words),
            _ => self.separate_by_many(batch, &columns),
        }
    }

    /// A tag's codes are small numbers: no hash is needed.
    fn separate_by_one(&mut self, batch: &Batch, words: &Words) -> Vec<Batch> {
        // The last place is that of the points without the tag.
        let place = |row: usize| (words.codes[row] as usize).min(words.words.len());
        let mut parts: Vec<Part> = Vec::new();
        let mut known = vec![u32::MAX; words.words.len() + 1];
        for row in batch.rows.iter() {
            let part = &mut known[place(row)];
            if *part == u32::MAX {
                *part = parts.len() as u32;
                parts.push(Part {
                    codes: vec![words.codes[row]],
                    rows: Vec::new(),
                });
            }
            parts[*part as usize].rows.push(row as u32);
        }
        self.batches(batch, &[Some(words)], parts)
    }

    fn separate_by_many(&mut self, batch: &Batch, columns: &[Option<&Words>]) -> Vec<Batch> {
        let mut parts: Vec<Part> = Vec::new();
        let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut codes = Vec::with_capacity(columns.len());
        for row in batch.rows.iter() {
            codes.clear();
            codes.extend(
                columns
                    .iter()
                    .map(|words| words.map_or(Words::MISSING, |words| words.codes[row])),
            );
            let part = match known.get(&codes) {
                Some(&part) => part,
                None => {
                    known.insert(codes.clone(), parts.len());
                    parts.push(Part {
                        codes: codes.clone(),
                        rows: Vec::new(),
                    });
                    parts.len() - 1
                }
            };
            parts[part].rows.push(row as u32);
        }
        self.batches(batch, columns, parts)
    }

    fn batches(
        &mut self,
        batch: &Batch,
        columns: &[Option<&Words>],
        parts: Vec<Part>,
    ) -> Vec<Batch> {
        let all = parts.len() == 1;
        parts
            .into_iter()
            .map(|part| Batch {
                block: batch.block.clone(),
                rows: match all {
                    true => batch.rows.clone(),
                    false => Rows::from_iter(part.rows),
                },
                group: self.group(columns, &part.codes),
            })
            .collect()
    }

    fn forget(&mut self) {
        self.groups = HashMap::new();
        self.bytes = 0;
        self.forgotten = Instant::now();
    }

    fn group(&mut self, columns: &[Option<&Words>], codes: &[u32]) -> Arc<Group> {
        let values: Vec<Arc<str>> = columns
            .iter()
            .zip(codes)
            .map(|(words, &code)| {
                let word = words.and_then(|words| words.words.get(code as usize));
                word.unwrap_or(&self.empty).clone()
            })
            .collect();
        if let Some(group) = self.groups.get(&values) {
            return group.clone();
        }
        let tags = self.tags.iter().cloned().zip(values.iter().cloned());
        let group = Arc::new(Group {
            tags: tags.collect(),
        });
        let bytes = group.bytes() + 48 + size_of_val(&*values);
        if self.groups.len() >= self.limits.series || self.bytes + bytes > self.limits.bytes {
            self.forget();
        }
        self.bytes += bytes;
        self.groups.insert(values, group.clone());
        group
    }
}

/// A batch of so many groups takes many times its own memory while it is on its way.
const ROWS: usize = 1 << 16;

impl Operator for GroupBy {
    fn most_rows(&self) -> usize {
        ROWS
    }

    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let separated = self.separate(&flow.into_points());
        out.extend(separated.into_iter().map(Flow::Points));
    }
}

fn tag_words<'a>(block: &'a Block, tag: &str) -> Option<&'a Words> {
    block.tags().find_map(|column| match &*column.data {
        Data::Tag(words) if *column.name == *tag => Some(words),
        _ => None,
    })
}
