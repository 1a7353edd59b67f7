//! The end of actors, and of the run.

use super::{End, System};
use crate::contract::report::panic_text;
use crate::contract::{Addr, Event, Message, PanicReport, Panics, Reason, Time};
use crate::sync::lock;
use crate::wall::cell::{Cell, LIVE, PANICKED, RETURNED, STOPPED, STOPPING};
use crate::wall::mailbox_entry::MailboxEntry;
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};

/// An actor that has ended but has not been reported yet.
pub(crate) struct EndedActor {
    reason: Reason,
    /// If the actor was stopped, the epoch in which the stop message is counted as sent.
    stop: Option<u8>,
}

impl<M: Message> System<M> {
    /// Stops an actor at its next wait.
    pub(in crate::wall) fn stop(self: &Arc<Self>, who: Addr) {
        let cell = match self.cells.get(who.0) {
            Some(cell) => cell,
            None => {
                let Some(group) = self.group(who) else { return };
                let (cell, made) = self.cells.get_or_make(who.0, Cell::shared);
                if made && group.on_demand {
                    self.live.fetch_add(1, SeqCst);
                    let closed = self.close(who, Reason::Stopped, []);
                    return self.report_end(who, closed);
                }
                cell
            }
        };
        // A stop counts as a sent message until the actor has ended.
        let epoch = self.counters.sent(1);
        let stopping = STOPPING | epoch;
        if cell
            .state
            .compare_exchange(LIVE, stopping, AcqRel, Acquire)
            .is_ok()
        {
            cell.wake();
        } else {
            self.counters.done(epoch);
        }
    }

    /// Closes the mailbox of an ended actor. Further messages become dead letters. [`System::report_end`] must follow.
    pub(in crate::wall) fn close(
        self: &Arc<Self>,
        who: Addr,
        reason: Reason,
        unread: impl IntoIterator<Item = MailboxEntry<M>>,
    ) -> EndedActor {
        let cell = self.cell(who);
        let state = match reason {
            Reason::Returned => RETURNED,
            Reason::Stopped => STOPPED,
            Reason::Panicked => PANICKED,
        };
        let before = cell.state.swap(state, AcqRel);
        let (left, released) = cell.mailbox.close();
        self.release(released);
        for entry in unread.into_iter().chain(left) {
            self.dead_letter(who, entry);
        }
        EndedActor {
            reason,
            stop: (before & STOPPING != 0).then_some(before & 1),
        }
    }

    /// True if the run is over and has not failed by a panic.
    pub(in crate::wall) fn ends_without_panic(&self) -> bool {
        !matches!(*lock(&self.end), Some(End::Panicked(_)))
    }

    /// Records that an actor panicked in its `finish`, after the run.
    pub(in crate::wall) fn note_late_panic(&self, who: Addr, panic: Box<dyn Any + Send>) {
        self.note_panic(who, "the end of the run", panic);
    }

    /// Drops an undelivered value. A panic of its destructor is attributed to the intended receiver, and does
    /// not affect the caller.
    pub(in crate::wall) fn discard<T>(&self, to: Addr, what: T) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(what))) {
            self.note_panic(to, "the drop of what it did not receive", panic);
        }
    }

    /// Drops the contents of mailboxes after the run.
    pub(in crate::wall) fn discard_unread(&self) {
        let left = std::mem::take(&mut *lock(&self.remains));
        for (who, remains) in left {
            self.discard_all(who, remains.unread);
        }
        for who in (0..self.spawned()).map(Addr) {
            // The mailbox of an ended actor is already closed.
            if let Some(cell) = self.cells.get(who.0)
                && cell.reason().is_none()
            {
                let (left, _) = cell.mailbox.close();
                self.discard_all(who, left);
            }
        }
    }

    fn discard_all(&self, who: Addr, entries: VecDeque<MailboxEntry<M>>) {
        entries
            .into_iter()
            .for_each(|entry| self.discard(who, entry));
    }

    /// Records a panic in an actor's `finish` after the run, or in the destructor of an undelivered value. Such a panic
    /// does not end an actor.
    fn note_panic(&self, who: Addr, event: &str, panic: Box<dyn Any + Send>) {
        let report = PanicReport {
            who,
            name: self.name(who),
            time: self.clock.now(),
            event: event.to_owned(),
            message: panic_text(&*panic),
        };
        lock(&self.panics).push(report.clone());
        if self.config.panics == Panics::EndRun {
            lock(&self.late_panic).get_or_insert(Box::new(report.clone()));
            self.finish(End::Panicked(Box::new(report)));
        }
    }

    /// Notifies the parent, if the actor is watched or has panicked, and counts the actor as ended.
    pub(in crate::wall) fn report_end(self: &Arc<Self>, who: Addr, closed: EndedActor) {
        let reason = closed.reason;
        self.ended.fetch_add(1, AcqRel);
        if let Some(group) = self.group(who)
            && (group.watched || reason == Reason::Panicked)
        {
            self.send_system_event(
                group.parent,
                MailboxEntry::system(Event::Down { who, reason }, self.clock.now()),
            );
        }
        self.live.fetch_sub(1, SeqCst);
        closed
            .stop
            .into_iter()
            .for_each(|epoch| self.counters.done(epoch));
    }

    /// True if the run is over and actors must not act any more.
    #[inline]
    pub(in crate::wall) fn is_ending(&self) -> bool {
        self.ending.load(Acquire)
    }

    /// Ends the run. Only the outcome of the first call counts.
    pub(in crate::wall) fn finish(&self, end: End) {
        lock(&self.end).get_or_insert(end);
        self.ending.store(true, Release);
        for (to, entry) in self.clock.stop() {
            self.discard(to, entry);
        }
    }

    /// Makes the periodic check of the clock thread.
    pub(in crate::wall) fn watch(self: &Arc<Self>, now: Time) {
        if self.config.cancel.is_cancelled() {
            return self.finish(End::Cancelled);
        }
        if let Some(end) = self.config.end
            && now > end
        {
            return self.finish(End::Late { end, next: now });
        }
        self.start_queue
            .take_all()
            .for_each(|queued| self.begin(queued));
        let live = self.live.load(SeqCst);
        let scan = self.counters.scan(live);
        let last = std::mem::replace(&mut *lock(&self.last), scan);
        if scan == last && scan.is_still() && self.clock.delayed() == 0 {
            self.finish(End::Deadlock);
        }
    }

    /// Wakes every actor, so that it notices the end of the run.
    pub(in crate::wall) fn wake_all(&self) {
        self.cells.iter().for_each(|cell| cell.wake());
    }
}
