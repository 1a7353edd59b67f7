//! The access of actors to their shard.

mod forms;
#[cfg(feature = "serde")]
mod kinds;
mod scripts;
mod transit;
mod waits;

pub(super) use forms::root_form;
#[cfg(feature = "serde")]
pub(super) use kinds::{handlers, read_parameters, scripts};
pub(super) use scripts::root_script;

use super::event::Kind;
use super::form::Form;
use super::population::SpawnRequest;
#[cfg(feature = "serde")]
use super::shard::ByKind as EachByKind;
use super::shard::ShardCell;
use super::shard::{ByClosure as EachByClosure, Shard};
use super::waker;
#[cfg(feature = "serde")]
use crate::contract::EachKind;
use crate::contract::time::nanos;
use crate::contract::{
    Actor, Addr, AddrRange, AsyncContext, Context, Envelope, Event, LibraryWait, Message,
    ReplyHandle, Sample, SpanId, Spawn, Time, TimerHandle, Token, WaitReason,
};
use forms::{ByClosure, Handlers, bodies};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use waits::{Fresh, Receive, Selected, Until, Wait, WaitCondition};

thread_local! {
    /// The number and the address of the shard that runs on this thread.
    static RUNNING: Cell<(u32, *mut ())> = const { Cell::new((0, std::ptr::null_mut())) };
}

#[cfg(feature = "tracing")]
thread_local! {
    /// Pointers to the shard's current actor and time.
    static HERE: Cell<(*const u32, *const u64)> =
        const { Cell::new((std::ptr::null(), std::ptr::null())) };
}

/// Returns the time and the actor whose code is running on this thread.
#[cfg(feature = "tracing")]
pub(crate) fn running() -> Option<(Time, Addr)> {
    let (me, now) = HERE.get();
    if me.is_null() {
        return None;
    }
    // SAFETY: the pointers lead into the shard that runs on this thread. No reference to the shard is held while code
    // of an actor runs.
    unsafe { Some((Time(now.read()), Addr(me.read()))) }
}

/// A guard: a shard runs on this thread until the guard is dropped.
pub(super) struct Running {
    before: (u32, *mut ()),
    #[cfg(feature = "tracing")]
    here: (*const u32, *const u64),
    polled: (usize, bool),
}

impl Running {
    /// Makes a shard the one that runs on this thread. The guard holds a copy of the cell, so it is dropped before the
    /// shard.
    pub(super) fn new<M>(shard: ShardCell<M>) -> Running {
        let mut running = Running {
            before: RUNNING.get(),
            #[cfg(feature = "tracing")]
            here: HERE.get(),
            polled: waker::set_aside(),
        };
        running.go_to(shard);
        running
    }

    /// Switches this thread to another shard.
    #[inline(always)]
    pub(super) fn go_to<M>(&mut self, shard: ShardCell<M>) {
        RUNNING.set((shard.read(|shard| shard.id), shard.as_ptr().cast()));
        #[cfg(feature = "tracing")]
        {
            let shard = shard.as_ptr();
            // SAFETY: the shard exists as long as its cell is used, so the addresses are within it.
            HERE.set(unsafe { (&raw const (*shard).turn.me, &raw const (*shard).turn.now) });
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.before);
        #[cfg(feature = "tracing")]
        HERE.set(self.here);
        waker::restore(self.polled);
    }
}

/// Access to a shard.
pub(super) trait ShardAccess<M>: Send {
    /// Returns the shard of the actor being run.
    fn shard(&self) -> ShardCell<M>;
}

/// The access of a handler to its shard. A handler borrows its context for one event.
pub(super) struct ForEvent<M>(ShardCell<M>);

// SAFETY: a handler borrows its context for one event. During this time the shard's own thread does nothing else, so
// the handler can use the context only on a thread for which it waits.
unsafe impl<M: Send> Send for ForEvent<M> {}

impl<M: Message> ShardAccess<M> for ForEvent<M> {
    #[inline(always)]
    fn shard(&self) -> ShardCell<M> {
        self.0
    }
}

/// The access of an async body to its shard. A body owns its context, which contains only the number of the shard. An
/// access panics unless this shard is running on the current thread.
pub(super) struct ForBody<M>(u32, PhantomData<fn() -> M>);

impl<M: Message> ShardAccess<M> for ForBody<M> {
    #[inline(always)]
    fn shard(&self) -> ShardCell<M> {
        self.find().unwrap_or_else(|| used_outside_its_body())
    }
}

