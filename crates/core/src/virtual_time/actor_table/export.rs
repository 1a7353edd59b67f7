//! The serializable contents of a shard's actor table.

use super::{ActorTable, NAMED, NamedRange, PAGE, PAGE_BITS, Page};
use crate::contract::Spawn;
use crate::contract::spawn::Names;
use std::ops::Range;

/// Actors that occupy complete pages.
pub(in super::super) struct GroupEntry<'a> {
    pub(in super::super) first: u32,
    pub(in super::super) parent: u32,
    pub(in super::super) spawn: &'a Spawn,
    pub(in super::super) population: u32,
    /// The numbers of this shard's pages.
    pub(in super::super) pages: Vec<u32>,
}

/// Actors that share a page.
pub(in super::super) struct BatchEntry {
    pub(in super::super) first: u32,
    pub(in super::super) count: u8,
    pub(in super::super) living: u8,
    pub(in super::super) parent: u32,
    pub(in super::super) watched: bool,
    pub(in super::super) names: Names,
    pub(in super::super) population: u32,
}

/// The addresses of one page that belong to a group.
pub(in super::super) fn addresses_of(page: u32, first: u32, count: u32) -> Range<u32> {
    let begin = page << PAGE_BITS;
    begin..begin + (first + count - begin).min(PAGE)
}

impl ActorTable {
    /// Returns the groups, in the order of addresses.
    pub(in super::super) fn groups(&self) -> Vec<GroupEntry<'_>> {
        let seen = self.groups.iter().map(|group| {
            let page = group.first >> PAGE_BITS;
            let pages = page..page + group.spawn.count().div_ceil(PAGE);
            GroupEntry {
                first: group.first,
                parent: group.parent,
                spawn: &group.spawn,
                population: group.population,
                pages: pages.filter(|page| self.owns(page << PAGE_BITS)).collect(),
            }
        });
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by_key(|group| group.first);
        seen
    }

    /// Returns the batches, in the order of addresses.
    pub(in super::super) fn batches(&self) -> Vec<BatchEntry> {
        let seen = self.batches.iter().map(|batch| BatchEntry {
            first: batch.first,
            count: batch.count,
            living: batch.living,
            parent: batch.parent,
            watched: batch.watched,
            names: batch.name.to_names(),
            population: batch.population,
        });
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by_key(|batch| batch.first);
        seen
    }

    /// Returns, in order, the pages shared by batches that cannot get further actors.
    pub(in super::super) fn closed_pages(&self) -> Vec<u32> {
        let pages = self.batches.iter().map(|batch| batch.first >> PAGE_BITS);
        let mut closed: Vec<_> = pages.filter(|&page| self.is_closed(page)).collect();
        closed.sort_unstable();
        closed.dedup();
        closed
    }

    fn is_closed(&self, number: u32) -> bool {
        let Page::Shared { page } = self.page(number) else {
            return false;
        };
        self.shared.get(page).is_some_and(|page| page.closed)
    }

    /// Returns the names of removed actors.
    pub(in super::super) fn forgotten_names(&self) -> &[NamedRange] {
        &self.ended
    }

    /// Adds names of removed spawns.
    pub(in super::super) fn add_forgotten_names(&mut self, names: Vec<NamedRange>) {
        let mut names = names;
        names.retain(|range| range.first < NAMED);
        self.ended.extend(names);
    }

    /// Sets the number of live actors of the batch that starts at this address.
    pub(in super::super) fn set_living(&mut self, first: u32, living: u8) {
        let batch = self.batch_number(first);
        if let Some(batch) = batch.and_then(|number| self.batches.get_mut(number)) {
            batch.living = living;
        }
    }
}
