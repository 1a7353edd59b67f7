//! How actors reach their shard.

use super::form::Form;
use super::population::SpawnRequest;

use super::scheduled::{Kind, Scheduled};
use super::shard::Shard;
use crate::contract::time::nanos;
use crate::contract::{
    Actor, Addr, AsyncContext, Context, Envelope, Event, Flow, Message, SpanId, Spawn, Ticket,
    Time, Token, Waiting,
};
use std::cell::Cell;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, Waker};
use std::time::Duration;

thread_local! {
    /// The shard that runs on this thread: its number, and where it is.
    static RUNNING: Cell<(u32, *mut ())> = const { Cell::new((0, std::ptr::null_mut())) };
}

/// While it lives, a shard runs on this thread.
pub(super) struct Running {
    before: (u32, *mut ()),
}

impl Running {
    /// # Safety
    /// The shard outlives what is returned, and is used by this thread alone as long.
    pub(super) unsafe fn new<M>(shard: *mut Shard<M>) -> Running {
        // SAFETY: the shard is valid, by the contract.
        let id = unsafe { (*shard).id };
        Running {
            before: RUNNING.replace((id, shard.cast())),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.before);
    }
}

/// A way to a shard.
pub(super) trait Reach<M>: Send {
    /// The shard of the actor being run. Valid, and nobody holds a reference to it.
    fn shard(&self) -> *mut Shard<M>;
}

/// The way of a handler: the context is lent to it for one event.
pub(super) struct ForEvent<M>(*mut Shard<M>);

// SAFETY: the pointer is lent with the context for the time of one event, in which the shard's own
// thread does nothing else. A handler can give the context only to a thread that it waits for.
unsafe impl<M: Send> Send for ForEvent<M> {}

impl<M: Message> Reach<M> for ForEvent<M> {
    #[inline(always)]
    fn shard(&self) -> *mut Shard<M> {
        self.0
    }
}

/// The way of a body, which owns its context: the shard's number, to be found running on this
/// thread. Elsewhere and after the run it is found nowhere, and that panics.
pub(super) struct ForBody<M>(u32, PhantomData<fn() -> M>);

impl<M: Message> Reach<M> for ForBody<M> {
    #[inline(always)]
    fn shard(&self) -> *mut Shard<M> {
        let (id, shard) = RUNNING.get();
        if id != self.0 {
            astray();
        }
        // Numbers of shards are unique, so this is the shard that made the context, of type M.
        shard.cast()
    }
}

#[cold]
#[inline(never)]
fn astray() -> ! {
    panic!("an actor's context was used outside of its own body")
}

/// The context of actors on virtual time.
pub(super) struct VirtualContext<M, R> {
    reach: R,
    _message: PhantomData<fn() -> M>,
}

impl<M, R: Reach<M>> VirtualContext<M, R> {
    fn new(reach: R) -> Self {
        VirtualContext {
            reach,
            _message: PhantomData,
        }
    }

    /// The shard, for one short use that runs no foreign code.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "see the safety comment; every use is one expression"
    )]
    fn shard(&self) -> &mut Shard<M> {
        // SAFETY: the engine holds no reference while actors run, and each reference made here is
        // used up in the expression that asks for it, before any other code runs.
        unsafe { &mut *self.reach.shard() }
    }
}

impl<M: Message, R: Reach<M>> Context<M> for VirtualContext<M, R> {
    #[inline(always)]
    fn me(&self) -> Addr {
        Addr(self.shard().turn.me)
    }

    fn parent(&self) -> Addr {
        let me = self.shard().turn.me;
        Addr(self.shard().places.parent_of(me))
    }

    #[inline(always)]
    fn now(&self) -> Time {
        Time(self.shard().turn.now)
    }

    #[inline]
    fn envelope(&self) -> Envelope {
        self.shard().current().envelope()
    }

    #[inline(always)]
    fn random(&mut self) -> u64 {
        self.shard().random()
    }

    #[inline(always)]
    fn send(&mut self, to: Addr, body: M) -> SpanId {
        SpanId(self.shard().post(Kind::Message, to.0, 0, 0, body))
    }

    #[inline]
    fn send_after(&mut self, delay: Duration, to: Addr, body: M) -> SpanId {
        SpanId(
            self.shard()
                .post(Kind::Message, to.0, nanos(delay), 0, body),
        )
    }

