//! The connections of a process with the others, which its workers write and read themselves.
//!
//! What travels is framed by the headers of timely_communication and received into its buffers. Its threads, one that
//! writes and one that reads each connection, are not used: a piece would pass through two of them on its way from one
//! worker to another, and waking a thread takes longer than a small window.
//!
//! Nothing here waits while it holds anything but a connection of which half a piece was read: the other half is on
//! its way, because whoever has written the one writes the other before it leaves its meeting.

use crate::supervisor::Health;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use timely_bytes::arc::Bytes;
use timely_communication::allocator::zero_copy::bytes_slab::{BytesRefill, BytesSlab};
use timely_communication::networking::MessageHeader;

/// How long the supervisor may take to say why a connection broke, before that is all there is to say.
const VERDICT: Duration = Duration::from_secs(2);
/// So many bytes are written before the meeting has heard of all that is to be sent.
const MUCH: usize = 1 << 16;
/// How many pieces are written at once.
const AT_ONCE: usize = 32;
/// How much memory of pieces is kept for the next ones.
const KEPT: usize = 8;
/// The longest piece that is believed.
const LONGEST: usize = 1 << 30;
const HEADER: usize = 48;
/// How long a worker sleeps at most before it looks whether the run is lost, and if another worker may read what it waits for.
const SLEEP: Duration = Duration::from_millis(50);
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Carries bytes to and from one other process, and never waits.
pub(crate) trait Wire: Send + Sync {
    /// Takes some of these bytes; [`ErrorKind::WouldBlock`] if it can take none now.
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Gives some bytes; [`ErrorKind::WouldBlock`] if there are none now, and 0 if there will be none.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Waits until there may be something to read, or to write if that is `wanted`, but no longer than this.
    fn sleep(&self, wants_to_write: bool, most: Duration);
}

/// The connection with a process is broken: says so if nothing else does.
pub(crate) fn said_broken(health: &Health, name: &str, why: &str) {
    let until = Instant::now() + VERDICT;
    while health.lost().is_none() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    health.fail(format!("the connection with {name} broke: {why}"));
}

/// What is still to be written to a process.
#[derive(Default)]
struct Outgoing {
    pieces: VecDeque<([u8; HEADER], Vec<u8>)>,
    /// How many bytes of the first piece and its header are written.
    written: usize,
    bytes: usize,
    /// Memory of pieces that are written.
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    fn wrote(&mut self, count: usize) {
        self.bytes -= count;
        self.written += count;
        while let Some((_, piece)) = self.pieces.front()
            && self.written >= HEADER + piece.len()
        {
            self.written -= HEADER + piece.len();
            let done = self.pieces.pop_front();
            if let Some((_, mut piece)) = done.filter(|_| self.spare.len() < KEPT) {
                piece.clear();
                self.spare.push(piece);
            }
        }
    }
}

struct Line {
    wire: Box<dyn Wire>,
    /// What the other process is called in sentences.
    name: String,
    outgoing: Mutex<Outgoing>,
    /// How many bytes are still to be written.
    unwritten: AtomicUsize,
    /// Whoever has it reads, up to the end of a piece.
    turn: Mutex<()>,
}

/// A worker's memory for what it reads, by process.
pub(crate) struct Readers(Vec<BytesSlab>);

/// The connections of a process, which its workers share.
pub(crate) struct Lines {
    /// By process; none to this one itself.
    lines: Vec<Option<Line>>,
    /// What a worker has read for each other one of this process.
    inboxes: Vec<Mutex<Vec<(usize, Bytes)>>>,
    /// The number of the first worker of this process.
    first: usize,
    health: Health,
    sent: AtomicU64,
    received: AtomicU64,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("first", &self.first).finish()
    }
}

impl Lines {
    /// The connections of this process by the number of the other one, with what that is called.
    pub(crate) fn new(
        wires: Vec<Option<(Box<dyn Wire>, String)>>,
        process: usize,
        workers: usize,
        health: Health,
    ) -> Lines {
        let line = |(wire, name)| Line {
            wire,
            name,
            outgoing: Mutex::default(),
            unwritten: AtomicUsize::new(0),
            turn: Mutex::default(),
        };
        Lines {
            lines: wires.into_iter().map(|wire| wire.map(line)).collect(),
            inboxes: (0..workers).map(|_| Mutex::default()).collect(),
            first: process * workers,
            health,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.inboxes.len() * self.lines.len()
    }

    /// Memory of a worker for what it will read.
    pub(crate) fn readers(&self) -> Readers {
        let refill = BytesRefill {
            logic: Arc::new(|size| Box::new(vec![0_u8; size])),
            limit: Some(KEPT),
        };
        let slab = |line: &Option<Line>| {
            // For each other process so much as stays in the cache.
            let shift = if line.is_some() { 18 } else { 0 };
            BytesSlab::new(shift, refill.clone())
        };
        Readers(self.lines.iter().map(slab).collect())
    }

    /// Bytes sent to other processes, and bytes received.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.sent), read(&self.received))
    }

