//! Acknowledgements on their way to the log: only the furthest of each session, many in one entry.
//!
//! They are written a moment after they come. If the node is killed in between, or the session
//! goes on at another node, messages come again, with the same sequences.

use crate::command::{Acknowledgement, Command};
use crate::model::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an acknowledgement may wait.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// As many go into one entry of the log.
const TOGETHER: usize = 1024;

/// An acknowledgement as it comes.
pub(crate) type Acked = Acknowledgement;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Acknowledgements {
    waiting: Mutex<HashMap<SessionId, Acked>>,
}

impl Acknowledgements {
    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionId, Acked>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one, or several back that could not be written.
    pub fn note(&self, acked: Acked) {
        let mut waiting = self.waiting();
        let furthest = waiting.entry(acked.session).or_insert(acked);
        furthest.sequence = furthest.sequence.max(acked.sequence);
    }

    /// How far a session has come that is not written yet; 0 if all is.
    pub fn of(&self, session: SessionId) -> u64 {
        self.waiting()
            .get(&session)
            .map_or(0, |acked| acked.sequence)
    }

    /// What is to be written now.
    pub fn take(&self) -> Vec<Command> {
        let waiting = std::mem::take(&mut *self.waiting());
        let all: Vec<_> = waiting.into_values().collect();
        all.chunks(TOGETHER)
            .map(|some| Command::Acknowledge(some.to_vec()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::UserId;

    #[test]
    fn only_the_furthest_of_a_session_is_written() {
        let all = Acknowledgements::default();
        let (user, session) = (UserId(1), SessionId([1; 16]));
        for sequence in [3, 9, 4] {
            all.note(Acked {
                user,
                session,
                sequence,
            });
        }
        assert_eq!(all.of(session), 9);
        let furthest = Acked {
            user,
            session,
            sequence: 9,
        };
        assert_eq!(all.take(), [Command::Acknowledge(vec![furthest])]);
        assert_eq!(all.of(session), 0);
        assert_eq!(all.take(), []);
    }
}
