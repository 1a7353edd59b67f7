//! The end of a shard: what it has counted, who still waits, who has panicked.

use super::{End, Engine};
use crate::contract::{
    ActorTotals, Addr, Config, Message, PanicReport, Report, Time, Waiting, WaitingActor,
};
use crate::virtual_time::header::{Header, State};
use crate::virtual_time::places::Group;
use crate::virtual_time::population::Population;
use crate::virtual_time::scheduled::Scheduled;
use crate::virtual_time::shard::{Shard, Tally};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a shard has to say when the loop has ended.
pub(in super::super) struct Outcome {
    pub(in super::super) end: End,
    pub(in super::super) tally: Tally,
    pub(in super::super) spawned: u64,
    pub(in super::super) windows: u64,
    /// When the first event that did not happen would have been.
    pub(in super::super) next: u64,
    pub(in super::super) waiting: Vec<WaitingActor>,
    pub(in super::super) totals: Vec<ActorTotals>,
    /// For the names in reports.
    pub(in super::super) groups: Vec<Group>,
}

impl<M: Message> Engine<M> {
    /// After the last window: who still waits, totals, and all bodies dropped.
    pub(super) fn finish(&mut self, config: &Config, end: End) -> Outcome {
        let mut totals = Vec::new();
        let mut waiting = Vec::new();
        let shard = self.shard;
        for population in self.populations.iter().flatten() {
            // SAFETY: no reference to the shard is held while populations are visited or asked.
            unsafe {
                let wanted = ((*shard).tally.live() as usize).min(Report::MOST_WAITING);
                let mut asked = Vec::new();
                let listed = waiting.len();
                population.visit(shard, &mut |actor, header: *mut Header| {
                    if listed + asked.len() < wanted && (*header).state == State::Live {
                        asked.push((actor, (*header).kept));
                    }
                    if config.per_actor {
                        totals.push((*shard).totals_of(actor, &*header));
                    }
                    config.per_actor || listed + asked.len() < wanted
                });
                for (actor, kept) in asked {
                    let kept = (*shard).kept.len(kept);
                    let ask = AssertUnwindSafe(|| population.ask(shard, actor));
                    if catch_unwind(ask).is_err() {
                        (*shard).turn.waiting = Waiting::Other;
                    }
                    let why = (*shard).turn.waiting;
                    let whose = match why {
                        Waiting::Answer(whose) => Some((*shard).places.name_of(whose.as_u32())),
                        _ => None,
                    };
                    let name = (*shard).places.name_of(actor);
                    waiting.push(WaitingActor {
                        who: Addr(actor),
                        name,
                        waiting: why,
                        whose,
                        kept,
                    });
                }
                (*shard).leave();
            }
        }
        for population in self.populations.iter_mut().flatten() {
            // SAFETY: nothing else is done with the populations, and the shard is still there.
            unsafe { population.drop_all(shard) };
        }
        self.populations.clear();
        let tally = std::mem::replace(&mut self.shard().tally, Tally::new(0));
        let groups = std::mem::take(&mut self.shard().places.groups);
        let (spawned, windows, next) = (self.spawned, self.windows, self.next);
        Outcome {
            end,
            tally,
            spawned,
            windows,
            next,
            waiting,
            totals,
            groups,
        }
    }
}

/// An actor has panicked: notes it, if it is the first in virtual time, and drops the body.
///
/// # Safety
/// The shard is valid and nobody holds a reference to it; `population` has the actor being run;
/// `event` is the one at the cursor.
#[cold]
pub(super) unsafe fn note_panic<M: Message>(
    shard: *mut Shard<M>,
    population: &dyn Population<M, Shard<M>>,
    event: *mut Scheduled<M>,
    panic: &(dyn std::any::Any + Send),
) {
    // SAFETY: the contract. The event at the cursor has not been moved out if it is `arrived`; the
    // head of the event being handled can be read even if it was.
    unsafe {
        let (who, now) = ((*shard).turn.me, (*shard).turn.now);
        let report = PanicReport {
            who: Addr(who),
            name: (*shard).places.name_of(who),
            time: Time(now),
            event: (*shard).describe_current(),
            message: crate::contract::report::panic_text(panic),
        };
        let failure = &mut (*shard).tally.failure;
        if failure
            .as_ref()
            .is_none_or(|first| (report.time, report.who) < (first.time, first.who))
        {
            *failure = Some(report);
        }
        if (*shard).turn.arrived == event {
            drop((*shard).take_arrived());
        }
        (*shard).turn.arrived = std::ptr::null_mut();
        // A second panic, of a destructor, is the same actor's and adds nothing.
        let discard = AssertUnwindSafe(|| population.discard(shard, who));
        let _ = catch_unwind(discard);
    }
}

/// An actor's name, when its shard is gone.
pub(in super::super) fn name_of(groups: &[Group], addr: u32) -> String {
    // Groups are in the order of their addresses.
    let after = groups.partition_point(|group| group.first <= addr);
    match after.checked_sub(1).map(|index| &groups[index]) {
        Some(group) if addr - group.first < group.spawn.count() => {
            group.spawn.name(addr - group.first)
        }
        _ => Addr(addr).to_string(),
    }
}
