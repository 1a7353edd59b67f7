//! `groupBy`: separates points by the values of tags.
//!
//! The points of a batch leave group by group, which is sufficient for nodes that handle single groups. If another
//! `groupBy` follows, that node merges groups. Therefore the points then leave in the order in which they arrived.

use crate::batch::{Batch, Flow, Group, Rows, Window};
use crate::block::{Block, Data, Words};
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::AnyDefinition;
use crate::node::series::Limits;
use crate::node::{Built, Context, Definition, Kind, Operator};
use crate::pipeline::{Chain, Rule, Text, Writer, distinct};
use crate::hash::HashMap;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Instant;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["groupBy"],
    properties: &["exclude", "byMeasurement"],
    parse,
};

/// Separates points by the values of tags. Points that were already grouped are grouped again. A missing tag counts as
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupBy {
    /// The tags to group by, ordered by name.
    pub tags: Vec<Arc<str>>,
    /// True if points are grouped by all of their tags: `groupBy(*)`.
    pub all: bool,
    /// Tags that are ignored, ordered by name.
    pub except: Vec<Arc<str>>,
    /// True if points are also grouped by their measurement.
    pub measurement: bool,
}

impl<'p> Chain<'p> {
    /// Adds a `groupBy`: points are separated by the values of these tags.
    pub fn group_by<T: Into<Arc<str>>>(self, tags: impl IntoIterator<Item = T>) -> Chain<'p> {
        self.then(GroupBy {
            tags: tags.into_iter().map(Into::into).collect(),
            ..GroupBy::default()
        })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let mut by = GroupBy::default();
    parser.arguments(|parser| {
        if parser.eat("*") {
            by.all = true;
            return Ok(());
        }
        if parser.eat("[") {
            while !parser.eat("]") {
                by.tags.push(parser.field()?);
                if !parser.eat(",") {
                    return parser.expect("]", "`,` or `]`");
                }
            }
            return Ok(());
        }
        by.tags.push(parser.field()?);
        Ok(())
    })?;
    while let Some((property, _)) = parser.property(KIND.properties)? {
        match property {
            "exclude" => by.except.extend(parser.list(Parser::string)?),
            _ => {
                parser.nothing()?;
                by.measurement = true;
            }
        }
    }
    Ok(AnyDefinition::from(by))
}

impl Definition for GroupBy {
    fn name(&self) -> &'static str {
        "groupBy"
    }

    fn check(&mut self) -> Result<(), Rule> {
        self.tags.sort();
        self.except.sort();
        distinct(&self.tags)?;
        distinct(&self.except)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let tags: Vec<Text<'_>> = self.tags.iter().map(|tag| Text(tag)).collect();
        let all: Option<&dyn Display> = self.all.then_some(&"*");
        let tags = tags.iter().map(|tag| tag as &dyn Display);
        out.arguments(&all.into_iter().chain(tags).collect::<Vec<_>>())?;
        if !self.except.is_empty() {
            out.names("exclude", &self.except)?;
        }
        out.flag("byMeasurement", self.measurement)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(GroupByOperator {
            by: self.clone(),
            in_order: context.regrouped,
            groups: HashMap::default(),
            bytes: 0,
            limits: context.limits,
            forgotten: Instant::now(),
            empty: Arc::from(""),
        })
    }

    fn regroups(&self) -> bool {
        true
    }
}

/// The operator of a `groupBy`.
struct GroupByOperator {
    by: GroupBy,
    /// True if points of different groups keep their order, because groups are merged later.
    in_order: bool,
    /// Known groups by the values of their tags, so that each is created once. The cache is cleared when it is full,
    /// and from time to time.
    groups: HashMap<Key, Arc<Group>>,
    /// The approximate memory of the groups.
    bytes: usize,
    limits: Limits,
    forgotten: Instant,
    empty: Arc<str>,
}

/// The measurement, if points are grouped by it, and the values of the tags.
type Key = (Option<Arc<str>>, Vec<Option<Arc<str>>>);

/// The rows of one group.
struct GroupRows {
    codes: Vec<u32>,
    rows: Vec<u32>,
}

impl GroupByOperator {
    /// Returns the batches of each group, in the order in which the groups appear.
    fn separate(&mut self, batch: &Batch) -> Vec<Batch> {
        if self.forgotten.elapsed() > self.limits.idle {
            self.forget();
        }
        let names = self.names(&batch.block);
        let columns: Vec<Option<&Words>> = names
            .iter()
            .map(|tag| tag_words(&batch.block, tag))
            .collect();
        let names = &names;
        match columns.as_slice() {
            [] => vec![Batch {
                group: self.group(batch, names, &[], &[]),
                ..batch.clone()
            }],
            [None] => vec![Batch {
                group: self.group(batch, names, &columns, &[Words::MISSING]),
                ..batch.clone()
            }],
            [Some(words)] => self.separate_by_one(batch, names, words),
            _ => self.separate_by_many(batch, names, &columns),
        }
    }

    /// Separates by a single tag, whose codes are small numbers, so no hash is needed.
    fn separate_by_one(&mut self, batch: &Batch, names: &[Arc<str>], words: &Words) -> Vec<Batch> {
        // The last index is for points without the tag.
        let place = |row: usize| (words.codes[row] as usize).min(words.words.len());
        let mut parts: Vec<GroupRows> = Vec::new();
        let mut known = vec![u32::MAX; words.words.len() + 1];
        for row in batch.rows.iter() {
            let part = &mut known[place(row)];
            if *part == u32::MAX {
                *part = parts.len() as u32;
                parts.push(GroupRows {
                    codes: vec![words.codes[row]],
                    rows: Vec::new(),
                });
            }
            parts[*part as usize].rows.push(row as u32);
        }
        self.batches(batch, names, &[Some(words)], parts)
    }

