//! What the flavours made of a channel have in common: flags, counts, and how they are read.
//!
//! # Abort wins
//!
//! A channel knows nothing of an abort, so both ends look at a flag before and after they use it.
//!
//! - An emitter that has received a message while the edge was aborted drops it.
//! - A collector says that it is *sending*, looks at the flag, and sends. If the flag is set afterwards,
//!   it takes everything out of the channel; the last message is its own, and is given back. While it
//!   is sending no other thread empties an aborted channel: that would make room for a message which there
//!   was no room for, and drop it though it was not accepted before the abort.
//! - An abort sets the flag, and empties the channel unless the collector is sending. So a
//!   collector that finds the flag before it sends empties the channel, too.
//!
//! *sending* and the flag are written and read in one total order, so that of an abort and a
//! collector at least one sees the other.

use super::counters::{Blocked, Collected, Emitted};
use super::{EdgeStatistics, Options, Overflow, State};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Flags and counts of one edge.
#[derive(Debug)]
pub(super) struct Channel {
    aborted: AtomicBool,
    closed: AtomicBool,
    /// The collector is between its look at `aborted` and the one after it has sent.
    sending: AtomicBool,
    pub(super) collected: CachePadded<Collected>,
    pub(super) emitted: CachePadded<Emitted>,
    /// Added to by every thread that drops what an abort has left.
    dropped_by_abort: AtomicU64,
    pub(super) capacity: usize,
    pub(super) overflow: Overflow,
    pub(super) statistics: bool,
}

impl Channel {
    pub(super) fn new(options: &Options) -> Channel {
        Channel {
            aborted: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            sending: AtomicBool::new(false),
            collected: CachePadded::new(Collected::new()),
            emitted: CachePadded::new(Emitted::new()),
            dropped_by_abort: AtomicU64::new(0),
            capacity: options.capacity(),
            overflow: options.overflow_policy(),
            statistics: options.keeps_statistics(),
        }
    }

    #[inline]
    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::SeqCst)
    }

    /// The collector is about to send. False if the edge is aborted: then it must not, and has to
    /// empty the channel, because a thread that aborted the edge at this moment has seen it sending.
    #[inline]
    pub(super) fn begin_sending(&self) -> bool {
        self.sending.swap(true, Ordering::SeqCst);
        let open = !self.is_aborted();
        if !open {
            self.sending.swap(false, Ordering::SeqCst);
        }
        open
    }

    /// The collector has sent, or not. True if the edge is aborted: then it empties the channel.
    #[inline]
    pub(super) fn end_sending(&self) -> bool {
        self.sending.swap(false, Ordering::SeqCst);
        self.is_aborted()
    }

    /// Whether the edge is aborted and it is not the collector who empties the channel.
    pub(super) fn is_to_be_emptied(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_aborted() && !self.sending.load(Ordering::SeqCst)
    }

    /// Aborts it, unless it was closed and is empty. True the first time.
    pub(super) fn abort(&self, is_empty: impl FnOnce() -> bool) -> bool {
        if self.closed.load(Ordering::Acquire) && is_empty() {
            return false;
        }
        !self.aborted.swap(true, Ordering::SeqCst)
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(super) fn state(&self) -> State {
        if self.is_aborted() {
            State::Aborted
        } else if self.closed.load(Ordering::Acquire) {
            State::Closed
        } else {
            State::Open
        }
    }

    /// These are left by an abort. Counts and drops them.
    pub(super) fn drop_aborted<T>(&self, messages: Vec<T>) {
        self.dropped_by_abort
            .fetch_add(messages.len() as u64, Ordering::Relaxed);
    }

    /// The emitter has received this; it is its own, unless the edge is aborted by now.
    #[inline]
    pub(super) fn received<T>(&self, message: T) -> Option<T> {
        if self.is_aborted() {
            self.drop_aborted(vec![message]);
            return None;
        }
        if self.statistics {
            self.emitted.weight.add(1);
        }
        Some(message)
    }

    /// How many messages are in the channel, or have just been received, by the counts.
    fn between(&self) -> u64 {
        let gone = self.emitted.weight.get()
            + self.collected.dropped.get()
            + self.dropped_by_abort.load(Ordering::Relaxed);
        self.collected.weight.get().saturating_sub(gone)
    }

    pub(super) fn read(&self, buffered: usize) -> EdgeStatistics {
        let (collected, emitted) = (&self.collected, &self.emitted);
        let state = self.state();
        let buffered = match state {
            State::Aborted => 0,
            _ => buffered.min(self.capacity),
        };
        if !self.statistics {
            return EdgeStatistics::uncounted(state, self.capacity, buffered);
        }
        // What is seen emitted has been seen collected.
        let emitted_count = emitted.weight.get();
        fence(Ordering::Acquire);
        EdgeStatistics {
            high_water: collected.high_water.get() as usize,
            dropped_by_abort: self.dropped_by_abort.load(Ordering::Relaxed),
            dropped_by_overflow: collected.dropped.get(),
            collected: collected.weight.get(),
            emitted: emitted_count,
            blocked_collecting: collected.blocked.read(),
            blocked_emitting: emitted.blocked.read(),
            ..EdgeStatistics::uncounted(state, self.capacity, buffered)
        }
    }
}

/// The high-water mark, kept by the collecting end.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// The mark.
    mark: u64,
    /// How many more may be collected before it can have been passed.
    spare: u64,
}

impl Mark {
    /// A message was collected and is in the channel.
    #[inline]
    pub(super) fn collected(&mut self, channel: &Channel) {
        if !channel.statistics {
            return;
        }
        channel.collected.weight.add(1);
        match self.spare {
            0 => self.raise(channel),
            _ => self.spare -= 1,
        }
    }

    /// A message was collected and dropped at once.
    pub(super) fn dropped(&mut self, channel: &Channel) {
        if channel.statistics {
            channel.collected.weight.add(1);
            channel.collected.dropped.add(1);
        }
    }

    fn raise(&mut self, channel: &Channel) {
        let between = channel.between().min(channel.capacity as u64);
        if between > self.mark {
            self.mark = between;
            channel.collected.high_water.set(between);
        }
        self.spare = self.mark - between;
    }
}

/// Whether an end is blocked, as far as that is counted.
#[derive(Debug, Default)]
pub(super) struct Waits(bool);

impl Waits {
    pub(super) fn begin(&mut self, statistics: bool, blocked: &Blocked) {
        if statistics && !self.0 {
            self.0 = true;
            blocked.begin();
        }
    }

    #[inline]
    pub(super) fn end(&mut self, blocked: &Blocked) {
        if self.0 {
            self.0 = false;
            blocked.end();
        }
    }
}

/// An end that is blocked, until this is dropped.
#[derive(Debug)]
pub(super) struct BlockedGuard<'a>(&'a mut Waits, &'a Blocked);

impl<'a> BlockedGuard<'a> {
    pub(super) fn new(waits: &'a mut Waits, statistics: bool, blocked: &'a Blocked) -> Self {
        waits.begin(statistics, blocked);
        BlockedGuard(waits, blocked)
    }
}

impl Drop for BlockedGuard<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}
