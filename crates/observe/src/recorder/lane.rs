//! The lanes to which threads write, and the gate at which they wait when there are too many unwritten records.

use super::record::{Record, RecordedEvent};
use super::{Clock, RecordKinds};
use crate::times::Times;
use crate::{ObserveError, SavedOutputs};
use corsair::{Addr, Time};
use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// The number of lanes. If there are more threads, they share lanes.
const LANES: usize = 64;

/// The number of records between two checks of the gate by a thread.
pub(crate) const BLOCK: u64 = 4096;

/// The number of unwritten records above which threads wait. A record has 48 bytes, so the records take 6 MB; the
/// buffers may have grown to a few times this size.
pub(crate) const BACKLOG: u64 = 1 << 17;

/// The longest time after which the writer looks for records, even if no thread wakes it.
const PATIENCE: Duration = Duration::from_millis(20);

/// The shared state of a recorder's clones and its observer.
pub(crate) struct Lanes {
    pub(crate) wanted: RecordKinds,
    pub(crate) times: Times,
    clock: Clock,
    /// The other processes of the run.
    sources: Box<[SourceProgress]>,
    lanes: Box<[CachePadded<Mutex<Records>>]>,
    /// The number of records in all complete blocks of all lanes.
    told: AtomicU64,
    /// The number of bytes written to files.
    bytes: AtomicU64,
    backlog: u64,
    gate: Mutex<Gate>,
    /// The condition on which the writer waits for records.
    work: Condvar,
    /// The condition on which threads wait for the writer.
    room: Condvar,
}

/// The progress of another process of the run.
#[derive(Debug, Default)]
struct SourceProgress {
    /// The time before which all records of the process are in a lane.
    until: AtomicU64,
    /// The number of checkpoints for which the process has sent its measured times.
    saves: AtomicU64,
}

#[derive(Debug, Default)]
struct Records {
    records: Vec<Record>,
    /// The number of records made in this lane since the start.
    told: u64,
}

#[derive(Debug, Default)]
struct Gate {
    /// The number of records that the writer has written.
    written: u64,
    /// The time before which all records are written.
    caught_up: u64,
    /// True if a thread has completed a block since the writer last looked at the lanes.
    called: bool,
    /// True if the run is over, or the writer has ended: no thread waits any longer.
    closed: bool,
    /// The pending request to save the run. The run is paused until it is saved.
    saving: Option<Saving>,
    /// The number of requests to save so far.
    saves: u64,
}

/// A request to save the run. All records until this time must be written first.
#[derive(Debug)]
pub(crate) struct Saving {
    pub(crate) until: u64,
    pub(crate) answer: Sender<Result<SavedOutputs, ObserveError>>,
}

/// The next action of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterStep {
    /// Look through the lanes.
    Look,
    /// The run is over: the writer looks at the lanes once more and then ends.
    Last,
}

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of this thread among all threads that have called this function.
#[inline]
pub(crate) fn number() -> usize {
    THREAD.with(|number| *number)
}

impl Lanes {
    pub(crate) fn new(clock: Clock, wanted: RecordKinds, sources: usize) -> Lanes {
        let sources = (0..sources).map(|_| SourceProgress::default()).collect();
        Lanes {
            sources,
            ..Lanes::with_backlog(clock, wanted, BACKLOG)
        }
    }

