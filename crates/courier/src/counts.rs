//! Counts of limited resources by key: sockets of a user, connections of an address, bytes of answers.

use crate::model::UserId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

type Amounts<K> = Arc<Mutex<HashMap<K, usize>>>;

/// Counts by key. Clones share their counts. See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Counts<K> {
    amounts: Amounts<K>,
}

/// A reserved amount, which is released when this guard is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<K: Copy + Eq + Hash> {
    amounts: Amounts<K>,
    key: K,
    amount: usize,
}

impl<K: Copy + Eq + Hash> Counts<K> {
    pub fn new() -> Counts<K> {
        Counts {
            amounts: Amounts::default(),
        }
    }

    /// Reserves an amount for this key, unless the key would then exceed `most`.
    pub fn take(&self, key: K, amount: usize, most: usize) -> Option<Reservation<K>> {
        let mut amounts = self.amounts.lock();
        let held = amounts.get(&key).copied().unwrap_or(0);
        let after = held.checked_add(amount).filter(|&after| after <= most)?;
        amounts.insert(key, after);
        Some(Reservation {
            amounts: self.amounts.clone(),
            key,
            amount,
        })
    }
}

impl<K: Copy + Eq + Hash> Reservation<K> {
    /// Releases everything beyond this amount.
    pub fn shrink(&mut self, to: usize) {
        let back = self.amount.saturating_sub(to);
        self.give_back(back);
    }

    fn give_back(&mut self, back: usize) {
        self.amount -= back;
        let mut amounts = self.amounts.lock();
        if let Some(held) = amounts.get_mut(&self.key) {
            *held -= back;
            if *held == 0 {
                amounts.remove(&self.key);
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Drop for Reservation<K> {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

/// The bytes of pages that clients have not read yet.
#[derive(Debug)]
pub(crate) struct Unread {
    pub users: Counts<UserId>,
    pub all: Counts<()>,
}

impl Unread {
    pub fn new() -> Unread {
        Unread {
            users: Counts::new(),
            all: Counts::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_holds_no_more_than_its_limit_and_gets_it_back() {
        let counts = Counts::new();
        let first = counts.take(1, 2, 3).unwrap();
        assert!(counts.take(1, 2, 3).is_none());
        let mut second = counts.take(1, 1, 3).unwrap();
        assert!(counts.take(2, 3, 3).is_some());
        second.shrink(0);
        assert!(counts.take(1, 1, 3).is_some());
        drop((first, second));
        assert!(counts.amounts.lock().is_empty());
    }
}
