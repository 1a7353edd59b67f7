//! The data of an `epoll` object: the watched objects, and which of them have changed.

use crate::tcp::Id;
use std::collections::{BTreeMap, VecDeque};

/// The events that are always reported.
pub(crate) const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

/// An object that an epoll object watches.
#[derive(Debug)]
pub(crate) struct Entry {
    pub id: Id,
    pub events: u32,
    pub data: u64,
    pub is_marked: bool,
    /// True for a one-shot entry that has fired.
    pub is_disarmed: bool,
}

/// An epoll object.
#[derive(Debug, Default)]
pub(crate) struct Epoll {
    pub entries: BTreeMap<i32, Entry>,
    /// The descriptors of the marked entries, in the order in which they were marked.
    pub marks: VecDeque<i32>,
}

impl Epoll {
    /// Marks the entry of this descriptor, because its object has changed.
    pub(crate) fn mark(&mut self, fd: i32) {
        if let Some(entry) = self.entries.get_mut(&fd)
            && !entry.is_marked
            && !entry.is_disarmed
        {
            entry.is_marked = true;
            self.marks.push_back(fd);
        }
    }

    /// Removes the mark of this descriptor.
    pub(crate) fn unmark(&mut self, fd: i32) {
        self.marks.retain(|&marked| marked != fd);
    }

    /// Removes the entry of this descriptor, because its object was closed.
    pub(crate) fn forget(&mut self, fd: i32, id: Id) {
        if self.entries.get(&fd).is_some_and(|entry| entry.id == id) {
            self.entries.remove(&fd);
            self.unmark(fd);
        }
    }

    /// Returns the events for which marked entries wait, with their objects.
    pub(crate) fn marked(&self) -> impl Iterator<Item = (u32, Id)> {
        let entries = self.marks.iter().filter_map(|fd| self.entries.get(fd));
        entries.map(|entry| (entry.events | ALWAYS, entry.id))
    }

    /// Returns the watched objects.
    pub(crate) fn objects(&self) -> Vec<Id> {
        self.entries.values().map(|entry| entry.id).collect()
    }
}
