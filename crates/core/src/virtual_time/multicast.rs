//! Multicasts: messages of one actor to many, made by the shards of the receivers.
//!
//! If the shard of an actor that sends to all others created all messages, the other shards would wait. So a multicast
//! is recorded once, with the sequence numbers of its messages. At the barrier all shards create the messages for their
//! own actors, in parallel. The result is the same, because the time and order of a message depend on its sender, its
//! number and its receiver, not on the shard that makes it.

use super::addresses::PAGE;
#[cfg(feature = "serde")]
use super::travel::CodecError;
use super::turn_cell::TurnCell;
use std::ops::Range;
use std::sync::Arc;

/// A multicast without its messages.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct MulticastLabel {
    pub(super) from: u32,
    pub(super) sent: u64,
    /// The sequence number of the first message to the first receiver.
    pub(super) seq: u32,
    /// The first receiver.
    pub(super) first: u32,
    pub(super) count: u32,
}

impl MulticastLabel {
    /// Returns the indices of the receivers in parts, each of which is in one page of addresses.
    pub(super) fn pages(self) -> impl Iterator<Item = Range<u32>> {
        let end = move |at: u32| {
            let left = PAGE - self.first.wrapping_add(at) % PAGE;
            at.saturating_add(left).min(self.count)
        };
        let begin = move |at: u32| (at < self.count).then_some(at);
        let pages = std::iter::successors(begin(0), move |&at| begin(end(at)));
        pages.map(move |at| at..end(at))
    }
}

/// A multicast.
pub(super) struct Multicast<S> {
    pub(super) label: MulticastLabel,
    pub(super) bodies: Arc<dyn Bodies<S>>,
}

impl<S> Clone for Multicast<S> {
    fn clone(&self) -> Self {
        Multicast {
            label: self.label,
            bodies: Arc::clone(&self.bodies),
        }
    }
}

/// The messages for each receiver. `S` is the shard that makes them.
pub(super) trait Bodies<S>: Send + Sync {
    /// Schedules the messages for the receivers with the given indices.
    fn send(&self, label: MulticastLabel, receivers: Range<u32>, shard: TurnCell<S>);

    /// The name of the messages' kind; `None` for a closure, which cannot be sent to another process.
    #[cfg(feature = "serde")]
    fn portable(&self) -> Option<&'static str>;

    /// Writes the parameters of the messages.
    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError>;
}

/// The multicasts whose messages the receivers' shards make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// No multicast: there is one shard, or messages have more metadata than the sender.
    None,
    /// Multicasts that can be sent to other processes.
    #[cfg(feature = "serde")]
    Portable,
    /// All multicasts.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(first: u32, count: u32) -> Vec<Range<u32>> {
        let label = MulticastLabel {
            from: 0,
            sent: 0,
            seq: 1,
            first,
            count,
        };
        label.pages().collect()
    }

    #[test]
    fn every_receiver_is_in_one_part_and_every_part_in_one_page() {
        assert!(pages(7, 0).is_empty());
        assert_eq!(pages(256, 257), [0..256, 256..257]);
        assert_eq!(pages(250, 10), [0..6, 6..10]);
        assert_eq!(pages(3, 600), [0..253, 253..509, 509..600]);
        let last = u32::MAX - 300;
        assert_eq!(pages(last, 300), [0..45, 45..300]);
    }
}
