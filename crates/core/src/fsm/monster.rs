//! The Flying Spaghetti Monster: the root actor, a [`Script`] from the first hello to the last goodbye.

mod broadcasts;
mod farewell;
#[cfg(feature = "serde")]
mod kind;

use super::message::millis;
use super::pirate::Pirate;
use super::{AFTER_NUMBER, BEFORE_NUMBER, Form, Fsm, Msg, Network, Tally, Watch};
use crate::Addr;
use crate::sync::lock;
use crate::{AddrRange, AsyncContext, Context, Event, Random, Script, Spawn, Wait, perform};
use broadcasts::Broadcast;
#[cfg(feature = "serde")]
pub(super) use broadcasts::Goodbye;
pub(super) use broadcasts::{Introduction, Share};
use farewell::Farewell;
#[cfg(feature = "serde")]
pub use kind::{FsmLocal, FsmParameters};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The number of pirates after which the FSM pauses sending, so that pending events and active pirates fit into the
/// caches, and wall-clock mailboxes can drain.
const CHUNK: u32 = 4096;

/// The maximum number of steps in which the FSM addresses the pirates. Pirates that already have buddies talk while the
/// FSM addresses the others, so without this limit the number of messages would grow with the square of the population.
const MOST_STEPS: u32 = 4096;

/// Returns the number of pirates that the FSM addresses in one step.
#[inline]
fn at_once(pirates: AddrRange) -> u32 {
    pirates.len().div_ceil(MOST_STEPS).max(CHUNK)
}

/// Returns the index after the last pirate that the FSM addresses in the step beginning at `start`.
fn end_of_step(pirates: AddrRange, start: u32) -> u32 {
    start.saturating_add(at_once(pirates)).min(pirates.len())
}

/// The cell for the FSM's final tally.
pub(super) type TallyCell = Arc<Mutex<Option<Tally>>>;

/// Runs the complete script as an async body, with pirates of either form. It returns when all pirates have said
/// goodbye and all gold is back, or when missing messages cannot arrive any more.
pub(super) async fn rule<W: Watch, C: AsyncContext<Msg>>(fsm: Fsm<W>, mut cx: C) -> Tally {
    let form = fsm.form;
    let mut monster = Monster::new(fsm, TallyCell::default());
    if form == Form::Async {
        let how = monster.announce();
        let watch = monster.watch.pirate();
        let pirates = cx
            .spawn(how, move |cx, index| Pirate::body(cx, index, watch.clone()))
            .await;
        monster.begin(pirates, &mut cx);
    }
    let monster = perform(monster, cx).await;
    monster.farewell.tally
}

/// The FSM between two waits.
#[allow(
    missing_debug_implementations,
    reason = "a watch need not implement it"
)]
pub struct Monster<W: Watch = ()> {
    arch: String,
    population: u32,
    talk: Duration,
    network: Option<Arc<Network>>,
    pirates: AddrRange,
    gifts: Gifts,
    /// The number of messages sent to introduce the pirates.
    sent: u64,
    stage: Stage,
    farewell: Farewell,
    watch: W,
    recorder: W::Pirate,
    tally: TallyCell,
}

/// The next action of the FSM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Stage {
    Spawn,
    Spawning,
    /// Sends names and buddies to a chunk of pirates from this index on; without a network also their gifts.
    Broadcast(u32),
    /// Sends gifts to a chunk of pirates from this index on, after all pirates have received their buddies.
    Give(u32),
    /// Reports that all first messages have been handled.
    Delivered,
    Shutdown,
    Farewell,
    Over,
}

impl<W: Watch> Monster<W> {
    pub(super) fn new(fsm: Fsm<W>, tally: TallyCell) -> Monster<W> {
        Monster {
            population: fsm.count(),
            arch: fsm.arch,
            talk: fsm.talk,
            network: fsm.network.map(Arc::new),
            pirates: AddrRange::new(Addr::NONE, 0),
            gifts: Gifts {
                period_ms: fsm.chat.and_then(millis),
                random: Random::new(0),
                minted: 0,
            },
            sent: 0,
            stage: Stage::Spawn,
            farewell: Farewell::default(),
            recorder: fsm.watch.pirate(),
            watch: fsm.watch,
            tally,
        }
    }

