//! Tests of a pirate's state machine, with a context that records its actions.

use super::*;
use crate::{AddrRange, Envelope, Random, ReplyHandle, SpanId, Spawn, Time, TimerHandle};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const FSM: Addr = Addr::from_u32(0);
/// Addresses of pirates begin here.
const FIRST: u32 = 100;

/// The address of the pirate with this index.
fn addr(index: u32) -> Addr {
    AddrRange::new(Addr::from_u32(FIRST), u32::MAX - FIRST).get(index)
}

/// A context that records messages and timers, and draws given random numbers.
struct Recorder {
    me: Addr,
    random: Box<dyn FnMut() -> u64 + Send>,
    sent: Vec<(Addr, Msg)>,
    timers: Vec<Duration>,
}

impl Recorder {
    fn new(index: u32) -> Recorder {
        let mut random = Random::new(index.into());
        Recorder {
            me: addr(index),
            random: Box::new(move || random.bits()),
            sent: Vec::new(),
            timers: Vec::new(),
        }
    }

    /// Creates the context of pirate 0, which draws `number` each time.
    fn drawing(number: u64) -> Recorder {
        Recorder {
            random: Box::new(move || number),
            ..Recorder::new(0)
        }
    }
}

impl Context<Msg> for Recorder {
    fn me(&self) -> Addr {
        self.me
    }
    fn parent(&self) -> Addr {
        FSM
    }
    fn now(&self) -> Time {
        Time::from_nanos(5)
    }
    fn envelope(&self) -> Envelope {
        let none = SpanId::NONE;
        Envelope {
            from: FSM,
            sent: Time::ZERO,
            trace: none,
            parent: none,
            span: none,
            answers: none,
        }
    }
    fn random(&mut self) -> u64 {
        (self.random)()
    }
    fn send(&mut self, to: Addr, body: Msg) -> SpanId {
        self.sent.push((to, body));
        SpanId::NONE
    }
    fn timer(&mut self, after: Duration, token: Token) {
        assert_eq!(token, TO_CHAT);
        self.timers.push(after);
    }
    fn send_in(&mut self, _: Duration, _: Addr, _: Msg) -> SpanId {
        panic!("a pirate has no network of its own")
    }
    fn send_after(&mut self, _: Duration, _: Addr, _: Msg) -> SpanId {
        panic!("a pirate does not delay messages")
    }
    fn request(&mut self, _: Addr, _: Msg) -> SpanId {
        panic!("a pirate asks nothing")
    }
    fn reply(&mut self, _: ReplyHandle, _: Msg) -> SpanId {
        panic!("a pirate is asked nothing")
    }
    fn send_self(&mut self, _: Msg) -> SpanId {
        unreachable!("pirates talk to others")
    }

    fn timer_handle(&mut self, _: Duration, _: Token) -> TimerHandle {
        unreachable!("pirates cancel nothing")
    }

    fn every(&mut self, _: Duration, _: Token) -> TimerHandle {
        unreachable!("pirates do nothing regularly")
    }

    fn record(&mut self, _: &'static str, _: crate::Sample) {
        unimplemented!("pirates record nothing")
    }

    fn cancel(&mut self, _: TimerHandle) -> bool {
        unreachable!("pirates cancel nothing")
    }

    fn stop(&mut self, _: Addr) {
        panic!("a pirate stops no actor")
    }
    fn new_trace(&mut self) {
        panic!("a pirate begins no trace")
    }
    fn continue_trace(&mut self, _: SpanId, _: SpanId) {
        panic!("a pirate puts nothing off")
    }
    fn spawn_request<A, F>(&mut self, _: Spawn, _: F) -> u32
    where
        A: Actor<Msg>,
        F: Fn(u32) -> A + Send + Sync + 'static,
    {
        panic!("a pirate spawns no actor")
    }
}

fn deliver<W: PirateWatch>(
    pirate: &mut Pirate<W>,
    from: Addr,
    body: Msg,
    cx: &mut Recorder,
) -> Flow {
    pirate.on(Event::Message { from, body }, cx)
}

