//! An observer that records the addresses of the pirates for a session.

use corsair::fsm::{Tally, Watch};
use corsair::{Addr, AddrRange, Time};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A watch that records the addresses of the pirates for a session, and passes everything on to another watch. The
/// pirates behave as in a run without a session, because they count nothing for the session.
#[derive(Clone, Debug)]
pub struct PiratesInView<W> {
    also: W,
    pirates: Arc<OnceLock<AddrRange>>,
}

impl<W> PiratesInView<W> {
    pub(super) fn new(also: W) -> PiratesInView<W> {
        PiratesInView {
            also,
            pirates: Arc::default(),
        }
    }

    /// Returns the addresses of the pirates, or an empty range before the pirates are spawned.
    pub(super) fn pirates(&self) -> AddrRange {
        let none = AddrRange::new(Addr::NONE, 0);
        self.pirates.get().copied().unwrap_or(none)
    }
}

impl<W: Watch> Watch for PiratesInView<W> {
    type Pirate = W::Pirate;

    fn pirate(&self) -> Self::Pirate {
        self.also.pirate()
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
        self.also.exit(at, tally);
    }
}