    fn line(&self, worker: usize) -> (usize, &Line) {
        let process = worker / self.inboxes.len();
        let line = self.lines[process].as_ref();
        (process, line.expect("the worker is of another process"))
    }

    fn broken(&self, line: &Line, why: &str) {
        said_broken(&self.health, &line.name, why);
    }

    /// A worker sends another one a piece, and gets memory for the next. It is on its way after [`Lines::flush`].
    pub(crate) fn send(&self, from: usize, to: usize, piece: &mut Vec<u8>) {
        let (_, line) = self.line(to);
        let header = MessageHeader {
            channel: 0,
            source: from,
            target_lower: to,
            target_upper: to + 1,
            length: piece.len(),
            seqno: 0,
        };
        let mut bytes = [0; HEADER];
        let written = header.write_to(&mut &mut bytes[..]);
        written.expect("there is room for a header");
        let mut outgoing = line.outgoing.lock();
        outgoing.bytes += HEADER + piece.len();
        let memory = outgoing.spare.pop().unwrap_or_default();
        let piece = std::mem::replace(piece, memory);
        outgoing.pieces.push_back((bytes, piece));
        if outgoing.bytes >= MUCH {
            self.write(line, &mut outgoing);
        }
        line.unwritten.store(outgoing.bytes, Ordering::Release);
    }

    /// Writes as much as the connections take. Returns whether that was all.
    pub(crate) fn flush(&self) -> bool {
        let mut is_all = true;
        for line in self.lines.iter().flatten() {
            if line.unwritten.load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut outgoing = line.outgoing.lock();
            self.write(line, &mut outgoing);
            line.unwritten.store(outgoing.bytes, Ordering::Release);
            is_all &= outgoing.bytes == 0;
        }
        is_all
    }

