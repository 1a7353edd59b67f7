//! The pirate: 96 bytes of plain data, and its reactions to events.
//!
//! The handler form and the async form of a pirate share one state machine, which is generic over the context.

#[cfg(feature = "serde")]
mod kind;

use super::{Msg, PirateWatch};
use crate::contract::random::below;
use crate::{Actor, Addr, AsyncContext, Context, Event, Flow, Token};
use std::num::NonZeroU16;
use std::time::Duration;

/// The maximum number of buddies that a pirate remembers.
pub const MAX_BUDDIES: usize = 10;

/// The token of a pirate's only timer.
const TO_CHAT: Token = Token::new(0);

/// A pirate in handler form, as an [`Actor`], for scenarios that use pirates without the [`Fsm`](super::Fsm).
///
/// The pirate's address, random numbers and time come from its context.
#[derive(Clone, Debug)]
pub struct Pirate<W: PirateWatch = ()> {
    /// The buddies in the order of acquaintance; entries from `known` on are unused.
    buddies: [Addr; MAX_BUDDIES],
    /// The gold that each buddy has given since it became one.
    given: [u32; MAX_BUDDIES],
    /// The gold that all other senders have given.
    given_by_others: u32,
    /// The pirate's gold.
    booty: u32,
    /// The pirate's index.
    name: u32,
    /// The pirate's chat period in milliseconds, if it chats.
    period_ms: Option<NonZeroU16>,
    /// The number of the pirate's buddies.
    known: u8,
    watch: W,
}

impl<W: PirateWatch> Pirate<W> {
    /// Creates the pirate with this index, without buddies and gold. Pirates have consecutive addresses in the order of
    /// their indices.
    #[inline]
    pub fn new(name: u32, watch: W) -> Self {
        Pirate {
            buddies: [Addr::NONE; MAX_BUDDIES],
            given: [0; MAX_BUDDIES],
            given_by_others: 0,
            booty: 0,
            name,
            period_ms: None,
            known: 0,
            watch,
        }
    }

    /// Returns the pirate's buddies in the order of acquaintance.
    pub fn buddies(&self) -> &[Addr] {
        &self.buddies[..usize::from(self.known)]
    }

    /// Returns the gold that each buddy has given since it became one, and the gold of all others.
    pub fn given(&self) -> (&[u32], u32) {
        (&self.given[..usize::from(self.known)], self.given_by_others)
    }

    /// Returns the pirate's gold.
    pub fn gold(&self) -> u32 {
        self.booty
    }

    /// Returns the pirate's chat period; `None` before it chats.
    pub fn period(&self) -> Option<Duration> {
        let period = self.period_ms?;
        Some(Duration::from_millis(period.get().into()))
    }

    /// Runs a pirate as an async body.
    #[inline]
    pub(super) fn body<C: AsyncContext<Msg>>(
        mut cx: C,
        name: u32,
        watch: W,
    ) -> impl Future<Output = ()> + Send {
        let mut pirate = Pirate::new(name, watch);
        async move {
            loop {
                let event = cx.recv().await;
                if pirate.handle(event, &mut cx) == Flow::Stop {
                    return;
                }
            }
        }
    }

    /// Handles an event.
    #[inline(always)]
    fn handle<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match event {
            Event::Message { from, body } => self.hear(from, body, cx),
            Event::Timer(TO_CHAT) => {
                self.chat(cx);
                Flow::Continue
            }
            // A pirate spawns no actors and sets no other timers.
            _ => Flow::Continue,
        }
    }

    /// Handles a message.
    #[inline(always)]
    fn hear<C: Context<Msg>>(&mut self, from: Addr, message: Msg, cx: &mut C) -> Flow {
        if W::MESSAGES {
            self.watch
                .message(cx.now(), cx.me(), &message, &cx.envelope());
        }
        match message {
            Msg::Hello { name } => self.name = name,
            Msg::NameDrop { buddy } => self.meet(buddy, cx),
            Msg::GoldCoin(gold) => self.take(from, gold),
            Msg::Chat { period_ms } => {
                if self.period_ms.replace(period_ms).is_none() {
                    set_timer(period_ms, cx);
                }
            }
            Msg::Goodbye { .. } => {
                cx.send(from, Msg::Goodbye { gold: self.booty });
                return Flow::Stop;
            }
        }
        Flow::Continue
    }

    /// Adds a buddy. Does nothing if the pirate knows it already, if it is the pirate itself, or if the pirate has ten
    /// buddies.
    #[inline]
    fn meet<C: Context<Msg>>(&mut self, buddy: Addr, cx: &C) {
        let known = usize::from(self.known);
        if known == MAX_BUDDIES || buddy == cx.me() || buddy == Addr::NONE {
            return;
        }
        // A loop, because the call of a search function would cost more than the search itself.
        if self.buddies[..known].iter().all(|&other| other != buddy) {
            self.buddies[known] = buddy;
            self.known += 1;
            if W::EDGES {
                self.watch.edge(cx.now(), cx.me(), buddy);
            }
        }
    }

    /// Takes gold and records its giver.
    #[inline]
    fn take(&mut self, from: Addr, gold: u32) {
        self.booty += gold;
        let known = &self.buddies[..usize::from(self.known)];
        match known.iter().position(|&buddy| buddy == from) {
            Some(which) => self.given[which] += gold,
            None => self.given_by_others += gold,
        }
    }

    /// Introduces the first buddy to the others, or gives some gold to one of them.
    #[inline]
    fn chat<C: Context<Msg>>(&mut self, cx: &mut C) {
        // One random number decides everything: bit 63 the action, the bits below it the buddy, the low half
        // the amount.
        let random = cx.random();
        let known = self.known;
        if random >> 63 == 0 {
            if let [first, others @ ..] = &self.buddies[..usize::from(known)] {
                for &other in others {
                    cx.send(other, Msg::NameDrop { buddy: *first });
                }
            }
        } else if known > 0 {
            let lucky = below(random << 1, known.into()) as usize;
            let gold = below(random << 32, self.booty);
            if gold > 0 {
                self.booty -= gold;
                cx.send(self.buddies[lucky], Msg::GoldCoin(gold));
            }
        }
        if let Some(period_ms) = self.period_ms {
            set_timer(period_ms, cx);
        }
    }
}

/// Sets the timer for the next chat.
#[inline]
fn set_timer<C: Context<Msg>>(period_ms: NonZeroU16, cx: &mut C) {
    cx.timer(Duration::from_millis(period_ms.get().into()), TO_CHAT);
}

/// The handler form.
impl<W: PirateWatch> Actor<Msg> for Pirate<W> {
    #[inline(always)]
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        self.handle(event, cx)
    }
}

#[cfg(test)]
mod tests;
