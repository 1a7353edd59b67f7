//! The end of a shard: what it has counted, who still waits, who has panicked.

use super::{End, Engine};
use crate::contract::{ActorTotals, Addr, Config, Message, Report, Waiting, WaitingActor};
use crate::virtual_time::header::State;
use crate::virtual_time::places::NamedRange;
use crate::virtual_time::population::Population;
use crate::virtual_time::shard::{Counters, Shard};
use crate::virtual_time::slab::Slab;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a shard has to say when the loop has ended.
pub(in super::super) struct Outcome {
    pub(in super::super) end: End,
    pub(in super::super) counters: Counters,
    pub(in super::super) spawned: u64,
    pub(in super::super) windows: u64,
    /// When the first event that did not happen would have been.
    pub(in super::super) next: u64,
    pub(in super::super) waiting: Vec<WaitingActor>,
    pub(in super::super) totals: Vec<ActorTotals>,
    /// For the names in reports.
    pub(in super::super) names: Vec<NamedRange>,
}

impl<M: Message> Engine<M> {
    /// After the last window: who still waits, totals, and all bodies dropped.
    pub(super) fn finish(&mut self, config: &Config, end: End) -> Outcome {
        // Nothing of it arrives, but making it may panic, and that is told.
        self.send_all();
        let mut totals = Vec::new();
        let mut waiting = Vec::new();
        let shard = self.shard;
        // SAFETY: no reference to the shard is held while populations or actors are asked.
        unsafe {
            let wanted = ((*shard).counters.live() as usize).min(Report::MOST_WAITING);
            let mut asked = Vec::new();
            for (actor, number) in (*shard).places.actors() {
                if asked.len() == wanted && !config.per_actor {
                    break;
                }
                let Some(population) = self.populations.get(number) else {
                    continue;
                };
                let header = population.header(shard, actor);
                if asked.len() < wanted && (*header).state == State::Live {
                    asked.push((actor, population));
                }
                if config.per_actor {
                    totals.push((*shard).totals_of(actor, &*header));
                }
            }
            for (actor, population) in asked {
                let kept = (*shard).kept.len((*population.header(shard, actor)).kept);
                let ask = AssertUnwindSafe(|| population.ask(shard, actor));
                if catch_unwind(ask).is_err() {
                    (*shard).turn.waiting = Waiting::Other;
                }
                waiting.push(WaitingActor {
                    who: Addr(actor),
                    name: (*shard).places.name_of(actor),
                    waiting: (*shard).turn.waiting,
                    whose: None,
                    kept,
                });
            }
        }
        // All shards know whether the run was cancelled; of a panic some may not.
        if end != End::Halted || config.cancel.is_cancelled() {
            self.finish_actors();
        }
        self.clear();
        let counters = std::mem::replace(&mut self.shard().counters, Counters::new(0));
        let names = self.shard().places.names();
        let (spawned, windows, next) = (self.spawned, self.windows, self.next);
        Outcome {
            end,
            counters,
            spawned,
            windows,
            next,
            waiting,
            totals,
            names,
        }
    }

    /// What every actor has done so far, in the order of addresses.
    pub(super) fn totals(&mut self) -> Vec<ActorTotals> {
        let shard = self.shard;
        let mut totals = Vec::new();
        // SAFETY: no reference to the shard is held while populations are asked.
        unsafe {
            for (actor, number) in (*shard).places.actors() {
                if let Some(population) = self.populations.get(number) {
                    let header = population.header(shard, actor);
                    totals.push((*shard).totals_of(actor, &*header));
                }
            }
        }
        totals
    }

    /// Lets every actor that lives do what it does when the run is over, in the order of addresses.
    fn finish_actors(&mut self) {
        let (shard, over) = (self.shard, self.over);
        // SAFETY: no reference to the shard is held while populations or actors are asked.
        unsafe {
            let actors: Vec<_> = (*shard).places.actors().collect();
            for (actor, number) in actors {
                let Some(population) = self.populations.get(number) else {
                    continue;
                };
                (*shard).leave();
                (*shard).turn.now = over;
                let finish = AssertUnwindSafe(|| population.finish(shard, actor));
                if let Err(panic) = catch_unwind(finish) {
                    (*shard).note_panic("the end of the run".to_owned(), None, &*panic);
                }
            }
        }
    }

    /// Drops all bodies.
    pub(super) fn clear(&mut self) {
        let shard = self.shard;
        // SAFETY: no reference to the shard is held while populations or actors are asked.
        unsafe {
            (*shard).leave();
            let spawns: Vec<_> = (*shard).places.spawns().collect();
            for (first, number) in spawns {
                if let Some(population) = self.populations.get(number) {
                    population.clear(shard, first);
                }
            }
        }
        self.populations = Slab::new();
    }
}

/// An actor has panicked: notes it, if it is the first in virtual time, and drops the body.
///
/// # Safety
/// The shard is valid and no reference to it is held; `population` has the actor being run.
#[cold]
pub(super) unsafe fn note_panic<M: Message>(
    shard: *mut Shard<M>,
    population: &dyn Population<M, Shard<M>>,
    panic: &(dyn Any + Send),
) {
    // SAFETY: the contract. What `current` and `arrived` point to stays in place until the next
    // event, also in an actor that unwinds.
    unsafe {
        let (event, whose) = (*shard).describe_current();
        (*shard).note_panic(event, whose, panic);
        let who = (*shard).turn.me;
        // A second panic, of a destructor, is the same actor's and adds nothing.
        let arrived = AssertUnwindSafe(|| drop((*shard).take_arrived()));
        let _ = catch_unwind(arrived);
        let discard = AssertUnwindSafe(|| population.discard(shard, who));
        let _ = catch_unwind(discard);
    }
}
