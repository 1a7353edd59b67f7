//! Stashed events: those that actors have skipped in a selective receive.
//!
//! One table per shard has a list for each actor, so an actor without stashed events costs four bytes. Lists are in the
//! order of arrival; adding an entry and removing any entry take O(1) time.
//!
//! Entries are numbered as they are added. A wait that has searched a list stores the number of the last entry, and
//! next time searches only later entries.

use super::event::{Head, ScheduledEvent};

/// The stashed events of a shard's actors. An actor's list is a number in its header: 0 if it is empty, otherwise one
/// more than the index of its first entry.
pub(super) struct Stash<M> {
    entries: Vec<Entry<M>>,
    free: Vec<u32>,
    /// The number of entries ever added.
    added: u64,
}

/// An entry of a list. Lists are circular: the entry before the first is the last.
struct Entry<M> {
    /// The event; `None` while a predicate inspects it.
    event: Option<ScheduledEvent<M>>,
    number: u64,
    /// Indices of the neighbours in the ring.
    next: u32,
    before: u32,
}

impl<M> Stash<M> {
    pub(super) fn new() -> Stash<M> {
        Stash {
            entries: Vec::new(),
            free: Vec::new(),
            added: 0,
        }
    }

    /// Returns the number of entries ever added; no entry has a greater number.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Adds an event at the end of a list.
    #[cold]
    pub(super) fn push(&mut self, list: &mut u32, event: ScheduledEvent<M>) {
        self.added += 1;
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        let (next, before) = match list.checked_sub(1) {
            None => (at, at),
            Some(first) => (first, self.entries[first as usize].before),
        };
        let entry = Entry {
            event: Some(event),
            number: self.added,
            next,
            before,
        };
        if at as usize == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[at as usize] = entry;
        }
        self.entries[before as usize].next = at;
        self.entries[next as usize].before = at;
        if *list == 0 {
            *list = at + 1;
        }
    }

    /// Takes the first event of a list.
    #[cold]
    pub(super) fn pop(&mut self, list: &mut u32) -> Option<ScheduledEvent<M>> {
        while let Some(first) = list.checked_sub(1) {
            let event = self.entries[first as usize].event.take();
            self.unlink(list, first);
            // An entry has no event if a predicate has panicked while it borrowed the event.
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Returns the first entry of a list with a number above `seen`.
    pub(super) fn first_after(&self, list: u32, seen: u64) -> Option<u32> {
        let first = list.checked_sub(1)?;
        let mut at = self.entries[first as usize].before;
        if self.entries[at as usize].number <= seen {
            return None;
        }
        if self.entries[first as usize].number > seen {
            return Some(first);
        }
        // Entries added since are at the end of the list, and there are usually few of them.
        while self.entries[self.entries[at as usize].before as usize].number > seen {
            at = self.entries[at as usize].before;
        }
        Some(at)
    }

    /// Returns the entry after this one; `None` after the last entry.
    pub(super) fn next(&self, list: u32, at: u32) -> Option<u32> {
        let next = self.entries[at as usize].next;
        (next + 1 != list).then_some(next)
    }

    /// Returns an entry's event without its message; `None` while the event is lent.
    pub(super) fn head(&self, at: u32) -> Option<Head> {
        let event = self.entries[at as usize].event.as_ref();
        event.map(|event| event.head)
    }

    /// Returns the stashed event; `None` while a selective-receive predicate borrows it.
    #[cfg(feature = "serde")]
    pub(super) fn event(&self, at: u32) -> Option<&ScheduledEvent<M>> {
        self.entries[at as usize].event.as_ref()
    }

    /// Takes the event of an entry temporarily; [`Stash::put_back`] returns it.
    pub(super) fn lend(&mut self, at: u32) -> Option<(u64, ScheduledEvent<M>)> {
        let entry = &mut self.entries[at as usize];
        Some((entry.number, entry.event.take()?))
    }

    /// Returns true if the event of this entry is still lent, and the entry has not been reused since it was lent under
    /// this number.
    pub(super) fn is_lent(&self, at: u32, number: u64) -> bool {
        let entry = self.entries.get(at as usize);
        entry.is_some_and(|entry| entry.number == number && entry.event.is_none())
    }

    /// Returns a lent event.
    pub(super) fn put_back(&mut self, at: u32, event: ScheduledEvent<M>) {
        self.entries[at as usize].event = Some(event);
    }

    /// Removes an entry, whose event was taken, from its list.
    pub(super) fn unlink(&mut self, list: &mut u32, at: u32) {
        let Entry { next, before, .. } = self.entries[at as usize];
        self.entries[before as usize].next = next;
        self.entries[next as usize].before = before;
        self.entries[at as usize].number = 0;
        if *list == at + 1 {
            *list = if next == at { 0 } else { next + 1 };
        }
        self.free.push(at);
        if self.free.len() == self.entries.len() && self.entries.capacity() > LEAST {
            // All entries are free, so the memory of a backlog that has been handled is freed.
            self.entries = Vec::new();
            self.free = Vec::new();
        }
    }

    /// Takes all events of all lists.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = ScheduledEvent<M>> + use<M> {
        let all = std::mem::replace(self, Stash::new());
        all.entries.into_iter().filter_map(|entry| entry.event)
    }

    /// Returns the length of a list; O(n).
    pub(super) fn len(&self, list: u32) -> usize {
        let next = |&at: &u32| self.next(list, at);
        std::iter::successors(list.checked_sub(1), next).count()
    }
}

