//! Reasons why actors wait.

use super::address::Addr;
use super::event::{SpanId, Token};
use super::time::Time;
use std::panic::Location;
use std::time::Duration;

/// A wait in a function of the library, such as `sleep` or `ask`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum LibraryWait {
    /// A sleep, which ends at this time.
    Sleep(Token, Time),
    /// A wait for the answer to a request or for its failure. The time-out is due at this time.
    Answer(SpanId, Token, Time),
    /// A wait for the addresses of actors that were requested.
    Spawned(u32),
}

impl LibraryWait {
    /// Returns the timer that ends the wait, and its due time, if there is one.
    pub(crate) fn due(self) -> Option<(Token, Time)> {
        match self {
            LibraryWait::Sleep(token, due) | LibraryWait::Answer(_, token, due) => {
                Some((token, due))
            }
            LibraryWait::Spawned(_) => None,
        }
    }

    /// Returns the timer that ends the wait, if there is one.
    pub(crate) fn timer(self) -> Option<Token> {
        self.due().map(|(token, _)| token)
    }
}

/// The reason why an actor waits, for deadlock reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The actor waits for any event.
    Message,
    /// The actor waits for an event that the selective receive at this source location accepts.
    Selected(&'static Location<'static>),
    /// The actor waits for an answer from another actor.
    Answer(Addr),
    /// The actor sleeps.
    Sleep,
    /// The actor waits for the addresses of actors that it spawns.
    Spawn,
    /// Any other wait.
    Other,
    /// The actor waits for a foreign future that holds its waker, such as a timer or socket of tokio.
    Foreign,
}

/// The reasons why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No answer arrived in time.
    #[error("{to} did not answer within {timeout:?}")]
    TimedOut {
        /// The actor that was asked.
        to: Addr,
        /// The length of the time-out.
        timeout: Duration,
    },
    /// The actor that was asked has ended or never existed.
    #[error("{to} has ended and will not answer")]
    Ended {
        /// The actor that was asked.
        to: Addr,
    },
}
