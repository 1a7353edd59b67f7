//! Virtual time with one binary heap of all events, as in most simulators: the baseline for the virtual executor's
//! windows. It runs the same pirates.

use corsair::fsm::{Msg, Pirate};
use corsair::{
    Actor, Addr, Context, Envelope, Event, Flow, Random, ReplyHandle, SpanId, Spawn, Time,
    TimerHandle, Token,
};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::num::NonZeroU16;
use std::time::Duration;

/// The shortest latency, and the range of latencies above it, in nanoseconds.
const LATENCY: u64 = 1 << 20;
/// The address of the FSM, which is higher than those of the pirates.
const FSM: Addr = Addr::from_u32(u32::MAX - 1);

/// An event: its time, its receiver and its contents.
#[derive(Debug)]
struct Due {
    at: u64,
    to: u32,
    from: u32,
    sequence: u32,
    /// The message; `None` is the timer.
    body: Option<Msg>,
}

impl Due {
    fn key(&self) -> (u64, u32, u32, u32) {
        (self.at, self.to, self.from, self.sequence)
    }
}

impl Ord for Due {
    /// Orders the earliest event as the greatest, because the heap returns the greatest first.
    fn cmp(&self, other: &Due) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

/// A simulation: the pirates, their random streams and the heap of future events.
#[derive(Debug)]
pub struct Simulation {
    pirates: Vec<Pirate>,
    /// The random streams and sequence numbers of the pirates.
    states: Vec<(Random, u32)>,
    events: BinaryHeap<Due>,
    minted: u64,
    answers: Vec<Msg>,
}

impl Simulation {
    /// Creates pirates at the beginning of their talk.
    pub fn new(population: u32) -> Simulation {
        let mut simulation = Simulation {
            pirates: (0..population).map(|name| Pirate::new(name, ())).collect(),
            states: (0..population)
                .map(|name| (Random::new(name.into()), 0))
                .collect(),
            events: BinaryHeap::new(),
            minted: 0,
            answers: Vec::new(),
        };
        let mut random = Random::new(0);
        for name in 0..population {
            let mut tell = |body| simulation.give(0, name, Event::Message { from: FSM, body });
            tell(Msg::Hello { name });
            for _ in 0..2 {
                let other = random.below(population - 1);
                let buddy = Addr::from_u32(other + u32::from(other >= name));
                tell(Msg::NameDrop { buddy });
            }
            let gold = random.below(100);
            tell(Msg::GoldCoin(gold));
            let period_ms = NonZeroU16::MIN.saturating_add(99 + random.below(9_900) as u16);
            tell(Msg::Chat { period_ms });
            simulation.minted += u64::from(gold);
        }
        simulation
    }

    /// Lets the pirates talk for this duration, and returns the number of events.
    pub fn talk(&mut self, talk: Duration) -> u64 {
        let end = talk.as_nanos() as u64;
        let mut events = 0;
        while let Some(due) = self.events.pop_if_before(end) {
            let event = match due.body {
                Some(body) => Event::Message {
                    from: Addr::from_u32(due.from),
                    body,
                },
                None => Event::Timer(Token::new(0)),
            };
            self.give(due.at, due.to, event);
            events += 1;
        }
        events
    }

    /// Ends the simulation.
    ///
    /// # Panics
    /// If the gold of the pirates and the coins in flight do not add up to all the gold.
    pub fn finish(mut self) {
        for name in 0..self.pirates.len() as u32 {
            let goodbye = Msg::Goodbye { gold: 0 };
            self.give(
                0,
                name,
                Event::Message {
                    from: FSM,
                    body: goodbye,
                },
            );
        }
        let on_their_way = self.events.iter().filter_map(|due| due.body);
        let gold = self
            .answers
            .iter()
            .copied()
            .chain(on_their_way)
            .map(|message| match message {
                Msg::Goodbye { gold } | Msg::GoldCoin(gold) => u64::from(gold),
                _ => 0,
            });
        assert_eq!(gold.sum::<u64>(), self.minted);
    }

