//! Where actors are, as one shard sees it: the shard of every page, and who was spawned there.

use super::pages::{PAGE_BITS, Page};
use crate::contract::{Addr, Spawn};

/// What all shards know about the actors of one spawn.
pub(super) struct Group {
    pub(super) first: u32,
    pub(super) parent: u32,
    pub(super) spawn: Spawn,
}

/// The pages of all shards, and the groups whose actors live there.
pub(super) struct Places {
    /// The shard of each page.
    owners: Vec<u16>,
    pub(super) pages: Vec<Page>,
    pub(super) groups: Vec<Group>,
    shards: usize,
}

impl Places {
    pub(super) fn new(shards: usize) -> Places {
        Places {
            owners: Vec::new(),
            pages: Vec::new(),
            groups: Vec::new(),
            shards,
        }
    }

    /// The shard that has an address; nobody's and unknown ones are the first shard's.
    #[inline(always)]
    pub(super) fn owner(&self, to: u32) -> usize {
        if self.shards == 1 {
            return 0;
        }
        self.owners
            .get((to >> PAGE_BITS) as usize)
            .map_or(0, |&shard| shard as usize)
    }

    /// The next page's number.
    pub(super) fn next_page(&self) -> u32 {
        self.pages.len() as u32
    }

    /// The shard to which a page falls.
    pub(super) fn owner_of_page(&self, page: u32) -> usize {
        page as usize % self.shards
    }

    pub(super) fn add_page(&mut self, page: Page) {
        self.owners
            .push(self.owner_of_page(self.next_page()) as u16);
        self.pages.push(page);
    }

    /// The index of the group that an address belongs to, if it is one of an actor.
    #[inline]
    pub(super) fn group_index(&self, addr: u32) -> Option<usize> {
        let page = self.pages.get((addr >> PAGE_BITS) as usize)?;
        let group = &self.groups[page.group as usize];
        (addr.wrapping_sub(group.first) < group.spawn.count()).then_some(page.group as usize)
    }

    /// The group that an address belongs to, if it is one of an actor.
    pub(super) fn group_of(&self, addr: u32) -> Option<&Group> {
        self.group_index(addr).map(|index| &self.groups[index])
    }

    /// An actor's name, made now.
    pub(super) fn name_of(&self, addr: u32) -> String {
        match self.group_of(addr) {
            Some(group) => group.spawn.name(addr - group.first),
            None => Addr(addr).to_string(),
        }
    }

    /// Who spawned an actor.
    pub(super) fn parent_of(&self, addr: u32) -> u32 {
        self.group_of(addr).map_or(u32::MAX, |group| group.parent)
    }
}
