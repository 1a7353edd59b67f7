//! Runs whose shards are in several processes.
//!
//! Shards are numbered over all processes, with a contiguous range in each. At the end of a window each shard swaps
//! batches with the shards of its own process, and serializes its batches for other processes into one message per
//! process. The first shard of each process exchanges the messages through the [`Carrier`]; then every shard reads its
//! own sections of the messages that have arrived. Each message contains the contribution of its process to the
//! reduction, so no further exchange is necessary.

mod batch;
mod part;
mod report;
mod saving;
mod threads;

pub use part::{Beginning, ProcessPart, conclude_parts, run_inputs, run_part};
pub use saving::{SavedPart, Saving};
pub use threads::{ThreadCarrier, thread_carriers};

use super::buffer::Pool;
use super::exchange::{Exchange, Matrix, Port, Reduction};
use super::loans::Loan;
use super::outbox::ShardBatch;
use super::shard::Shard;
use super::travel::Kinds;
use crate::contract::{Message, Progress};
use crate::sync::lock;
use batch::{take_reduction, write_reduction};
use saving::Saves;
use std::ops::Range;
use std::sync::{Mutex, PoisonError, RwLock};

/// Exchanges batches of bytes between the processes of a run. Each process has one carrier.
///
/// # Examples
/// [`thread_carriers`] connects processes that are threads, for tests:
/// ```
/// use corsair::cluster::{Carrier, thread_carriers};
///
/// let [mut first, mut second] = <[_; 2]>::try_from(thread_carriers(2)).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(move || second.exchange(&mut [b"hello".to_vec(), vec![]], &mut [vec![], vec![]]));
///     let mut incoming = [vec![], vec![]];
///     first.exchange(&mut [vec![], vec![]], &mut incoming).unwrap();
///     assert_eq!(incoming[1], b"hello");
/// });
/// ```
pub trait Carrier: Send {
    /// Sends `outgoing[p]` to each other process `p`, and replaces `incoming[p]` by the batch that `p` sends. The
    /// method returns when all batches have arrived, so all processes must call it the same number of times. The
    /// entries of the calling process are ignored. The carrier may change the bytes in `outgoing`, which are not used
    /// again.
    ///
    /// # Errors
    /// [`ProcessLost`] if another process has ended. A carrier may end the process instead.
    fn exchange(
        &mut self,
        outgoing: &mut [Vec<u8>],
        incoming: &mut [Vec<u8>],
    ) -> Result<(), ProcessLost>;
}

impl<C: Carrier + ?Sized> Carrier for &mut C {
    fn exchange(
        &mut self,
        outgoing: &mut [Vec<u8>],
        incoming: &mut [Vec<u8>],
    ) -> Result<(), ProcessLost> {
        (**self).exchange(outgoing, incoming)
    }
}

/// The error of an exchange when another process has ended before the run was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLost;

type Cargo<M> = ShardBatch<M, Shard<M>>;

/// The size above which batches are shrunk between windows to the memory that they need.
const KEPT_BYTES: usize = 64 << 20;

/// The batches of one process, which its shards share.
///
/// Shards append to `outgoing` before the first barrier of a window, and read `incoming` after the second
/// one. Between the barriers only the first shard uses them, so only shards that append at the same time wait
/// for these locks.
struct Batches {
    outgoing: Box<[Mutex<Vec<u8>>]>,
    incoming: RwLock<Vec<Vec<u8>>>,
}

impl Batches {
    fn new(processes: usize) -> Batches {
        Batches {
            outgoing: (0..processes).map(|_| Mutex::default()).collect(),
            incoming: RwLock::new(vec![Vec::new(); processes]),
        }
    }

    /// Appends the sections of a shard to the batch for this process, and leaves `sections` empty. The first
    /// shard's memory is used without copying.
    fn append(&self, process: usize, sections: &mut Vec<u8>) {
        let mut batch = lock(&self.outgoing[process]);
        if batch.is_empty() {
            std::mem::swap(&mut *batch, sections);
        } else {
            batch.append(sections);
        }
    }

    /// Exchanges the batches, each followed by the contribution of its process to the reduction. Returns the reduction
    /// over all other processes.
    fn exchange(
        &self,
        own: usize,
        contribution: Reduction,
        carrier: &mut impl Carrier,
    ) -> Result<Reduction, Failure> {
        let take = |(to, batch): (usize, &Mutex<Vec<u8>>)| {
            let mut batch = std::mem::take(&mut *lock(batch));
            if to != own {
                write_reduction(contribution, &mut batch);
            }
            batch
        };
        let mut outgoing: Vec<_> = self.outgoing.iter().enumerate().map(take).collect();
        let mut incoming = self
            .incoming
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        carrier.exchange(&mut outgoing, &mut incoming)?;
        for (to, mut batch) in self.outgoing.iter().zip(outgoing) {
            if batch.capacity() > KEPT_BYTES {
                batch.shrink_to(batch.len() * 2);
            }
            batch.clear();
            *lock(to) = batch;
        }
        let mut others = Reduction::NONE;
        for (process, batch) in incoming
            .iter_mut()
            .enumerate()
            .filter(|(from, _)| *from != own)
        {
            others = others.and(
                take_reduction(batch).ok_or_else(|| Failure::senseless(process, "reduction"))?,
            );
            if batch.capacity() > KEPT_BYTES {
                batch.shrink_to(batch.len() * 2);
            }
        }
        Ok(others)
    }
}

