//! What an actor can do to the outside world.

use super::actor::Actor;
use super::address::{Addr, AddrRange};
use super::distribution::{Distribution, seconds};
use super::event::{Envelope, Event, SpanId, Ticket, TimerHandle, Token};
#[cfg(feature = "serde")]
use super::kind::Kind;
use super::message::Message;
use super::probes::Sample;
use super::random::Random;
use super::select::Select;
use super::spawn::Spawn;
use super::time::Time;
use super::waiting::{AskError, Own, Waiting};
use crate::sync::lock;
use std::panic::Location;
use std::sync::Mutex;
use std::time::Duration;

/// What any actor can do while it handles an event, in either form, on any executor.
///
/// Nothing here waits. What is sent leaves at once and arrives later; on the virtual executor
/// after the [`Latency`](crate::Latency) of the pair of actors.
///
/// Messages from one actor to another arrive in the order in which they were sent, unless
/// [`Context::send_after`] delays some of them.
pub trait Context<M: Message>: Send {
    /// This actor's address.
    fn me(&self) -> Addr;

    /// Who spawned this actor; [`Addr::NONE`] for the root.
    fn parent(&self) -> Addr;

    /// The time now: virtual, or since the start of the run. On the wall-clock executors this is
    /// read once per batch of events, not per call.
    fn now(&self) -> Time;

    /// What is known about the event last received, beside its contents.
    fn envelope(&self) -> Envelope;

    /// 64 bits of this actor's own random stream, a function of seed, address and how many were
    /// drawn before.
    fn random(&mut self) -> u64;

    /// A random number below `bound`; 0 if `bound` is 0.
    #[inline]
    fn below(&mut self, bound: u32) -> u32 {
        super::random::below(self.random(), bound)
    }

    /// A generator seeded from this actor's stream, for code that wants many numbers.
    fn fork_random(&mut self) -> Random {
        Random::new(self.random())
    }

    /// This actor's stream as a generator that other crates take, such as `rand`.
    ///
    /// ```
    /// # use corsair::*;
    /// use rand_core::RngCore;
    /// # #[derive(Message)] struct Job;
    /// # struct Root;
    /// # impl Scenario<Job> for Root {
    /// # async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
    /// let mut key = [0; 16];
    /// cx.rng().fill_bytes(&mut key);
    /// assert_ne!(key, [0; 16]);
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    #[cfg(feature = "rand_core")]
    fn rng(&mut self) -> crate::StreamRng<'_, M, Self>
    where
        Self: Sized,
    {
        crate::StreamRng::new(self)
    }

    /// A number of this distribution, from this actor's stream.
    fn sample(&mut self, distribution: &Distribution) -> f64 {
        distribution.draw(self.random())
    }

    /// A span of time whose seconds have this distribution, from this actor's stream; to the
    /// nanosecond, and none at all for a number below zero.
    ///
    /// ```
    /// # use corsair::*;
    /// # #[derive(Message)] struct Job;
    /// # struct Root;
    /// # impl Scenario<Job> for Root {
    /// # async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
    /// let service = Distribution::lognormal(0.020, 0.5).expect("both are positive");
    /// let time = cx.sample_time(&service);
    /// cx.sleep(time).await;
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    fn sample_time(&mut self, distribution: &Distribution) -> Duration {
        seconds(self.sample(distribution))
    }

    /// Sends a message. Never waits, never fails: if the receiver has ended by then, the message
    /// is counted as a dead letter. Returns the name of this sending.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message, Debug, PartialEq)]
    /// # enum Msg { Ping, Pong }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// let echo = cx.spawn_one("echo", |mut cx: C| async move {
    ///     if let Event::Message { from, body } = cx.recv().await {
    ///         cx.send(from, body);
    ///     }
    /// }).await;
    /// cx.send(echo, Msg::Ping);
    /// assert_eq!(cx.recv().await, Event::Message { from: echo, body: Msg::Ping });
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    fn send(&mut self, to: Addr, body: M) -> SpanId;

    /// Sends several messages to one actor, as [`Context::send`] would one after the other. In virtual
    /// time that costs less than as many sends.
    ///
    /// ```
    /// # use corsair::*;
    /// # #[derive(Message, Debug, PartialEq)]
    /// # enum Msg { Ping, Pong }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// let me = cx.me();
    /// cx.send_all(me, [Msg::Ping, Msg::Pong]);
    /// assert_eq!(cx.recv().await, Event::Message { from: me, body: Msg::Ping });
    /// assert_eq!(cx.recv().await, Event::Message { from: me, body: Msg::Pong });
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    fn send_all<const N: usize>(&mut self, to: Addr, bodies: [M; N]) {
        for body in bodies {
            self.send(to, body);
        }
    }

