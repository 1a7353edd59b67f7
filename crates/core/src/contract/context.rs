//! The trait of contexts, whose methods an actor calls while it handles an event.

use super::actor::Actor;
use super::address::{Addr, AddrRange};
use super::distribution::{Distribution, seconds};
use super::event::{Envelope, ReplyHandle, SpanId, TimerHandle, Token};
#[cfg(feature = "serde")]
use super::kind::{EachKind, Kind};
use super::message::Message;
use super::probes::Sample;
use super::random::Random;
use super::spawn::Spawn;
use super::time::Time;
use std::time::Duration;

/// The methods that any actor can call while it handles an event, in either form, on any executor.
///
/// None of these methods waits. A message leaves at once and arrives later: on the virtual executor after the
/// [`Latency`](crate::Latency) between the two actors.
///
/// Messages from one actor to another arrive in the order in which they were sent, unless
/// [`Context::send_after`] delays some of them.
pub trait Context<M: Message>: Send {
    /// Returns this actor's address.
    fn me(&self) -> Addr;

    /// Returns the actor that spawned this actor; [`Addr::NONE`] for the root.
    fn parent(&self) -> Addr;

    /// Returns the current virtual time, or on the wall clock the time since the start of the run. The wall-clock
    /// executors read the clock once per batch of events, not per call.
    fn now(&self) -> Time;

    /// Returns the metadata of the event received last.
    fn envelope(&self) -> Envelope;

    /// Returns 64 bits of this actor's own random stream, a function of the seed, the address and the number of earlier
    /// draws.
    fn random(&mut self) -> u64;

    /// Returns a random number below `bound`; 0 if `bound` is 0.
    #[inline]
    fn below(&mut self, bound: u32) -> u32 {
        super::random::below(self.random(), bound)
    }

    /// Returns a generator seeded from this actor's stream, for code that needs many numbers.
    fn fork_random(&mut self) -> Random {
        Random::new(self.random())
    }

    /// Returns this actor's random stream as a generator for other crates, such as `rand`.
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

    /// Draws a number of this distribution from this actor's stream.
    fn sample(&mut self, distribution: &Distribution) -> f64 {
        distribution.draw(self.random())
    }

    /// Draws a duration from this actor's stream. The distribution returns seconds, which are rounded to nanoseconds;
    /// negative numbers become zero.
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

    /// Sends a message, and returns the identity of the sent message. Sending never waits and never fails: if the
    /// receiver has ended when the message arrives, the message is counted as a dead letter.
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

    /// Sends several messages to one actor, like several calls of [`Context::send`]. In virtual time one call is
    /// cheaper than separate sends.
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

    /// Sends messages to each actor of a range, like a call of [`Context::send_all`] for each actor in turn. `bodies`
    /// creates the messages for an actor from the actor's index in the range.
    ///
    /// In virtual time each worker creates the messages for its own actors, after this call has returned. So the work
    /// is divided among the workers, even if one actor sends to all others. `bodies` is called once for each actor, in
    /// any order and on any thread. It must return the same messages for the same index, and must own the data that it
    /// needs. If `bodies` panics in virtual time, the receiver gets none of these messages. The panic is reported as a
    /// panic of the sender ([`Config::panics`](crate::Config::panics)), but does not end the sender.
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

    /// Sends messages of a [kind](crate::EachKind) to each actor of a range, like [`Context::send_each`]. In virtual
    /// time the messages can be created in another process.
    #[cfg(feature = "serde")]
    fn send_each_kind<const N: usize>(&mut self, to: AddrRange, bodies: impl EachKind<M, N>) {
        self.send_each(to, move |index| bodies.bodies(index));
    }

    /// Sends a message that arrives after the time `transit`, independent of the run's latencies. Use this method in
    /// models that compute the travel time of each message.
    ///
    /// In virtual time a message travels at least the smallest latency of the run
    /// ([`Config::latency`](crate::Config::latency)), which is its lookahead; a shorter `transit` is extended to it. A
    /// [network](crate::network::Network) may still lose the message or deliver it twice. On the wall clock the message
    /// arrives after `transit`, or a little later.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message)] struct Cargo;
    /// const BY_SHIP: Duration = Duration::from_secs(30 * 24 * 3600);
    ///
    /// async fn harbour<C: AsyncContext<Cargo>>(mut cx: C, _: u32) {
    ///     cx.recv().await;
    ///     assert!(cx.now() >= Time::ZERO.after(BY_SHIP));
    /// }
    ///
    /// struct Shipping;
    ///
    /// impl Scenario<Cargo> for Shipping {
    ///     async fn root<C: AsyncContext<Cargo>>(self, mut cx: C) {
    ///         let harbour = cx.spawn(Spawn::one("harbour").watched(), harbour).await.get(0);
    ///         cx.send_in(BY_SHIP, harbour, Cargo);
    ///         cx.recv().await; // the end of `harbour`
    ///     }
    /// }
    ///
    /// let config = Config { latency: Latency::constant(Duration::from_millis(1)), ..Config::default() };
    /// let report = simulate(&config, Shipping)?;
    /// assert!(report.time >= Time::ZERO.after(BY_SHIP));
    /// # Ok::<(), RunError>(())
    /// ```
    fn send_in(&mut self, transit: Duration, to: Addr, body: M) -> SpanId;

