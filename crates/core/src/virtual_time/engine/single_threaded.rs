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
                // SAFETY: all other shards wait until they are given back, so their engines are borrowed exclusively.
                // Actors and messages are `Send`. Thread-local data about a shard is set while the shard runs.
                let others = others.into_iter().map(|engine| unsafe { &mut *engine });
                let engines = std::iter::once(self).chain(others);
                let end = run_all(engines.map(BorrowedShard::new).collect(), config, pause);
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
    first.as_running(|engine| {
        let others = others.iter_mut().map(|shard| &mut *shard.0);
        let engines = std::iter::once(engine).chain(others);
        run_all(engines.map(BorrowedShard::new).collect(), config, &Never)
    })
}

/// Runs all shards of a run on this thread. The first one runs on this thread already.
fn run_all<M: Message, P: Pause>(
    mut borrowed: Vec<BorrowedShard<'_, M>>,
    config: &Config,
    pause: &P,
) -> Option<End> {
    let mut density = Density::default();
    loop {
        let mut agreed = Reduction::NONE;
        for one in &mut borrowed {
            agreed = agreed.and(one.engine.prepare_contribution(config));
        }
        hand_over_all(&mut borrowed);
        density.count(&agreed);
        let mut end = None;
        for (index, one) in borrowed.iter_mut().enumerate() {
            let running = (index > 0).then(|| Running::new(one.shard));
            end = one.engine.carry_out(config, agreed, pause);
            one.engine.lent_end = end;
            drop(running);
        }
        if end.is_none() && !density.is_dense() {
            run_sparse::<M, P, false>(&mut borrowed, &mut density, config, pause);
        }
        if end.is_some() || density.is_dense() {
            let first = &mut *borrowed[0].engine;
            first.lent_end = None;
            first.density = Density::default();
            return end;
        }
    }
}

/// Exchanges the batches of the shards.
fn hand_over_all<M: Message>(borrowed: &mut [BorrowedShard<'_, M>]) {
    for from in 0..borrowed.len() {
        for to in (0..borrowed.len()).filter(|to| *to != from) {
            let Ok([sender, receiver]) = borrowed.get_disjoint_mut([from, to]) else {
                unreachable!("two different shards");
            };
            let batch = &mut sender.engine.out[to];
            if !batch.spent.is_empty() {
                let pool = receiver.engine.shard().queues.pool();
                batch.spent.drain(..).for_each(|spent| pool.put(spent));
            }
            if !batch.is_empty() {
                std::mem::swap(batch, &mut receiver.engine.inbox[from]);
            }
        }
    }
}
