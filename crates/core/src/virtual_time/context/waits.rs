//! The waits of bodies for events.

use super::{ForBody, ShardAccess, VirtualContext};
use crate::contract::{Context, Envelope, Event, LibraryWait, Message, WaitReason};
use crate::virtual_time::actors::count_message;
use crate::virtual_time::event::{Head, Kind, ScheduledEvent};
use crate::virtual_time::shard::Shard;
use crate::virtual_time::shard::ShardCell;
use crate::virtual_time::waker;
use std::pin::Pin;
use std::task::{self, Poll, Waker};

/// A wait of a body.
pub(super) struct Wait<M, W> {
    pub(super) context: VirtualContext<M, ForBody<M>>,
    pub(super) why: WaitReason,
    pub(super) wanted: W,
}

/// The condition of a wait.
pub(super) trait WaitCondition<M> {
    /// Looks for a matching event.
    fn look(&mut self, context: &VirtualContext<M, ForBody<M>>) -> Option<Event<M>>;
}

// No field is ever pinned.
impl<M, W> Unpin for Wait<M, W> {}

impl<M: Message, W: WaitCondition<M>> Future for Wait<M, W> {
    type Output = Event<M>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Event<M>> {
        let this = &mut *self;
        if let Some(event) = this.wanted.look(&this.context) {
            return Poll::Ready(event);
        }
        let shard = this.context.access.shard();
        let me = shard.with(|shard| {
            shard.turn.waiting = this.why;
            shard.turn.me
        });
        if !waker::is_of(task.waker(), me) {
            relay(shard, me, task.waker());
        }
        Poll::Pending
    }
}

/// Stores the waker of a combinator, to be woken when an event arrives.
#[cold]
#[inline(never)]
fn relay<M: Message>(shard: ShardCell<M>, me: u32, waker: &Waker) {
    // Cloning and dropping a waker is foreign code: no reference to the shard is held.
    let waker = waker.clone();
    let before = shard.with(|shard| shard.waits.set_relay(me, waker));
    drop(before);
}

/// The plain receive, which returns stashed events first, and then the current one. Each body contains one, so it takes
/// only four bytes.
pub(super) struct Receive<M>(pub(super) ForBody<M>);

impl<M: Message> Future for Receive<M> {
    type Output = Event<M>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Event<M>> {
        // Looks up the shard only once, because the root receives as many events as all other actors together.
        let shard = self.0.shard();
        if let Some(event) = next_event(shard) {
            return Poll::Ready(event);
        }
        let (me, relays) = shard.with(|shard| (shard.turn.me, shard.waits.has_relays()));
        if !waker::is_of(task.waker(), me) {
            shard.with(|shard| shard.turn.waiting = WaitReason::Message);
            relay(shard, me, task.waker());
            return Poll::Pending;
        }
        // With a combinator, only the engine's next poll decides which future takes the next event.
        if !relays && let Some(event) = take_of_row(shard) {
            return Poll::Ready(event);
        }
        shard.with(|shard| shard.turn.waiting = WaitReason::Message);
        Poll::Pending
    }
}

/// Returns the next message of the same sender, receiver and instant as the message being handled.
#[inline(always)]
fn take_of_row<M: Message>(shard: ShardCell<M>) -> Option<Event<M>> {
    let message = shard.with(Shard::next_of_row)?;
    count_message(shard, &message);
    Some(message.take())
}

/// Returns the first stashed event, or the current event if none is stashed.
#[inline(always)]
pub(super) fn next_event<M: Message>(shard: ShardCell<M>) -> Option<Event<M>> {
    while let Some(event) = shard.with(Shard::take_stashed) {
        let kind = event.message_kind();
        shard.with(|shard| shard.resume_stashed(event.head, kind));
        if let Some(event) = event.for_actor() {
            return Some(event);
        }
    }
    shard.with(Shard::take_event)
}

/// The selective receive, which checks each event once.
pub(super) struct Selected<W> {
    pub(super) wanted: W,
    /// The number of the last stashed event that the receive has checked.
    pub(super) seen: u64,
}

impl<W> Selected<W> {
    /// Shows an event to the predicate, and stashes nothing.
    fn show<M: Message>(
        &self,
        context: &VirtualContext<M, ForBody<M>>,
        event: ScheduledEvent<M>,
    ) -> Result<Event<M>, Option<ScheduledEvent<M>>>
    where
        W: Fn(&Event<M>, &Envelope) -> bool,
    {
        let head = event.head;
        if event.is_own() {
            return Err(None);
        }
        let seen = event.into_event().ok_or(None)?;
        if (self.wanted)(&seen, &head.envelope()) {
            let kind = match &seen {
                Event::Message { body, .. } => Some(body.kind()),
                _ => None,
            };
            context.shard().resume_stashed(head, kind);
            return Ok(seen);
        }
        Err(Some(ScheduledEvent::from_event(head, seen)))
    }
}

impl<M: Message, W: Fn(&Event<M>, &Envelope) -> bool> WaitCondition<M> for Selected<W> {
    fn look(&mut self, context: &VirtualContext<M, ForBody<M>>) -> Option<Event<M>> {
        self.look_unless(context, |_| false)
    }
}

