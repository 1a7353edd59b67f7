//! Processes that were started by MPI.
//!
//! In each exchange a process sends one message to each other process, and receives one from each. A message contains
//! the sender's contribution to the reduction and the bytes of its batch, so a single step is both a reduction and an
//! all-to-all exchange. A batch of [`LONGEST`] bytes or more is sent as several messages, of which only the last one is
//! shorter.

use crate::{Arrivals, ClusterError, Member};
use corsair::cluster::{Carrier, ProcessLost};
use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Equivalence, Source};
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The size in bytes of each part of a divided batch, except the last. The MPI library counts bytes with 32 bits.
const LONGEST: usize = 1 << 28;
/// The number of polls for messages before a process yields to other threads.
const SPINS: u32 = 1000;
/// The time for which a process polls before it starts to sleep between polls. The next constant is the length of a
/// sleep.
const PATIENCE: Duration = Duration::from_millis(5);
const SLEEP: Duration = Duration::from_micros(100);

/// The initialized MPI library. Dropping it waits for all other processes.
pub struct Mpi(Universe);

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi").finish_non_exhaustive()
    }
}

impl Mpi {
    /// Initializes MPI. Call it once per process, on the main thread, where the run's first worker has to stay.
    ///
    /// # Errors
    /// [`ClusterError::Mpi`] if MPI was already initialized, or the library does not support threads.
    pub fn begin() -> Result<Mpi, ClusterError> {
        let began = mpi::initialize_with_threading(Threading::Funneled);
        let (universe, threading) = began.ok_or(ClusterError::Mpi("it was initialized before"))?;
        if threading < Threading::Funneled {
            let why = "the library does not support threads (MPI_THREAD_FUNNELED is needed)";
            return Err(ClusterError::Mpi(why));
        }
        Ok(Mpi(universe))
    }

    /// Returns this process as a member of the run.
    pub fn member(&self) -> Member<MpiCarrier> {
        let world = self.0.world();
        let (process, processes) = (world.rank() as usize, world.size() as usize);
        let carrier = MpiCarrier {
            process,
            longest: LONGEST,
            arrivals: Arc::new(Arrivals::new(processes)),
        };
        Member::new(carrier, process, processes)
    }

    /// Ends all processes of the run; `mpirun` and this process exit with this code.
    pub fn abort(&self, code: u8) -> ! {
        self.0.world().abort(code.into())
    }
}

/// Exchanges batches with the other processes that MPI has started.
#[derive(Debug)]
pub struct MpiCarrier {
    process: usize,
    longest: usize,
    arrivals: Arc<Arrivals>,
}

impl Member<MpiCarrier> {
    /// Returns the shared record of the processes for which this process is waiting, for a [`Watch`](crate::Watch).
    pub fn arrivals(&mut self) -> Arc<Arrivals> {
        Arc::clone(&self.carrier().arrivals)
    }
}

impl MpiCarrier {
    /// Sets the maximum length of a message in bytes.
    pub(crate) fn set_longest(&mut self, bytes: usize) {
        self.longest = bytes;
    }

    /// Receives the messages of other processes until the batch of each is complete. Calls `send` in between, until it
    /// returns true.
    fn receive(
        &self,
        world: &SimpleCommunicator,
        incoming: &mut [Vec<u8>],
        mut send: impl FnMut() -> bool,
    ) {
        let others = (0..incoming.len()).filter(|&from| from != self.process);
        let mut missing: Vec<_> = others.map(|from| (from, 0)).collect();
        for (from, _) in &missing {
            self.arrivals.set_missing(*from, true);
        }
        let (mut looks, mut began) = (0, None);
        while !send() | !missing.is_empty() {
            let before = missing.len();
            missing.retain_mut(|(from, filled)| {
                let is_missing = !self.is_complete(world, *from, &mut incoming[*from], filled);
                if !is_missing {
                    self.arrivals.set_missing(*from, false);
                }
                is_missing
            });
            looks += 1;
            if missing.len() == before && looks > SPINS {
                let waited = began.get_or_insert_with(Instant::now).elapsed();
                if waited < PATIENCE {
                    thread::yield_now();
                } else {
                    thread::sleep(SLEEP);
                }
            }
        }
    }

    /// Receives the messages that have arrived from one process. Returns true if the batch of that process is complete.
    fn is_complete(
        &self,
        world: &SimpleCommunicator,
        from: usize,
        batch: &mut Vec<u8>,
        filled: &mut usize,
    ) -> bool {
        let from = world.process_at_rank(from as i32);
        while let Some((message, status)) = from.immediate_matched_probe() {
            let count = usize::try_from(status.count(u8::equivalent_datatype())).unwrap_or(0);
            // Bytes beyond `filled` belong to the previous batch; they are overwritten, so they need not be cleared.
            if batch.len() < *filled + count {
                batch.resize(*filled + count, 0);
            }
            message.matched_receive_into(&mut batch[*filled..*filled + count]);
            *filled += count;
            if count < self.longest {
                batch.truncate(*filled);
                return true;
            }
        }
        false
    }
}

impl Carrier for MpiCarrier {
    fn exchange(
        &mut self,
        outgoing: &mut [Vec<u8>],
        incoming: &mut [Vec<u8>],
    ) -> Result<(), ProcessLost> {
        let world = SimpleCommunicator::world();
        self.arrivals.wait();
        mpi::request::scope(|scope| {
            let processes = outgoing.len();
            let mut sends = Vec::new();
            for to in (1..processes).map(|ahead| (self.process + ahead) % processes) {
                let mut batch = outgoing[to].as_slice();
                let to = world.process_at_rank(to as i32);
                while let Some((message, rest)) = batch.split_at_checked(self.longest) {
                    sends.push(to.immediate_send(scope, message));
                    batch = rest;
                }
                sends.push(to.immediate_send(scope, batch));
            }
            self.receive(&world, incoming, || {
                while let Some(send) = sends.pop() {
                    if let Err(unfinished) = send.test() {
                        sends.push(unfinished);
                        return false;
                    }
                }
                true
            });
        });
        self.arrivals.resume();
        Ok(())
    }
}
