//! What carries the events of a run between processes: timely_communication, over sockets that the
//! rendezvous has authenticated.
//!
//! Each worker has a channel to each worker of another process; all of a process go over one socket to each other
//! process, with a thread that writes and one that reads. What a worker sends is copied once, into the memory
//! from which it is written; what it gets is read where it was received.

use crate::stream::{InUse, Socket, Traffic};
use crate::supervisor::Health;
use crate::{ClusterError, Mesh, Origin, RelaySocket, Supervisor};
use corsair::cluster::{Carrier, Lost};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::io::Write;
use std::ops::DerefMut;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use timely_bytes::arc::Bytes;
use timely_communication::allocator::ProcessBuilder;
use timely_communication::allocator::zero_copy::allocator::TcpBuilder;
use timely_communication::allocator::zero_copy::bytes_slab::BytesRefill;
use timely_communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely_communication::{Allocator, Bytesable, Pull, Push};

/// How often a worker looks for what it waits for before it sleeps.
const LOOKS: u32 = 20;
/// How long it sleeps at most before it looks whether the run is lost.
const SLEEP: Duration = Duration::from_millis(50);

/// How many buffers of a connection are kept for the next window.
const KEPT: usize = 8;

/// What one worker sends another.
struct Piece {
    from: u32,
    content: Content,
}

enum Content {
    Sent(Vec<u8>),
    Received(Bytes),
}

impl Bytesable for Piece {
    fn from_bytes(mut bytes: Bytes) -> Piece {
        let from = bytes.extract_to(4);
        Piece {
            from: u32::from_le_bytes([from[0], from[1], from[2], from[3]]),
            content: Content::Received(bytes),
        }
    }

    fn length_in_bytes(&self) -> usize {
        4 + self.bytes().len()
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        let written = writer.write_all(&self.from.to_le_bytes());
        written
            .and_then(|()| writer.write_all(self.bytes()))
            .expect("there is room for as many bytes as it has");
    }
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Sent(bytes) => bytes,
            Content::Received(bytes) => bytes,
        }
    }
}

/// How long a worker has spent with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeTime {
    /// From the first piece of a window that it sends to the last that it gets, over all windows.
    pub total: Duration,
    /// Of this, how long it waited for a piece.
    pub waiting: Duration,
    /// How many windows.
    pub windows: u64,
}

impl fmt::Debug for CarrierBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CarrierBuilder")
    }
}

impl fmt::Debug for TimelyCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelyCarrier")
            .field("me", &self.me)
            .finish()
    }
}

/// Makes the carrier of one worker, on the thread of that worker. All workers of a process must be made at once.
pub struct CarrierBuilder {
    tcp: TcpBuilder,
    health: Health,
    times: Sender<ExchangeTime>,
    in_use: InUse,
}

impl CarrierBuilder {
    /// Makes the carrier.
    pub fn build(self) -> TimelyCarrier {
        let mut allocator = Allocator::Tcp(self.tcp.build());
        let (push, pull) = allocator.allocate::<Piece>(0);
        TimelyCarrier {
            me: allocator.index() as u32,
            arrived: push.iter().map(|_| VecDeque::new()).collect(),
            allocator,
            push,
            pull,
            health: self.health,
            began: None,
            spent: ExchangeTime::default(),
            times: self.times,
            _in_use: self.in_use,
        }
    }
}

/// One worker's way to those of other processes.
pub struct TimelyCarrier {
    me: u32,
    allocator: Allocator,
    push: Vec<Box<dyn Push<Piece>>>,
    pull: Box<dyn Pull<Piece>>,
    /// What has come and was not asked for yet, by sender: at most what belongs to this round and the next.
    arrived: Vec<VecDeque<Piece>>,
    health: Health,
    began: Option<Instant>,
    spent: ExchangeTime,
    times: Sender<ExchangeTime>,
    /// Dropped last, when the connections are let go of.
    _in_use: InUse,
}

impl TimelyCarrier {
    /// Takes in what has come.
    fn look(&mut self) {
        self.allocator.receive();
        self.allocator.events().borrow_mut().clear();
        while let Some(piece) = self.pull.recv() {
            self.arrived[piece.from as usize].push_back(piece);
        }
    }

    /// Waits until there is something from this worker.
    #[cold]
    fn wait_for(&mut self, from: usize) -> Result<(), Lost> {
        let began = Instant::now();
        let mut looks = 0;
        while self.arrived[from].is_empty() {
            if self.health.lost().is_some() {
                return Err(Lost);
            }
            if looks < LOOKS {
                looks += 1;
                std::thread::yield_now();
            } else {
                self.allocator.await_events(Some(SLEEP));
            }
            self.look();
        }
        self.spent.waiting += began.elapsed();
        Ok(())
    }
}

impl Carrier for TimelyCarrier {
    fn begin(&mut self) {
        self.began = Some(Instant::now());
        self.health.meets();
    }

    fn send(&mut self, to: usize, piece: &mut Vec<u8>) {
        let mut sent = Some(Piece {
            from: self.me,
            content: Content::Sent(std::mem::take(piece)),
        });
        self.push[to].push(&mut sent);
        // What goes to another process was copied, and its memory is here still.
        if let Some(Piece {
            content: Content::Sent(bytes),
            ..
        }) = sent
        {
            *piece = bytes;
        }
        piece.clear();
    }

