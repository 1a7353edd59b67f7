//! One thread runs all shards, while windows have so few events that meeting costs more.

use super::{End, Engine};
use crate::contract::{Config, Message};
use crate::virtual_time::context::Running;
use crate::virtual_time::exchange::{Exchange, Vote};
use crate::virtual_time::lending::Lent;
use crate::virtual_time::parcel::Parcel;
use crate::virtual_time::pause::Pause;
use crate::virtual_time::shard::Shard;

/// A window is thin if no shard has more events in it than this: what those cost is about what a
/// meeting costs.
const THIN: u64 = 64;
/// After this many thin windows in a row one thread runs all shards.
const IN_A_ROW: u32 = 16;
/// And after this many in a row that are not, all run their own again.
const NOT_IN_A_ROW: u32 = 2;

/// How many windows in a row were thin, or were not.
#[derive(Debug, Default)]
pub(super) struct Pace {
    thin: u32,
    thick: u32,
}

impl Pace {
    /// Counts a window, of which all shards know the same.
    #[inline]
    pub(super) fn count(&mut self, agreed: &Vote) {
        if agreed.events > THIN {
            (self.thin, self.thick) = (0, self.thick + 1);
        } else {
            (self.thin, self.thick) = (self.thin + 1, 0);
        }
    }

    /// Whether one thread is to run all shards.
    #[inline]
    pub(super) fn is_thin(&self) -> bool {
        self.thin >= IN_A_ROW
    }

    fn is_thick(&self) -> bool {
        self.thick >= NOT_IN_A_ROW
    }
}

impl<M: Message> Engine<M> {
    /// Lends this shard to the first one, or runs all of them, until windows are thick again or the
    /// run ends or pauses.
    #[cold]
    #[inline(never)]
    pub(super) fn run_lent<X: Exchange<Parcel<M, Shard<M>>>, P: Pause>(
        &mut self,
        config: &Config,
        exchange: &mut X,
        pause: &P,
    ) -> Option<End> {
        let this: *mut Engine<M> = self;
        match exchange.lend(this) {
            Lent::All(others) => {
                // SAFETY: all other shards wait until they are given back, and this one is borrowed
                // exclusively. Actors and messages are `Send`; what is kept per thread about a shard
                // is set while it is run.
                let end = unsafe { run_all(this, &others, config, pause) };
                exchange.give_back();
                end
            }
            Lent::Back => {
                self.pace = Pace::default();
                self.lent_end.take()
            }
            Lent::Lost => Some(End::Halted),
        }
    }
}

/// Runs all shards on this thread.
///
/// # Safety
/// Nothing else uses what the pointers lead to. `first` is the shard that runs on this thread.
unsafe fn run_all<M: Message, P: Pause>(
    first: *mut Engine<M>,
    others: &[*mut Engine<M>],
    config: &Config,
    pause: &P,
) -> Option<End> {
    // SAFETY: the contract; of all references only one is there at a time, or two to different
    // shards.
    unsafe {
        let all = || std::iter::once(first).chain(others.iter().copied());
        let mut pace = Pace::default();
        loop {
            let mut agreed: Option<Vote> = None;
            for engine in all() {
                let vote = (*engine).speak(config);
                agreed = Some(agreed.map_or(vote, |agreed| agreed.and(vote)));
            }
            let agreed = agreed?;
            for (from, sender) in all().enumerate() {
                for (to, receiver) in all().enumerate().filter(|(to, _)| *to != from) {
                    let (sender, receiver) = (&mut *sender, &mut *receiver);
                    std::mem::swap(&mut sender.out[to], &mut receiver.inbox[from]);
                }
            }
            pace.count(&agreed);
            let mut end = None;
            for engine in all() {
                let running = (engine != first).then(|| Running::new((*engine).shard));
                end = (*engine).listen(config, agreed, pause);
                (*engine).lent_end = end;
                drop(running);
            }
            if end.is_some() || pace.is_thick() {
                (*first).lent_end = None;
                (*first).pace = Pace::default();
                return end;
            }
        }
    }
}