    /// Sends messages to each of a range of actors, as [`Context::send_all`] would to one after the other:
    /// those that `bodies` makes of the actor's index in the range.
    ///
    /// In virtual time with several workers, each makes those for its own actors, later than this call; so an actor
    /// that speaks to all is not alone with the work of it. `bodies` is called once for each actor, in any
    /// order and by any thread, and is to make the same of the same index: what it needs, it takes along. If
    /// it panics in virtual time, that actor gets none of its messages, and the panic is the sender's
    /// ([`Config::panics`](crate::Config::panics)), who may have gone on by then and does not end.
    ///
    /// ```
    /// # use corsair::*;
    /// # #[derive(Message)]
    /// # enum Msg { You { number: u32 }, Add(u64) }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// let parent = cx.me();
    /// let adders = cx.spawn(Spawn::many(1000, "adder", ""), move |mut cx: C, _| async move {
    ///     let mut own = 0;
    ///     loop {
    ///         match cx.recv().await {
    ///             Event::Message { body: Msg::You { number }, .. } => own = number,
    ///             Event::Message { body: Msg::Add(number), .. } => {
    ///                 cx.send(parent, Msg::Add(number + u64::from(own)));
    ///                 return;
    ///             }
    ///             _ => {}
    ///         }
    ///     }
    /// }).await;
    /// cx.send_each(adders, |number| [Msg::You { number }, Msg::Add(1)]);
    /// let mut sum = 0;
    /// for _ in adders.iter() {
    ///     if let Event::Message { body: Msg::Add(number), .. } = cx.recv().await {
    ///         sum += number;
    ///     }
    /// }
    /// assert_eq!(sum, 1000 + 499_500);
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    fn send_each<const N: usize, F>(&mut self, to: AddrRange, bodies: F)
    where
        F: Fn(u32) -> [M; N] + Send + Sync + 'static,
    {
        for (index, to) in (0..).zip(to.iter()) {
            self.send_all(to, bodies(index));
        }
    }

    /// Sends a message `delay` later than now; the latency comes on top.
    fn send_after(&mut self, delay: Duration, to: Addr, body: M) -> SpanId;

    /// Sends this actor itself a message that takes no time: it arrives at this very instant, after what
    /// is being handled, among timers that are due now in the order of setting.
    ///
    /// In virtual time, an actor that does nothing else is a loop in which no time passes
    /// ([`Config::most_at_once`](crate::Config::most_at_once)).
    fn send_self(&mut self, body: M) -> SpanId;

    /// Sends a message whose answer is expected: an answer's [`Envelope::answers`] is the span
    /// returned here. If there is no actor to answer, [`Event::Unanswered`] comes instead.
    fn question(&mut self, to: Addr, body: M) -> SpanId;

    /// Answers a question. The ticket comes from [`Envelope::ticket`] of the question.
    fn reply(&mut self, ticket: Ticket, body: M) -> SpanId;

    /// Sets a timer: [`Event::Timer`] with this token arrives `after` from now, to the nanosecond
    /// in virtual time. At the same instant, messages come before timers, and timers in the order
    /// in which they were set.
    fn timer(&mut self, after: Duration, token: Token);

    /// Sets a timer as [`Context::timer`] does, that can be [cancelled](Context::cancel).
    fn timer_handle(&mut self, after: Duration, token: Token) -> TimerHandle;

    /// Sets a timer that is due every `period` from now on, exactly in virtual time, until it is
    /// [cancelled](Context::cancel) or the actor ends. A period has at least a nanosecond.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message)] struct Job;
    /// # struct Root;
    /// # impl Scenario<Job> for Root {
    /// # async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
    /// let tick = cx.every(Duration::from_millis(10), Token::new(1));
    /// for _ in 0..3 {
    ///     assert_eq!(cx.recv().await, Event::Timer(Token::new(1)));
    /// }
    /// assert_eq!(cx.now().elapsed(), Duration::from_millis(30));
    /// assert!(cx.cancel(tick));
    /// assert_eq!(cx.recv_timeout(Duration::from_secs(1)).await, None);
    /// # }
    /// # }
    /// # impl PartialEq for Job { fn eq(&self, _: &Job) -> bool { true } }
    /// # impl std::fmt::Debug for Job { fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { f.write_str("Job") } }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    fn every(&mut self, period: Duration, token: Token) -> TimerHandle;

