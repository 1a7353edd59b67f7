//! The context of a handler that may be restarted. It records the periodic timers that the handler has set.

use crate::contract::{
    Actor, Addr, AddrRange, Context, Envelope, Message, ReplyHandle, Sample, SpanId, Spawn, Time,
    TimerHandle, Token,
};
#[cfg(feature = "serde")]
use crate::contract::{EachKind, Kind};
use std::time::Duration;

/// A context that records periodic timers; see the [module](self).
pub(super) struct Incarnation<'a, C> {
    inner: &'a mut C,
    periods: &'a mut Vec<TimerHandle>,
}

impl<'a, C> Incarnation<'a, C> {
    pub(super) fn new(inner: &'a mut C, periods: &'a mut Vec<TimerHandle>) -> Incarnation<'a, C> {
        Incarnation { inner, periods }
    }
}

/// Implements functions by calling the inner context.
macro_rules! inner {
    ($(fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {$(
        #[inline]
        fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
            self.inner.$name($($argument),*)
        }
    )*};
}

impl<M: Message, C: Context<M>> Context<M> for Incarnation<'_, C> {
    fn me(&self) -> Addr {
        self.inner.me()
    }

    fn parent(&self) -> Addr {
        self.inner.parent()
    }

    fn now(&self) -> Time {
        self.inner.now()
    }

    fn envelope(&self) -> Envelope {
        self.inner.envelope()
    }

    inner! {
        fn random(&mut self) -> u64;
        fn send(&mut self, to: Addr, body: M) -> SpanId;
        fn send_after(&mut self, delay: Duration, to: Addr, body: M) -> SpanId;
        fn send_in(&mut self, transit: Duration, to: Addr, body: M) -> SpanId;
        fn send_self(&mut self, body: M) -> SpanId;
        fn request(&mut self, to: Addr, body: M) -> SpanId;
        fn reply(&mut self, reply_handle: ReplyHandle, body: M) -> SpanId;
        fn timer(&mut self, after: Duration, token: Token);
        fn timer_handle(&mut self, after: Duration, token: Token) -> TimerHandle;
        fn stop(&mut self, who: Addr);
        fn new_trace(&mut self);
        fn continue_trace(&mut self, trace: SpanId, parent: SpanId);
        fn record(&mut self, name: &'static str, sample: Sample);
    }

    fn every(&mut self, period: Duration, token: Token) -> TimerHandle {
        let timer = self.inner.every(period, token);
        self.periods.push(timer);
        timer
    }

    fn cancel(&mut self, timer: TimerHandle) -> bool {
        // A linear search, because most handlers have one or two periodic timers.
        self.periods.retain(|period| *period != timer);
        self.inner.cancel(timer)
    }

    fn send_all<const N: usize>(&mut self, to: Addr, bodies: [M; N]) {
        self.inner.send_all(to, bodies);
    }

    fn send_each<const N: usize, F>(&mut self, to: AddrRange, bodies: F)
    where
        F: Fn(u32) -> [M; N] + Send + Sync + 'static,
    {
        self.inner.send_each(to, bodies);
    }

    #[cfg(feature = "serde")]
    fn send_each_kind<const N: usize>(&mut self, to: AddrRange, bodies: impl EachKind<M, N>) {
        self.inner.send_each_kind(to, bodies);
    }

    fn spawn_request<A, F>(&mut self, how: Spawn, make: F) -> u32
    where
        A: Actor<M>,
        F: Fn(u32) -> A + Send + Sync + 'static,
    {
        self.inner.spawn_request(how, make)
    }

    #[cfg(feature = "serde")]
    fn spawn_kind_request<A: Kind + Actor<M>>(
        &mut self,
        how: Spawn,
        parameters: A::Parameters,
        local: A::Local,
    ) -> u32 {
        self.inner.spawn_kind_request::<A>(how, parameters, local)
    }
}