    pub(crate) fn with_backlog(clock: Clock, wanted: RecordKinds, backlog: u64) -> Lanes {
        Lanes {
            wanted,
            times: Times::default(),
            clock,
            sources: Box::default(),
            lanes: (0..LANES).map(|_| CachePadded::default()).collect(),
            told: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            backlog,
            gate: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&self, at: Time, actor: Addr, what: RecordedEvent) {
        self.push_record(Record {
            at: at.as_nanos(),
            actor: actor.as_u32(),
            what,
        });
    }

    #[inline]
    pub(crate) fn push_record(&self, record: Record) {
        let mut lane = self.lanes[number() % LANES].lock();
        lane.records.push(record);
        lane.told += 1;
        let whole = lane.told.is_multiple_of(BLOCK);
        drop(lane);
        if whole {
            self.block_recorded();
        }
    }

    /// Counts a block, wakes the writer, and waits if there are too many unwritten records that could be written.
    #[cold]
    fn block_recorded(&self) {
        self.told.fetch_add(BLOCK, Ordering::Relaxed);
        let mut gate = self.gate.lock();
        loop {
            gate.called = true;
            self.work.notify_one();
            let told = self.told.load(Ordering::Relaxed);
            let full = told.saturating_sub(gate.written) > self.backlog;
            // No waiting record can be written before the window ends, and the window may need this thread to end.
            let stuck = self.watermark().is_some_and(|time| time <= gate.caught_up);
            if gate.closed || !full || stuck {
                return;
            }
            self.room.wait(&mut gate);
        }
    }

    /// Reports that all records of another process before `time` are in the lanes, and that its measured times up to
    /// checkpoint `saves` have arrived.
    pub(crate) fn reached(&self, source: usize, time: u64, saves: u64) {
        let source = &self.sources[source];
        source.until.store(time, Ordering::Release);
        source.saves.store(saves, Ordering::Release);
        let mut gate = self.gate.lock();
        // A thread that saves may wait for this progress.
        if gate.saving.is_some() {
            gate.called = true;
            self.work.notify_one();
        }
    }

    /// Returns the time before which the records of all processes are complete.
    pub(crate) fn watermark(&self) -> Option<u64> {
        let all = self.recorded_by_sources();
        self.own_watermark().map(|own| own.min(all))
    }

    fn recorded_by_sources(&self) -> u64 {
        let sources = self.sources.iter();
        let times = sources.map(|source| source.until.load(Ordering::Acquire));
        times.min().unwrap_or(u64::MAX)
    }

    /// Returns the time before which the records of this process are complete. Returns `None` on the wall clock.
    fn own_watermark(&self) -> Option<u64> {
        match &self.clock {
            // The store of this time comes after the barrier of all shards, and so after every record of earlier
            // windows. A thread that reads the time and then locks a lane finds these records. If it had locked the
            // lane before such a record was pushed, its read of the time would have happened before the store that it
            // observed, which is impossible.
            Clock::Virtual(progress) => Some(progress.time().as_nanos()),
            Clock::Wall => None,
        }
    }

    /// Waits until the writer has work.
    pub(crate) fn next(&self) -> WriterStep {
        let mut gate = self.gate.lock();
        if !gate.called && !gate.closed {
            self.work.wait_for(&mut gate, PATIENCE);
        }
        gate.called = false;
        match gate.closed {
            true => WriterStep::Last,
            false => WriterStep::Look,
        }
    }

    /// Asks the writer to write all records of a run that is paused at this time, and waits for the result. Returns
    /// `None` if the writer has ended.
    pub(crate) fn save(&self, until: u64) -> Option<Result<SavedOutputs, ObserveError>> {
        let (answer, answered) = channel();
        let mut gate = self.gate.lock();
        if gate.closed {
            return None;
        }
        gate.saving = Some(Saving { until, answer });
        gate.saves += 1;
        gate.called = true;
        drop(gate);
        self.work.notify_one();
        answered.recv().ok()
    }

    /// Takes the pending request to save. Returns `None` until all other processes have sent their records up to the
    /// request's time, and their measured times for this checkpoint.
    pub(crate) fn asked_to_save(&self) -> Option<Saving> {
        let all = self.recorded_by_sources();
        let saves = self.sources.iter();
        let saves = saves.map(|source| source.saves.load(Ordering::Acquire));
        let saves = saves.min().unwrap_or(u64::MAX);
        let mut gate = self.gate.lock();
        let is_reported = saves >= gate.saves;
        gate.saving
            .take_if(|saving| is_reported && saving.until < all)
    }

    /// Appends the records of all lanes to `to`, in the order of lanes. `spare` is an empty buffer, reused
    /// between calls.
    pub(crate) fn take(&self, to: &mut Vec<Record>, spare: &mut Vec<Record>) {
        for lane in &self.lanes {
            // The lock is held only for a swap of buffers, not for a copy.
            let mut records = lane.lock();
            if records.records.is_empty() {
                continue;
            }
            // The buffers are swapped, so that the lane need not grow its buffer again.
            if to.is_empty() {
                std::mem::swap(&mut records.records, to);
                continue;
            }
            std::mem::swap(&mut records.records, spare);
            drop(records);
            to.append(spare);
        }
    }

    /// Reports that the writer has written this many records, including all records earlier than `time`.
    pub(crate) fn wrote(&self, records: u64, time: u64) {
        let mut gate = self.gate.lock();
        gate.written += records;
        gate.caught_up = time;
        drop(gate);
        self.room.notify_all();
    }

    /// Sets the number of bytes that the writer has written to files.
    pub(crate) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Releases all waiting threads, and lets the writer look at the lanes for the last time.
    pub(crate) fn close(&self) {
        let mut gate = self.gate.lock();
        gate.closed = true;
        // A thread that waits for an answer gets none.
        gate.saving = None;
        drop(gate);
        self.work.notify_all();
        self.room.notify_all();
    }
}

impl fmt::Debug for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes")
            .field("wanted", &self.wanted)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Progress;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    const EVERYTHING: RecordKinds = RecordKinds {
        graph: true,
        flows: true,
        times: true,
        messages: true,
    };

