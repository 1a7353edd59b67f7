//! Single-threaded mode: one thread runs all shards while windows are sparse, because barriers would cost more than
//! parallelism saves.

use super::borrowed_shards::BorrowedShard;
use super::density::Density;
use super::sparse::run_sparse;
use super::{End, Engine, PausableShard};
use crate::contract::{Config, Message};
use crate::virtual_time::context::Running;
use crate::virtual_time::exchange::{Exchange, Reduction};
use crate::virtual_time::loans::Loan;
use crate::virtual_time::outbox::ShardBatch;
use crate::virtual_time::pause::{Never, Pause};
use crate::virtual_time::shard::Shard;

impl<M: Message> Engine<M> {
    /// Lends this shard to the first shard; the first shard runs all shards. Returns when windows are dense again, or
    /// when the run ends or pauses.
    #[cold]
    #[inline(never)]
    pub(super) fn run_borrowed<X: Exchange<ShardBatch<M, Shard<M>>>, P: Pause>(
        &mut self,
        config: &Config,
        exchange: &mut X,
        pause: &P,
    ) -> Option<End> {
        let this: *mut Engine<M> = self;
        match exchange.lend(this) {
            Loan::All(others) => {
                // SAFETY: all other shards wait until they are given back, and this one is borrowed exclusively. Actors
                // and messages are `Send`. Thread-local data about a shard is set while the shard runs.
                let end = unsafe { run_all(this, &others, config, pause) };
                exchange.give_back();
                end
            }
            Loan::Back => {
                self.density = Density::default();
                self.lent_end.take()
            }
            Loan::Lost => Some(End::Halted),
        }
    }
}

/// Runs all shards on this thread until windows are dense, before the other threads exist. Returns the end of the run,
/// if the run has ended.
pub(in super::super) fn run_together<M: Message>(
    shards: &mut [PausableShard<M>],
    config: &Config,
) -> Option<End> {
    let (first, others) = shards.split_first_mut()?;
    let others: Vec<*mut Engine<M>> = others.iter_mut().map(|shard| &raw mut *shard.0).collect();
    // SAFETY: all shards are borrowed exclusively, and `as_running` makes the first one run on this thread.
    first.as_running(|engine| unsafe { run_all(engine, &others, config, &Never) })
}

/// Runs all shards on this thread.
///
/// # Safety
/// Nothing else uses the engines and their shards. `first` is the shard that runs on this thread.
unsafe fn run_all<M: Message, P: Pause>(
    first: *mut Engine<M>,
    others: &[*mut Engine<M>],
    config: &Config,
    pause: &P,
) -> Option<End> {
    let engines = || std::iter::once(first).chain(others.iter().copied());
    let mut borrowed: Vec<BorrowedShard<M>> = engines().map(BorrowedShard::new).collect();
    let engines: Vec<_> = engines().collect();
    let mut density = Density::default();
    // SAFETY: the thread has borrowed all engines until it gives them back. At any time there is one reference to an
    // engine, or two to different engines.
    unsafe {
        loop {
            let mut agreed = Reduction::NONE;
            for &engine in &engines {
                agreed = agreed.and((*engine).prepare_contribution(config));
            }
            hand_over_all(&engines);
            density.count(&agreed);
            let mut end = None;
            for &engine in &engines {
                let running = (engine != first).then(|| Running::new((*engine).shard));
                end = (*engine).carry_out(config, agreed, pause);
                (*engine).lent_end = end;
                drop(running);
            }
            if end.is_none() && !density.is_dense() {
                run_sparse::<M, P, false>(&mut borrowed, &mut density, config, pause);
            }
            if end.is_some() || density.is_dense() {
                (*first).lent_end = None;
                (*first).density = Density::default();
                return end;
            }
        }
    }
}

/// Exchanges the batches of the shards.
///
/// # Safety
/// As for [`run_all`].
unsafe fn hand_over_all<M: Message>(engines: &[*mut Engine<M>]) {
    for (from, &sender) in engines.iter().enumerate() {
        for (to, &receiver) in engines.iter().enumerate().filter(|(to, _)| *to != from) {
            // SAFETY: the thread has borrowed both engines, which are different ones.
            let (sender, receiver) = unsafe { (&mut *sender, &mut *receiver) };
            let batch = &mut sender.out[to];
            if !batch.spent.is_empty() {
                let pool = receiver.shard().queues.pool();
                batch.spent.drain(..).for_each(|spent| pool.put(spent));
            }
            if !batch.is_empty() {
                std::mem::swap(batch, &mut receiver.inbox[from]);
            }
        }
    }
}
