//! Acknowledgements that are not in the log yet. Only the highest of each session is stored, and many are written in
//! one entry.
//!
//! Acknowledgements are written shortly after they arrive. If the node is killed before they are written, or if the
//! session resumes at another node, messages are sent again with the same sequence numbers.

use crate::command::{Acknowledgement, Command};
use crate::model::SessionId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

/// The maximum time for which an acknowledgement waits.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// The maximum number of acknowledgements in one entry of the log.
const TOGETHER: usize = 1024;

/// Acknowledgements that are not in the log yet. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Acknowledgements {
    inner: Mutex<Inner>,
    /// The lock of the task that writes.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: HashMap<SessionId, Acknowledgement>,
    /// Acknowledgements that were submitted to the log but are not known to be applied.
    under_way: HashMap<SessionId, Acknowledgement>,
}

impl Acknowledgements {
    /// Adds an acknowledgement.
    pub fn note(&self, acked: Acknowledgement) {
        further(&mut self.inner.lock().waiting, acked);
    }

    /// Returns the highest acknowledgement of a session that is not known to be applied; 0 if all are applied. Call
    /// this function before you read the index. Then an acknowledgement that is applied between the two calls is in at
    /// least one of the results.
    pub fn of(&self, session: SessionId) -> u64 {
        let inner = self.inner.lock();
        let both = [inner.waiting.get(&session), inner.under_way.get(&session)];
        let sequences = both.into_iter().flatten().map(|acked| acked.sequence);
        sequences.max().unwrap_or(0)
    }

    /// Passes the waiting acknowledgements to `write`, which returns true if a command was applied. Acknowledgements
    /// that were not applied stay in the queue.
    pub async fn flush<F: Future<Output = bool>>(&self, write: impl Fn(Command) -> F) {
        let turn = self.writing.lock().await;
        let all: Vec<Acknowledgement> = {
            let mut inner = self.inner.lock();
            inner.under_way = std::mem::take(&mut inner.waiting);
            inner.under_way.values().copied().collect()
        };
        for some in all.chunks(TOGETHER) {
            let applied = write(Command::Acknowledge(some.to_vec())).await;
            let mut inner = self.inner.lock();
            for acked in some {
                inner.under_way.remove(&acked.session);
                if !applied {
                    further(&mut inner.waiting, *acked);
                }
            }
        }
        drop(turn);
    }
}

fn further(all: &mut HashMap<SessionId, Acknowledgement>, acked: Acknowledgement) {
    let furthest = all.entry(acked.session).or_insert(acked);
    furthest.sequence = furthest.sequence.max(acked.sequence);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::UserId;
    use std::cell::RefCell;

    const SESSION: SessionId = SessionId([1; 16]);

    fn acked(sequence: u64) -> Acknowledgement {
        Acknowledgement {
            user: UserId(1),
            session: SESSION,
            sequence,
        }
    }

    #[tokio::test]
    async fn only_the_furthest_of_a_session_is_written() {
        let all = Acknowledgements::default();
        for sequence in [3, 9, 4] {
            all.note(acked(sequence));
        }
        assert_eq!(all.of(SESSION), 9);
        let written = RefCell::new(Vec::new());
        let write = async |command| {
            // An acknowledgement remains visible until it is applied.
            assert_eq!(all.of(SESSION), 9);
            written.borrow_mut().push(command);
            true
        };
        all.flush(&write).await;
        all.flush(&write).await;
        let furthest = Command::Acknowledge(vec![acked(9)]);
        assert_eq!(written.take(), [furthest]);
        assert_eq!(all.of(SESSION), 0);
    }

    #[tokio::test]
    async fn what_could_not_be_written_waits_again() {
        let all = Acknowledgements::default();
        all.note(acked(5));
        all.flush(async |_| {
            all.note(acked(4));
            false
        })
        .await;
        assert_eq!(all.of(SESSION), 5);
    }
}