    fn separate_by_many(
        &mut self,
        batch: &Batch,
        names: &[Arc<str>],
        columns: &[Option<&Words>],
    ) -> Vec<Batch> {
        let mut parts: Vec<GroupRows> = Vec::new();
        let mut known: HashMap<Vec<u32>, usize> = HashMap::default();
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
                    parts.push(GroupRows {
                        codes: codes.clone(),
                        rows: Vec::new(),
                    });
                    parts.len() - 1
                }
            };
            parts[part].rows.push(row as u32);
        }
        self.batches(batch, names, columns, parts)
    }

    fn batches(
        &mut self,
        batch: &Batch,
        names: &[Arc<str>],
        columns: &[Option<&Words>],
        parts: Vec<GroupRows>,
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
                group: self.group(batch, names, columns, &part.codes),
            })
            .collect()
    }

    fn forget(&mut self) {
        self.groups = HashMap::default();
        self.bytes = 0;
        self.forgotten = Instant::now();
    }

    /// Returns the tags by which the points of a block are grouped.
    fn names(&self, block: &Block) -> Vec<Arc<str>> {
        if !self.by.all {
            return self.by.tags.clone();
        }
        let tags = block.tags().map(|column| column.name.clone());
        let mut names: Vec<Arc<str>> = tags.filter(|tag| !self.by.except.contains(tag)).collect();
        names.sort();
        names
    }

    fn group(
        &mut self,
        batch: &Batch,
        names: &[Arc<str>],
        columns: &[Option<&Words>],
        codes: &[u32],
    ) -> Arc<Group> {
        let word = |(words, &code): (&Option<&Words>, &u32)| {
            words.and_then(|words| words.words.get(code as usize).cloned())
        };
        let values: Vec<Option<Arc<str>>> = columns.iter().zip(codes).map(word).collect();
        let measurement = &batch.block.origin.measurement;
        let key = (self.by.measurement.then(|| measurement.clone()), values);
        // With `groupBy(*)` the set of tags in the block is part of the group.
        let known = self.groups.get(&key).filter(|group| {
            !self.by.all
                || group
                    .tags
                    .iter()
                    .map(|(tag, _)| tag)
                    .eq(present(names, &key.1))
        });
        if let Some(group) = known {
            return group.clone();
        }
        let tags = names
            .iter()
            .zip(&key.1)
            .filter_map(|(name, value)| match value {
                None if self.by.all => None,
                None => Some((name.clone(), self.empty.clone())),
                Some(value) => Some((name.clone(), value.clone())),
            });
        let group = Arc::new(Group {
            tags: tags.collect(),
            measurement: key.0.clone(),
        });
        let bytes = group.bytes() + 48 + size_of_val(&*key.1);
        if self.groups.len() >= self.limits.series || self.bytes + bytes > self.limits.bytes {
            self.forget();
        }
        self.bytes += bytes;
        self.groups.insert(key, group.clone());
        group
    }
}

/// Returns the names of tags that have a value.
fn present<'a>(
    names: &'a [Arc<str>],
    values: &'a [Option<Arc<str>>],
) -> impl Iterator<Item = &'a Arc<str>> {
    let both = names.iter().zip(values);
    both.filter(|(_, value)| value.is_some())
        .map(|(name, _)| name)
}

/// The maximum number of rows, because a batch with this many groups needs many times its own memory.
const ROWS: usize = 1 << 16;

impl Operator for GroupByOperator {
    fn most_rows(&self) -> usize {
        ROWS
    }

    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let window = match flow {
            Flow::Points(batch) => {
                let mut separated = self.separate(&batch);
                if self.in_order && separated.len() > 1 {
                    separated = in_order(&separated);
                }
                return out.extend(separated.into_iter().map(Flow::Points));
            }
            Flow::Window(window) => window,
        };
        // The index of each group, in the order in which the groups appear.
        let mut places: HashMap<Arc<Group>, usize> = HashMap::default();
        let mut windows: Vec<Window> = Vec::new();
        for batch in &window.batches {
            if batch.rows.is_empty() {
                continue;
            }
            for part in self.separate(batch) {
                let place = *places.entry(part.group.clone()).or_insert(windows.len());
                if place == windows.len() {
                    windows.push(Window {
                        batches: Vec::new(),
                        ..window
                    });
                }
                windows[place].batches.push(part);
            }
        }
        out.extend(windows.into_iter().map(Flow::Window));
    }
}

/// Returns the points in their original order, with a batch for each sequence of consecutive rows of one group.
fn in_order(groups: &[Batch]) -> Vec<Batch> {
    let rows = groups.iter().enumerate();
    let rows =
        rows.flat_map(|(place, batch)| batch.rows.iter().map(move |row| (row as u32, place)));
    let mut rows: Vec<(u32, usize)> = rows.collect();
    rows.sort_unstable();
    let runs = rows.chunk_by(|(_, a), (_, b)| a == b).map(|run| {
        let ((first, place), (last, _)) = (run[0], run[run.len() - 1]);
        let all = (last - first) as usize + 1 == run.len();
        groups[place].with_rows(match all {
            true => Rows::Range(first, last + 1),
            false => Rows::from_iter(run.iter().map(|(row, _)| *row)),
        })
    });
    runs.collect()
}

fn tag_words<'a>(block: &'a Block, tag: &str) -> Option<&'a Words> {
    block.tags().find_map(|column| match &*column.data {
        Data::Tag(words) if *column.name == *tag => Some(words),
        _ => None,
    })
}
