//! Events that actors have skipped in a selective receive, kept for later ones.
//!
//! One table per shard with a list per actor threaded through it, so that an actor that keeps
//! nothing pays four bytes. Lists are in order of arrival; adding is O(1), taking from the front
//! too.

use super::scheduled::Scheduled;

/// The kept events of a shard's actors. An actor's list is a number in its header: 0 is empty,
/// else one more than the index of its first entry.
pub(super) struct Kept<M> {
    entries: Vec<Entry<M>>,
    free: Vec<u32>,
}

struct Entry<M> {
    event: Option<Scheduled<M>>,
    /// The next of the same actor, as in the header.
    next: u32,
    /// In the first entry of a list: its last one.
    last: u32,
}

impl<M> Kept<M> {
    pub(super) fn new() -> Kept<M> {
        Kept {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Adds an event at the end of a list.
    #[cold]
    pub(super) fn push(&mut self, list: &mut u32, event: Scheduled<M>) {
        let entry = Entry {
            event: Some(event),
            next: 0,
            last: 0,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        let number = at + 1;
        if *list == 0 {
            *list = number;
            self.entries[at as usize].last = number;
        } else {
            let last = std::mem::replace(&mut self.entries[*list as usize - 1].last, number);
            self.entries[last as usize - 1].next = number;
        }
    }

    /// Takes the first event of a list.
    #[cold]
    pub(super) fn pop(&mut self, list: &mut u32) -> Option<Scheduled<M>> {
        let first = list.checked_sub(1)?;
        let Entry { event, next, last } = &mut self.entries[first as usize];
        let (event, next, last) = (event.take(), *next, *last);
        if next != 0 {
            self.entries[next as usize - 1].last = last;
        }
        *list = next;
        self.free.push(first);
        event
    }

    /// How many events a list has; O(n).
    pub(super) fn len(&self, list: u32) -> usize {
        let next = |&number: &u32| match self.entries[number as usize - 1].next {
            0 => None,
            next => Some(next),
        };
        std::iter::successors((list != 0).then_some(list), next).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheduled::{Head, Kind};
    use super::*;

    fn event(seq: u32) -> Scheduled<()> {
        Scheduled::bare(Head::new(0, Kind::Stop, 0, 0, seq, 0))
    }

    #[test]
    fn lists_keep_their_order_and_share_the_table() {
        let mut kept = Kept::new();
        let (mut a, mut b) = (0, 0);
        for seq in 0..5 {
            kept.push(&mut a, event(seq));
            kept.push(&mut b, event(seq + 100));
        }
        assert_eq!(kept.len(a), 5);
        for seq in 0..5 {
            assert_eq!(kept.pop(&mut a).unwrap().head.seq, seq);
            kept.push(&mut b, event(seq + 105));
        }
        assert!(kept.pop(&mut a).is_none() && a == 0);
        for seq in 100..110 {
            assert_eq!(kept.pop(&mut b).unwrap().head.seq, seq);
        }
        assert_eq!((b, kept.len(b)), (0, 0));
        assert!(kept.entries.len() <= 10, "freed entries are used again");
    }
}
