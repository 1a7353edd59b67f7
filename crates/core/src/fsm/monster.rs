//! The Flying Spaghetti Monster: the root, a script from the first hello to the last goodbye.

use super::message::millis;
use super::pirate::Pirate;
use super::{AFTER_NUMBER, BEFORE_NUMBER, Form, Fsm, Msg, Network, PirateWatch, Tally, Watch};
use crate::contract::{Addr, AddrRange, AsyncContext, Context, Event, Random, Spawn, Token};
use std::num::NonZeroU16;
use std::time::Duration;

/// After sending to this many pirates the FSM lets them work, so that neither the events on their
/// way nor the pirates concerned outgrow the caches, and wall-clock mailboxes have time to drain.
const CHUNK: u32 = 4096;

/// The token of the timer that fires when nothing has happened for a while.
const SILENCE: Token = Token::new(1);
/// The while. Where all messages arrive, answers take far less; so it decides nothing but how
/// long a run that has lost some goes on.
const PATIENCE: Duration = Duration::from_secs(1);
/// The token of the timer that marks the end of what has arrived.
const MARK: Token = Token::new(2);
/// Once everything sent has been handled: answers, coins under way, and coins returned are three
/// generations of messages, and each is waited for once. What is not there then will not come.
const GENERATIONS: u32 = 3;

/// The whole script. Returns when all pirates have said goodbye and all gold is back, or when it
/// is certain that what is missing has been lost.
pub(super) async fn rule<W: Watch, C: AsyncContext<Msg>>(fsm: Fsm<W>, mut cx: C) -> Tally {
    let (count, talk, watch) = (fsm.count(), fsm.talk, fsm.watch.clone());
    watch.population(count);
    let pirates = spawn(&fsm, &mut cx).await;
    watch.spawned(cx.now(), cx.me(), pirates);

    watch.talk(talk);
    let mut gifts = Gifts::new(fsm.chat, cx.fork_random());
    let sent = match &fsm.network {
        None => introduce_at_random(pirates, &mut gifts, &mut cx).await,
        Some(network) => introduce(network, pirates, &mut gifts, &mut cx).await,
    };
    cx.settle().await;
    watch.delivered(cx.now(), sent);
    if !talk.is_zero() {
        cx.sleep(talk).await;
    }

    watch.shutdown(cx.now());
    let tally = Tally {
        pirates: count,
        minted: gifts.minted,
        ..Tally::default()
    };
    let tally = Farewell {
        tally,
        asked: 0,
        told: watch.pirate(),
        watch: watch.clone(),
    }
    .run(pirates, &mut cx)
    .await;
    watch.exit(cx.now(), &tally);
    tally
}

/// Spawns the pirates.
async fn spawn<W: Watch, C: AsyncContext<Msg>>(fsm: &Fsm<W>, cx: &mut C) -> AddrRange {
    let how = match &fsm.network {
        Some(network) => Spawn::named(network.names().clone()),
        None => Spawn::many(
            fsm.population,
            format!("{}{BEFORE_NUMBER}", fsm.arch),
            AFTER_NUMBER,
        ),
    };
    let how = how.on_demand();
    let watch = fsm.watch.pirate();
    match fsm.form {
        Form::Async => {
            cx.spawn(how, move |cx, index| Pirate::body(cx, index, watch.clone()))
                .await
        }
        Form::Handler => {
            cx.spawn_actors(how, move |index| Pirate::new(index, watch.clone()))
                .await
        }
    }
}

/// The shortest random period to chat at, in milliseconds. The longest is 9,999.
const SHORTEST: NonZeroU16 = NonZeroU16::new(100).expect("100 is not 0");

/// What a pirate gets beside its name and its buddies.
struct Gifts {
    period_ms: Option<NonZeroU16>,
    random: Random,
    minted: u64,
}

impl Gifts {
    fn new(chat: Option<Duration>, random: Random) -> Gifts {
        Gifts {
            period_ms: chat.and_then(millis),
            random,
            minted: 0,
        }
    }

    /// Sends gold and a period to chat at.
    #[inline]
    fn send<C: Context<Msg>>(&mut self, to: Addr, cx: &mut C) {
        let gold = self.random.below(100);
        self.minted += u64::from(gold);
        cx.send(to, Msg::GoldCoin(gold));
        let random = SHORTEST.saturating_add(self.random.below(9_900) as u16);
        cx.send(
            to,
            Msg::Chat {
                period_ms: self.period_ms.unwrap_or(random),
            },
        );
    }
}

/// Sends each pirate its five messages, with two others at random for buddies. Returns how many
/// messages that were.
async fn introduce_at_random<C: AsyncContext<Msg>>(
    pirates: AddrRange,
    gifts: &mut Gifts,
    cx: &mut C,
) -> u64 {
    let mut sent = 0;
    // One less than the pirates: the numbers from a pirate's own on stand for the next higher.
    let others = pirates.len().saturating_sub(1);
    for chunk in chunks(pirates.len()) {
        for index in chunk {
            let pirate = pirates.get(index);
            cx.send(pirate, Msg::Hello { name: index });
            if others > 0 {
                for _ in 0..2 {
                    let other = gifts.random.below(others);
                    let other = other + u32::from(other >= index);
                    cx.send(
                        pirate,
                        Msg::NameDrop {
                            buddy: pirates.get(other),
                        },
                    );
                }
                sent += 2;
            }
            gifts.send(pirate, cx);
            sent += 3;
        }
        cx.yield_now().await;
    }
    sent
}