fn introduce<W: PirateWatch>(pirate: &mut Pirate<W>, buddies: &[u32], cx: &mut Recorder) {
    for &buddy in buddies {
        deliver(pirate, FSM, Msg::NameDrop { buddy: addr(buddy) }, cx);
    }
}

fn every(millis: u16) -> Msg {
    Msg::Chat {
        period_ms: NonZeroU16::new(millis).unwrap(),
    }
}

fn buddies<W: PirateWatch>(pirate: &Pirate<W>) -> &[Addr] {
    &pirate.buddies[..pirate.known.into()]
}

/// A random number that makes a pirate drop a name.
const DROP: u64 = 0;
/// A random number that makes a pirate give nearly all gold to its last buddy.
const GIVE: u64 = u64::MAX;

#[test]
fn a_pirate_is_96_bytes() {
    assert_eq!(size_of::<Pirate<()>>(), 96);
}

#[test]
fn a_chatting_pirate_with_gold_and_no_buddy_keeps_its_gold() {
    for number in [DROP, GIVE] {
        let (mut pirate, mut cx) = (Pirate::new(0, ()), Recorder::drawing(number));
        deliver(&mut pirate, FSM, Msg::GoldCoin(99), &mut cx);
        deliver(&mut pirate, FSM, every(100), &mut cx);
        assert_eq!(pirate.on(Event::Timer(TO_CHAT), &mut cx), Flow::Continue);
        assert_eq!((pirate.booty, cx.sent.len()), (99, 0));
        assert_eq!(cx.timers.len(), 2, "and chats again after a period");
    }
}

#[test]
fn a_name_drop_tells_the_other_buddies_of_the_first() {
    let (mut pirate, mut cx) = (Pirate::new(0, ()), Recorder::drawing(DROP));
    introduce(&mut pirate, &[7, 8, 9], &mut cx);
    pirate.on(Event::Timer(TO_CHAT), &mut cx);
    let first = Msg::NameDrop { buddy: addr(7) };
    assert_eq!(cx.sent, [(addr(8), first), (addr(9), first)]);
}

#[test]
fn a_gift_is_less_than_the_booty_and_leaves_it() {
    let (mut pirate, mut cx) = (Pirate::new(0, ()), Recorder::drawing(GIVE));
    introduce(&mut pirate, &[7, 8, 9], &mut cx);
    deliver(&mut pirate, FSM, Msg::GoldCoin(50), &mut cx);
    pirate.on(Event::Timer(TO_CHAT), &mut cx);
    assert_eq!(cx.sent, [(addr(9), Msg::GoldCoin(49))]);
    assert_eq!(pirate.booty, 1);
    pirate.on(Event::Timer(TO_CHAT), &mut cx);
    assert_eq!(cx.sent.len(), 1, "no part of one piece is worth a message");
}

#[test]
fn gifts_go_to_every_buddy_and_name_drops_come_half_of_the_time() {
    let (mut pirate, mut cx) = (Pirate::new(0, ()), Recorder::new(0));
    introduce(&mut pirate, &(1..=10).collect::<Vec<_>>(), &mut cx);
    let (mut drops, mut gifts) = (0, [0; 11]);
    for _ in 0..4000 {
        pirate.booty = 1_000_000;
        cx.sent.clear();
        pirate.on(Event::Timer(TO_CHAT), &mut cx);
        match *cx.sent {
            [(to, Msg::GoldCoin(_))] => gifts[(to.as_u32() - FIRST) as usize] += 1,
            _ => drops += 1,
        }
    }
    assert!((1800..2200).contains(&drops), "{drops} of 4000");
    assert!(
        gifts[1..].iter().all(|gifts| (120..280).contains(gifts)),
        "{gifts:?}"
    );
}

#[test]
fn a_second_chat_message_changes_the_period_and_sets_no_second_timer() {
    let (mut pirate, mut cx) = (Pirate::new(0, ()), Recorder::new(0));
    deliver(&mut pirate, FSM, every(100), &mut cx);
    deliver(&mut pirate, FSM, every(250), &mut cx);
    assert_eq!(cx.timers, [Duration::from_millis(100)]);
    pirate.on(Event::Timer(TO_CHAT), &mut cx);
    assert_eq!(cx.timers[1..], [Duration::from_millis(250)]);
}

