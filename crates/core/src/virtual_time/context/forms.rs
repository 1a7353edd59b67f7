//! The two forms of actors, as a population runs them.

use super::{ForBody, ForEvent, VirtualContext};
use crate::contract::{Actor, Addr, Event, Flow, Message, Token, Waiting};
use crate::virtual_time::form::Form;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::stored::Stored;
#[cfg(feature = "serde")]
use crate::virtual_time::travel::CodecError;
use crate::virtual_time::waker;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task;

/// From what actors of a spawn are made that have no use for a context then.
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

/// A closure, which cannot travel.
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
    fn make(&self, _: *mut Shard<M>, index: u32) -> A {
        self.make.make(index)
    }

    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = F::KIND;

    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        self.make.parameters(to)
    }

    #[cfg(feature = "serde")]
    unsafe fn save(actor: *const A, to: &mut Vec<u8>) -> Result<(), CodecError> {
        // SAFETY: the contract.
        F::save(unsafe { &*actor }, to)
    }

    #[cfg(feature = "serde")]
    fn load(&self, from: &mut &[u8]) -> Result<A, CodecError> {
        self.make.load(from)
    }

    #[inline(always)]
    unsafe fn begin(actor: *mut A, shard: *mut Shard<M>) {
        // SAFETY: the shard is valid, and the actor is used by nothing else.
        unsafe { (*actor).start(&mut VirtualContext::new(ForEvent(shard))) }
    }

    #[inline(always)]
    unsafe fn handle(actor: *mut A, shard: *mut Shard<M>) -> Flow {
        // SAFETY: the shard is valid, the actor used by nothing else; the reference to the shard
        // ends before the handler runs.
        unsafe {
            let Some(event) = (*shard).take_event() else {
                return Flow::Continue;
            };
            (*actor).on(event, &mut VirtualContext::new(ForEvent(shard)))
        }
    }

    #[inline(always)]
    unsafe fn receive(actor: *mut A, shard: *mut Shard<M>, message: *mut Stored<M>) -> Flow {
        // SAFETY: as in `handle`; a message has a body.
        unsafe {
            let event = Event::Message {
                from: Addr((*message).label.from),
                body: Stored::body(message).read(),
            };
            (*actor).on(event, &mut VirtualContext::new(ForEvent(shard)))
        }
    }

    #[inline(always)]
    unsafe fn due(actor: *mut A, shard: *mut Shard<M>, timer: *mut Stored<M>) -> Flow {
        // SAFETY: as in `handle`; a timer has a token.
        unsafe {
            let event = Event::Timer(Token(Stored::token(timer)));
            (*actor).on(event, &mut VirtualContext::new(ForEvent(shard)))
        }
    }

    #[cfg(feature = "serde")]
    unsafe fn state(actor: *const ()) -> Option<serde_json::Value> {
        // SAFETY: the contract.
        unsafe { (*actor.cast::<A>()).state() }
    }

    unsafe fn finish(actor: *mut A, shard: *mut Shard<M>) {
        // SAFETY: as in `begin`.
        unsafe { (*actor).finish(&mut VirtualContext::new(ForEvent(shard))) }
    }

    unsafe fn ask(_: *mut A, shard: *mut Shard<M>) {
        // SAFETY: the shard is valid.
        unsafe { (*shard).turn.waiting = Waiting::Message }
    }
}

/// Actors with async bodies.
struct Bodies<F, B> {
    make: F,
    _body: PhantomData<fn() -> B>,
}

/// The form of the bodies that `make` makes.
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

/// The form of the root, whose body is made once.
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

    fn make(&self, shard: *mut Shard<M>, index: u32) -> B {
        // SAFETY: the shard is valid.
        let id = unsafe { (*shard).id };
        (self.make)(VirtualContext::new(ForBody(id, PhantomData)), index)
    }

    /// The first poll is its begin.
    #[inline(always)]
    unsafe fn begin(_: *mut B, _: *mut Shard<M>) {}

    #[inline(always)]
    unsafe fn handle(actor: *mut B, shard: *mut Shard<M>) -> Flow {
        // SAFETY: a body lives in its slot until it is dropped there, so it is pinned; it is used
        // by nothing else, and no reference to the shard is held while it is polled.
        unsafe {
            let me = (*shard).turn.me;
            let waker = ManuallyDrop::new(waker::of(me));
            let waits = &raw const (*shard).waits;
            if (*waits).has_relays() {
                wake_relay(shard);
            }
            loop {
                waker::begin(me);
                let body = Pin::new_unchecked(&mut *actor);
                if body.poll(&mut task::Context::from_waker(&waker)).is_ready() {
                    return_arrived(shard);
                    return Flow::Stop;
                }
                if !waker::was_woken() || !again(shard) {
                    break;
                }
            }
            if !(*shard).turn.arrived.is_null() {
                keep_arrived(shard);
            }
        }
        Flow::Continue
    }

    #[cfg(feature = "serde")]
    unsafe fn state(_: *const ()) -> Option<serde_json::Value> {
        None
    }

    unsafe fn finish(_: *mut B, _: *mut Shard<M>) {}

    unsafe fn ask(actor: *mut B, shard: *mut Shard<M>) {
        // SAFETY: as in `handle`.
        unsafe {
            (*shard).turn.waiting = Waiting::Other;
            wake_relay(shard);
            let waker = ManuallyDrop::new(waker::of((*shard).turn.me));
            let body = Pin::new_unchecked(&mut *actor);
            let _ = body.poll(&mut task::Context::from_waker(&waker));
        }
    }
}

/// Whether a body that was woken while it was polled is to be polled again.
///
/// # Safety
/// The shard is valid and no reference to it is held.
#[cold]
#[inline(never)]
unsafe fn again<M: Message>(shard: *mut Shard<M>) -> bool {
    // SAFETY: the contract.
    let shard = unsafe { &mut *shard };
    let caused = shard.turn.near.count_caused(shard.turn.me, shard.turn.now);
    shard.may_go_on(caused)
}

/// Wakes the waker that a combinator gave to the wait of the actor being run.
///
/// # Safety
/// The shard is valid and no reference to it is held.
#[cold]
#[inline(never)]
unsafe fn wake_relay<M: Message>(shard: *mut Shard<M>) {
    // SAFETY: the contract; the reference ends before the waker is used, which is foreign code.
    let relay = unsafe {
        let (me, waits) = ((*shard).turn.me, &raw mut (*shard).waits);
        (*waits).take_relay(me)
    };
    if let Some(relay) = relay {
        relay.wake();
    }
}

/// The actor has ended without receiving the event that has arrived, if one has: that is undeliverable.
///
/// # Safety
/// The shard is valid and no reference to it is held.
pub(super) unsafe fn return_arrived<M: Message>(shard: *mut Shard<M>) {
    // SAFETY: the contract; each reference ends with its expression, before the event is dropped, which is
    // foreign code.
    unsafe {
        if let Some(event) = (*shard).take_arrived() {
            let kind = event.message_kind();
            drop((*shard).undeliverable(event, kind));
        }
    }
}

/// The body waits for something else than events: what has arrived is kept for it.
#[cold]
unsafe fn keep_arrived<M: Message>(shard: *mut Shard<M>) {
    // SAFETY: the shard is valid, by the contract of `Form`.
    unsafe {
        if let Some(event) = (*shard).take_arrived()
            && !event.is_own()
        {
            (*shard).keep(event);
        }
    }
}
