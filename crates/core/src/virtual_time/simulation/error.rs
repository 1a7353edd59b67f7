//! Why a paused run does not do what it is asked to.

use crate::contract::{Addr, Time};

/// Why the state of an actor cannot be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// There is no actor at this address, or not yet.
    #[error("there is no actor at {who}; Simulation::actors lists those that live")]
    NoActor {
        /// The address.
        who: Addr,
    },
    /// It waits for its first event.
    #[error("{who} has not begun: its state is made when its first event arrives")]
    NotBegun {
        /// Who.
        who: Addr,
    },
    /// It has ended.
    #[error("{who} has ended, and its state was dropped")]
    Ended {
        /// Who.
        who: Addr,
    },
    /// Its state is of another type.
    #[error("the state of {who} is {is}, not {asked}; what an async body holds cannot be seen")]
    OtherType {
        /// Who.
        who: Addr,
        /// What its type is called.
        is: &'static str,
        /// What the type asked for is called.
        asked: &'static str,
    },
}

/// Why a message cannot be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// Its time has passed.
    #[error("a message cannot arrive at {time}, the simulation is at {now}; choose a later time")]
    Past {
        /// When it was to arrive.
        time: Time,
        /// How far the run has come.
        now: Time,
    },
    /// The run is over.
    #[error("the simulation is over; a message would reach no one")]
    Over,
    /// There are no sequence numbers left.
    #[error(
        "2^32 messages were injected, which is all that have distinct numbers; send further messages from an actor"
    )]
    TooMany,
}