#[test]
fn a_goodbye_is_answered_with_the_booty_and_ends_the_pirate() {
    let (mut pirate, mut cx) = (Pirate::new(0, ()), Recorder::new(0));
    deliver(&mut pirate, FSM, Msg::GoldCoin(42), &mut cx);
    let flow = deliver(&mut pirate, FSM, Msg::Goodbye { gold: 0 }, &mut cx);
    assert_eq!(flow, Flow::Stop);
    assert_eq!(cx.sent, [(FSM, Msg::Goodbye { gold: 42 })]);
}

/// A watch that records edges.
#[derive(Clone, Default)]
struct Edges(Arc<Mutex<Vec<(Addr, Addr)>>>);

impl PirateWatch for Edges {
    const EDGES: bool = true;
    const MESSAGES: bool = false;
    fn edge(&self, _: Time, pirate: Addr, buddy: Addr) {
        self.0.lock().unwrap().push((pirate, buddy));
    }
}

#[test]
fn a_watch_gets_each_new_edge_once() {
    let edges = Edges::default();
    let (mut pirate, mut cx) = (Pirate::new(5, edges.clone()), Recorder::new(5));
    introduce(&mut pirate, &[9, 2, 9, 5], &mut cx);
    let expected = [(addr(5), addr(9)), (addr(5), addr(2))];
    assert_eq!(*edges.0.lock().unwrap(), expected);
}

/// Generates messages that a pirate may get, from few senders, so that senders and buddies
/// coincide.
fn messages() -> impl Strategy<Value = Vec<(u32, Msg)>> {
    let message = prop_oneof![
        3 => (0..16u32).prop_map(|buddy| Msg::NameDrop { buddy: addr(buddy) }),
        1 => Just(Msg::NameDrop { buddy: Addr::NONE }),
        3 => (0..1000u32).prop_map(Msg::GoldCoin),
        1 => (1..=9999u16).prop_map(every),
    ];
    prop::collection::vec((0..16u32, message), 0..200)
}

proptest! {
    // Guarantee: core-84.
    #[test]
    fn buddies_are_the_first_ten_named_without_itself_and_without_repetition(
        me in 0..16u32,
        messages in messages(),
    ) {
        let (mut pirate, mut cx) = (Pirate::new(me, ()), Recorder::new(me));
        let mut expected: Vec<Addr> = Vec::new();
        for (from, message) in messages {
            deliver(&mut pirate, addr(from), message, &mut cx);
            if let Msg::NameDrop { buddy } = message {
                let wanted = buddy != Addr::NONE && buddy != addr(me);
                if wanted && !expected.contains(&buddy) && expected.len() < 10 {
                    expected.push(buddy);
                }
            }
        }
        prop_assert_eq!(buddies(&pirate), expected);
        let unused = &pirate.buddies[pirate.known.into()..];
        prop_assert!(unused.iter().all(|&buddy| buddy == Addr::NONE));
    }

    // Guarantee: core-82.
    #[test]
    fn all_gold_is_remembered_by_giver_and_none_is_made_by_chatting(messages in messages()) {
        let (mut pirate, mut cx) = (Pirate::new(0, ()), Recorder::new(0));
        let (mut taken, mut by_buddy) = (0, [0; MAX_BUDDIES]);
        for (from, message) in messages {
            if let Msg::GoldCoin(gold) = message {
                taken += gold;
                let giver = buddies(&pirate).iter().position(|&buddy| buddy == addr(from));
                if let Some(giver) = giver {
                    by_buddy[giver] += gold;
                }
            }
            deliver(&mut pirate, addr(from), message, &mut cx);
            pirate.on(Event::Timer(TO_CHAT), &mut cx);
        }
        let sent: u32 = cx.sent.iter().map(|(_, message)| match message {
            Msg::GoldCoin(gold) => *gold,
            _ => 0,
        }).sum();
        prop_assert_eq!(pirate.booty + sent, taken);
        prop_assert_eq!(pirate.given, by_buddy);
        prop_assert_eq!(by_buddy.iter().sum::<u32>() + pirate.given_by_others, taken);
    }
}
