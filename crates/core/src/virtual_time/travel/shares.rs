//! The division of a saved run among shards, regardless of the number of shards that saved it.

use super::part::{AnyPart, Extent, PartData, SavedGroup, SavedPage};
use super::{CodecError, Snapshot, SnapshotError};
use crate::virtual_time::actor_table::{NamedRange, ROUND};
use crate::virtual_time::addresses::PAGE_BITS;
use crate::virtual_time::shard::{ActorRecords, Counters};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A location in a saved run: a part, and an extent in this part.
#[derive(Clone)]
pub(in super::super) struct PartLocation {
    number: usize,
    part: AnyPart,
    extent: Extent,
}

impl PartLocation {
    /// Reads the contents of the location.
    pub(in super::super) fn read(&self, into: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let read = self.part.read(&self.extent, into);
        read.map_err(|error| self.corrupt(error))
    }

    /// Creates the error of invalid contents at this location.
    pub(in super::super) fn corrupt(&self, error: CodecError) -> SnapshotError {
        SnapshotError::corrupt(self.number, error)
    }
}

/// The pages of a group that a shard gets.
pub(in super::super) struct GroupShare {
    pub(in super::super) group: Arc<SavedGroup>,
    /// The pages by number.
    pub(in super::super) pages: BTreeMap<u32, (SavedPage, PartLocation)>,
}

/// The share of one shard.
#[derive(Default)]
pub(in super::super) struct Share {
    pub(in super::super) groups: BTreeMap<u32, GroupShare>,
    pub(in super::super) page_data: Vec<PartLocation>,
    pub(in super::super) closed: Vec<u32>,
    /// The process states that the parts contain.
    pub(in super::super) states: Vec<Vec<u8>>,
    pub(in super::super) actor_records: ActorRecords,
    pub(in super::super) names: Vec<NamedRange>,
    pub(in super::super) counters: Option<Counters>,
    pub(in super::super) busy: bool,
    /// The number of the shard's actors that have begun and not ended.
    pub(in super::super) live: u64,
}

/// Divides the parts of a saved run among shards, and returns the `wanted` shares. `owner` returns the shard of an
/// address.
pub(in super::super) fn shares(
    snapshot: &Snapshot,
    shards: usize,
    wanted: Range<usize>,
    owner: impl Fn(u32) -> usize,
) -> Result<Vec<Share>, SnapshotError> {
    let mut shares: Vec<Share> = (0..shards).map(|_| Share::default()).collect();
    for (number, part) in (1..).zip(snapshot.stored()) {
        let corrupt = |error| SnapshotError::corrupt(number, error);
        let index = part.index().map_err(corrupt)?;
        let location = |extent| PartLocation {
            number,
            part: part.clone(),
            extent,
        };
        deal_data(index.data, &mut shares, &owner);
        for (group, pages) in index.groups {
            let group = Arc::new(group);
            for page in pages {
                let to = checked_page(page.page).map_err(corrupt)?;
                let to = owner(to);
                let share = &mut shares[to];
                share.live += u64::from(page.live);
                if !wanted.contains(&to) {
                    continue;
                }
                let entry = share.groups.entry(group.first);
                let entry = entry.or_insert_with(|| GroupShare {
                    group: Arc::clone(&group),
                    pages: BTreeMap::new(),
                });
                // A part contains the parameters only if some of its actors have not begun, so a group with parameters
                // replaces one without.
                if entry.group.origin.parameters.is_none() {
                    entry.group = Arc::clone(&group);
                }
                let place = (page, location(page.actors));
                entry.pages.insert(page.page, place);
            }
        }
        for data in index.page_data {
            if u32::from(data.residue) >= ROUND {
                let residue = data.residue.into();
                return Err(corrupt(CodecError::Number(residue, "number of pages")));
            }
            let to = owner(u32::from(data.residue) << PAGE_BITS);
            shares[to].live += u64::from(data.live);
            if wanted.contains(&to) {
                shares[to].page_data.push(location(data.contents));
            }
        }
    }
    // The first shard gets all counters, so the live actors of other shards are subtracted from it.
    let live: u64 = shares.iter().map(|share| share.live).sum();
    let others = live - shares[0].live;
    let counters = shares[0].counters.as_mut();
    let counters = counters.filter(|counted| {
        let all = counted.begun.checked_add(counted.never);
        all.is_some() && all == live.checked_add(counted.ended)
    });
    let Some(counters) = counters else {
        let source = CodecError::Number(live, "number of live actors");
        return Err(SnapshotError::corrupt(1, source));
    };
    counters.begun = counters.begun.saturating_sub(others);
    shares.truncate(wanted.end);
    shares.drain(..wanted.start.min(wanted.end));
    Ok(shares)
}

/// Returns the first address of a page, if the page can exist.
fn checked_page(page: u32) -> Result<u32, CodecError> {
    match page >> (u32::BITS - PAGE_BITS) {
        0 => Ok(page << PAGE_BITS),
        _ => Err(CodecError::Number(page.into(), "page")),
    }
}

/// Distributes the records of actors by address; the first shard gets all data that belongs to no actor.
fn deal_data(data: PartData, shares: &mut [Share], owner: &impl Fn(u32) -> usize) {
    let PartData {
        busy,
        counters,
        actor_records,
        names,
        closed,
        state,
    } = data;
    let actor_records = actor_records.deal(shares.len(), owner);
    for (share, actor_records) in shares.iter_mut().zip(actor_records) {
        share.actor_records.add(actor_records);
    }
    for page in closed {
        shares[owner(page << PAGE_BITS)].closed.push(page);
    }
    let first = &mut shares[0];
    first.busy |= busy;
    first.names.extend(names);
    first.states.push(state);
    match &mut first.counters {
        None => first.counters = Some(counters),
        Some(sum) => sum.add(counters),
    }
}
