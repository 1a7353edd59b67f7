//! Prints the stages of a run on the console, and sends events of the pirates to the recorder.

use super::names::Names;
use super::summary::Delivery;
use crate::console::Console;
use crate::text::GoDuration;
use corsair::fsm::{Msg, PirateWatch, Tally, Watch};
use corsair::{Addr, AddrRange, Envelope, Message, Time};
use corsair_observe::{Exit, Payload, Recorder};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The stages of one run.
#[derive(Clone, Debug)]
pub struct Stages(Arc<StageState>);

#[derive(Debug)]
struct StageState {
    console: Arc<Console>,
    recorder: Recorder,
    names: Names,
    /// The addresses of the FSM and the pirates.
    addresses: OnceLock<(Addr, AddrRange)>,
    began: OnceLock<Instant>,
    delivered: OnceLock<Delivery>,
}

impl Stages {
    /// Creates stages that are printed on the console, or written to the recorder's message log if
    /// there is one.
    pub fn new(console: &Arc<Console>, recorder: &Recorder, names: &Names) -> Stages {
        Stages(Arc::new(StageState {
            console: Arc::clone(console),
            recorder: recorder.clone(),
            names: names.clone(),
            addresses: OnceLock::new(),
            began: OnceLock::new(),
            delivered: OnceLock::new(),
        }))
    }

    /// Returns an observer of the FSM, whose pirates `pirate` observes.
    pub fn with<P: PirateWatch>(&self, pirate: P) -> FsmWatch<P> {
        let stages = self.clone();
        FsmWatch { stages, pirate }
    }

    /// Sets the addresses of the FSM and the pirates of a resumed run.
    pub fn set_addresses(&self, fsm: Addr, pirates: AddrRange) {
        let _ = self.0.addresses.set((fsm, pirates));
    }

    /// Returns the addresses of the FSM and the pirates, once they exist.
    pub fn addresses(&self) -> Option<(Addr, AddrRange)> {
        self.0.addresses.get().copied()
    }

    /// Returns the addresses of the pirates, or an empty range before they are spawned.
    pub fn pirates(&self) -> AddrRange {
        let addresses = self.0.addresses.get();
        addresses.map_or(AddrRange::new(Addr::NONE, 0), |&(_, pirates)| pirates)
    }

    /// Returns the delivery of the first messages, if it is complete.
    pub fn delivered(&self) -> Option<Delivery> {
        self.0.delivered.get().copied()
    }
}

impl StageState {
    /// Records a stage in the message log.
    fn stage(&self, at: Time, line: fmt::Arguments<'_>) {
        match self.addresses.get() {
            Some(&(fsm, _)) if self.recorder.wants_messages() => {
                self.recorder.note(at, fsm, || line.to_string());
            }
            _ => self.console.line(line),
        }
    }
}

/// The observer of the FSM.
#[derive(Clone, Debug)]
pub struct FsmWatch<P> {
    stages: Stages,
    pirate: P,
}

impl<P: PirateWatch> Watch for FsmWatch<P> {
    type Pirate = P;

    fn pirate(&self) -> P {
        self.pirate.clone()
    }

    fn population(&self, count: u32) {
        let console = &self.stages.0.console;
        console.line(format_args!("fsm: population {count} pirates"));
    }

    fn spawned(&self, at: Time, fsm: Addr, pirates: AddrRange) {
        let state = &self.stages.0;
        let _ = state.addresses.set((fsm, pirates));
        state.recorder.name(at, fsm, || "fsm".to_owned());
        let names = Arc::new(state.names.clone());
        state.recorder.population(at, pirates, names);
    }

    fn talk(&self, talk: Duration) {
        let state = &self.stages.0;
        let shown = GoDuration(talk);
        state
            .console
            .line(format_args!("fsm: Talk amongst yourselves for {shown}"));
        state.console.talking(talk);
        let _ = state.began.set(Instant::now());
    }

    fn delivered(&self, at: Time, messages: u64) {
        let state = &self.stages.0;
        let wall = state.began.get().map(Instant::elapsed).unwrap_or_default();
        let seconds = wall.as_secs_f64();
        let _ = state.delivered.set(Delivery { messages, seconds });
        let wall = GoDuration::rounded(wall);
        state.stage(
            at,
            format_args!("fsm: Delivered {messages} messages in {wall}"),
        );
    }

    fn shutdown(&self, at: Time) {
        self.stages.0.stage(at, format_args!("fsm: Shutdown"));
    }

    fn ended(&self, at: Time, pirate: Addr) {
        // Only graphs need the ends. The constant saves a test of the recorder for each pirate.
        if P::EDGES {
            self.stages.0.recorder.done(at, pirate, Exit::Normal);
        }
    }

    fn exit(&self, at: Time, _: &Tally) {
        self.stages.0.stage(at, format_args!("fsm: Exit"));
    }
}

/// An observer of every pirate that records its edges or messages.
#[derive(Clone, Debug)]
pub struct RecordingWatch(pub Recorder);

impl PirateWatch for RecordingWatch {
    const EDGES: bool = true;
    const MESSAGES: bool = true;

    fn edge(&self, at: Time, pirate: Addr, buddy: Addr) {
        self.0.edge(at, pirate, buddy);
    }

    fn message(&self, at: Time, receiver: Addr, message: &Msg, envelope: &Envelope) {
        let payload = || match *message {
            Msg::Hello { .. } => Payload::Actor(receiver),
            Msg::NameDrop { buddy } => Payload::Actor(buddy),
            Msg::GoldCoin(gold) | Msg::Goodbye { gold } => Payload::Number(gold.into()),
            Msg::Chat { period_ms } => Payload::Millis(period_ms.get().into()),
        };
        let kind = message.kind();
        self.0.message(at, receiver, envelope.from, kind, payload);
    }
}
