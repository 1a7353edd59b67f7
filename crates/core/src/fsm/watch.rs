//! Observers of a run.

use super::{Msg, Tally};
use crate::{Addr, AddrRange, Envelope, Time};
use std::time::Duration;

/// The observer of a run, called by the FSM. Output and clocks belong in an observer, because the scenario has none.
///
/// The calls come from the FSM, in this order: [`population`](Watch::population),
/// [`spawned`](Watch::spawned), [`talk`](Watch::talk), [`delivered`](Watch::delivered),
/// [`shutdown`](Watch::shutdown), [`ended`](Watch::ended) for every pirate that answers,
/// [`exit`](Watch::exit). Every method does nothing by default.
pub trait Watch: Clone + Send + Sync + 'static {
    /// The observer of the pirates.
    type Pirate: PirateWatch;

    /// Returns the observer, of which every pirate gets a clone.
    fn pirate(&self) -> Self::Pirate;

    /// Called before `count` pirates are spawned.
    fn population(&self, count: u32) {
        let _ = count;
    }

    /// Called with the addresses of the FSM and of the pirates, in the order of their indices.
    fn spawned(&self, at: Time, fsm: Addr, pirates: AddrRange) {
        let _ = (at, fsm, pirates);
    }

    /// Called when the FSM begins to send; the pirates will talk for this long.
    fn talk(&self, talk: Duration) {
        let _ = talk;
    }

    /// Called when the FSM's first messages have been handled; `messages` is their number.
    fn delivered(&self, at: Time, messages: u64) {
        let _ = (at, messages);
    }

    /// Called when the talk is over and the goodbyes begin.
    fn shutdown(&self, at: Time) {
        let _ = at;
    }

    /// Called when the FSM has learned that this pirate has ended.
    fn ended(&self, at: Time, pirate: Addr) {
        let _ = (at, pirate);
    }

    /// Called at the end of the run.
    fn exit(&self, at: Time, tally: &Tally) {
        let _ = (at, tally);
    }
}

/// The observer that every pirate calls, and that the FSM calls for messages that it receives.
///
/// Every pirate has a clone. An observer of size zero, such as `()`, costs nothing. Calls come from several threads,
/// and calls of different pirates have no particular order.
pub trait PirateWatch: Clone + Send + Sync + 'static {
    /// True if edges are recorded.
    const EDGES: bool;
    /// True if messages are recorded.
    const MESSAGES: bool;

    /// Called if [`PirateWatch::EDGES`] is set: a pirate has a new buddy.
    fn edge(&self, at: Time, pirate: Addr, buddy: Addr) {
        let _ = (at, pirate, buddy);
    }

    /// Called if [`PirateWatch::MESSAGES`] is set: a pirate or the FSM received a message. Its sender is in
    /// the envelope.
    fn message(&self, at: Time, receiver: Addr, message: &Msg, envelope: &Envelope) {
        let _ = (at, receiver, message, envelope);
    }
}

/// Observes nothing.
impl Watch for () {
    type Pirate = ();

    fn pirate(&self) {}
}

/// Observes nothing.
impl PirateWatch for () {
    const EDGES: bool = false;
    const MESSAGES: bool = false;
}