    /// Reports to the watch that pirates are about to be spawned, and returns the spawn.
    fn announce(&self) -> Spawn {
        self.watch.population(self.population);
        let how = match &self.network {
            Some(network) => Spawn::named(network.names().clone()),
            None => Spawn::many(
                self.population,
                format!("{}{BEFORE_NUMBER}", self.arch),
                AFTER_NUMBER,
            ),
        };
        how.on_demand()
    }

    /// Records that the pirates have been spawned.
    fn begin<C: Context<Msg>>(&mut self, pirates: AddrRange, cx: &mut C) {
        self.pirates = pirates;
        self.watch.spawned(cx.now(), cx.me(), pirates);
        self.watch.talk(self.talk);
        self.gifts.random = cx.fork_random();
        self.stage = Stage::Broadcast(0);
    }

    /// Requests the pirates.
    fn spawn<C: Context<Msg>>(&mut self, cx: &mut C) -> u32 {
        let (how, watch) = (self.announce(), self.watch.pirate());
        #[cfg(feature = "serde")]
        return cx.spawn_kind_request::<Pirate<W::Pirate>>(how, (), watch);
        #[cfg(not(feature = "serde"))]
        cx.spawn_request(how, move |index| Pirate::new(index, watch.clone()))
    }

    /// Returns the chunk of pirates from this index on, and the index of the next chunk.
    fn chunk(&self, start: u32) -> (std::ops::Range<u32>, u32) {
        let end = end_of_step(self.pirates, start);
        (start..end, end)
    }

    /// Sends each pirate of a chunk its five messages, with two random other pirates as buddies.
    fn introduce_at_random<C: Context<Msg>>(&mut self, chunk: std::ops::Range<u32>, cx: &mut C) {
        let pirates = self.pirates;
        // The number of other pirates. A drawn number at or above a pirate's own index stands for the next higher
        // index.
        let others = pirates.len().saturating_sub(1);
        if others == 0 {
            return self.introduce_the_only_one(chunk, cx);
        }
        let (first, count) = (chunk.start, chunk.end - chunk.start);
        let introduction = Introduction {
            pirates,
            first,
            others,
            share: self.gifts.take(count, 2),
        };
        introduction.send_to(pirates.part(chunk), cx);
        self.sent += 5 * u64::from(count);
    }

    /// Sends the five messages like [`introduce_at_random`](Self::introduce_at_random), to a pirate that is the only
    /// one.
    fn introduce_the_only_one<C: Context<Msg>>(&mut self, chunk: std::ops::Range<u32>, cx: &mut C) {
        for index in chunk.clone() {
            cx.send(self.pirates.at(index), Msg::Hello { name: index });
        }
        self.give(chunk, cx);
        self.sent += 1;
    }

    /// Sends each pirate of a chunk its gifts.
    fn give<C: Context<Msg>>(&mut self, chunk: std::ops::Range<u32>, cx: &mut C) {
        let count = chunk.end - chunk.start;
        let share = self.gifts.take(count, 0);
        share.send_to(self.pirates.part(chunk), cx);
        self.sent += 2 * u64::from(count);
    }

    /// Sends each pirate of a chunk its name, and its edges in the network as buddies. All pirates know their buddies
    /// before the first one gets its chat period, so that no other pirate takes a buddy's place.
    fn introduce<C: Context<Msg>>(
        &mut self,
        network: &Network,
        chunk: std::ops::Range<u32>,
        cx: &mut C,
    ) {
        for index in chunk {
            let pirate = self.pirates.get(index);
            cx.send(pirate, Msg::Hello { name: index });
            for &buddy in network.buddies(index) {
                let buddy = self.pirates.get(buddy);
                cx.send(pirate, Msg::NameDrop { buddy });
            }
            self.sent += 1 + network.buddies(index).len() as u64;
        }
    }
}

