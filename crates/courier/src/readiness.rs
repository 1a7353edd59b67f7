//! Checks whether the node was able to make a write durable recently.
//!
//! Every command that becomes durable proves it. If there was none for a while, a probe is written: a command that
//! changes nothing and passes through log and index like a message. Only one probe is in progress at a time, however
//! many clients ask.

use parking_lot::Mutex;
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

    /// Checks that a write became durable recently. If necessary, `start_probe` starts a write, whose end is reported
    /// with [`Readiness::end_probe`].
    ///
    /// # Errors
    /// The time since the last durable write.
    pub async fn check(&self, start_probe: impl FnOnce()) -> Result<(), Duration> {
        if self.is_fresh() {
            return Ok(());
        }
        let mut probed = self.probed.subscribe();
        if !self.is_probing.swap(true, AcqRel) {
            start_probe();
        }
        let _ = timeout(PATIENCE, probed.changed()).await;
        match self.is_fresh() {
            true => Ok(()),
            false => Err(self.age()),
        }
    }

    /// Reports the end of a probe.
    pub fn end_probe(&self) {
        self.is_probing.store(false, Release);
        self.probed.send_replace(());
    }
}
