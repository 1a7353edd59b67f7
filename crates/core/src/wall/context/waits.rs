//! The waits of an actor on the wall clock: for capacity, messages and timers.

use super::ending::HandledEvent;
use super::{TURN, WallContext};
use crate::contract::{AsyncContext, Context, Event, LibraryWait, Message, Time, WaitReason};
use crate::wall::mailbox_entry::MailboxEntry;
use std::future::poll_fn;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

/// The duration from which on a timer is assumed not to be due when its actor begins to wait.
const SOON: Duration = Duration::from_millis(1);

impl<M: Message> WallContext<M> {
    /// Returns the current waker if it differs from the task's own. Such a waker belongs to a combinator between the
    /// executor and this context, which must learn which of its futures was woken.
    #[inline]
    fn between<'a>(&self, task: &Task<'a>) -> Option<&'a Waker> {
        (!self.cell.is_relay(task)).then(|| task.waker())
    }

    /// Waits until receivers have taken all of this actor's messages above the capacity of mailboxes, and takes out
    /// arriving events during the wait.
    pub(super) fn poll_capacity(&mut self, task: &Task<'_>) -> Poll<()> {
        if !self.over {
            return Poll::Ready(());
        }
        self.ledger.flush(&self.system.counters);
        let waker = self.between(task);
        loop {
            // Registers the waker before checking the condition, so that no wake-up is lost.
            let arrived = self.take_arrivals(waker);
            if !self.cell.owed.any() {
                self.over = false;
                return Poll::Ready(());
            }
            if !arrived {
                return Poll::Pending;
            }
        }
    }

    #[inline]
    fn take_arrivals(&mut self, waker: Option<&Waker>) -> bool {
        let mut released = Vec::new();
        let arrived = self
            .cell
            .mailbox
            .take(&mut self.batch, &mut released, waker);
        self.system.release(released);
        arrived
    }

    /// Appends due timers to the received events.
    fn take_due(&mut self) {
        while let Some((due, token)) = self.timers.pop_due(self.now) {
            let mut entry = MailboxEntry::system(Event::Timer(token), due);
            entry.epoch = self.system.counters.sent(1);
            self.batch.push_back(entry);
        }
    }

    /// Starts a wait without a time-out; a timer that is still set belongs to an abandoned wait.
    #[inline]
    pub(super) fn begin_untimed(&mut self, scope: SearchScope) {
        if scope != SearchScope::Continue {
            self.timers.forget_own();
        }
    }

    /// True if other actors should run first, because this actor has handled many events since its last wait.
    #[inline]
    fn gives_way(&mut self, task: &Task<'_>) -> bool {
        let is_over = self.turn >= TURN;
        if is_over {
            self.turn = 0;
            self.ledger.flush(&self.system.counters);
            task.waker().wake_by_ref();
        }
        is_over
    }

    /// True if a timer may be due. A timer that is due long after the last reading of the clock is assumed not to be
    /// due; the request for its wake-up reads the clock again.
    #[inline]
    fn may_be(&self, due: Time) -> bool {
        self.alarm.needs_time() || due < self.looked.after(SOON)
    }

    /// Waits until an event has arrived.
    fn poll_arrivals(&mut self, why: WaitReason, task: &Task<'_>) -> Poll<()> {
        self.ledger.flush(&self.system.counters);
        if self.gives_way(task) {
            return Poll::Pending;
        }
        let waker = self.between(task);
        let mut arrived = self.take_arrivals(waker);
        let next = self.timers.next();
        if arrived || next.is_some_and(|due| self.may_be(due)) {
            self.now = self.system.clock.now();
            self.looked = self.now;
            self.take_due();
            arrived = !self.batch.is_empty();
        }
        if arrived {
            self.waiting = None;
            return Poll::Ready(());
        }
        match next {
            Some(due) => {
                let is_task = waker.is_none();
                let task = || waker.cloned().or_else(|| self.cell.mailbox.task());
                (self.alarm).set(&self.system.clock, due, self.looked, is_task, task);
            }
            None => self.cell.idle.store(true, Relaxed),
        }
        self.turn = 0;
        self.waiting = Some(why);
        Poll::Pending
    }

    /// Waits for a matching event and stashes the others, without returning the event yet. The first poll of a wait
    /// checks stashed events, unless none can match.
    #[inline]
    pub(super) fn poll_entry(
        &mut self,
        why: WaitReason,
        wanted: &impl Fn(&MailboxEntry<M>) -> bool,
        scope: &mut SearchScope,
        task: &Task<'_>,
    ) -> Poll<MailboxEntry<M>> {
        if self.over && self.poll_capacity(task).is_pending() {
            return Poll::Pending;
        }
        // An actor that sends to itself always has events, so it must let others run here.
        if self.gives_way(task) {
            return Poll::Pending;
        }
        let first = std::mem::replace(scope, SearchScope::Continue);
        if first != SearchScope::Continue {
            if self.is_over() {
                return Poll::Pending;
            }
            if first == SearchScope::StashFirst
                && let Some(index) = self.stash.iter().position(wanted)
                && let Some(entry) = self.stash.remove(index)
            {
                return Poll::Ready(entry);
            }
        }
        loop {
            while let Some(entry) = self.batch.pop_front() {
                self.turn += 1;
                self.ledger.done(entry.epoch);
                if wanted(&entry) {
                    return Poll::Ready(entry);
                }
                if !entry.is_own() {
                    self.stash.push_back(entry);
                }
            }
            if self.poll_arrivals(why, task).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// True if the body will not be polled again.
    #[inline]
    fn is_over(&self) -> bool {
        self.system.is_ending() || self.cell.is_stopping()
    }

    /// Returns the next entry, if one has arrived and nothing else must be checked first.
    #[inline]
    pub(super) fn next_arrived(&mut self) -> Option<MailboxEntry<M>> {
        if self.over || !self.stash.is_empty() || self.turn >= TURN || self.is_over() {
            return None;
        }
        if self.batch.front()?.is_own() {
            return None;
        }
        let entry = self.batch.pop_front()?;
        self.turn += 1;
        self.ledger.done(entry.epoch);
        Some(entry)
    }

    /// Makes an entry the event being handled.
    #[inline]
    pub(super) fn hand_out(&mut self, entry: MailboxEntry<M>) -> Event<M> {
        self.envelope = entry.envelope(self.me);
        self.trace = (entry.trace, entry.span);
        self.handled = match &entry.event {
            Event::Message { body, .. } => {
                let kind = body.kind();
                self.received += 1;
                self.ledger.delivered(kind, &self.system.counters);
                HandledEvent::Message(kind)
            }
            Event::Timer(token) => {
                self.ledger.timer();
                HandledEvent::Timer(token.0)
            }
            Event::Spawned { .. } => HandledEvent::Spawned,
            Event::Down { .. } => HandledEvent::Down,
            Event::Unanswered { .. } => HandledEvent::Unanswered,
            Event::DeadLetter { body, .. } => HandledEvent::DeadLetter(body.kind()),
        };
        entry.event
    }

    /// Waits for `time` and stashes arriving events. The wait is not an event: the event being handled stays the same.
    pub(super) async fn pause(&mut self, time: Duration) {
        let token = self.own_token();
        self.timer(time, token);
        let over = |entry: &MailboxEntry<M>| is_of(entry, LibraryWait::Sleep(token, Time::MAX));
        let mut scope = SearchScope::New;
        poll_fn(|task| {
            self.poll_entry(WaitReason::Sleep, &over, &mut scope, task)
                .map(drop)
        })
        .await;
    }
}

/// The events that a wait has to check.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchScope {
    /// Check stashed events, then new ones.
    StashFirst,
    /// Check new events only.
    New,
    /// Check new events, after an earlier poll of this wait.
    Continue,
}

/// True if a message answers one of the library's own waits.
pub(super) fn is_of<M>(entry: &MailboxEntry<M>, own: LibraryWait) -> bool {
    match (&entry.event, own) {
        (Event::Timer(token), own) => own.timer() == Some(*token),
        (Event::Message { .. } | Event::Unanswered { .. }, LibraryWait::Answer(request, ..)) => {
            entry.answers == request
        }
        (Event::Spawned { request, .. }, LibraryWait::Spawned(wanted)) => *request == wanted,
        _ => false,
    }
}
