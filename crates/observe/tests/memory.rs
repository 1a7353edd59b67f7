//! Tests that the memory of an observer is bounded, however many events a run has. This file is separate
//! and has one test: allocations are counted for the whole process.

use corsair::fsm::{self, Fsm, Msg, PirateWatch, Watch, pirate_name};
use corsair::{Addr, AddrRange, Config, Envelope, Executor, Message, Time};
use corsair_observe::{
    Clock, Exit, GraphFormat, Node, Observer, Payload, Population, Recorder, Settings,
};
use corsair_testing::allocations::{Count, Counting};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Debug)]
struct Pirates;

impl Population for Pirates {
    fn name(&self, index: u32) -> Cow<'_, str> {
        pirate_name("fsm", index).into()
    }

    fn node(&self, index: u32) -> Node {
        let name = pirate_name("fsm", index);
        Node {
            container: None,
            full_name: name.clone(),
            name,
            service: "pirate".into(),
            package: "pirate".into(),
            region: "atlantic".into(),
            zone: "bermuda".into(),
        }
    }
}

#[derive(Clone)]
struct Told(Recorder);

impl Watch for Told {
    type Pirate = Told;

    fn pirate(&self) -> Told {
        self.clone()
    }

    fn spawned(&self, at: Time, _: Addr, pirates: AddrRange) {
        self.0.population(at, pirates, Arc::new(Pirates));
    }

    fn ended(&self, at: Time, pirate: Addr) {
        self.0.done(at, pirate, Exit::Normal);
    }
}

impl PirateWatch for Told {
    const EDGES: bool = true;
    const MESSAGES: bool = true;

    fn edge(&self, at: Time, pirate: Addr, buddy: Addr) {
        self.0.edge(at, pirate, buddy);
    }

    fn message(&self, at: Time, receiver: Addr, message: &Msg, envelope: &Envelope) {
        let payload = || Payload::Number(1);
        self.0
            .message(at, receiver, envelope.from, message.kind(), payload);
    }
}

/// The number of pirates, and the interval at which each of them sends a message.
const PIRATES: u32 = 50_000;
const CHAT: Duration = Duration::from_millis(100);

/// Runs pirates that exchange messages for a time. Returns the number of events in their graph, and the maximum memory
/// in use in bytes.
fn run(talk: Duration, observe: bool) -> (u64, u64) {
    let directory = tempfile::tempdir().unwrap();
    let config = fsm::config(Config {
        workers: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    });
    let count = Count::start();
    let mut observer = None;
    let mut recorder = Recorder::off();
    if observe {
        let clock = Clock::Virtual(config.progress.clone());
        let settings = Settings {
            out: directory.path().to_owned(),
            graphs: vec![GraphFormat::Json, GraphFormat::GraphMl, GraphFormat::Gexf],
            messages: Some(Box::new(std::io::sink())),
            kinds: Msg::KINDS,
            ..Settings::new("fsm", clock)
        };
        let started = Observer::start(settings).unwrap();
        recorder = started.recorder();
        observer = Some(started);
    }
    let scenario = Fsm {
        population: PIRATES,
        talk,
        chat: Some(CHAT),
        ..Fsm::default()
    };
    fsm::run(
        Executor::Virtual,
        &config,
        scenario.watched_by(Told(recorder)),
    )
    .unwrap();
    let observed = observer.map(|observer| observer.finish().unwrap());
    let peak = count.stop().peak;
    let events = observed.map_or(0, |observed| observed.files[0].count);
    (events, peak)
}

#[test]
fn a_run_that_tells_more_is_not_kept_in_more_memory() {
    // An upper bound for the waiting records of all files and logs; it does not depend on the length of the run.
    const BOUND: u64 = 100 << 20;
    let talk = Duration::from_secs(2);
    let (_, plain) = run(talk, false);
    let (events, observed) = run(talk, true);
    // Nodes, ends and edges are events; messages are six times as many.
    assert!(events > 6 * u64::from(PIRATES), "{events}");
    let more = observed.saturating_sub(plain);
    assert!(
        more < BOUND,
        "{more} bytes more than the {plain} of the run itself"
    );
}