/// The reason why a process cannot continue its part of a run.
#[derive(Debug)]
enum Failure {
    /// Another process has ended; see [`ProcessLost`].
    Lost,
    /// This process failed, for the given reason.
    Here(String),
}

impl From<ProcessLost> for Failure {
    fn from(_: ProcessLost) -> Failure {
        Failure::Lost
    }
}

impl Failure {
    fn senseless(process: usize, what: &str) -> Failure {
        Failure::Here(format!(
            "the batch of process {process} has a {what} that cannot be read"
        ))
    }
}

/// A shard's side of the exchange with the shards of its own process and of other processes.
struct Across<'a, M: Message, C> {
    local: Port<Cargo<M>, &'a Matrix<Cargo<M>>>,
    batches: &'a Batches,
    /// The carrier; `None` in all shards except the first of the process.
    carrier: Option<C>,
    /// The shards of this process.
    own: Range<usize>,
    me: usize,
    kinds: Kinds<M>,
    /// The buffer of the sections that were written last.
    sections: Vec<u8>,
    /// The memory for events of other processes.
    pool: Pool<M>,
    failure: Option<Failure>,
    /// The result of the reduction at the last barrier.
    agreed: Reduction,
    /// The progress to update, and the binary logarithm of a window's width in nanoseconds. Set only in the first
    /// shard of a process that does not have the root.
    progress: Option<(Progress, u32)>,
    saves: Saves<'a>,
}

impl<M: Message, C: Carrier> Across<'_, M, C> {
    /// Ends the run in this process.
    fn fail(&mut self, failure: Failure, contribution: Reduction) -> Reduction {
        self.failure.get_or_insert(failure);
        self.local.abandon();
        Reduction {
            halt: true,
            ..contribution
        }
    }

    /// Returns the number of this process.
    fn process(&self) -> usize {
        self.own.start / self.own.len()
    }

    /// Iterates over the other processes, starting with the next one, so that processes start with different
    /// partners.
    fn others(&self, processes: usize) -> impl Iterator<Item = usize> + use<M, C> {
        let own = self.process();
        (1..processes).map(move |ahead| (own + ahead) % processes)
    }

    /// Exchanges the batches that the shards of this process have appended to, and waits for the other shards of this
    /// process. Returns the reduction over all processes.
    fn exchange_batches(
        &mut self,
        contribution: Reduction,
        idle: impl FnMut() -> bool,
    ) -> Result<Reduction, Failure> {
        let process = self.process();
        let others = match &mut self.carrier {
            Some(carrier) => self.batches.exchange(process, contribution, carrier)?,
            None => Reduction::NONE,
        };
        let agreed = self
            .local
            .exchange(contribution.and(others), &mut [], &mut [], idle);
        match self.local.is_broken() {
            true => Err(Failure::Lost),
            false => Ok(agreed),
        }
    }

    /// Exchanges batches and reductions like [`Exchange::exchange`], but returns failures.
    fn try_exchange(
        &mut self,
        contribution: Reduction,
        out: &mut [Cargo<M>],
        inbox: &mut [Cargo<M>],
        mut idle: impl FnMut() -> bool,
    ) -> Result<Reduction, Failure> {
        let workers = self.own.len();
        let processes = out.len() / workers;
        let shards = |process: usize| process * workers..(process + 1) * workers;
        for process in self.others(processes) {
            let (out, back) = (&mut out[shards(process)], &mut inbox[shards(process)]);
            self.write(process, out, back)?;
        }
        let own = self.own.clone();
        let contribution = (self.local).exchange(
            contribution,
            &mut out[own.clone()],
            &mut inbox[own],
            &mut idle,
        );
        if self.local.is_broken() {
            return Err(Failure::Lost);
        }
        let agreed = self.exchange_batches(contribution, &mut idle)?;
        for process in self.others(processes) {
            self.read(process, &mut inbox[shards(process)])?;
        }
        Ok(agreed)
    }
}

impl<M: Message, C: Carrier> Exchange<Cargo<M>> for Across<'_, M, C> {
    fn exchange(
        &mut self,
        contribution: Reduction,
        out: &mut [Cargo<M>],
        inbox: &mut [Cargo<M>],
        idle: impl FnMut() -> bool,
    ) -> Reduction {
        if self.failure.is_some() {
            return Reduction {
                halt: true,
                ..contribution
            };
        }
        let pause = self.saves.is_wanted();
        let contribution = Reduction {
            pause,
            ..contribution
        };
        let agreed = match self.try_exchange(contribution, out, inbox, idle) {
            Ok(agreed) => agreed,
            Err(failure) => return self.fail(failure, contribution),
        };
        self.agreed = agreed;
        if let Some((progress, window_bits)) = &self.progress
            && agreed.next != u64::MAX
        {
            progress.reached(agreed.next << window_bits);
        }
        agreed
    }

    fn can_lend(&self) -> bool {
        false
    }

    fn lend<E>(&mut self, _: *mut E) -> Loan<E> {
        Loan::Lost
    }

    fn give_back(&mut self) {}
}