/// The capacity up to which a table stays allocated when it is empty.
const LEAST: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::event::Kind;
    use super::*;

    fn event(seq: u32) -> ScheduledEvent<()> {
        ScheduledEvent::bare(Head::new(0, Kind::Stop, 0, 0, seq, 0))
    }

    // Guarantee: core-31.
    #[test]
    fn lists_keep_their_order_and_share_the_table() {
        let mut stash = Stash::new();
        let (mut a, mut b) = (0, 0);
        for seq in 0..5 {
            stash.push(&mut a, event(seq));
            stash.push(&mut b, event(seq + 100));
        }
        assert_eq!(stash.len(a), 5);
        for seq in 0..5 {
            assert_eq!(stash.pop(&mut a).unwrap().head.seq, seq);
            stash.push(&mut b, event(seq + 105));
        }
        assert!(stash.pop(&mut a).is_none() && a == 0);
        for seq in 100..110 {
            assert_eq!(stash.pop(&mut b).unwrap().head.seq, seq);
        }
        assert_eq!((b, stash.len(b)), (0, 0));
        assert!(stash.entries.len() <= 10, "freed entries are used again");
    }

    #[test]
    fn a_second_look_begins_after_the_first_one() {
        let mut stash = Stash::new();
        let (mut list, mut other) = (0, 0);
        for seq in 0..4 {
            stash.push(&mut list, event(seq));
            stash.push(&mut other, event(50 + seq));
        }
        let seq = |stash: &mut Stash<()>, at: u32| {
            let (number, event) = stash.lend(at).unwrap();
            assert!(stash.is_lent(at, number));
            let seq = event.head.seq;
            stash.put_back(at, event);
            seq
        };
        let mut at = stash.first_after(list, 0);
        let mut all = Vec::new();
        while let Some(entry) = at {
            all.push(seq(&mut stash, entry));
            at = stash.next(list, entry);
        }
        assert_eq!(all, [0, 1, 2, 3]);
        let seen = stash.added();
        assert_eq!(stash.first_after(list, seen), None);
        stash.push(&mut other, event(60));
        assert_eq!(stash.first_after(list, seen), None);
        stash.push(&mut list, event(4));
        stash.push(&mut list, event(5));
        let new = stash.first_after(list, seen).unwrap();
        assert_eq!(seq(&mut stash, new), 4);
        // The other entries stay in order when one in the middle is removed.
        drop(stash.lend(new));
        stash.unlink(&mut list, new);
        let rest: Vec<_> = std::iter::from_fn(|| stash.pop(&mut list)).collect();
        assert_eq!(
            rest.iter().map(|event| event.head.seq).collect::<Vec<_>>(),
            [0, 1, 2, 3, 5]
        );
    }
}
