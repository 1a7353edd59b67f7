//! Entries of the write-ahead log: the points of a write, and the position of its source.

use super::Engine;
use super::parse::ParsedWrite;
use crate::batch::Rows;
use crate::block::encoding::{put, take};
use crate::block::{Block, Origin};
use std::borrow::Cow;
use std::sync::Arc;

/// The bytes with which an entry begins. Entries of earlier versions began with the length of a database's name.
const FORMAT: &[u8] = b"\xffblocks 1";

/// The head of an entry, which is followed by blocks.
#[derive(serde::Serialize, serde::Deserialize)]
struct Head<'a> {
    database: Cow<'a, str>,
    policy: Cow<'a, str>,
    generation: u64,
    /// The source of the lines, and the position at which the source continues.
    source: Option<(Cow<'a, str>, i64)>,
    /// The number of blocks.
    blocks: usize,
    /// The order of the lines: indices of blocks, each with the number of its next rows.
    order: Vec<(usize, usize)>,
}

impl ParsedWrite {
    /// Appends the write as an entry to a record. A write without blocks has no entry.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        let Some((first, _)) = self.blocks.first() else {
            return;
        };
        let order = self.order.iter().map(|(block, rows)| (*block, rows.len()));
        let source = self.source.as_ref();
        let head = Head {
            database: (&*first.origin.database).into(),
            policy: (&*first.origin.policy).into(),
            generation: self.generation,
            source: source.map(|(name, next)| ((&**name).into(), *next)),
            blocks: self.blocks.len(),
            order: order.collect(),
        };
        bytes.extend_from_slice(FORMAT);
        put(&head, bytes);
        for (block, _) in &self.blocks {
            block.encode(bytes);
        }
    }
}

impl Engine {
    /// Reads the write at the beginning of `bytes`, and removes it from there. Only tasks that existed when the write
    /// was logged take its points.
    pub(super) fn read_entry(&self, bytes: &mut &[u8]) -> Result<ParsedWrite, String> {
        let rest = bytes.strip_prefix(FORMAT);
        *bytes = rest.ok_or("it was written by another version of corsair-stream")?;
        let damaged = "its points are not complete";
        let head: Head<'_> = take(bytes).ok_or(damaged)?;
        let routes = self.shared.routes();
        let (database, policy) = (Arc::from(head.database), Arc::from(head.policy));
        let takers = |measurement: Option<&Arc<str>>| {
            let mut takers = routes.look_up(&database, &policy, measurement);
            takers.retain(|taker| taker.since() <= head.generation);
            takers
        };
        let block = |_| {
            let origin = |measurement| {
                Arc::new(Origin {
                    database: database.clone(),
                    policy: policy.clone(),
                    measurement,
                })
            };
            let block = Block::decode(bytes, origin)?;
            let takers = takers(Some(&block.origin.measurement));
            Some((Arc::new(block), takers))
        };
        let blocks: Option<Vec<_>> = (0..head.blocks).map(block).collect();
        let blocks = blocks.ok_or(damaged)?;
        let mut next_rows = vec![0_u32; blocks.len()];
        let rows = |(block, count): (usize, usize)| {
            let next = next_rows.get_mut(block)?;
            let from = *next;
            *next = from.checked_add(u32::try_from(count).ok()?)?;
            let exist = *next as usize <= blocks[block].0.rows();
            exist.then_some((block, Rows::Range(from, *next)))
        };
        let order = head.order.into_iter().map(rows).collect::<Option<_>>();
        Ok(ParsedWrite {
            takers_of_all: takers(None),
            order: order.ok_or(damaged)?,
            blocks,
            generation: head.generation,
            source: head.source.map(|(name, next)| (name.into(), next)),
            ..ParsedWrite::default()
        })
    }
}
