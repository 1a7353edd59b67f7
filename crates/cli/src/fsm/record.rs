//! What is written of a run: kept from many threads while it runs, put in order afterwards.

use corsair::fsm::Msg;
use corsair::{Addr, Envelope, Time};
use std::sync::{Mutex, PoisonError};

/// A pirate has got to know another, or began, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// The pirate's index.
    pub pirate: u32,
    /// What changed.
    pub what: What,
}

/// What changed about a pirate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It began.
    Began,
    /// It got to know the pirate with this index.
    Met(u32),
    /// It ended.
    Ended,
}

/// A message that was received.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// When.
    pub at: Time,
    /// Who received it.
    pub to: Addr,
    /// Who sent it.
    pub from: Addr,
    /// Its number among the messages of that sender.
    pub sequence: u32,
    /// The message.
    pub message: Msg,
}

impl Received {
    /// The record of a message and its envelope.
    pub fn new(at: Time, to: Addr, message: &Msg, envelope: &Envelope) -> Received {
        let sequence = envelope.span.as_u64() as u32;
        Received {
            at,
            to,
            from: envelope.from,
            sequence,
            message: *message,
        }
    }
}

/// Records of one kind, from many threads.
///
/// They lie in several parts, each behind a lock of its own, by the actor concerned; so threads
/// that run different actors seldom meet, and the records of one actor keep their order.
#[derive(Debug)]
pub struct Records<T> {
    parts: Box<[Part<T>]>,
}

/// In a cache line of its own, so that taking one lock does not slow another.
#[derive(Debug)]
#[repr(align(128))]
struct Part<T>(Mutex<Vec<T>>);

/// How many parts there are.
const PARTS: usize = 64;

/// So many actors with neighbouring numbers share a part: they mostly run on one thread.
const NEIGHBOURS: u32 = 256;

impl<T> Default for Records<T> {
    fn default() -> Self {
        Records {
            parts: (0..PARTS).map(|_| Part(Mutex::new(Vec::new()))).collect(),
        }
    }
}

impl<T> Records<T> {
    /// Adds what concerns the actor with this number.
    pub fn push(&self, actor: u32, record: T) {
        let part = &self.parts[(actor / NEIGHBOURS) as usize % PARTS];
        part.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record);
    }

    /// Takes all records, ordered by `key`; those with equal keys that concern one actor keep
    /// their order.
    pub fn take_ordered<K: Ord>(&self, key: impl Fn(&T) -> K) -> Vec<T> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.append(&mut part.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all.sort_by_key(key);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_threads_come_out_in_one_order() {
        let records = Records::default();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let records = &records;
                scope.spawn(move || {
                    for n in 0..1000u32 {
                        let actor = thread * 300 + n % 300;
                        records.push(actor, (n / 100, actor, n));
                    }
                });
            }
        });
        let all = records.take_ordered(|&(time, actor, _)| (time, actor));
        assert_eq!(all.len(), 4000);
        assert!(
            all.is_sorted(),
            "times, then actors, then the order of each actor's own"
        );
        assert!(records.take_ordered(|_| 0).is_empty());
    }
}
