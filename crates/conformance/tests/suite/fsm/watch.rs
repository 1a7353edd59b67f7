//! A watch is called in the order that its documentation promises. A run that starts from a network has exactly the
//! edges of the network.

use corsair::fsm::{self, Form, Fsm, Msg, Network, PirateWatch, Tally, Watch};
use corsair::{Addr, AddrRange, Config, Envelope, Executor, Time};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Records all calls.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    fsm: Vec<String>,
    pirates: Option<AddrRange>,
    edges: Vec<(Addr, Addr)>,
    messages: Vec<(Addr, Msg)>,
}

impl Lines {
    /// Returns the edges as pairs of the pirates' indices, sorted.
    fn edges(&self) -> Vec<(u32, u32)> {
        let pirates = self.pirates.expect("the pirates were spawned");
        let index = |pirate| pirates.index_of(pirate).expect("an edge is among pirates");
        let edges = self.edges.iter();
        let mut edges: Vec<_> = edges.map(|&(a, b)| (index(a), index(b))).collect();
        edges.sort_unstable();
        edges
    }
}

impl Log {
    fn line(&self, line: String) {
        self.0.lock().unwrap().fsm.push(line);
    }
}

impl Watch for Log {
    type Pirate = Log;

    fn pirate(&self) -> Log {
        self.clone()
    }
    fn population(&self, count: u32) {
        self.line(format!("population {count}"));
    }
    fn spawned(&self, _: Time, _: Addr, pirates: AddrRange) {
        self.line(format!("spawned {}", pirates.len()));
        self.0.lock().unwrap().pirates = Some(pirates);
    }
    fn talk(&self, talk: Duration) {
        self.line(format!("talk {talk:?}"));
    }
    fn delivered(&self, _: Time, messages: u64) {
        self.line(format!("delivered {messages}"));
    }
    fn shutdown(&self, _: Time) {
        self.line("shutdown".into());
    }
    fn ended(&self, _: Time, pirate: Addr) {
        let pirates = self.0.lock().unwrap().pirates;
        assert!(pirates.is_some_and(|all| all.index_of(pirate).is_some()));
        self.line("ended".into());
    }
    fn exit(&self, _: Time, tally: &Tally) {
        self.line(format!("exit {}", tally.goodbyes));
    }
}

impl PirateWatch for Log {
    const EDGES: bool = true;
    const MESSAGES: bool = true;

    fn edge(&self, _: Time, pirate: Addr, buddy: Addr) {
        self.0.lock().unwrap().edges.push((pirate, buddy));
    }
    fn message(&self, _: Time, receiver: Addr, message: &Msg, _: &Envelope) {
        self.0.lock().unwrap().messages.push((receiver, *message));
    }
}

const EXECUTORS: [Executor; 4] = [
    Executor::Virtual,
    Executor::Tokio,
    Executor::Threads,
    Executor::Pool,
];

fn watch(executor: Executor, fsm: Fsm) -> Lines {
    let log = Log::default();
    fsm::run(executor, &Config::default(), fsm.watched_by(log.clone())).expect("it runs");
    Arc::into_inner(log.0)
        .expect("the run is over")
        .into_inner()
        .unwrap()
}

#[test]
fn the_fsm_tells_its_story_in_order() {
    for executor in EXECUTORS {
        let talk = Duration::from_millis(20);
        let lines = watch(
            executor,
            Fsm {
                population: 3,
                talk,
                ..Fsm::default()
            },
        );
        let story = [
            "population 3",
            "spawned 3",
            "talk 20ms",
            "delivered 15",
            "shutdown",
            "ended",
            "ended",
            "ended",
            "exit 3",
        ];
        assert_eq!(lines.fsm, story, "{executor:?}");
    }
}

#[test]
fn every_message_is_recorded_with_its_receiver() {
    for form in [Form::Async, Form::Handler] {
        let fsm = Fsm {
            population: 50,
            talk: Duration::ZERO,
            form,
            ..Fsm::default()
        };
        let lines = watch(Executor::Virtual, fsm);
        assert_eq!(lines.messages.len(), 50 * 5 + 50 * 2, "{form:?}");
        let hellos: BTreeSet<_> = lines
            .messages
            .iter()
            .filter_map(|(receiver, message)| match message {
                Msg::Hello { name } => Some((*receiver, *name)),
                _ => None,
            })
            .collect();
        assert_eq!(hellos.len(), 50, "{form:?}: everybody gets one");
        let first = hellos.first().expect("there are some").0.as_u32();
        assert!(
            hellos
                .iter()
                .all(|(receiver, name)| receiver.as_u32() - first == *name)
        );
    }
}

/// Returns a ring in which each pirate knows the next `each` pirates, in descending order.
fn ring(count: u32, each: u32) -> Network {
    let names = (0..count).map(|i| format!("old{i}")).collect();
    let edges = (0..count).flat_map(|i| (1..=each).rev().map(move |step| (i, (i + step) % count)));
    Network::new(names, edges).expect("a network")
}

// Guarantee: core-85.
#[test]
fn pirates_of_a_network_know_exactly_its_edges() {
    for executor in EXECUTORS {
        for each in [0, 3, 10] {
            let network = ring(50, each);
            let mut expected: Vec<_> = network.edges().collect();
            let fsm = Fsm {
                network: Some(network),
                talk: Duration::ZERO,
                ..Fsm::default()
            };
            expected.sort_unstable();
            assert_eq!(watch(executor, fsm).edges(), expected, "{executor:?}");
        }
    }
}

#[test]
fn full_pirates_of_a_network_stay_as_they_are_however_they_chat() {
    // Chats begin after one millisecond, before all pirates have received their edges.
    let network = ring(20_000, 10);
    let mut expected: Vec<_> = network.edges().collect();
    let chat = Some(Duration::from_millis(1));
    let talk = Duration::from_millis(20);
    let fsm = Fsm {
        network: Some(network),
        chat,
        talk,
        ..Fsm::default()
    };
    let lines = watch(Executor::Virtual, fsm);
    expected.sort_unstable();
    assert_eq!(lines.edges(), expected);
    assert!(lines.messages.len() > 20_000 * 20, "they did chat");
}

#[test]
fn a_network_brings_its_own_population_and_names() {
    let network = ring(7, 2);
    let fsm = Fsm {
        population: 1,
        network: Some(network),
        talk: Duration::ZERO,
        ..Fsm::default()
    };
    let (report, tally) = fsm::run(Executor::Virtual, &Config::default(), fsm).expect("it runs");
    assert_eq!(tally.expect("the run was not cancelled").pirates, 7);
    assert_eq!(report.spawned, 8);
}
