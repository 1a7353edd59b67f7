//! What pirates tell a session: where they are, and how many messages each has received.

use corsair::fsm::{Msg, PirateWatch, Tally, Watch};
use corsair::{Addr, AddrRange, Envelope, Time};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Counts what a pirate receives, and tells another watch.
#[derive(Debug)]
pub struct Received<P> {
    count: AtomicU32,
    also: P,
}

impl<P> Received<P> {
    /// How many messages it was given; wraps around.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

impl<P: Clone> Clone for Received<P> {
    fn clone(&self) -> Self {
        Received {
            count: AtomicU32::new(self.count()),
            also: self.also.clone(),
        }
    }
}

impl<P: PirateWatch> PirateWatch for Received<P> {
    const EDGES: bool = P::EDGES;
    const MESSAGES: bool = P::MESSAGES;

    fn edge(&self, at: Time, pirate: Addr, buddy: Addr) {
        self.also.edge(at, pirate, buddy);
    }

    #[inline]
    fn received(&self) {
        // Not an atomic addition: a pirate is on one thread at a time.
        self.count
            .store(self.count().wrapping_add(1), Ordering::Relaxed);
        self.also.received();
    }

    fn message(&self, at: Time, receiver: Addr, message: &Msg, envelope: &Envelope) {
        self.also.message(at, receiver, message, envelope);
    }
}

/// Tells a session where the pirates are, and another watch everything.
#[derive(Clone, Debug)]
pub struct PiratesInView<W> {
    also: W,
    pirates: Arc<OnceLock<AddrRange>>,
    tally: Arc<Mutex<Option<Tally>>>,
}

impl<W> PiratesInView<W> {
    pub(super) fn new(also: W) -> PiratesInView<W> {
        PiratesInView {
            also,
            pirates: Arc::default(),
            tally: Arc::default(),
        }
    }

    /// The addresses of the pirates; none before there are any.
    pub(super) fn pirates(&self) -> AddrRange {
        let none = AddrRange::new(Addr::NONE, 0);
        self.pirates.get().copied().unwrap_or(none)
    }

    pub(super) fn tally(&self) -> Option<Tally> {
        *self.tally.lock()
    }
}

impl<W: Watch> Watch for PiratesInView<W> {
    type Pirate = Received<W::Pirate>;

    fn pirate(&self) -> Self::Pirate {
        Received {
            count: AtomicU32::new(0),
            also: self.also.pirate(),
        }
    }

    fn population(&self, count: u32) {
        self.also.population(count);
    }

    fn spawned(&self, at: Time, fsm: Addr, pirates: AddrRange) {
        let _ = self.pirates.set(pirates);
        self.also.spawned(at, fsm, pirates);
    }

    fn talk(&self, talk: Duration) {
        self.also.talk(talk);
    }

    fn delivered(&self, at: Time, messages: u64) {
        self.also.delivered(at, messages);
    }

    fn shutdown(&self, at: Time) {
        self.also.shutdown(at);
    }

    fn ended(&self, at: Time, pirate: Addr) {
        self.also.ended(at, pirate);
    }

    fn exit(&self, at: Time, tally: &Tally) {
        *self.tally.lock() = Some(*tally);
        self.also.exit(at, tally);
    }
}