impl<W: Watch> Script<Msg> for Monster<W> {
    #[inline(always)]
    fn resume<C: Context<Msg>>(&mut self, event: Option<Event<Msg>>, cx: &mut C) -> Wait {
        if self.stage == Stage::Farewell {
            return self.say_goodbye(event, cx);
        }
        self.begin_farewell(event, cx)
    }
}

impl<W: Watch> Monster<W> {
    /// Continues the farewell after this event. Ends the script when the farewell is over.
    #[inline(never)]
    fn begin_farewell<C: Context<Msg>>(&mut self, event: Option<Event<Msg>>, cx: &mut C) -> Wait {
        loop {
            match self.stage {
                Stage::Spawn => {
                    self.stage = Stage::Spawning;
                    return Wait::Spawned(self.spawn(cx));
                }
                Stage::Spawning => match event {
                    Some(Event::Spawned { first, count, .. }) => {
                        self.begin(AddrRange::new(first, count), cx);
                    }
                    _ => unreachable!("the wait returns only awaited events"),
                },
                Stage::Broadcast(start) if start < self.pirates.len() => {
                    let (chunk, next) = self.chunk(start);
                    match self.network.clone() {
                        None => self.introduce_at_random(chunk, cx),
                        Some(network) => self.introduce(&network, chunk, cx),
                    }
                    self.stage = Stage::Broadcast(next);
                    return Wait::Yield;
                }
                Stage::Broadcast(_) if self.network.is_some() => {
                    self.stage = Stage::Give(0);
                    return Wait::Settle;
                }
                Stage::Give(start) if start < self.pirates.len() => {
                    let (chunk, next) = self.chunk(start);
                    self.give(chunk, cx);
                    self.stage = Stage::Give(next);
                    return Wait::Yield;
                }
                Stage::Broadcast(_) | Stage::Give(_) => {
                    // The network is not needed any more.
                    self.network = None;
                    self.stage = Stage::Delivered;
                    return Wait::Settle;
                }
                Stage::Delivered => {
                    self.watch.delivered(cx.now(), self.sent);
                    self.stage = Stage::Shutdown;
                    if !self.talk.is_zero() {
                        return Wait::Sleep(self.talk);
                    }
                }
                Stage::Shutdown => {
                    self.watch.shutdown(cx.now());
                    self.farewell.tally = Tally {
                        pirates: self.population,
                        minted: self.gifts.minted,
                        ..Tally::default()
                    };
                    self.stage = Stage::Farewell;
                    return self.say_goodbye(None, cx);
                }
                Stage::Farewell | Stage::Over => return Wait::End,
            }
        }
    }

    #[inline(always)]
    fn say_goodbye<C: Context<Msg>>(&mut self, event: Option<Event<Msg>>, cx: &mut C) -> Wait {
        let wait = self
            .farewell
            .resume(event, self.pirates, &self.watch, &self.recorder, cx);
        if wait == Wait::End {
            self.come_to_an_end(cx);
        }
        wait
    }

    #[cold]
    #[inline(never)]
    fn come_to_an_end<C: Context<Msg>>(&mut self, cx: &C) {
        self.stage = Stage::Over;
        self.watch.exit(cx.now(), &self.farewell.tally);
        *lock(&self.tally) = Some(self.farewell.tally);
    }
}

/// The messages for a pirate besides its name and buddies.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Gifts {
    period_ms: Option<NonZeroU16>,
    random: Random,
    minted: u64,
}

impl Gifts {
    /// Takes the messages for the next `pirates` pirates, each of which has drawn `used_before` random numbers.
    fn take(&mut self, pirates: u32, used_before: u64) -> Share {
        let share = Share {
            period_ms: self.period_ms,
            random: self.random.clone(),
            used_before,
        };
        self.minted += share.minted(pirates);
        self.random = share.random_of(pirates);
        share
    }
}
