//! Statistics of an edge.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The state of an edge: open, closed or aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Messages can be sent and received.
    Open,
    /// The sending end closed the edge or was dropped. Buffered messages can still be received.
    Closed,
    /// The edge was aborted before everything was received.
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

/// Statistics of an edge.
///
/// A message counts as 1, or as its weight by [`Weigh`](super::Weigh). While no end is in use, `sent` equals
/// the sum of `received`, `dropped_by_abort`, `dropped_by_overflow` and the buffered messages; during use the
/// numbers may differ by a few messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeStatistics {
    /// The state of the edge.
    pub state: State,
    /// The maximum number of buffered messages.
    pub capacity: usize,
    /// The current number of buffered messages.
    pub buffered: usize,
    /// The highest number of buffered messages, as seen by the sending end.
    pub high_water: usize,
    /// Messages that `send` accepted, including dropped ones.
    pub sent: u64,
    /// Messages that were received.
    pub received: u64,
    /// Messages that were buffered when the edge was aborted.
    pub dropped_by_abort: u64,
    /// Messages that [`Overflow::DropNewest`](super::Overflow::DropNewest) or
    /// [`Overflow::DropOldest`](super::Overflow::DropOldest) dropped.
    pub dropped_by_overflow: u64,
    /// Total time in which `send` waited for capacity, including the current wait; with several senders, the
    /// time in which at least one waited.
    pub blocked_sending: Duration,
    /// Total time in which `recv` waited for messages, including the current wait.
    pub blocked_receiving: Duration,
}

impl EdgeStatistics {
    /// Creates the statistics of an edge for which statistics are disabled.
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

/// Reads the statistics of one edge, from any thread, also after both ends were dropped.
///
/// A meter keeps the memory of the edge allocated, but no messages. Reading does not disturb the ends of a
/// [`ring`](super::ring()); for a [`queue`](super::queue()) it may take a lock for a moment.
///
/// ```
/// use corsair::edge::{self, Options};
/// let (mut tx, rx) = edge::ring::<u32>(Options::new(8));
/// let meter = rx.meter();
/// tx.try_send(7).expect("the edge has capacity");
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

    /// Returns the statistics. Without [statistics](super::Options::statistics) all fields except `state`,
    /// `capacity` and `buffered` are 0.
    pub fn read(&self) -> EdgeStatistics {
        self.0.read()
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meter").field(&self.read()).finish()
    }
}

/// An edge whose statistics can be read.
pub trait Source: Send + Sync {
    fn read(&self) -> EdgeStatistics;

    fn state(&self) -> State;

    /// Returns the number of buffered messages and the capacity.
    fn filled(&self) -> (usize, usize);
}

/// Implements the methods that both ends share and that read the state of their edge.
macro_rules! of_the_edge {
    () => {
        /// Returns whether the edge is open, and otherwise how it ended.
        pub fn state(&self) -> State {
            self.end.edge().state()
        }

        /// True if the edge was aborted before everything was received.
        pub fn is_aborted(&self) -> bool {
            self.state() == State::Aborted
        }

        /// Returns the number of buffered messages.
        pub fn buffered(&self) -> usize {
            self.end.edge().filled().0
        }

        /// Returns the maximum number of buffered messages.
        pub fn capacity(&self) -> usize {
            self.end.edge().filled().1
        }

        /// Returns a meter, which reads the edge's statistics.
        pub fn meter(&self) -> Meter {
            Meter::new(self.end.source())
        }
    };
}
pub(super) use of_the_edge;