impl<M> ForBody<M> {
    /// Returns the shard, if it runs on this thread.
    #[inline(always)]
    fn find(&self) -> Option<ShardCell<M>> {
        let (id, shard) = RUNNING.get();
        // SAFETY: shard numbers are unique, so this is the shard that created the context, and its message type is `M`.
        // It is running an actor on this thread, so the engine holds no reference to it.
        (id == self.0).then(|| unsafe { ShardCell::new(shard.cast()) })
    }
}

#[cold]
#[inline(never)]
fn used_outside_its_body() -> ! {
    panic!("an actor's context was used outside of its own body")
}

/// The context of actors on virtual time.
pub(super) struct VirtualContext<M, R> {
    access: R,
    _message: PhantomData<fn() -> M>,
}

impl<M, R: ShardAccess<M>> VirtualContext<M, R> {
    fn new(access: R) -> Self {
        VirtualContext {
            access,
            _message: PhantomData,
        }
    }

    /// Returns the shard. The caller must use it only briefly and run no foreign code during the use.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "see the safety comment; every use is one expression"
    )]
    fn shard(&self) -> &mut Shard<M> {
        // SAFETY: the shard is valid and runs on this thread. Each reference made here ends with the expression that
        // creates it, before any other code runs.
        unsafe { &mut *self.access.shard().as_ptr() }
    }
}

impl<M: Message, R: ShardAccess<M>> Context<M> for VirtualContext<M, R> {
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
        self.post(Kind::Message, to.0, 0, 0, body)
    }

    #[inline(always)]
    fn send_all<const N: usize>(&mut self, to: Addr, bodies: [M; N]) {
        self.post_all(to.0, bodies);
    }

    #[inline(always)]
    fn send_each<const N: usize, F>(&mut self, to: AddrRange, bodies: F)
    where
        F: Fn(u32) -> [M; N] + Send + Sync + 'static,
    {
        self.post_each(to, EachByClosure(bodies));
    }

    #[cfg(feature = "serde")]
    #[inline(always)]
    fn send_each_kind<const N: usize>(&mut self, to: AddrRange, bodies: impl EachKind<M, N>) {
        self.post_each(to, EachByKind(bodies));
    }

    #[inline]
    fn send_in(&mut self, transit: Duration, to: Addr, body: M) -> SpanId {
        self.post_in(nanos(transit), to.0, body)
    }

    #[inline]
    fn send_after(&mut self, delay: Duration, to: Addr, body: M) -> SpanId {
        self.post(Kind::Message, to.0, nanos(delay), 0, body)
    }

    fn send_self(&mut self, body: M) -> SpanId {
        SpanId(self.shard().post_self(body))
    }

    fn request(&mut self, to: Addr, body: M) -> SpanId {
        self.post(Kind::Request, to.0, 0, 0, body)
    }

    fn reply(&mut self, reply_handle: ReplyHandle, body: M) -> SpanId {
        let request = reply_handle.request.as_u64();
        self.post(Kind::Reply, reply_handle.to.0, 0, request, body)
    }

    #[inline(always)]
    fn timer(&mut self, after: Duration, token: Token) {
        self.shard().set_timer(nanos(after), token.0)
    }

    fn timer_handle(&mut self, after: Duration, token: Token) -> TimerHandle {
        self.shard().set_handle(nanos(after), token, 0)
    }

    fn every(&mut self, period: Duration, token: Token) -> TimerHandle {
        let period = nanos(period).max(1);
        self.shard().set_handle(period, token, period)
    }

    fn cancel(&mut self, timer: TimerHandle) -> bool {
        self.shard().cancel_handle(timer)
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

    fn record(&mut self, name: &'static str, sample: Sample) {
        let shard = self.shard();
        if shard.turn.now < shard.settings.warm_up {
            return;
        }
        let (now, me) = (Time(shard.turn.now), Addr(shard.turn.me));
        shard.counters.probes.record(name, now, me, sample);
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
                make: ByClosure(make),
                _actor: PhantomData,
            },
        )
    }

    #[cfg(feature = "serde")]
    fn spawn_kind_request<A: crate::Kind + Actor<M>>(
        &mut self,
        how: Spawn,
        parameters: A::Parameters,
        local: A::Local,
    ) -> u32 {
        let form = kinds::handlers::<M, A>(Some(parameters), local);
        request(self.shard(), how, form)
    }
}