impl<W> Selected<W> {
    /// Looks for a matching event. Leaves the current event alone if `except` is true for it.
    fn look_unless<M: Message>(
        &mut self,
        context: &VirtualContext<M, ForBody<M>>,
        except: impl Fn(&Head) -> bool,
    ) -> Option<Event<M>>
    where
        W: Fn(&Event<M>, &Envelope) -> bool,
    {
        let shard = || context.shard();
        let mut entry = shard().stashed_after(self.seen);
        while let Some(at) = entry {
            let Some((number, event)) = shard().stash.lend(at) else {
                // A predicate that is currently running has borrowed this event.
                entry = shard().stashed_next(at);
                continue;
            };
            let looked = self.show(context, event);
            let still = shard().stash.is_lent(at, number);
            match looked {
                Ok(event) => {
                    if still {
                        shard().remove_stashed(at);
                    }
                    return Some(event);
                }
                Err(Some(event)) if still => {
                    shard().stash.put_back(at, event);
                    entry = shard().stashed_next(at);
                }
                Err(event) => {
                    // The predicate itself has received an event from the list.
                    if let Some(event) = event {
                        shard().stash_event(event);
                    }
                    break;
                }
            }
        }
        if let Some(event) = shard().take_arrival_unless(except) {
            match self.show(context, event) {
                Ok(event) => return Some(event),
                Err(Some(event)) => shard().stash_event(event),
                Err(None) => {}
            }
        }
        self.seen = shard().stash.added();
        None
    }
}

/// The selective receive that has a time-out.
pub(super) struct Until<M, W> {
    pub(super) selected: Selected<W>,
    /// The wait for the time-out.
    pub(super) fresh: Fresh<M>,
}

impl<M: Message, W: Fn(&Event<M>, &Envelope) -> bool> WaitCondition<M> for Until<M, W> {
    fn look(&mut self, context: &VirtualContext<M, ForBody<M>>) -> Option<Event<M>> {
        if let Some(event) = self
            .selected
            .look_unless(context, |head| self.fresh.is(head))
        {
            self.fresh.end(None);
            return Some(event);
        }
        // No other event was accepted, so returns the time-out if it has arrived.
        self.fresh.look(context)
    }
}

/// A wait of the library for the outcome of a request or spawn that has just been made.
pub(super) struct Fresh<M> {
    pub(super) access: ForBody<M>,
    pub(super) actor: u32,
    pub(super) own: LibraryWait,
    /// Stashed events with this sequence number or a smaller one cannot be the outcome of the wait.
    pub(super) seen: u64,
    pub(super) done: bool,
}

impl<M> Fresh<M> {
    /// True if an event is the awaited outcome.
    fn is(&self, head: &Head) -> bool {
        match (head.kind(), self.own) {
            (Kind::Timer, own) => own
                .timer()
                .is_some_and(|own| own.0 as u64 == head.cause.parent),
            (Kind::Reply | Kind::AskUnanswered, LibraryWait::Answer(request, ..)) => {
                head.cause.parent == request.as_u64()
            }
            (Kind::Spawned, LibraryWait::Spawned(request)) => head.seq == request,
            _ => false,
        }
    }

    /// Ends the wait, and cancels the wait's timer unless the timer has ended the wait.
    fn end(&mut self, by: Option<Kind>) {
        self.done = true;
        if by != Some(Kind::Timer)
            && let Some(token) = self.own.timer()
            && let Some(shard) = self.access.find()
        {
            // If the timer was due earlier, it has already fired, so it is not cancelled.
            let due = self.own.due().map(|(_, due)| due.0);
            shard.with(|shard| {
                if due.is_none_or(|due| due >= shard.turn.now) {
                    shard.waits.cancel(self.actor, token);
                }
            });
        }
    }
}

impl<M: Message> WaitCondition<M> for Fresh<M> {
    fn look(&mut self, context: &VirtualContext<M, ForBody<M>>) -> Option<Event<M>> {
        let shard = || context.shard();
        let mut entry = shard().stashed_after(self.seen);
        while let Some(at) = entry {
            let wanted = shard().stash.head(at).is_some_and(|head| self.is(&head));
            if wanted && let Some((_, event)) = shard().stash.lend(at) {
                shard().remove_stashed(at);
                return self.take(context, event);
            }
            entry = shard().stashed_next(at);
        }
        if let Some(event) = shard().take_arrival() {
            if self.is(&event.head) {
                return self.take(context, event);
            }
            if !event.is_own() {
                shard().stash_event(event);
            }
        }
        // If the body polls the wait only after its timer was due, the timer's event was dropped, so the time-out is
        // reported here.
        if let Some((token, due)) = self.own.due()
            && due < context.now()
        {
            self.end(Some(Kind::Timer));
            return Some(Event::Timer(token));
        }
        self.seen = shard().stash.added();
        None
    }
}

impl<M: Message> Fresh<M> {
    fn take(
        &mut self,
        context: &VirtualContext<M, ForBody<M>>,
        event: ScheduledEvent<M>,
    ) -> Option<Event<M>> {
        self.end(Some(event.head.kind()));
        let kind = event.message_kind();
        context.shard().resume_stashed(event.head, kind);
        event.into_event()
    }
}

impl<M> Drop for Fresh<M> {
    fn drop(&mut self) {
        if !self.done {
            self.end(None);
        }
    }
}
