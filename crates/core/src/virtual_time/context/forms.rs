//! The two forms of actors, as a population runs them.

use super::{ForBody, ForEvent, VirtualContext};
use crate::contract::{Actor, Flow, Message, WaitReason};
use crate::virtual_time::delivery::{MessageDelivery, TimerDelivery};
use crate::virtual_time::form::Form;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::shard::ShardCell;
#[cfg(feature = "serde")]
use crate::virtual_time::travel::CodecError;
use crate::virtual_time::waker;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task;

/// Creates the actors of a spawn, without a context.
pub(super) trait Maker<A>: Send + Sync + 'static {
    /// Makes the actor with this index.
    fn make(&self, index: u32) -> A;

    /// See [`Form::KIND`].
    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = None;

    /// See [`Form::parameters`].
    #[cfg(feature = "serde")]
    fn parameters(&self, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// See [`Form::save`].
    #[cfg(feature = "serde")]
    fn save(_: &A, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// See [`Form::load`].
    #[cfg(feature = "serde")]
    fn load(&self, _: &mut &[u8]) -> Result<A, CodecError> {
        Err(CodecError::NoKind)
    }
}

/// A closure, which cannot be sent to another process.
pub(super) struct ByClosure<F>(pub(super) F);

impl<A, F: Fn(u32) -> A + Send + Sync + 'static> Maker<A> for ByClosure<F> {
    #[inline(always)]
    fn make(&self, index: u32) -> A {
        (self.0)(index)
    }
}

/// Actors in handler form.
pub(super) struct Handlers<A, F> {
    pub(super) make: F,
    pub(super) _actor: PhantomData<fn() -> A>,
}

impl<M: Message, A: Actor<M>, F: Maker<A>> Form<M> for Handlers<A, F> {
    type Actor = A;

    #[inline(always)]
    fn make(&self, _: ShardCell<M>, index: u32) -> A {
        self.make.make(index)
    }

    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = F::KIND;

    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        self.make.parameters(to)
    }

    #[cfg(feature = "serde")]
    fn save(actor: &A, to: &mut Vec<u8>) -> Result<(), CodecError> {
        F::save(actor, to)
    }

    #[cfg(feature = "serde")]
    fn load(&self, from: &mut &[u8]) -> Result<A, CodecError> {
        self.make.load(from)
    }

    #[inline(always)]
    fn begin(actor: &mut A, shard: ShardCell<M>) {
        actor.start(&mut VirtualContext::new(ForEvent(shard)));
    }

    #[inline(always)]
    fn handle(actor: &mut A, shard: ShardCell<M>) -> Flow {
        let Some(event) = shard.with(Shard::take_event) else {
            return Flow::Continue;
        };
        actor.on(event, &mut VirtualContext::new(ForEvent(shard)))
    }

    #[inline(always)]
    fn receive(actor: &mut A, shard: ShardCell<M>, message: MessageDelivery<M>) -> Flow {
        actor.on(message.take(), &mut VirtualContext::new(ForEvent(shard)))
    }

    #[inline(always)]
    fn due(actor: &mut A, shard: ShardCell<M>, timer: TimerDelivery<M>) -> Flow {
        actor.on(timer.take(), &mut VirtualContext::new(ForEvent(shard)))
    }

    #[cfg(feature = "serde")]
    fn state(actor: &A) -> Option<serde_json::Value> {
        actor.state()
    }

    fn finish(actor: &mut A, shard: ShardCell<M>) {
        actor.finish(&mut VirtualContext::new(ForEvent(shard)));
    }

    fn ask(_: &mut A, shard: ShardCell<M>) {
        shard.with(|shard| shard.turn.waiting = WaitReason::Message);
    }
}

/// Actors with async bodies.
struct Bodies<F, B> {
    make: F,
    _body: PhantomData<fn() -> B>,
}

/// Returns the form of the bodies that `make` creates.
pub(super) fn bodies<M, F, B>(make: F) -> impl Form<M>
where
    M: Message,
    B: Future<Output = ()> + 'static,
    F: Fn(VirtualContext<M, ForBody<M>>, u32) -> B + Send + Sync + 'static,
{
    Bodies {
        make,
        _body: PhantomData,
    }
}

