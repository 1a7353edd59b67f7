//! Checks whether the node was able to make a write durable recently.
//!
//! Every command that becomes durable proves it. If there was none for a while, a probe is written: a command that
//! changes nothing and passes through log and index like a message. Only one probe is in progress at a time, however
//! many clients ask.

use crate::command::Command;
use crate::inner::Inner;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The time for which a durable write proves that the node is ready.
const FRESH: Duration = Duration::from_secs(5);
/// The same time for a member of a cluster, whose majority may be lost at any time.
const FRESH_MEMBER: Duration = Duration::from_secs(1);
/// The time limit of a probe.
const PATIENCE: Duration = Duration::from_secs(2);

/// The check of durable writes. See the [module](self).
#[derive(Debug)]
pub(crate) struct Readiness {
    started: Instant,
    /// The time for which a durable write proves that the node is ready.
    fresh: Duration,
    last_write: Mutex<Option<Instant>>,
    is_probing: AtomicBool,
    /// A channel that is notified when a probe ends.
    probed: watch::Sender<()>,
}

impl Readiness {
    /// Creates the check of a node. `is_member` is true if the node is a member of a cluster.
    pub fn new(is_member: bool) -> Readiness {
        Readiness {
            started: Instant::now(),
            fresh: if is_member { FRESH_MEMBER } else { FRESH },
            last_write: Mutex::new(None),
            is_probing: AtomicBool::new(false),
            probed: watch::Sender::new(()),
        }
    }

    /// Records that a command became durable just now.
    pub fn record_write(&self) {
        *self.last_write.lock() = Some(Instant::now());
    }

    /// Returns the time since a command became durable, or since the node started.
    fn age(&self) -> Duration {
        self.last_write.lock().unwrap_or(self.started).elapsed()
    }

    fn is_fresh(&self) -> bool {
        self.last_write
            .lock()
            .is_some_and(|last| last.elapsed() < self.fresh)
    }
}

impl Inner {
    /// Checks that a write became durable recently, with a probe if necessary.
    ///
    /// # Errors
    /// The time since the last durable write.
    pub async fn check_writes(self: &Arc<Self>) -> Result<(), Duration> {
        let readiness = &self.readiness;
        if readiness.is_fresh() {
            return Ok(());
        }
        let mut probed = readiness.probed.subscribe();
        if !readiness.is_probing.swap(true, AcqRel) {
            tokio::spawn(probe(self.clone()));
        }
        let _ = timeout(PATIENCE, probed.changed()).await;
        match readiness.is_fresh() {
            true => Ok(()),
            false => Err(readiness.age()),
        }
    }
}

/// Writes a command that changes nothing.
async fn probe(node: Arc<Inner>) {
    let nothing = Command::Acknowledge(Vec::new());
    // If the write fails, the time of the last durable write is unchanged.
    let _ = node.command(nothing).await;
    node.readiness.is_probing.store(false, Release);
    node.readiness.probed.send_replace(());
}
