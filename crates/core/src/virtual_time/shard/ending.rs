//! The end of a run, and undelivered events.

use super::Shard;
use crate::contract::Message;
use crate::virtual_time::event::ScheduledEvent;
use crate::virtual_time::shard::ShardCell;
use crate::virtual_time::turn_cell::caught;

impl<M: Message> Shard<M> {
    /// Ends the run at this time.
    pub(in super::super) fn end_run(&mut self, time: u64) {
        self.leave();
        self.turn.now = time;
        self.over = true;
    }

    /// Runs a closure on behalf of an actor at the end of the run. A panic is attributed to the actor.
    pub(in super::super) fn at_end(shard: ShardCell<M>, actor: u32, act: impl FnOnce()) {
        shard.with(|shard| shard.turn.me = actor);
        if let Err(panic) = caught(act) {
            shard.with(|shard| {
                shard.turn.me = actor;
                shard.note_panic("the end of the run".to_owned(), None, &*panic);
            });
        }
        shard.with(Shard::leave);
    }

    /// Keeps an event that will never be delivered, to be dropped at the end of the run.
    pub(in super::super) fn never_happens(&mut self, event: ScheduledEvent<M>) {
        self.never.push(event);
    }

    /// Takes all events that wait outside of queues and wheels.
    pub(in super::super) fn take_unread(
        &mut self,
    ) -> impl Iterator<Item = ScheduledEvent<M>> + use<M> {
        let own = std::mem::take(&mut self.own).into_messages();
        let never = std::mem::take(&mut self.never);
        let pending = std::mem::take(&mut self.pending);
        let own = own.map(|(_, event)| event);
        own.chain(never).chain(pending).chain(self.stash.take_all())
    }
}
