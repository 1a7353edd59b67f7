//! Options of an edge: its capacity, its overflow policy, and the handles that abort it.

use super::abort::AbortHandle;
use std::fmt;
use std::str::FromStr;

/// The maximum capacity of an edge, 2^24 messages.
pub const MAX_CAPACITY: usize = 1 << 24;

/// The treatment of a message for a full edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// `send` waits until the edge has capacity.
    #[default]
    Block,
    /// The message is dropped and counted.
    DropNewest,
    /// The oldest buffered message is dropped and counted.
    DropOldest,
    /// The edge is aborted.
    Abort,
}

impl Overflow {
    /// All policies, in the order in which error messages list them.
    pub const ALL: [Overflow; 4] = [
        Overflow::Block,
        Overflow::DropNewest,
        Overflow::DropOldest,
        Overflow::Abort,
    ];

    /// Returns the name of the policy, which [`FromStr`] parses.
    pub const fn name(self) -> &'static str {
        match self {
            Overflow::Block => "block",
            Overflow::DropNewest => "drop_newest",
            Overflow::DropOldest => "drop_oldest",
            Overflow::Abort => "abort",
        }
    }
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for an unknown name of an overflow policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no overflow policy {0:?}; give one of block, drop_newest, drop_oldest, abort")]
pub struct OverflowError(pub String);

impl FromStr for Overflow {
    type Err = OverflowError;

    fn from_str(name: &str) -> Result<Overflow, OverflowError> {
        Overflow::ALL
            .into_iter()
            .find(|policy| policy.name() == name)
            .ok_or_else(|| OverflowError(name.to_owned()))
    }
}

/// The options of an edge, for every flavour.
///
/// ```
/// use corsair::edge::{AbortHandle, Options, Overflow};
/// let graph = AbortHandle::new();
/// let options = Options::new(64)
///     .overflow("drop_oldest".parse::<Overflow>()?)
///     .abort_handle(graph.clone());
/// # assert_eq!(options.capacity(), 64);
/// # Ok::<(), corsair::edge::OverflowError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    capacity: usize,
    weight_limit: u64,
    overflow: Overflow,
    statistics: bool,
    handles: Vec<AbortHandle>,
}

impl Options {
    /// Creates the options of an edge with this capacity, at most [`MAX_CAPACITY`]. By default, the edge blocks when it
    /// is full and keeps statistics.
    ///
    /// A [`queue`](super::queue()) of capacity 0 is a rendezvous: a message moves from a waiting sender to
    /// the receiver without a buffer. A [`ring`](super::ring()) has a capacity of at least 1.
    pub const fn new(capacity: usize) -> Options {
        Options {
            capacity: match capacity {
                0..MAX_CAPACITY => capacity,
                _ => MAX_CAPACITY,
            },
            weight_limit: u64::MAX,
            overflow: Overflow::Block,
            statistics: true,
            handles: Vec::new(),
        }
    }

    /// Limits the total weight of the buffered messages, by [`Weigh`](super::Weigh). An empty edge accepts
    /// any message, so that one that is heavier than the limit does not wait forever.
    ///
    /// ```
    /// use corsair::edge::{self, Bytes, Options};
    /// let options = Options::new(64).weight_limit(1 << 20); // 64 messages, 1 MiB
    /// let (mut tx, _rx) = edge::queue_weighed::<Vec<u8>, Bytes>(options);
    /// tx.try_send(vec![0; 2 << 20]).expect("it is empty");
    /// assert!(tx.try_send(vec![0]).is_err(), "it holds more than the limit");
    /// ```
    #[must_use]
    pub fn weight_limit(mut self, limit: u64) -> Options {
        self.weight_limit = limit;
        self
    }

    /// Sets the overflow policy. The default is [`Overflow::Block`].
    #[must_use]
    pub fn overflow(mut self, policy: Overflow) -> Options {
        self.overflow = policy;
        self
    }

    /// Turns statistics on or off; the default is on. Without statistics, a [`Meter`](super::Meter) still reports the
    /// state of the edge and the number of buffered messages.
    #[must_use]
    pub fn statistics(mut self, keep: bool) -> Options {
        self.statistics = keep;
        self
    }

    /// Adds a handle that can abort the edge. An edge can have several handles, for example one for the complete graph
    /// and one for a part of it. If the handle was aborted before, the edge is aborted from the start.
    #[must_use]
    pub fn abort_handle(mut self, handle: AbortHandle) -> Options {
        self.handles.push(handle);
        self
    }

    /// Returns the maximum number of messages that the edge buffers.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the limit by weight; [`u64::MAX`] by default.
    pub const fn limit(&self) -> u64 {
        self.weight_limit
    }

    /// Returns the overflow policy.
    pub const fn overflow_policy(&self) -> Overflow {
        self.overflow
    }

    /// Returns true if the edge keeps statistics.
    pub const fn keeps_statistics(&self) -> bool {
        self.statistics
    }

    /// Returns the handles that can abort the edge.
    pub(super) fn handles(&self) -> &[AbortHandle] {
        &self.handles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_by_the_names_they_are_shown_with() {
        for policy in Overflow::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
    }

    // Guarantee: core-101.
    #[test]
    fn an_unknown_policy_is_answered_with_those_there_are() {
        let error = "newest".parse::<Overflow>().expect_err("there is none");
        for policy in Overflow::ALL {
            assert!(error.to_string().contains(policy.name()), "{error}");
        }
        assert!(error.to_string().contains("\"newest\""), "{error}");
    }

    #[test]
    fn capacities_are_brought_into_range() {
        assert_eq!(Options::new(0).capacity(), 0);
        assert_eq!(Options::new(3).capacity(), 3);
        assert_eq!(Options::new(usize::MAX).capacity(), MAX_CAPACITY);
    }
}