    fn question(&mut self, to: Addr, body: M) -> SpanId {
        SpanId(self.shard().post(Kind::Question, to.0, 0, 0, body))
    }

    fn reply(&mut self, ticket: Ticket, body: M) -> SpanId {
        let question = ticket.question.as_u64();
        SpanId(
            self.shard()
                .post(Kind::Reply, ticket.to.0, 0, question, body),
        )
    }

    #[inline(always)]
    fn timer(&mut self, after: Duration, token: Token) {
        self.shard().set_timer(nanos(after), token.0)
    }

    fn stop(&mut self, who: Addr) {
        self.shard().notify(Kind::Stop, who.0, 0);
    }

    fn new_trace(&mut self) {
        self.shard().new_trace();
    }

    #[inline]
    fn continue_trace(&mut self, trace: SpanId, parent: SpanId) {
        self.shard().continue_trace(trace, parent);
    }

    fn spawn_request<A, F>(&mut self, how: Spawn, make: F) -> u32
    where
        A: Actor<M>,
        F: Fn(u32) -> A + Send + Sync + 'static,
    {
        request(
            self.shard(),
            how,
            Handlers {
                make,
                _actor: PhantomData,
            },
        )
    }
}

/// Notes a spawn to be done when the shards meet.
fn request<M: Message>(shard: &mut Shard<M>, spawn: Spawn, form: impl Form<M>) -> u32 {
    let request = shard.request();
    let (time, parent) = (shard.turn.now, shard.turn.me);
    shard.spawns.push(SpawnRequest {
        time,
        parent,
        request,
        spawn,
        blueprint: Arc::new(form),
    });
    request
}

impl<M: Message> AsyncContext<M> for VirtualContext<M, ForBody<M>> {
    #[inline(always)]
    fn recv(&mut self) -> impl Future<Output = Event<M>> + Send {
        Recv {
            context: VirtualContext::new(ForBody(self.reach.0, PhantomData)),
        }
    }

    #[inline]
    fn recv_where(
        &mut self,
        why: Waiting,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> impl Future<Output = Event<M>> + Send {
        let context = VirtualContext::new(ForBody(self.reach.0, PhantomData));
        RecvWhere {
            context,
            why,
            wanted,
            searched: false,
        }
    }

    async fn yield_now(&mut self) {
        let latency = self.shard().min_latency();
        self.sleep(Duration::from_nanos(latency)).await;
    }

    async fn settle(&mut self) {
        // What is sent now arrives after the longest latency at the latest; one more window lets
        // the shards get there, too.
        let longest = self
            .shard()
            .max_latency()
            .saturating_add(self.shard().min_latency());
        self.sleep(Duration::from_nanos(longest)).await;
    }

    fn spawn_bodies<B, F>(&mut self, how: Spawn, make: F) -> u32
    where
        B: Future<Output = ()> + Send + 'static,
        F: Fn(Self, u32) -> B + Send + Sync + 'static,
    {
        request(self.shard(), how, bodies(make))
    }

    fn own_token(&mut self) -> Token {
        self.shard().own_token()
    }
}

/// The plain receive: what was kept, then what has arrived.
struct Recv<M> {
    context: VirtualContext<M, ForBody<M>>,
}

impl<M: Message> Future for Recv<M> {
    type Output = Event<M>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Event<M>> {
        let shard = || self.context.shard();
        while let Some(event) = shard().take_kept() {
            shard().resume(event.head);
            if let Some(event) = event.for_actor() {
                return Poll::Ready(event);
            }
        }
        if let Some(event) = shard().take_arrived()
            && let Some(event) = event.for_actor()
        {
            return Poll::Ready(event);
        }
        shard().turn.waiting = Waiting::Message;
        Poll::Pending
    }
}

/// The selective receive. What was kept before is searched once; from then on only what arrives.
struct RecvWhere<M, W> {
    context: VirtualContext<M, ForBody<M>>,
    why: Waiting,
    wanted: W,
    searched: bool,
}

// Nothing in it is ever pinned.
impl<M, W> Unpin for RecvWhere<M, W> {}

impl<M: Message, W: Fn(&Event<M>, &Envelope) -> bool> RecvWhere<M, W> {
    /// Looks at an event: it is wanted, or it is to be kept, or neither.
    fn look(&self, event: Scheduled<M>) -> Look<M> {
        let head = event.head;
        let Some(seen) = event.into_event() else {
            return Look::Neither;
        };
        if (self.wanted)(&seen, &head.envelope()) {
            self.context.shard().resume(head);
            return Look::Wanted(seen);
        }
        match Scheduled::from_event(head, seen) {
            event if event.is_stale() => Look::Neither,
            event => Look::Keep(event),
        }
    }
}

enum Look<M> {
    Wanted(Event<M>),
    Keep(Scheduled<M>),
    Neither,
}

impl<M: Message, W: Fn(&Event<M>, &Envelope) -> bool> Future for RecvWhere<M, W> {
    type Output = Event<M>;