/// Sends each pirate its messages, with the edges of a network for buddies. All of them know
/// their buddies before the first is told to chat, so that no other pirate takes a buddy's place.
/// Returns how many messages that were.
async fn introduce<C: AsyncContext<Msg>>(
    network: &Network,
    pirates: AddrRange,
    gifts: &mut Gifts,
    cx: &mut C,
) -> u64 {
    let mut sent = 0;
    for chunk in chunks(pirates.len()) {
        for index in chunk {
            let pirate = pirates.get(index);
            cx.send(pirate, Msg::Hello { name: index });
            for &buddy in network.buddies(index) {
                cx.send(
                    pirate,
                    Msg::NameDrop {
                        buddy: pirates.get(buddy),
                    },
                );
            }
            sent += 1 + network.buddies(index).len() as u64;
        }
        cx.yield_now().await;
    }
    cx.settle().await;
    for chunk in chunks(pirates.len()) {
        for index in chunk {
            gifts.send(pirates.get(index), cx);
            sent += 2;
        }
        cx.yield_now().await;
    }
    sent
}

/// The indices below `count`, a chunk at a time.
fn chunks(count: u32) -> impl Iterator<Item = std::ops::Range<u32>> {
    (0..count)
        .step_by(CHUNK as usize)
        .map(move |start| start..count.min(start.saturating_add(CHUNK)))
}

/// The end: goodbyes out, goodbyes and gold in.
struct Farewell<W: Watch> {
    tally: Tally,
    /// How many pirates were told goodbye.
    asked: u32,
    watch: W,
    /// What the FSM tells as pirates do.
    told: W::Pirate,
}

impl<W: Watch> Farewell<W> {
    async fn run<C: AsyncContext<Msg>>(mut self, pirates: AddrRange, cx: &mut C) -> Tally {
        let mut silence = Silence::begin(cx);
        // Answers are taken in while the goodbyes go out, at most two chunks of them outstanding:
        // they need no room then, whatever the population.
        for chunk in chunks(pirates.len()) {
            for index in chunk {
                cx.send(pirates.get(index), Msg::Goodbye { gold: 0 });
                self.asked += 1;
            }
            while !silence.is_certain() && self.tally.goodbyes + CHUNK < self.asked {
                self.take_in(&mut silence, cx).await;
            }
            if silence.is_certain() {
                cx.yield_now().await;
            }
        }
        while !self.tally.is_complete() && !silence.is_certain() {
            self.take_in(&mut silence, cx).await;
        }
        if !self.tally.is_complete() {
            self.take_in_what_is_left(cx).await;
        }
        self.tally
    }

    /// Waits for one event and handles it.
    async fn take_in<C: AsyncContext<Msg>>(&mut self, silence: &mut Silence, cx: &mut C) {
        let event = cx.recv().await;
        if event == Event::Timer(SILENCE) {
            silence.check(cx);
        } else {
            silence.broken = true;
            self.count(event, cx);
        }
    }

    /// Takes in all that will ever come.
    async fn take_in_what_is_left<C: AsyncContext<Msg>>(&mut self, cx: &mut C) {
        for _ in 0..GENERATIONS {
            cx.settle().await;
            cx.timer(Duration::ZERO, MARK);
            loop {
                match cx.recv().await {
                    Event::Timer(MARK) => break,
                    event => self.count(event, cx),
                }
            }
        }
    }

    /// Counts what an event brings.
    #[inline]
    fn count<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &C) {
        match event {
            Event::Message { from, body } => {
                if W::Pirate::MESSAGES {
                    self.told.message(cx.now(), cx.me(), &body, &cx.envelope());
                }
                match body {
                    Msg::Goodbye { gold } => {
                        self.watch.ended(cx.now(), from);
                        self.tally.goodbyes += 1;
                        self.tally.returned += u64::from(gold);
                    }
                    Msg::GoldCoin(gold) => self.tally.salvaged += u64::from(gold),
                    Msg::Hello { .. } | Msg::NameDrop { .. } | Msg::Chat { .. } => {}
                }
            }
            Event::DeadLetter {
                body: Msg::GoldCoin(gold),
                ..
            } => {
                self.tally.salvaged += u64::from(gold);
            }
            _ => {}
        }
    }
}

/// Whether nothing has happened for a while.
struct Silence {
    /// Something has happened since the timer was set.
    broken: bool,
    certain: bool,
}

impl Silence {
    fn begin<C: Context<Msg>>(cx: &mut C) -> Silence {
        cx.timer(PATIENCE, SILENCE);
        Silence {
            broken: false,
            certain: false,
        }
    }

    /// The timer is due.
    fn check<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.certain = !self.broken;
        self.broken = false;
        cx.timer(PATIENCE, SILENCE);
    }

    fn is_certain(&self) -> bool {
        self.certain
    }
}
