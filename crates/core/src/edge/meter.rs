//! What an edge has done so far.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whether an edge still takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It does.
    Open,
    /// The sending end has closed it or is gone. What is buffered is still received.
    Closed,
    /// It was aborted before everything was received.
    Aborted,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Open => "open",
            State::Closed => "closed",
            State::Aborted => "aborted",
        })
    }
}

/// What an edge has done so far.
///
/// Messages count 1 each, or what [`Weigh`](super::Weigh) says. When both ends rest,
/// `sent == received + dropped_by_abort + dropped_by_overflow` and what is buffered; while they
/// work, numbers may be a few messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeStatistics {
    /// Whether it still takes messages.
    pub state: State,
    /// How many messages it holds at most.
    pub capacity: usize,
    /// How many messages it holds now.
    pub buffered: usize,
    /// The most messages that it has held at once, as its sending end saw it.
    pub high_water: usize,
    /// Of how many `send` said that they were accepted, dropped ones included.
    pub sent: u64,
    /// How many were received.
    pub received: u64,
    /// How many were buffered when the edge was aborted.
    pub dropped_by_abort: u64,
    /// How many [`Overflow::DropNewest`](super::Overflow::DropNewest) and
    /// [`Overflow::DropOldest`](super::Overflow::DropOldest) have dropped.
    pub dropped_by_overflow: u64,
    /// How long `send` has waited for room, up to now; of several senders, how long any of them has.
    pub blocked_sending: Duration,
    /// How long `recv` has waited for messages, up to now.
    pub blocked_receiving: Duration,
}

impl EdgeStatistics {
    /// The statistics of an edge that does not count.
    pub(super) fn uncounted(state: State, capacity: usize, buffered: usize) -> EdgeStatistics {
        EdgeStatistics {
            state,
            capacity,
            buffered,
            high_water: 0,
            sent: 0,
            received: 0,
            dropped_by_abort: 0,
            dropped_by_overflow: 0,
            blocked_sending: Duration::ZERO,
            blocked_receiving: Duration::ZERO,
        }
    }
}

/// Reads the statistics of one edge, from any thread, also when both ends are gone.
///
/// It keeps the edge's memory, but no message. Reading does not disturb the ends of a
/// [`ring`](super::ring()); of a [`queue`](super::queue()) it may take a lock for a moment.
///
/// ```
/// use corsair::edge::{self, Options};
/// let (mut tx, rx) = edge::ring::<u32>(Options::new(8));
/// let meter = rx.meter();
/// tx.try_send(7).expect("there is room");
/// drop((tx, rx));
/// let read = meter.read();
/// assert_eq!((read.sent, read.dropped_by_abort), (1, 1));
/// ```
#[derive(Clone)]
pub struct Meter(Arc<dyn Source>);

impl Meter {
    pub(super) fn new(source: Arc<dyn Source>) -> Meter {
        Meter(source)
    }

    /// What the edge has done so far. Without
    /// [statistics](super::Options::statistics) everything but `state`, `capacity` and `buffered`
    /// is 0.
    pub fn read(&self) -> EdgeStatistics {
        self.0.read()
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meter").field(&self.read()).finish()
    }
}

/// An edge that can be read.
pub trait Source: Send + Sync {
    fn read(&self) -> EdgeStatistics;

    fn state(&self) -> State;

    /// How many messages it holds now, and at most.
    fn filled(&self) -> (usize, usize);
}

/// The state that either end can read of its edge.
macro_rules! of_the_edge {
    () => {
        /// Whether the edge still takes messages, and how it ended.
        pub fn state(&self) -> State {
            self.end.edge().state()
        }

        /// Whether the edge was aborted before everything was received.
        pub fn is_aborted(&self) -> bool {
            self.state() == State::Aborted
        }

        /// How many messages are buffered now.
        pub fn buffered(&self) -> usize {
            self.end.edge().filled().0
        }

        /// How many messages it holds at most.
        pub fn capacity(&self) -> usize {
            self.end.edge().filled().1
        }

        /// Reads the edge's statistics.
        pub fn meter(&self) -> Meter {
            Meter::new(self.end.source())
        }
    };
}
pub(super) use of_the_edge;
