//! Observers of a run.

use super::{Msg, Tally};
use crate::{Addr, AddrRange, Envelope, Time};
use std::time::Duration;

/// The observer of a run, called by the FSM: prints, files and clocks belong here, because the scenario has none.
///
/// The calls come from the FSM, in this order: [`population`](Watch::population),
/// [`spawned`](Watch::spawned), [`talk`](Watch::talk), [`delivered`](Watch::delivered),
/// [`shutdown`](Watch::shutdown), [`ended`](Watch::ended) for every pirate that answers,
/// [`exit`](Watch::exit). Every method does nothing by default.
pub trait Watch: Clone + Send + Sync + 'static {
    /// What the pirates tell.
    type Pirate: PirateWatch;

    /// What every pirate gets a clone of.
    fn pirate(&self) -> Self::Pirate;

    /// This many pirates are about to be spawned.
    fn population(&self, count: u32) {
        let _ = count;
    }

    /// These are the addresses of the FSM and of the pirates, in the order of their indices.
    fn spawned(&self, at: Time, fsm: Addr, pirates: AddrRange) {
        let _ = (at, fsm, pirates);
    }

    /// The FSM begins to send, and the pirates will talk for this long.
    fn talk(&self, talk: Duration) {
        let _ = talk;
    }

    /// The FSM's first messages, this many, have been handled.
    fn delivered(&self, at: Time, messages: u64) {
        let _ = (at, messages);
    }

    /// The talk is over, the goodbyes begin.
    fn shutdown(&self, at: Time) {
        let _ = at;
    }

    /// The FSM was notified that this pirate has ended.
    fn ended(&self, at: Time, pirate: Addr) {
        let _ = (at, pirate);
    }

    /// All is over.
    fn exit(&self, at: Time, tally: &Tally) {
        let _ = (at, tally);
    }
}

/// The observer that every pirate calls, and the FSM for the messages that it receives.
///
/// Every pirate has a clone. One without a size, such as `()`, costs nothing. The calls come from
/// several threads; those of different pirates in no particular order.
pub trait PirateWatch: Clone + Send + Sync + 'static {
    /// Whether edges are recorded.
    const EDGES: bool;
    /// Whether messages are recorded.
    const MESSAGES: bool;

    /// If [`PirateWatch::EDGES`]: a pirate has got to know a buddy, which it did not know before.
    fn edge(&self, at: Time, pirate: Addr, buddy: Addr) {
        let _ = (at, pirate, buddy);
    }

    /// If [`PirateWatch::MESSAGES`]: a pirate or the FSM was given a message. Its sender is in the
    /// envelope.
    fn message(&self, at: Time, receiver: Addr, message: &Msg, envelope: &Envelope) {
        let _ = (at, receiver, message, envelope);
    }
}

/// Tells nothing.
impl Watch for () {
    type Pirate = ();

    fn pirate(&self) {}
}

/// Tells nothing.
impl PirateWatch for () {
    const EDGES: bool = false;
    const MESSAGES: bool = false;
}