    fn receive(&mut self, from: usize, read: &mut dyn FnMut(&[u8])) -> Result<(), Lost> {
        if self.arrived[from].is_empty() {
            self.look();
        }
        if self.arrived[from].is_empty() {
            self.wait_for(from)?;
        }
        if let Some(piece) = self.arrived[from].pop_front() {
            read(piece.bytes());
        }
        Ok(())
    }

    fn end(&mut self) {
        self.health.met();
        self.spent.windows += 1;
        if let Some(began) = self.began.take() {
            self.spent.total += began.elapsed();
        }
    }

    fn fail(&mut self, why: String) {
        self.health.fail(why);
    }
}

impl Drop for TimelyCarrier {
    fn drop(&mut self) {
        // Who asks for the times has waited for this worker.
        let _ = self.times.send(self.spent);
    }
}

/// A run that goes over several processes, as one of them sees it.
#[derive(Debug)]
pub struct ClusterRun {
    process: usize,
    processes: usize,
    workers: usize,
    supervisor: Supervisor,
    traffic: Arc<Traffic>,
    times: Receiver<ExchangeTime>,
    relays: Vec<RelaySocket>,
    session: u64,
    origin: Option<Origin>,
}

/// What the workers of one process had to do with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeReport {
    /// The sum over its workers.
    pub time: ExchangeTime,
    /// Bytes sent to other processes.
    pub sent: u64,
    /// Bytes received from other processes.
    pub received: u64,
}

impl Mesh {
    /// Hands the connections to timely_communication. Returns what makes the carrier of each worker of this
    /// process, in the order of their numbers.
    ///
    /// # Errors
    /// If there are no threads for it.
    pub fn connect(self) -> Result<(Vec<CarrierBuilder>, ClusterRun), ClusterError> {
        let (traffic, health) = (Arc::new(Traffic::default()), self.supervisor.health());
        let sockets = self.data.into_iter().enumerate().map(|(process, stream)| {
            stream.map(|stream| Socket {
                stream,
                name: Arc::from(self.names[process].as_str()),
                health: health.clone(),
                traffic: Arc::clone(&traffic),
                zeros: 0,
            })
        });
        let sockets: Vec<_> = sockets.collect();
        let processes = sockets.len();
        let relays = self.relays.into_iter().enumerate();
        let relays = relays.filter_map(|(process, stream)| {
            let name = &self.names[process];
            Some(RelaySocket::new(process, stream?, name, health.clone()))
        });
        let relays = relays.collect();
        let refill = BytesRefill {
            logic: Arc::new(|size| Box::new(vec![0_u8; size]) as Box<dyn DerefMut<Target = [u8]>>),
            limit: Some(KEPT),
        };
        let inner = ProcessBuilder::new_typed_vector(self.workers, refill.clone());
        let begun = initialize_networking_from_sockets(
            inner,
            sockets,
            self.process,
            self.workers,
            refill,
            Arc::new(|_| None),
        );
        let (builders, guard) =
            begun.map_err(ClusterError::system("cannot connect the workers"))?;
        // Its threads are not waited for: those of a run that came to its end have sent everything when the
        // other processes say that they are done, and those of a run that did not may end with a panic.
        std::mem::forget(guard);
        let (tell, times) = channel();
        let builders = builders.into_iter().map(|tcp| CarrierBuilder {
            tcp,
            health: health.clone(),
            times: tell.clone(),
            in_use: InUse::new(&traffic),
        });
        let builders: Vec<_> = builders.collect();
        let run = ClusterRun {
            process: self.process,
            processes,
            workers: self.workers,
            supervisor: self.supervisor,
            traffic,
            times,
            relays,
            session: self.session,
            origin: self.origin,
        };
        Ok((builders, run))
    }
}

impl ClusterRun {
    /// The number of this process.
    pub fn process(&self) -> usize {
        self.process
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// How many workers each of them has.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// What watches over the other processes.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// A number that the processes of this run have in common, and no other run.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// Where all processes go on from.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The connections for what is relayed, if there are any: in the first process one from each other, in each other one
    /// to the first.
    pub fn take_relays(&mut self) -> Vec<RelaySocket> {
        std::mem::take(&mut self.relays)
    }

    /// What its workers had to do with others; to be asked once, when they are gone.
    pub fn exchanged(&self) -> ExchangeReport {
        let mut time = ExchangeTime::default();
        for spent in self.times.try_iter() {
            time.total += spent.total;
            time.waiting += spent.waiting;
            time.windows = time.windows.max(spent.windows);
        }
        ExchangeReport {
            time,
            sent: self.traffic.sent.load(Ordering::Relaxed),
            received: self.traffic.received.load(Ordering::Relaxed),
        }
    }

    /// The run is over here, and its workers are gone. See [`Supervisor::finish`].
    ///
    /// # Errors
    /// See there.
    pub fn finish(self, part: Vec<u8>) -> Result<Vec<Vec<u8>>, ClusterError> {
        self.supervisor.finish(part)
    }
}
