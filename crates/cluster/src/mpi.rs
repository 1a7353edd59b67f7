//! A run whose events are carried by MPI.
//!
//! MPI tells the processes that it has started where each of them listens, and a secret that the first one has made.
//! With these they meet as any others do: what program and flags they have is compared, and who ends, stops or hangs is
//! noticed. Only what workers have for each other goes over MPI.

use crate::carrier::{CarrierBuilder, ClusterRun};
use crate::lines::Wire;
use crate::secret::random;
use crate::supervisor::Health;
use crate::{ClusterError, Hosts, MOST_PROCESSES, Mesh, Secret};
use mpi::Threading;
use mpi::environment::{Universe, processor_name};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Root, Source};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The bytes in which a process tells where it listens.
const ADDRESS: usize = 256;
/// The most bytes of a message of MPI.
const LONGEST: usize = 1 << 20;
/// How long who waits for MPI sleeps, which cannot be woken.
const SLEEP: Duration = Duration::from_micros(100);

/// This process as MPI knows it.
pub struct Mpi {
    universe: Universe,
    process: usize,
    processes: usize,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mpi {
            process, processes, ..
        } = self;
        write!(f, "Mpi({process} of {processes})")
    }
}

/// Where the processes of MPI are, and what they know: what is needed to [meet](crate::Membership).
#[derive(Debug)]
pub struct Introduction {
    /// The number of this process.
    pub process: usize,
    /// Where all of them listen.
    pub hosts: Hosts,
    /// What the first one has made, and all know.
    pub secret: Secret,
    /// Where this one listens.
    pub listener: TcpListener,
    /// All of them are on one machine.
    pub is_local: bool,
}

fn refused(why: impl fmt::Display) -> ClusterError {
    ClusterError::Lost(format!("MPI cannot be used: {why}"))
}

impl Mpi {
    /// Begins to use MPI, once in a process and on its first thread.
    ///
    /// # Errors
    /// If it was begun before, has started too many processes, or allows no threads.
    pub fn begin() -> Result<Mpi, ClusterError> {
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Serialized)
        else {
            return Err(refused("it was begun before"));
        };
        if threading < Threading::Serialized {
            return Err(refused(
                "this library allows calls from one thread only (MPI_THREAD_SERIALIZED is needed)",
            ));
        }
        let world = universe.world();
        let (process, processes) = (world.rank() as usize, world.size() as usize);
        if processes > MOST_PROCESSES {
            return Err(refused(format_args!(
                "it has started {processes} processes; at most {MOST_PROCESSES} work together"
            )));
        }
        Ok(Mpi {
            universe,
            process,
            processes,
        })
    }

    /// Tells the others where this process listens, and learns where they do.
    ///
    /// # Errors
    /// If it cannot listen, or what another one tells makes no sense.
    pub fn introduce(&self) -> Result<Introduction, ClusterError> {
        let world = self.universe.world();
        let name = processor_name().map_err(refused)?;
        let (mut own, mut all) = ([0; ADDRESS], vec![0; ADDRESS * self.processes]);
        write_text(&mut own, &name)?;
        world.all_gather_into(&own[..], &mut all[..]);
        // On one machine nobody else need be able to connect.
        let is_local = all.chunks(ADDRESS).all(|other| other == own);
        let at = match is_local {
            true => Ipv4Addr::LOCALHOST,
            false => Ipv4Addr::UNSPECIFIED,
        };
        let listener = TcpListener::bind((at, 0));
        let listener = listener.map_err(ClusterError::system("no port is free"))?;
        let bound = listener.local_addr();
        let port = bound
            .map_err(ClusterError::system("a port is gone"))?
            .port();
        let host = if is_local { "127.0.0.1" } else { &name };
        write_text(&mut own, &format!("{host}:{port}"))?;
        world.all_gather_into(&own[..], &mut all[..]);
        let texts: Result<Vec<&str>, _> = all.chunks(ADDRESS).map(read_text).collect();
        let hosts = Hosts::parse(&texts?.join("\n")).map_err(refused)?;
        if hosts.len() != self.processes {
            return Err(refused("it does not say where all processes are"));
        }
        let mut secret: [u8; 32] = random()?;
        world.process_at_rank(0).broadcast_into(&mut secret[..]);
        Ok(Introduction {
            process: self.process,
            hosts,
            secret: Secret::new(&secret)?,
            listener,
            is_local,
        })
    }

    /// The run has not come to its end everywhere, so nobody waits for the others.
    pub fn leave(self) {
        // To finish with MPI is to wait for processes that may be gone.
        std::mem::forget(self.universe);
    }
}

