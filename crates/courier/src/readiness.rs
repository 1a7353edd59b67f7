//! Whether the node could make a write durable just now.
//!
//! Every command that comes out of the log is evidence. If there was none for [`FRESH`], a probe is written: a
//! command that changes nothing and takes the same way through log and index as a message. There is one probe
//! at a time, however many clients ask.

use crate::command::Command;
use crate::inner::Inner;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long a write is evidence.
const FRESH: Duration = Duration::from_secs(5);
/// How long a probe may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Readiness {
    started: Instant,
    last_write: Mutex<Option<Instant>>,
    is_probing: AtomicBool,
    /// Changes when a probe ends.
    probed: watch::Sender<()>,
}

impl Readiness {
    pub fn new() -> Readiness {
        Readiness {
            started: Instant::now(),
            last_write: Mutex::new(None),
            is_probing: AtomicBool::new(false),
            probed: watch::Sender::new(()),
        }
    }

    /// Records that a command became durable just now.
    pub fn record_write(&self) {
        *self.last_write.lock() = Some(Instant::now());
    }

    /// How long ago a command became durable; without any, how long ago the node started.
    fn age(&self) -> Duration {
        self.last_write.lock().unwrap_or(self.started).elapsed()
    }

    fn is_fresh(&self) -> bool {
        self.last_write
            .lock()
            .is_some_and(|last| last.elapsed() < FRESH)
    }
}

impl Inner {
    /// Checks that a write became durable recently, by a probe if need be.
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
    // If it fails, there is no fresh write.
    let _ = node.command(nothing).await;
    node.readiness.is_probing.store(false, Release);
    node.readiness.probed.send_replace(());
}
