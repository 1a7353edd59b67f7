//! Errors of a paused run.

use crate::contract::{Addr, Time};

/// The reasons why the state of an actor cannot be inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// No actor has this address, or the actor does not exist yet.
    #[error("there is no actor at {who}; Simulation::actors lists the live actors")]
    NoActor {
        /// The address that was given.
        who: Addr,
    },
    /// The actor waits for its first event.
    #[error("{who} has not begun: its state is created when its first event arrives")]
    NotBegun {
        /// The address of the actor.
        who: Addr,
    },
    /// The actor has ended.
    #[error("{who} has ended, and its state was dropped")]
    Ended {
        /// The address of the actor.
        who: Addr,
    },
    /// The actor's state has another type.
    #[error(
        "the state of {who} has the type {is}, not {asked}; the variables of an async body cannot be inspected"
    )]
    OtherType {
        /// The address of the actor.
        who: Addr,
        /// The name of the state's actual type.
        is: &'static str,
        /// The name of the requested type.
        asked: &'static str,
    },
}

/// The reasons why a message cannot be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// The time has passed.
    #[error("a message cannot arrive at {time}, the simulation is at {now}; choose a later time")]
    Past {
        /// The requested time.
        time: Time,
        /// The current time of the run.
        now: Time,
    },
    /// The run is over.
    #[error("the simulation is over; a message would have no receiver")]
    Over,
    /// All sequence numbers are used.
    #[error(
        "2^32 messages were injected, the maximum of one run; send further messages from an actor"
    )]
    TooMany,
}