    fn poll(mut self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Event<M>> {
        if !std::mem::replace(&mut self.searched, true) {
            // One turn around the list: each event is taken from its front, and what is kept goes
            // to its end, so that the order stays.
            let mut found = None;
            for _ in 0..self.context.shard().kept_count() {
                let Some(event) = self.context.shard().take_kept() else {
                    break;
                };
                if found.is_some() {
                    self.context.shard().keep(event);
                    continue;
                }
                match self.look(event) {
                    Look::Wanted(event) => found = Some(event),
                    Look::Keep(event) => self.context.shard().keep(event),
                    Look::Neither => {}
                }
            }
            if let Some(event) = found {
                return Poll::Ready(event);
            }
        }
        if let Some(event) = self.context.shard().take_arrived() {
            match self.look(event) {
                Look::Wanted(event) => return Poll::Ready(event),
                Look::Keep(event) => self.context.shard().keep(event),
                Look::Neither => {}
            }
        }
        self.context.shard().turn.waiting = self.why;
        Poll::Pending
    }
}

/// Actors in handler form.
struct Handlers<A, F> {
    make: F,
    _actor: PhantomData<fn() -> A>,
}

impl<M: Message, A: Actor<M>, F: Fn(u32) -> A + Send + Sync + 'static> Form<M> for Handlers<A, F> {
    type Actor = A;

    fn make(&self, _: *mut Shard<M>, index: u32) -> A {
        (self.make)(index)
    }

    #[inline(always)]
    unsafe fn begin(actor: *mut A, shard: *mut Shard<M>) {
        // SAFETY: the shard is valid, and the actor is used by nobody else.
        unsafe { (*actor).start(&mut VirtualContext::new(ForEvent(shard))) }
    }

    #[inline(always)]
    unsafe fn handle(actor: *mut A, shard: *mut Shard<M>) -> Flow {
        // SAFETY: the shard is valid, the actor used by nobody else; the reference to the shard
        // ends before the handler runs.
        unsafe {
            let event = (*shard).take_arrived();
            let Some(event) = event.and_then(Scheduled::for_actor) else {
                return Flow::Continue;
            };
            (*actor).on(event, &mut VirtualContext::new(ForEvent(shard)))
        }
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
fn bodies<M, F, B>(make: F) -> impl Form<M>
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
pub(super) fn root_form<M, F, B>(make: F) -> impl Form<M>
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
        // by nobody else, and no reference to the shard is held while it is polled.
        unsafe {
            let body = Pin::new_unchecked(&mut *actor);
            if body
                .poll(&mut task::Context::from_waker(Waker::noop()))
                .is_ready()
            {
                // What arrived with the last breath was not received.
                if let Some(event) = (*shard).take_arrived() {
                    let kind = event.message_kind();
                    drop((*shard).undeliverable(event, kind));
                }
                return Flow::Stop;
            }
            if !(*shard).turn.arrived.is_null() {
                keep_arrived(shard);
            }
        }
        Flow::Continue
    }

    unsafe fn ask(actor: *mut B, shard: *mut Shard<M>) {
        // SAFETY: as in `handle`.
        unsafe {
            (*shard).turn.waiting = Waiting::Other;
            let body = Pin::new_unchecked(&mut *actor);
            let _ = body.poll(&mut task::Context::from_waker(Waker::noop()));
        }
    }
}

/// The body waits for something else than events: what has arrived is kept for it.
#[cold]
unsafe fn keep_arrived<M: Message>(shard: *mut Shard<M>) {
    // SAFETY: the shard is valid, by the contract of `Form`.
    unsafe {
        if let Some(event) = (*shard).take_arrived()
            && !event.is_stale()
        {
            (*shard).keep(event);
        }
    }
}