    fn write(&self, line: &Line, outgoing: &mut Outgoing) {
        while outgoing.bytes > 0 {
            let mut parts = Vec::with_capacity(2 * AT_ONCE);
            let mut skipped = outgoing.written;
            for (header, piece) in outgoing.pieces.iter().take(AT_ONCE) {
                for bytes in [&header[..], &piece[..]] {
                    let skip = skipped.min(bytes.len());
                    skipped -= skip;
                    parts.push(IoSlice::new(&bytes[skip..]));
                }
            }
            match line.wire.write(&parts) {
                Ok(0) => return self.give_up(line, outgoing, "it takes no more"),
                Ok(count) => {
                    self.sent.fetch_add(count as u64, Ordering::Relaxed);
                    outgoing.wrote(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return self.give_up(line, outgoing, &error.to_string()),
            }
        }
    }

    /// What was to be written is of no use to anybody: the run is lost.
    fn give_up(&self, line: &Line, outgoing: &mut Outgoing, why: &str) {
        self.broken(line, why);
        *outgoing = Outgoing::default();
    }

    /// Takes in what has come for worker `me`, and reads what has come from the process of worker `from`, if nobody else
    /// does.
    pub(crate) fn look(
        &self,
        me: usize,
        from: usize,
        readers: &mut Readers,
        arrived: &mut [VecDeque<Bytes>],
    ) {
        let (process, line) = self.line(from);
        let turn = line.turn.try_lock();
        // Before anything that was sent later.
        for (source, piece) in self.inboxes[me - self.first].lock().drain(..) {
            arrived[source].push_back(piece);
        }
        if turn.is_some() {
            self.read(line, me, &mut readers.0[process], arrived);
        }
    }

    /// Reads all that has come, up to the end of a piece.
    fn read(&self, line: &Line, me: usize, slab: &mut BytesSlab, arrived: &mut [VecDeque<Bytes>]) {
        while self.health.lost().is_none() {
            slab.ensure_capacity(1);
            let room = slab.empty().len();
            match line.wire.read(slab.empty()) {
                Ok(0) => return self.broken(line, "it was closed"),
                Ok(count) => {
                    slab.make_valid(count);
                    self.received.fetch_add(count as u64, Ordering::Relaxed);
                    if let Err(why) = self.sort(me, slab, arrived) {
                        return self.health.fail(format!("{} sent {why}", line.name));
                    }
                    if count < room && slab.valid().is_empty() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if slab.valid().is_empty() {
                        return;
                    }
                    self.flush();
                    thread::yield_now();
                }
                Err(error) => return self.broken(line, &error.to_string()),
            }
        }
    }

    /// Gives whole pieces to those whom they are for. What is wrong with one is an error.
    fn sort(
        &self,
        me: usize,
        slab: &mut BytesSlab,
        arrived: &mut [VecDeque<Bytes>],
    ) -> Result<(), &'static str> {
        while let Some(header) = MessageHeader::try_read(slab.valid()) {
            let own = self.first..self.first + self.inboxes.len();
            let (source, target) = (header.source, header.target_lower);
            if source >= self.workers() || own.contains(&source) || !own.contains(&target) {
                return Err("a piece from or to a worker that does not exist");
            }
            let mut piece = slab.extract(header.required_bytes());
            // The header has been read.
            drop(piece.extract_to(HEADER));
            if target == me {
                arrived[source].push_back(piece);
            } else {
                self.inboxes[target - self.first]
                    .lock()
                    .push((source, piece));
            }
        }
        if slab.valid().len() > LONGEST {
            return Err("a piece that is too long");
        }
        Ok(())
    }

    /// Waits until there may be something from worker `from`, or room for what is to be written to it.
    pub(crate) fn sleep(&self, from: usize) {
        let (_, line) = self.line(from);
        let unwritten = |line: &Line| line.unwritten.load(Ordering::Acquire) > 0;
        let alone = self.inboxes.len() == 1 && !self.lines.iter().flatten().any(unwritten);
        let most = if alone { SLEEP } else { SHORT_SLEEP };
        line.wire.sleep(unwritten(line), most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one side writes the other reads, `most` bytes at a time.
    struct Pipe {
        bytes: Arc<Mutex<VecDeque<u8>>>,
        most: usize,
    }

    impl Wire for Pipe {
        fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
            let bytes = parts.iter().flat_map(|part| part.iter().copied());
            let mut pipe = self.bytes.lock();
            let before = pipe.len();
            pipe.extend(bytes.take(self.most));
            Ok(pipe.len() - before)
        }

        fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
            let mut pipe = self.bytes.lock();
            let count = buffer.len().min(self.most).min(pipe.len());
            if count == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            buffer[..count].fill_with(|| pipe.pop_front().expect("it has so many"));
            Ok(count)
        }

        fn sleep(&self, _: bool, _: Duration) {}
    }

    /// Two processes of two workers each, of which the second one sends and the first one receives.
    fn processes(most: usize) -> [Lines; 2] {
        let bytes = Arc::default();
        [1, 0].map(|other| {
            let wire = |_| -> (Box<dyn Wire>, String) {
                let bytes = Arc::clone(&bytes);
                (Box::new(Pipe { bytes, most }), format!("process {other}"))
            };
            let wires = (0..2).map(|process| (process == other).then(|| wire(process)));
            Lines::new(wires.collect(), 1 - other, 2, Health::alone())
        })
    }

    fn texts(arrived: &[VecDeque<Bytes>]) -> Vec<String> {
        let text = |piece: &Bytes| String::from_utf8(piece.to_vec()).unwrap();
        arrived.iter().flatten().map(text).collect()
    }

    // Guarantee: cluster-1.
    #[test]
    fn pieces_come_in_their_order_whichever_worker_reads_them() {
        for most in [1, 7, 1 << 20] {
            let [first, second] = processes(most);
            let mut arrived = [(); 2].map(|()| (first.readers(), vec![VecDeque::new(); 4]));
            let mut look = |me: usize| {
                let (readers, arrived) = &mut arrived[me];
                // Who has read a whole piece need not look for more.
                (0..4).for_each(|_| first.look(me, 2, readers, arrived));
                texts(arrived)
            };
            let send = |from, to, text: &str| {
                second.send(from, to, &mut text.as_bytes().to_vec());
                assert!(second.flush());
            };
            send(2, 1, "one");
            send(2, 0, "for the other");
            assert_eq!(look(0), ["for the other"]);
            send(2, 1, "two");
            send(3, 1, "three");
            assert_eq!(look(1), ["one", "two", "three"], "{most} at a time");
        }
    }

    #[test]
    fn a_piece_for_nobody_loses_the_run() {
        let [first, second] = processes(100);
        second.send(0, 1, &mut vec![5]);
        second.flush();
        let mut arrived = vec![VecDeque::new(); 4];
        first.look(0, 2, &mut first.readers(), &mut arrived);
        let lost = first.health.lost().unwrap_or_default();
        assert!(lost.contains("process 1 sent a piece from"), "{lost}");
    }
}
