//! What carries the events of a run between processes, over connections that the rendezvous has made.
//!
//! What a worker sends is written from where it was serialized, and what it gets is read where it was received.

use crate::lines::{Lines, Readers, Wire};
use crate::supervisor::Health;
use crate::tcp::Tcp;
use crate::{ClusterError, Mesh, Origin, RelaySocket, Supervisor};
use corsair::cluster::{Carrier, Lost};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use timely_bytes::arc::Bytes;

/// How often a worker looks for what it waits for before it sleeps: some tens of microseconds.
const LOOKS: u32 = 100;

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

impl fmt::Debug for ClusterCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCarrier")
            .field("me", &self.me)
            .finish()
    }
}

/// Makes the carrier of one worker, on the thread of that worker.
#[derive(Debug)]
pub struct CarrierBuilder {
    me: usize,
    lines: Arc<Lines>,
    health: Health,
    times: Sender<ExchangeTime>,
}

impl CarrierBuilder {
    /// Makes the carrier.
    pub fn build(self) -> ClusterCarrier {
        ClusterCarrier {
            me: self.me,
            arrived: (0..self.lines.workers()).map(|_| VecDeque::new()).collect(),
            readers: self.lines.readers(),
            lines: self.lines,
            health: self.health,
            is_sending: false,
            began: None,
            spent: ExchangeTime::default(),
            times: self.times,
        }
    }
}

/// One worker's way to those of other processes.
pub struct ClusterCarrier {
    me: usize,
    lines: Arc<Lines>,
    readers: Readers,
    /// What has come and was not asked for yet, by sender: at most what belongs to this round and the next.
    arrived: Vec<VecDeque<Bytes>>,
    health: Health,
    /// There may be something that is not on its way yet.
    is_sending: bool,
    began: Option<Instant>,
    spent: ExchangeTime,
    times: Sender<ExchangeTime>,
}

impl ClusterCarrier {
    /// Waits until there is something from this worker.
    #[cold]
    fn wait_for(&mut self, from: usize) -> Result<(), Lost> {
        let began = Instant::now();
        let mut looks = 0;
        while self.arrived[from].is_empty() {
            if self.health.lost().is_some() {
                return Err(Lost);
            }
            self.lines.flush();
            if looks < LOOKS {
                looks += 1;
                thread::yield_now();
            } else {
                self.lines.sleep(from);
            }
            self.look(from);
        }
        self.spent.waiting += began.elapsed();
        Ok(())
    }

    fn look(&mut self, from: usize) {
        let (readers, arrived) = (&mut self.readers, &mut self.arrived);
        self.lines.look(self.me, from, readers, arrived);
    }
}

impl Carrier for ClusterCarrier {
    fn begin(&mut self) {
        self.began = Some(Instant::now());
        self.health.meets();
    }

    fn send(&mut self, to: usize, piece: &mut Vec<u8>) {
        self.lines.send(self.me, to, piece);
        self.is_sending = true;
    }

    fn receive(&mut self, from: usize, read: &mut dyn FnMut(&[u8])) -> Result<(), Lost> {
        if std::mem::take(&mut self.is_sending) {
            // All shards of this process have met, so this is what most of them send, in one go.
            self.lines.flush();
        }
        if self.arrived[from].is_empty() {
            self.look(from);
        }
        if self.arrived[from].is_empty() {
            self.wait_for(from)?;
        }
        if let Some(piece) = self.arrived[from].pop_front() {
            read(&piece);
        }
        Ok(())
    }

    fn end(&mut self) {
        // The others wait for it.
        while !self.lines.flush() && self.health.lost().is_none() {
            thread::yield_now();
        }
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

impl Drop for ClusterCarrier {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = format!("worker {} has panicked", self.me);
            self.health.fail(why);
        }
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
    lines: Arc<Lines>,
    times: Receiver<ExchangeTime>,
    relays: Vec<RelaySocket>,
    session: u64,
    origin: Option<Origin>,
    sharing: usize,
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
    /// Makes the connections ready for the workers. Returns what makes the carrier of each worker of this process, in the
    /// order of their numbers.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn connect(mut self) -> Result<(Vec<CarrierBuilder>, ClusterRun), ClusterError> {
        let sharing = self.data.iter().flatten();
        let sharing = sharing.filter(|way| way.memory.is_some()).count();
        let mut wires = Vec::new();
        for way in &mut self.data {
            let wire = way.take().map(|way| -> io::Result<Box<dyn Wire>> {
                Ok(match way.memory {
                    Some(memory) => memory.wire(way.stream)?,
                    None => Box::new(Tcp::new(way.stream)?),
                })
            });
            let wire = wire.transpose();
            wires.push(wire.map_err(ClusterError::system("cannot connect the workers"))?);
        }
        let (builders, run) = self.connect_over(wires);
        Ok((builders, ClusterRun { sharing, ..run }))
    }

    /// The same over these connections, by the number of the other process.
    pub(crate) fn connect_over(
        self,
        wires: Vec<Option<Box<dyn Wire>>>,
    ) -> (Vec<CarrierBuilder>, ClusterRun) {
        let health = self.supervisor.health();
        let processes = wires.len();
        let named = wires.into_iter().zip(&self.names);
        let named = named.map(|(wire, name)| Some((wire?, name.clone())));
        let (process, workers) = (self.process, self.workers);
        let lines = Lines::new(named.collect(), process, workers, health.clone());
        let lines = Arc::new(lines);
        let relays = self.relays.into_iter().enumerate();
        let relays = relays.filter_map(|(process, stream)| {
            let name = &self.names[process];
            Some(RelaySocket::new(process, stream?, name, health.clone()))
        });
        let relays = relays.collect();
        let (tell, times) = channel();
        let builder = |worker| CarrierBuilder {
            me: self.process * self.workers + worker,
            lines: Arc::clone(&lines),
            health: health.clone(),
            times: tell.clone(),
        };
        let builders = (0..self.workers).map(builder).collect();
        let run = ClusterRun {
            process: self.process,
            processes,
            workers: self.workers,
            supervisor: self.supervisor,
            lines,
            times,
            relays,
            session: self.session,
            origin: self.origin,
            sharing: 0,
        };
        (builders, run)
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

    /// With how many other processes this one shares memory for what workers have for each other.
    pub fn sharing(&self) -> usize {
        self.sharing
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
        let (sent, received) = self.lines.traffic();
        ExchangeReport {
            time,
            sent,
            received,
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
