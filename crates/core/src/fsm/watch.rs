//! Who is told what happens in a run.

use super::{Msg, Tally};
use crate::contract::{Addr, AddrRange, Envelope, Time};
use std::time::Duration;

/// Who is told what happens: prints, files and clocks belong here, the scenario has none.
///
/// Every pirate has a clone of the watch. One without a size, such as `()`, costs nothing. Every
/// method does nothing by default.
///
/// The calls of one run come from several threads. Those that the FSM makes come in this order:
/// [`population`](Watch::population), [`spawned`](Watch::spawned), [`node`](Watch::node) for every
/// pirate, [`talk`](Watch::talk), [`delivered`](Watch::delivered), [`shutdown`](Watch::shutdown),
/// [`exit`](Watch::exit). Those of different pirates come in no particular order; sort by time and
/// pirate for one that repeats.
pub trait Watch: Clone + Send + Sync + 'static {
    /// Whether nodes and edges are told.
    const EDGES: bool;
    /// Whether messages are told.
    const MESSAGES: bool;

    /// From the FSM: so many pirates are about to be spawned.
    fn population(&self, count: u32) {
        let _ = count;
    }

    /// From the FSM: these are the addresses of the FSM and of the pirates, in the order of their
    /// indices.
    fn spawned(&self, fsm: Addr, pirates: AddrRange) {
        let _ = (fsm, pirates);
    }

    /// From the FSM, if [`Watch::EDGES`]: this pirate exists.
    fn node(&self, at: Time, pirate: u32) {
        let _ = (at, pirate);
    }

    /// From the FSM: it begins to send, and the pirates will talk for so long.
    fn talk(&self, talk: Duration) {
        let _ = talk;
    }

    /// From the FSM: these first messages of its own, so many, have been handled.
    fn delivered(&self, messages: u64) {
        let _ = messages;
    }

    /// From the FSM: the talk is over, the goodbyes begin.
    fn shutdown(&self) {}

    /// From the FSM: all is over.
    fn exit(&self, tally: &Tally) {
        let _ = tally;
    }

    /// From a pirate, if [`Watch::EDGES`]: it has got to know a buddy. Both are indices.
    fn edge(&self, at: Time, pirate: u32, buddy: u32) {
        let _ = (at, pirate, buddy);
    }

    /// From a pirate or the FSM, if [`Watch::MESSAGES`]: it was given a message. Who sent it is in
    /// the envelope.
    fn message(&self, at: Time, receiver: Addr, message: &Msg, envelope: &Envelope) {
        let _ = (at, receiver, message, envelope);
    }
}

/// Nobody watches.
impl Watch for () {
    const EDGES: bool = false;
    const MESSAGES: bool = false;
}