    fn tell(lanes: &Lanes, actor: u32, count: u64) {
        for at in 0..count {
            lanes.push(
                Time::from_nanos(at),
                Addr::from_u32(actor),
                RecordedEvent::Edge(0),
            );
        }
    }

    // Guarantee: observe-4.
    #[test]
    fn who_tells_faster_than_can_be_written_waits() {
        const BACKLOG: u64 = 4 * BLOCK;
        const EACH: u64 = 50 * BLOCK;
        let lanes = Arc::new(Lanes::with_backlog(Clock::Wall, EVERYTHING, BACKLOG));
        let done = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            for actor in 0..3 {
                let (lanes, done) = (&lanes, &done);
                scope.spawn(move || {
                    tell(lanes, actor, EACH);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
            let (mut taken, mut most) = (0, 0);
            while taken < 3 * EACH {
                // This writer is slower than the recording threads: it takes all records, but calls
                // `wrote` only after a pause.
                assert_eq!(lanes.next(), WriterStep::Look);
                let mut records = Vec::new();
                lanes.take(&mut records, &mut Vec::new());
                std::thread::sleep(Duration::from_micros(500));
                most = most.max(records.len() as u64);
                taken += records.len() as u64;
                lanes.wrote(records.len() as u64, u64::MAX);
            }
            // Each thread may have pushed one more full block, and a part of another.
            assert!(most <= BACKLOG + 3 * 2 * BLOCK, "{most}");
        });
        assert_eq!(done.load(Ordering::SeqCst), 3);
    }

    // Guarantee: observe-4.
    #[test]
    fn nobody_waits_for_the_window_that_is_being_run() {
        // Virtual time is 0, so nothing can be written. A thread that waited would prevent the end of the window.
        let progress = Progress::default();
        let lanes = Lanes::with_backlog(Clock::Virtual(progress), EVERYTHING, BLOCK);
        tell(&lanes, 0, 20 * BLOCK);
        let mut records = Vec::new();
        lanes.take(&mut records, &mut Vec::new());
        assert_eq!(records.len() as u64, 20 * BLOCK);
    }

    // Guarantee: observe-4.
    #[test]
    fn nobody_waits_for_a_writer_that_is_no_more() {
        let lanes = Arc::new(Lanes::with_backlog(Clock::Wall, EVERYTHING, BLOCK));
        let told = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tell(&lanes, 0, 10 * BLOCK);
                told.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(Duration::from_millis(20));
            lanes.close();
        });
        assert!(told.load(Ordering::SeqCst));
        assert_eq!(lanes.next(), WriterStep::Last);
    }
}