    fn give(&mut self, now: u64, to: u32, event: Event<Msg>) -> Flow {
        let (random, sequence) = &mut self.states[to as usize];
        let (events, answers) = (&mut self.events, &mut self.answers);
        let mut desk = Desk {
            me: to,
            now,
            random,
            sequence,
            events,
            answers,
        };
        self.pirates[to as usize].on(event, &mut desk)
    }
}

/// A heap that returns its first event if it is before a point in time.
trait PopIfBefore {
    fn pop_if_before(&mut self, end: u64) -> Option<Due>;
}

impl PopIfBefore for BinaryHeap<Due> {
    fn pop_if_before(&mut self, end: u64) -> Option<Due> {
        (self.peek()?.at < end).then(|| self.pop()).flatten()
    }
}

/// The context of the pirate that handles an event.
struct Desk<'a> {
    me: u32,
    now: u64,
    random: &'a mut Random,
    sequence: &'a mut u32,
    events: &'a mut BinaryHeap<Due>,
    answers: &'a mut Vec<Msg>,
}

impl Desk<'_> {
    fn push(&mut self, at: u64, to: u32, body: Option<Msg>) {
        *self.sequence += 1;
        self.events.push(Due {
            at,
            to,
            from: self.me,
            sequence: *self.sequence,
            body,
        });
    }
}

impl Context<Msg> for Desk<'_> {
    fn me(&self) -> Addr {
        Addr::from_u32(self.me)
    }
    fn parent(&self) -> Addr {
        FSM
    }
    fn now(&self) -> Time {
        Time::from_nanos(self.now)
    }
    fn random(&mut self) -> u64 {
        self.random.bits()
    }
    fn send(&mut self, to: Addr, body: Msg) -> SpanId {
        if to == FSM {
            self.answers.push(body);
        } else {
            let pair = u64::from(self.me) << 32 | u64::from(to.as_u32());
            let latency = LATENCY + u64::from(Random::new(pair).below(LATENCY as u32));
            self.push(self.now + latency, to.as_u32(), Some(body));
        }
        SpanId::NONE
    }
    fn timer(&mut self, after: Duration, _: Token) {
        self.push(self.now + after.as_nanos() as u64, self.me, None);
    }

    // Pirates use none of the following methods.
    fn envelope(&self) -> Envelope {
        unimplemented!("pirates read no envelope")
    }
    fn send_self(&mut self, _: Msg) -> SpanId {
        unimplemented!("pirates send themselves nothing")
    }
    fn timer_handle(&mut self, _: Duration, _: Token) -> TimerHandle {
        unimplemented!("pirates cancel no timers")
    }
    fn every(&mut self, _: Duration, _: Token) -> TimerHandle {
        unimplemented!("pirates have no periodic timers")
    }
    fn record(&mut self, _: &'static str, _: corsair::Sample) {
        unimplemented!("pirates record nothing")
    }
    fn cancel(&mut self, _: TimerHandle) -> bool {
        unimplemented!("pirates cancel no timers")
    }
    fn send_in(&mut self, _: Duration, _: Addr, _: Msg) -> SpanId {
        unimplemented!("pirates know no transit times")
    }
    fn send_after(&mut self, _: Duration, _: Addr, _: Msg) -> SpanId {
        unimplemented!("pirates do not delay messages")
    }
    fn request(&mut self, _: Addr, _: Msg) -> SpanId {
        unimplemented!("pirates ask nothing")
    }
    fn reply(&mut self, _: ReplyHandle, _: Msg) -> SpanId {
        unimplemented!("pirates are asked nothing")
    }
    fn stop(&mut self, _: Addr) {
        unimplemented!("pirates stop no actor")
    }
    fn new_trace(&mut self) {
        unimplemented!("pirates begin no trace")
    }
    fn continue_trace(&mut self, _: SpanId, _: SpanId) {
        unimplemented!("pirates put nothing off")
    }
    fn spawn_request<A, F>(&mut self, _: Spawn, _: F) -> u32
    where
        A: Actor<Msg>,
        F: Fn(u32) -> A + Send + Sync + 'static,
    {
        unimplemented!("pirates spawn no actor")
    }
}