impl<M: Message> VirtualContext<M, ForBody<M>> {
    #[inline(always)]
    fn wait<W: WaitCondition<M>>(&self, why: WaitReason, wanted: W) -> Wait<M, W> {
        Wait {
            context: VirtualContext::new(ForBody(self.access.0, PhantomData)),
            why,
            wanted,
        }
    }
}

impl<M: Message> VirtualContext<M, ForBody<M>> {
    /// Creates a wait for a request or spawn that was made just before.
    fn fresh(&self, own: LibraryWait) -> Fresh<M> {
        Fresh {
            access: ForBody(self.access.0, PhantomData),
            actor: self.shard().turn.me,
            own,
            seen: self.shard().stash.added(),
            done: false,
        }
    }
}

/// Records a spawn request, which is carried out at the next barrier.
fn request<M: Message>(shard: &mut Shard<M>, spawn: Spawn, form: impl Form<M>) -> u32 {
    let request = shard.request();
    let (time, parent) = (shard.turn.now, shard.turn.me);
    shard.notable = true;
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
        Receive(ForBody(self.access.0, PhantomData))
    }

    #[inline]
    fn recv_where(
        &mut self,
        why: WaitReason,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> impl Future<Output = Event<M>> + Send {
        self.wait(why, Selected { wanted, seen: 0 })
    }

    async fn recv_within(
        &mut self,
        why: WaitReason,
        within: Duration,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> Option<Event<M>> {
        let token = self.own_token();
        self.timer(within, token);
        let own = LibraryWait::Sleep(token, self.now().after(within));
        let until = Until {
            selected: Selected { wanted, seen: 0 },
            fresh: self.fresh(own),
        };
        match self.wait(why, until).await {
            Event::Timer(due) if due == token => None,
            event => Some(event),
        }
    }

    fn ask_only(&mut self, to: Addr, body: M) -> SpanId {
        self.post(Kind::Ask, to.0, 0, 0, body)
    }

    fn wait_own(
        &mut self,
        why: WaitReason,
        own: LibraryWait,
    ) -> impl Future<Output = Event<M>> + Send {
        self.wait(why, self.fresh(own))
    }

    async fn yield_now(&mut self) {
        let latency = self.shard().min_latency();
        self.sleep(Duration::from_nanos(latency)).await;
    }

    async fn settle(&mut self) {
        let longest = self.shard().time_to_settle();
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
        self.shard().waits.own_token()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Config, Executor, RunError, Scenario};

    struct Ping;
    impl Message for Ping {
        const KINDS: &'static [&'static str] = &["Ping"];
        fn kind(&self) -> usize {
            0
        }
        fn fingerprint(&self) -> u64 {
            0
        }
    }

    /// An actor that starts as if it had sent `sent` messages before.
    struct Tireless {
        sent: u32,
        sends: u32,
        /// True to send three messages in one call.
        together: bool,
    }

    impl Scenario<Ping> for Tireless {
        async fn root<C: AsyncContext<Ping>>(self, mut cx: C) {
            let (_, shard) = RUNNING.get();
            // SAFETY: a shard of this message type runs this body, and no reference to the shard is held while the body
            // runs.
            let shard = unsafe { ShardCell::new(shard.cast::<Shard<Ping>>()) };
            shard.with(|shard| shard.turn.header.with(|header| header.seq = self.sent));
            let me = cx.me();
            for _ in 0..self.sends {
                if self.together {
                    cx.send_all(me, [Ping, Ping, Ping]);
                } else {
                    cx.send(me, Ping);
                }
            }
            let messages = if self.together { 3 } else { 1 };
            for _ in 0..messages * self.sends {
                cx.recv().await;
            }
        }
    }

    // Guarantee: core-79.
    #[test]
    fn an_actor_that_runs_out_of_sequence_numbers_ends_the_run() {
        let run = |sends, together, left| {
            let config = Config {
                traces: false,
                ..Config::default()
            };
            let tireless = Tireless {
                sent: u32::MAX - left,
                sends,
                together,
            };
            crate::run(Executor::Virtual, &config, tireless)
        };
        assert_eq!(run(10, false, 10).unwrap().delivered(), 10);
        assert_eq!(run(4, true, 12).unwrap().delivered(), 12);
        for error in [run(11, false, 10), run(4, true, 11), run(4, true, 10)] {
            match error.unwrap_err() {
                RunError::TooManySends { name, time, .. } => {
                    assert_eq!((name.as_str(), time), ("root", Time::ZERO));
                }
                other => panic!("{other}"),
            }
        }
    }
}