/// Returns the form of the root, whose body is created once.
pub(in super::super) fn root_form<M, F, B>(make: F) -> impl Form<M>
where
    M: Message,
    B: Future<Output = ()> + 'static,
    F: FnOnce(VirtualContext<M, ForBody<M>>) -> B + Send + 'static,
{
    let once = std::sync::Mutex::new(Some(make));
    bodies(move |context, _| {
        let make = once
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .take();
        make.expect("a run has one root")(context)
    })
}

impl<M, B, F> Form<M> for Bodies<F, B>
where
    M: Message,
    B: Future<Output = ()> + 'static,
    F: Fn(VirtualContext<M, ForBody<M>>, u32) -> B + Send + Sync + 'static,
{
    type Actor = B;

    const TAKES_ROWS: bool = true;

    fn make(&self, shard: ShardCell<M>, index: u32) -> B {
        let id = shard.with(|shard| shard.id);
        (self.make)(VirtualContext::new(ForBody(id, PhantomData)), index)
    }

    /// Does nothing, because a body begins with its first poll.
    #[inline(always)]
    fn begin(_: &mut B, _: ShardCell<M>) {}

    #[inline(always)]
    fn handle(actor: &mut B, shard: ShardCell<M>) -> Flow {
        // SAFETY: a body stays in its slot from its creation until it is dropped there.
        let mut body = unsafe { Pin::new_unchecked(actor) };
        let (me, relays) = shard.with(|shard| (shard.turn.me, shard.waits.has_relays()));
        let waker = ManuallyDrop::new(waker::of(me));
        if relays {
            wake_relay(shard);
        }
        loop {
            waker::begin(me);
            let task = &mut task::Context::from_waker(&waker);
            if body.as_mut().poll(task).is_ready() {
                return_arrival(shard);
                return Flow::Stop;
            }
            if !waker::was_woken() || !again(shard) {
                break;
            }
        }
        if shard.with(|shard| shard.turn.arrival.is_some()) {
            stash_arrival(shard);
        }
        Flow::Continue
    }

    #[cfg(feature = "serde")]
    fn state(_: &B) -> Option<serde_json::Value> {
        None
    }

    fn finish(_: &mut B, _: ShardCell<M>) {}

    fn ask(actor: &mut B, shard: ShardCell<M>) {
        // A wait for an event of the run overwrites this reason.
        shard.with(|shard| shard.turn.waiting = WaitReason::Foreign);
        wake_relay(shard);
        let waker = waker::of_question();
        // SAFETY: a body stays in its slot from its creation until it is dropped there.
        let body = unsafe { Pin::new_unchecked(actor) };
        let _ = body.poll(&mut task::Context::from_waker(&waker));
        let taken = waker::was_taken();
        shard.with(|shard| {
            if !taken && shard.turn.waiting == WaitReason::Foreign {
                shard.turn.waiting = WaitReason::Other;
            }
        });
    }
}

/// True if a body that was woken during a poll must be polled again.
#[cold]
#[inline(never)]
fn again<M: Message>(shard: ShardCell<M>) -> bool {
    shard.with(|shard| {
        let caused = shard
            .turn
            .timers
            .count_caused(shard.turn.me, shard.turn.now);
        shard.may_continue(caused)
    })
}

/// Wakes the waker that a combinator gave to the wait of the actor being run.
#[cold]
#[inline(never)]
fn wake_relay<M: Message>(shard: ShardCell<M>) {
    let relay = shard.with(|shard| shard.waits.take_relay(shard.turn.me));
    if let Some(relay) = relay {
        relay.wake();
    }
}

/// Handles the arrived event, if there is one, of a body that has ended without receiving it: the event is
/// undeliverable.
pub(super) fn return_arrival<M: Message>(shard: ShardCell<M>) {
    if let Some(event) = shard.with(Shard::take_arrival) {
        let kind = event.message_kind();
        drop(shard.with(|shard| shard.undeliverable(event, kind)));
    }
}

/// Stashes the current event, because the body is not waiting for events.
#[cold]
fn stash_arrival<M: Message>(shard: ShardCell<M>) {
    if let Some(event) = shard.with(Shard::take_arrival)
        && !event.is_own()
    {
        shard.with(|shard| shard.stash_event(event));
    }
}