    /// Sends a message after `delay`. The message arrives after the delay and its latency.
    fn send_after(&mut self, delay: Duration, to: Addr, body: M) -> SpanId;

    /// Sends a message to this actor itself, without latency. The message arrives at the current instant, after the
    /// event being handled. Its order relative to the timers of this instant is the order of the calls.
    ///
    /// In virtual time, an actor that sends itself such a message for every such message is an endless loop in which no
    /// time passes; [`Config::most_at_once`](crate::Config::most_at_once) ends the loop with an error.
    fn send_self(&mut self, body: M) -> SpanId;

    /// Sends a request without waiting for its answer. The answer has the returned span in [`Envelope::answers`]. If
    /// the receiver cannot answer, [`Event::Unanswered`](crate::Event::Unanswered) arrives instead.
    fn request(&mut self, to: Addr, body: M) -> SpanId;

    /// Answers a request. The handle comes from [`Envelope::reply_handle`] of the request.
    fn reply(&mut self, reply_handle: ReplyHandle, body: M) -> SpanId;

    /// Sets a timer: [`Event::Timer`](crate::Event::Timer) with this token arrives after the time `after`, in virtual
    /// time exact to the nanosecond. At one instant messages come before timers, and timers come in the order in which
    /// they were set.
    fn timer(&mut self, after: Duration, token: Token);

    /// Sets a timer like [`Context::timer`] that can be [cancelled](Context::cancel).
    fn timer_handle(&mut self, after: Duration, token: Token) -> TimerHandle;

    /// Sets a timer that fires once every `period` until it is [cancelled](Context::cancel) or the actor ends. In
    /// virtual time the period is exact. The minimum period is a nanosecond.
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

    /// Cancels a timer of this actor, so that it does not fire. Returns false if the timer has already fired (whether
    /// its event was read or not) or was already cancelled.
    fn cancel(&mut self, timer: TimerHandle) -> bool;

    /// Ends another actor: after the stop has arrived, the actor gets no further event and its body is dropped.
    /// Stopping an actor that has ended does nothing.
    fn stop(&mut self, who: Addr);

    /// Starts a new trace for the messages sent after this call, instead of continuing the trace of the event being
    /// handled.
    fn new_trace(&mut self);

    /// Puts messages sent after this call, until the next event, into `trace`, with `parent` as their parent. Both come
    /// from the [`Envelope`] of an earlier event: use this method for deferred work.
    fn continue_trace(&mut self, trace: SpanId, parent: SpanId);

    /// Adds `more` to a counter of the run, which is reported in [`Report::probes`](crate::Report::probes).
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

    /// Sets a gauge of the run. The report contains the value that was set last.
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.record(name, Sample::Gauge(value));
    }

    /// Adds a value to a histogram of the run.
    fn observe(&mut self, name: &'static str, value: f64) {
        self.record(name, Sample::Observe(value));
    }

    /// Adds a value at the current time to a time series of the run.
    fn track(&mut self, name: &'static str, value: f64) {
        self.record(name, Sample::Track(value));
    }

    #[doc(hidden)]
    fn record(&mut self, name: &'static str, sample: Sample);

    /// Requests new actors in handler form. [`Event::Spawned`](crate::Event::Spawned) with the returned number will
    /// contain their addresses. An async body uses [`AsyncContext::spawn_actors`](crate::AsyncContext::spawn_actors).
    fn spawn_request<A, F>(&mut self, how: Spawn, make: F) -> u32
    where
        A: Actor<M>,
        F: Fn(u32) -> A + Send + Sync + 'static;

    /// Requests new actors of a [`Kind`](crate::Kind), like [`Context::spawn_request`]. In virtual time these actors
    /// can be saved, and created in another process.
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
