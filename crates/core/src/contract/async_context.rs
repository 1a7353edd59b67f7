//! The waits of an async body.

use super::actor::Actor;
use super::address::{Addr, AddrRange};
use super::context::Context;
use super::event::{Envelope, Event, SpanId, Token};
#[cfg(feature = "serde")]
use super::kind::Kind;
use super::message::Message;
use super::select::Select;
use super::spawn::Spawn;
use super::waiting::{AskError, LibraryWait, WaitReason};
use crate::sync::lock;
use std::panic::Location;
use std::sync::Mutex;
use std::time::Duration;

/// The methods of an async body that wait.
///
/// Other actors run while an actor waits. A context acts for the actor whose body is running, so use it only inside
/// that body.
pub trait AsyncContext<M: Message>: Context<M> + Sized + 'static {
    /// Waits for the next event. Events that selective receives have skipped are returned first, in the order of
    /// arrival.
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

    /// Waits for an event for which `wanted` returns true. Skipped events are stashed, and later receives return them
    /// in their original order. A deadlock report shows `why` as the reason of the wait.
    fn recv_where(
        &mut self,
        why: WaitReason,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> impl Future<Output = Event<M>> + Send;

    /// Lets every other ready actor run first: waits for the smallest latency in virtual time, or yields to the
    /// scheduler.
    fn yield_now(&mut self) -> impl Future<Output = ()> + Send;

    /// Waits until every message that any actor has sent before this call has been handled or counted as undeliverable.
    /// In virtual time this takes the longest latency. The additional delays of [`Context::send_after`] are not
    /// included.
    fn settle(&mut self) -> impl Future<Output = ()> + Send;

    /// Requests new actors with async bodies, which `make(context, index)` creates, without waiting. [`Event::Spawned`]
    /// will contain their addresses; [`AsyncContext::spawn`] also waits for this event.
    fn spawn_bodies<B, F>(&mut self, how: Spawn, make: F) -> u32
    where
        B: Future<Output = ()> + Send + 'static,
        F: Fn(Self, u32) -> B + Send + Sync + 'static;

    /// Selective receive: waits for an event that `wanted` accepts. Other events are stashed in order for
    /// later receives.
    #[track_caller]
    fn recv_if(
        &mut self,
        wanted: impl Fn(&Event<M>) -> bool + Send,
    ) -> impl Future<Output = Event<M>> + Send {
        let why = WaitReason::Selected(Location::caller());
        self.recv_where(why, move |event, _| wanted(event))
    }

    /// Waits for the next event like [`AsyncContext::recv`], for at most `timeout`.
    fn recv_timeout(&mut self, timeout: Duration) -> impl Future<Output = Option<Event<M>>> + Send {
        self.recv_within(WaitReason::Message, timeout, |_, _| true)
    }

    /// Waits for the first of several events and returns which one it was: the answer to a request, a timer, the end of
    /// a child, or a message that a predicate accepts. Returns `None` if the time of [`Select::within`] passes first.
    /// Other events are stashed in order for later receives.
    ///
    /// ```
    /// # use corsair::*;
    /// # use std::time::Duration;
    /// # #[derive(Message, Debug, PartialEq)]
    /// # enum Msg { Ping, Pong }
    /// # async fn server<C: AsyncContext<Msg>>(mut cx: C, slow: u32) {
    /// #     cx.recv().await;
    /// #     let request = cx.envelope().reply_handle();
    /// #     cx.sleep(Duration::from_millis(10 * (1 + u64::from(slow)))).await;
    /// #     cx.reply(request, Msg::Pong);
    /// # }
    /// # struct Root;
    /// # impl Scenario<Msg> for Root {
    /// # async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
    /// # let servers = cx.spawn(Spawn::many(2, "server", ""), server).await;
    /// let fast = cx.request(servers.get(0), Msg::Ping);
    /// let slow = cx.request(servers.get(1), Msg::Ping);
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
        let why = WaitReason::Selected(Location::caller());
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

    /// Waits for `time`; events that arrive during the wait are stashed.
    fn sleep(&mut self, time: Duration) -> impl Future<Output = ()> + Send {
        async move {
            let token = self.own_token();
            self.timer(time, token);
            let due = self.now().after(time);
            self.wait_own(WaitReason::Sleep, LibraryWait::Sleep(token, due))
                .await;
        }
    }

    /// Sends a request and waits for its answer, for at most `timeout`. Other events that arrive during the wait are
    /// stashed. An answer that arrives after the time-out is an ordinary message.
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
    ///     let request = cx.envelope().reply_handle();
    ///     cx.reply(request, Msg::Pong);
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
            let request = self.ask_only(to, body);
            self.timer(timeout, token);
            let own = LibraryWait::Answer(request, token, self.now().after(timeout));
            match self.wait_own(WaitReason::Answer(to), own).await {
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

    /// Spawns one actor with an async body, and returns its address. The closure is called once, so the body may own
    /// the values that the closure has captured.
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

    /// Waits for an event like [`AsyncContext::recv_where`], for a limited time.
    #[doc(hidden)]
    fn recv_within(
        &mut self,
        why: WaitReason,
        within: Duration,
        wanted: impl Fn(&Event<M>, &Envelope) -> bool + Send,
    ) -> impl Future<Output = Option<Event<M>>> + Send;

    /// Returns a token that no other wait of this actor uses.
    #[doc(hidden)]
    fn own_token(&mut self) -> Token;

    /// Sends a request whose outcome is reported only to [`AsyncContext::wait_own`], never as an ordinary event.
    #[doc(hidden)]
    fn ask_only(&mut self, to: Addr, body: M) -> SpanId;

    /// Waits for the outcome of the request or spawn that was made immediately before, so no stashed event can be this
    /// outcome. The timer is removed when the outcome arrives or the wait is dropped.
    #[doc(hidden)]
    fn wait_own(
        &mut self,
        why: WaitReason,
        own: LibraryWait,
    ) -> impl Future<Output = Event<M>> + Send;
}

/// Waits for the answer to a spawn request.
async fn spawned<M: Message, C: AsyncContext<M>>(cx: &mut C, request: u32) -> AddrRange {
    match cx
        .wait_own(WaitReason::Spawn, LibraryWait::Spawned(request))
        .await
    {
        Event::Spawned { first, count, .. } => AddrRange::new(first, count),
        _ => unreachable!("the wait returns only awaited events"),
    }
}