    /// Cancels a timer of this actor, which does not come any more. False if it has come already, be
    /// it read or not, or was cancelled before.
    fn cancel(&mut self, timer: TimerHandle) -> bool;

    /// Ends another actor: it gets no event after this one has arrived, and its body is dropped.
    /// Stopping an actor that has ended does nothing.
    fn stop(&mut self, who: Addr);

    /// Lets what is sent from here on begin a new trace instead of continuing that of the event
    /// being handled.
    fn new_trace(&mut self);

    /// Lets what is sent from here on, until the next event, belong to `trace` and have `parent`
    /// for its parent, both from the [`Envelope`] of an event that was handled before: for work
    /// that was put off.
    fn continue_trace(&mut self, trace: SpanId, parent: SpanId);

    /// Adds to a counter of the run, which [`Report::probes`](crate::Report::probes) tells.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message)] struct Job;
    /// # struct Root;
    /// # impl Scenario<Job> for Root {
    /// # async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
    /// for waited in [3, 4, 11] {
    ///     cx.sleep(Duration::from_millis(waited)).await;
    ///     cx.count("jobs", 1);
    ///     cx.observe("waited", waited as f64);
    ///     cx.track("waited over time", waited as f64);
    /// }
    /// cx.gauge("left", 0.0);
    /// # }
    /// # }
    /// let report = simulate(&Config::default(), Root)?;
    /// assert_eq!(report.probes.counter("jobs"), 3);
    /// assert_eq!(report.probes.histograms["waited"].mean(), Some(6.0));
    /// assert_eq!(report.probes.gauges["left"].value, 0.0);
    /// let series: Vec<_> = report.probes.series["waited over time"].intervals().collect();
    /// assert_eq!(series.len(), 3);
    /// # Ok::<(), RunError>(())
    /// ```
    fn count(&mut self, name: &'static str, more: u64) {
        self.record(name, Sample::Count(more));
    }

    /// Sets a gauge of the run, of which the value set last counts.
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.record(name, Sample::Gauge(value));
    }

    /// Adds a value to a histogram of the run.
    fn observe(&mut self, name: &'static str, value: f64) {
        self.record(name, Sample::Observe(value));
    }

    /// Adds a value at the time now to a time series of the run.
    fn track(&mut self, name: &'static str, value: f64) {
        self.record(name, Sample::Track(value));
    }

    #[doc(hidden)]
    fn record(&mut self, name: &'static str, sample: Sample);

    /// Asks for new actors in handler form; [`Event::Spawned`] with the returned number tells
    /// their addresses. An async body uses [`AsyncContext::spawn_actors`].
    fn spawn_request<A, F>(&mut self, how: Spawn, make: F) -> u32
    where
        A: Actor<M>,
        F: Fn(u32) -> A + Send + Sync + 'static;

    /// Asks for new actors of a [`Kind`](crate::Kind), as [`Context::spawn_request`] does. In virtual time they can be
    /// saved, and made in another process.
    #[cfg(feature = "serde")]
    fn spawn_kind_request<A: Kind + Actor<M>>(
        &mut self,
        how: Spawn,
        parameters: A::Parameters,
        local: A::Local,
    ) -> u32 {
        self.spawn_request(how, move |index| A::make(&parameters, &local, index))
    }
}