fn write_text(to: &mut [u8; ADDRESS], text: &str) -> Result<(), ClusterError> {
    if text.len() >= ADDRESS {
        return Err(refused(format_args!(
            "the name '{text}' of this machine is too long"
        )));
    }
    to.fill(0);
    to[..text.len()].copy_from_slice(text.as_bytes());
    Ok(())
}

fn read_text(bytes: &[u8]) -> Result<&str, ClusterError> {
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]);
    text.map_err(|_| refused("the name of a machine makes no sense"))
}

impl Mesh {
    /// As [`Mesh::connect`], but what workers have for each other goes over MPI.
    ///
    /// # Errors
    /// See there.
    pub fn connect_by_mpi(self) -> Result<(Vec<CarrierBuilder>, ClusterRun), ClusterError> {
        let (process, processes) = (self.process(), self.processes());
        let arrivals: Arc<Mutex<Arrivals>> = Arc::default();
        arrivals.lock().from = (0..processes).map(|_| VecDeque::new()).collect();
        let health = self.supervisor().health();
        let wire = |other: usize| -> Box<dyn Wire> {
            Box::new(MpiWire {
                other,
                arrivals: Arc::clone(&arrivals),
                health: health.clone(),
            })
        };
        let wires = (0..processes).map(|other| (other != process).then(|| wire(other)));
        Ok(self.connect_over(wires.collect()))
    }
}

/// What MPI has brought and was not read yet. Who has it may call MPI, which takes one thread at a time.
#[derive(Default)]
struct Arrivals {
    /// By process, with how much of the first one was read.
    from: Vec<VecDeque<(usize, Vec<u8>)>>,
}

impl Arrivals {
    /// Takes in all that has come.
    fn receive(&mut self, world: &SimpleCommunicator) {
        while let Some((message, status)) = world.any_process().immediate_matched_probe() {
            let count = status.count(u8::equivalent_datatype());
            let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
            message.matched_receive_into(&mut bytes[..]);
            if let Some(from) = self.from.get_mut(status.source_rank() as usize) {
                from.push_back((0, bytes));
            }
        }
    }
}

/// MPI between this process and another one.
struct MpiWire {
    other: usize,
    arrivals: Arc<Mutex<Arrivals>>,
    health: Health,
}

impl Wire for MpiWire {
    /// Waits until MPI has taken them, and takes what comes meanwhile, so that no two wait for each other.
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut bytes = Vec::new();
        for part in parts {
            let room = LONGEST - bytes.len();
            bytes.extend_from_slice(&part[..part.len().min(room)]);
        }
        let world = SimpleCommunicator::world();
        let mut arrivals = self.arrivals.lock();
        mpi::request::scope(|scope| {
            let other = world.process_at_rank(self.other as i32);
            let mut request = other.immediate_send(scope, &bytes[..]);
            while let Err(same) = request.test() {
                request = same;
                arrivals.receive(&world);
                while self.health.lost().is_some() {
                    // MPI does not let go of what a process that is gone was to get. The supervisor ends this one.
                    thread::sleep(Duration::from_secs(1));
                }
            }
        });
        Ok(bytes.len())
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut arrivals = self.arrivals.lock();
        arrivals.receive(&SimpleCommunicator::world());
        let from = &mut arrivals.from[self.other];
        let Some((read, bytes)) = from.front_mut() else {
            return Err(ErrorKind::WouldBlock.into());
        };
        let count = buffer.len().min(bytes.len() - *read);
        buffer[..count].copy_from_slice(&bytes[*read..*read + count]);
        *read += count;
        if *read == bytes.len() {
            from.pop_front();
        }
        Ok(count)
    }

    fn sleep(&self, _: bool, most: Duration) {
        thread::sleep(most.min(SLEEP));
    }
}
