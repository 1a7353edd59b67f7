//! Listens to the run: tells its stages, takes the time, records what files want.

use super::record::{Change, Received, Records, What};
use crate::console::Console;
use crate::text::GoDuration;
use corsair::fsm::{Msg, Tally, Watch};
use corsair::{Addr, AddrRange, Envelope, Time};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What listens to the one run of this process.
#[derive(Debug)]
pub struct Observer {
    console: Arc<Console>,
    /// Print stages as they come; without it they are printed with the log of messages.
    live: bool,
    changes: Option<Records<Change>>,
    messages: Option<Records<Received>>,
    began: OnceLock<Instant>,
    delivered: OnceLock<Delivered>,
    addresses: OnceLock<(Addr, AddrRange)>,
    tally: OnceLock<Tally>,
}

/// That the first messages have been handled.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// How many there were.
    pub messages: u64,
    /// How long it took by the wall clock, from before the first was sent.
    pub wall: Duration,
}

impl Delivered {
    /// The line that tells it.
    pub fn line(&self) -> String {
        format!(
            "fsm: Delivered {} messages in {}",
            self.messages,
            GoDuration::rounded(self.wall)
        )
    }
}

/// The line that tells the end of the talk.
pub const SHUTDOWN: &str = "fsm: Shutdown";
/// The line that tells the end of all.
pub const EXIT: &str = "fsm: Exit";

static OBSERVER: OnceLock<Observer> = OnceLock::new();

impl Observer {
    /// Makes the observer of this process, which records what is asked for.
    ///
    /// # Panics
    /// If there is one already.
    pub fn install(console: Arc<Console>, changes: bool, messages: bool) -> &'static Observer {
        let observer = Observer {
            console,
            live: !messages,
            changes: changes.then(Records::default),
            messages: messages.then(Records::default),
            began: OnceLock::new(),
            delivered: OnceLock::new(),
            addresses: OnceLock::new(),
            tally: OnceLock::new(),
        };
        assert!(OBSERVER.set(observer).is_ok(), "a process has one run");
        observer_of_the_run()
    }

    /// Every change of the network, in the order of time and pirate.
    pub fn changes(&self) -> Vec<Change> {
        let all = self
            .changes
            .as_ref()
            .map(|changes| changes.take_ordered(|c| (c.at, c.pirate)));
        all.unwrap_or_default()
    }

    /// Every message, in the order of time, receiver and sender.
    pub fn messages(&self) -> Vec<Received> {
        let key = |m: &Received| (m.at, m.to, m.from, m.sequence);
        self.messages
            .as_ref()
            .map(|messages| messages.take_ordered(key))
            .unwrap_or_default()
    }

    /// The addresses of the pirates; none before there are any.
    pub fn pirates(&self) -> AddrRange {
        self.addresses
            .get()
            .map_or(AddrRange::new(Addr::NONE, 0), |&(_, pirates)| pirates)
    }

    /// That the first messages were delivered, if they were.
    pub fn delivered(&self) -> Option<Delivered> {
        self.delivered.get().copied()
    }

    /// The FSM's tally, if it came to one.
    pub fn tally(&self) -> Option<Tally> {
        self.tally.get().copied()
    }

    fn tell(&self, line: &str) {
        if self.live {
            self.console.line(line);
        }
    }
}

fn observer_of_the_run() -> &'static Observer {
    OBSERVER
        .get()
        .expect("the observer is installed before the run begins")
}

/// The watch that pirates carry; it has no size, so a million of them cost nothing.
///
/// What it tells goes to the [`Observer`]. Messages and edges are told only if `RECORD`.
#[derive(Clone, Copy, Debug)]
pub struct Told<const RECORD: bool>;

impl<const RECORD: bool> Watch for Told<RECORD> {
    const EDGES: bool = RECORD;
    const MESSAGES: bool = RECORD;

    fn population(&self, count: u32) {
        observer_of_the_run()
            .console
            .line(format!("fsm: population {count} pirates"));
    }

    fn spawned(&self, fsm: Addr, pirates: AddrRange) {
        let _ = observer_of_the_run().addresses.set((fsm, pirates));
    }

    fn node(&self, at: Time, pirate: u32) {
        if let Some(changes) = &observer_of_the_run().changes {
            changes.push(
                pirate,
                Change {
                    at,
                    pirate,
                    what: What::Began,
                },
            );
        }
    }

    fn talk(&self, talk: Duration) {
        let observer = observer_of_the_run();
        observer.console.line(format!(
            "fsm: Talk amongst yourselves for {}",
            GoDuration(talk)
        ));
        observer.console.talking(talk);
        let _ = observer.began.set(Instant::now());
    }

    fn delivered(&self, messages: u64) {
        let observer = observer_of_the_run();
        let wall = observer
            .began
            .get()
            .map(Instant::elapsed)
            .unwrap_or_default();
        let delivered = Delivered { messages, wall };
        let _ = observer.delivered.set(delivered);
        observer.tell(&delivered.line());
    }

    fn shutdown(&self) {
        observer_of_the_run().tell(SHUTDOWN);
    }

    fn exit(&self, tally: &Tally) {
        let observer = observer_of_the_run();
        let _ = observer.tally.set(*tally);
        observer.tell(EXIT);
    }

    fn edge(&self, at: Time, pirate: u32, buddy: u32) {
        if let Some(changes) = &observer_of_the_run().changes {
            changes.push(
                pirate,
                Change {
                    at,
                    pirate,
                    what: What::Met(buddy),
                },
            );
        }
    }

    fn message(&self, at: Time, receiver: Addr, message: &Msg, envelope: &Envelope) {
        let observer = observer_of_the_run();
        if let Some(messages) = &observer.messages {
            messages.push(
                receiver.as_u32(),
                Received::new(at, receiver, message, envelope),
            );
        }
        if let (Some(changes), Some(&(fsm, pirates)), Msg::Goodbye { .. }) =
            (&observer.changes, observer.addresses.get(), message)
            && receiver == fsm
            && let Some(pirate) = pirates.index_of(envelope.from)
        {
            changes.push(
                pirate,
                Change {
                    at,
                    pirate,
                    what: What::Ended,
                },
            );
        }
    }
}