/// What an async body can do: everything that waits.
///
/// Every wait is a point where other actors run. An actor has one context, and a context acts for
/// the actor whose body is being run: keep it inside that body.
pub trait AsyncContext<M: Message>: Context<M> + Sized + 'static {
    /// Waits for the next event: first what selective receives have skipped, in order of arrival,
    /// then what arrives.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message, Debug, PartialEq)]
    /// # enum Msg { Ping, Pong }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// cx.timer(Duration::from_millis(5), Token::new(1));
    /// match cx.recv().await {
    ///     Event::Message { from, body } => println!("{body:?} from {from}"),
    ///     Event::Timer(token) => assert_eq!(token, Token::new(1)),
    ///     Event::Down { who, reason } => println!("{who} has ended: {reason:?}"),
    ///     Event::Unanswered { .. } | Event::Spawned { .. } | Event::DeadLetter { .. } => {}
    /// }
    /// assert_eq!(cx.now().elapsed(), Duration::from_millis(5));
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    fn recv(&mut self) -> impl Future<Output = Event<M>> + Send;

    /// Waits for an event for which `wanted` is true; what it skips is kept, in order, for later
    /// receives. `why` is what a deadlock report says if it never comes.
    fn recv_where(
        &mut self,
        why: Waiting,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> impl Future<Output = Event<M>> + Send;

    /// Lets every other actor that is ready run before this one goes on: one minimal latency of
    /// virtual time, or a yield to the scheduler.
    fn yield_now(&mut self) -> impl Future<Output = ()> + Send;

    /// Waits until every message that was sent before, by anyone, has been handled or counted as
    /// undeliverable. In virtual time this takes the longest latency; messages that
    /// [`Context::send_after`] delays further are not waited for.
    fn settle(&mut self) -> impl Future<Output = ()> + Send;

    /// Asks for new actors with async bodies, made by `make(context, index)`;
    /// [`Event::Spawned`] tells their addresses. [`AsyncContext::spawn`] waits for it.
    fn spawn_bodies<B, F>(&mut self, how: Spawn, make: F) -> u32
    where
        B: Future<Output = ()> + Send + 'static,
        F: Fn(Self, u32) -> B + Send + Sync + 'static;

    /// Selective receive: waits for an event that `wanted` accepts and keeps the others, in
    /// order, for later receives.
    #[track_caller]
    fn recv_if(
        &mut self,
        wanted: impl Fn(&Event<M>) -> bool + Send,
    ) -> impl Future<Output = Event<M>> + Send {
        let why = Waiting::Selected(Location::caller());
        self.recv_where(why, move |event, _| wanted(event))
    }

    /// Waits for the next event as [`AsyncContext::recv`] does, at most for `timeout`.
    fn recv_timeout(&mut self, timeout: Duration) -> impl Future<Output = Option<Event<M>>> + Send {
        self.recv_within(Waiting::Message, timeout, |_, _| true)
    }

    /// Waits for whichever of several events comes first, and says which: an answer of several that
    /// were asked, a timer, the end of a child, a message that a predicate accepts. `None` if
    /// [`Select::within`] is over before. Other events are kept, in order, for later receives.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message, Debug, PartialEq)]
    /// # enum Msg { Ping, Pong }
    /// # async fn server<C: AsyncContext<Msg>>(mut cx: C, slow: u32) {
    /// #     cx.recv().await;
    /// #     let question = cx.envelope().ticket();
    /// #     cx.sleep(Duration::from_millis(10 * (1 + u64::from(slow)))).await;
    /// #     cx.reply(question, Msg::Pong);
    /// # }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// # let servers = cx.spawn(Spawn::many(2, "server", ""), server).await;
    /// let fast = cx.question(servers.get(0), Msg::Ping);
    /// let slow = cx.question(servers.get(1), Msg::Ping);
    /// let either = || Select::new().answer(slow).answer(fast);
    ///
    /// let (which, _) = cx.select(either()).await.expect("no limit of time");
    /// assert_eq!(which, 1);
    /// let second = cx.select(either().within(Duration::from_millis(1))).await;
    /// assert_eq!(second, None);
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    #[track_caller]
    fn select(
        &mut self,
        select: Select<M>,
    ) -> impl Future<Output = Option<(usize, Event<M>)>> + Send {
        let why = Waiting::Selected(Location::caller());
        async move {
            let wanted =
                |event: &Event<M>, envelope: &Envelope| select.arm(event, envelope).is_some();
            let event = match select.limit() {
                Some(limit) => self.recv_within(why, limit, wanted).await?,
                None => self.recv_where(why, wanted).await,
            };
            let arm = select.arm(&event, &self.envelope());
            Some((arm.unwrap_or_default(), event))
        }
    }

    /// Waits for `time`; events that arrive meanwhile are kept.
    fn sleep(&mut self, time: Duration) -> impl Future<Output = ()> + Send {
        async move {
            let token = self.own_token();
            self.timer(time, token);
            let due = self.now().after(time);
            self.wait_own(Waiting::Sleep, Own::Sleep(token, due)).await;
        }
    }

    /// Sends a question and waits for its answer, at most for `timeout`. Other events that arrive
    /// meanwhile are kept. An answer that comes after the time-out arrives as an ordinary message.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message, Debug, PartialEq)]
    /// # enum Msg { Ping, Pong }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// let server = cx.spawn_one("server", |mut cx: C| async move {
    ///     cx.recv().await;
    ///     let question = cx.envelope().ticket();
    ///     cx.reply(question, Msg::Pong);
    /// }).await;
    /// let second = Duration::from_secs(1);
    /// assert_eq!(cx.ask(server, Msg::Ping, second).await, Ok(Msg::Pong));
    /// // The server has returned, so that no answer can come any more.
    /// assert_eq!(cx.ask(server, Msg::Ping, second).await, Err(AskError::Ended { to: server }));
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    ///
    /// # Errors
    /// [`AskError::TimedOut`], or [`AskError::Ended`] if the actor has ended.
    fn ask(
        &mut self,
        to: Addr,
        body: M,
        timeout: Duration,
    ) -> impl Future<Output = Result<M, AskError>> + Send {
        async move {
            let token = self.own_token();
            let question = self.ask_only(to, body);
            self.timer(timeout, token);
            let own = Own::Answer(question, token, self.now().after(timeout));
            match self.wait_own(Waiting::Answer(to), own).await {
                Event::Message { body, .. } => Ok(body),
                Event::Timer(_) => Err(AskError::TimedOut { to, timeout }),
                _ => Err(AskError::Ended { to }),
            }
        }
    }

    /// Spawns actors with async bodies and waits for their addresses.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message, Debug, PartialEq)]
    /// # enum Msg { Ping, Pong }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// async fn worker<C: AsyncContext<Msg>>(mut cx: C, index: u32) {
    ///     cx.recv().await;
    ///     println!("worker {index} has work");
    /// }
    ///
    /// let workers = cx.spawn(Spawn::many(10, "worker", "").watched(), worker).await;
    /// cx.send(workers.get(3), Msg::Ping);
    /// let down = Event::Down { who: workers.get(3), reason: Reason::Returned };
    /// assert_eq!(cx.recv().await, down);
    /// # }
    /// # }
    /// # simulate(&Config::default(), Root)?;
    /// # Ok::<(), RunError>(())
    /// ```
    fn spawn<B, F>(&mut self, how: Spawn, make: F) -> impl Future<Output = AddrRange> + Send
    where
        B: Future<Output = ()> + Send + 'static,
        F: Fn(Self, u32) -> B + Send + Sync + 'static,
    {
        async move {
            let request = self.spawn_bodies(how, make);
            spawned(self, request).await
        }
    }

    /// Spawns one actor whose body may take what the closure owns.
    fn spawn_one<B, F>(
        &mut self,
        name: impl Into<std::borrow::Cow<'static, str>> + Send,
        make: F,
    ) -> impl Future<Output = Addr> + Send
    where
        B: Future<Output = ()> + Send + 'static,
        F: FnOnce(Self) -> B + Send + 'static,
    {
        async move {
            let once = Mutex::new(Some(make));
            let make = move |cx, _| {
                let make = lock(&once).take();
                make.expect("the body of a single actor is made once")(cx)
            };
            let request = self.spawn_bodies(Spawn::one(name), make);
            spawned(self, request).await.get(0)
        }
    }

    /// Spawns actors in handler form and waits for their addresses.
    fn spawn_actors<A, F>(&mut self, how: Spawn, make: F) -> impl Future<Output = AddrRange> + Send
    where
        A: Actor<M>,
        F: Fn(u32) -> A + Send + Sync + 'static,
    {
        async move {
            let request = self.spawn_request(how, make);
            spawned(self, request).await
        }
    }

    /// Spawns actors of a [`Kind`](crate::Kind) and waits for their addresses.
    #[cfg(feature = "serde")]
    fn spawn_kind<A: Kind + Actor<M>>(
        &mut self,
        how: Spawn,
        parameters: A::Parameters,
        local: A::Local,
    ) -> impl Future<Output = AddrRange> + Send {
        async move {
            let request = self.spawn_kind_request::<A>(how, parameters, local);
            spawned(self, request).await
        }
    }

    /// As [`AsyncContext::recv_where`], at most so long.
    #[doc(hidden)]
    fn recv_within(
        &mut self,
        why: Waiting,
        within: Duration,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> impl Future<Output = Option<Event<M>>> + Send;

    /// A token that no other wait of this actor uses.
    #[doc(hidden)]
    fn own_token(&mut self) -> Token;

    /// Sends a question of which nothing is told to any other wait than the one for its answer.
    #[doc(hidden)]
    fn ask_only(&mut self, to: Addr, body: M) -> SpanId;

    /// Waits for what has only now been asked for, so that nothing kept before can be it. Whether
    /// it comes or the wait is dropped, its timer is forgotten.
    #[doc(hidden)]
    fn wait_own(&mut self, why: Waiting, own: Own) -> impl Future<Output = Event<M>> + Send;
}

/// Waits for the answer to a spawn request.
async fn spawned<M: Message, C: AsyncContext<M>>(cx: &mut C, request: u32) -> AddrRange {
    match cx.wait_own(Waiting::Spawn, Own::Spawned(request)).await {
        Event::Spawned { first, count, .. } => AddrRange::new(first, count),
        _ => unreachable!("the wait returns only what it was asked for"),
    }
}
