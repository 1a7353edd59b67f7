//! Points that a node cannot process, for example because of a wrong type or a division by zero.

use super::counter::Counter;
use parking_lot::Mutex;
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Counts the points that a node cannot process, and logs the reason at most once in [`PAUSE`].
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    errors: Counter,
    last: Arc<Mutex<LastFault>>,
}

#[derive(Debug)]
struct LastFault {
    /// `task:node`
    node: String,
    reason: Option<String>,
    logged: Option<Instant>,
    /// The number of points since the last log entry.
    points: usize,
}

/// The minimum time between two log lines.
const PAUSE: Duration = Duration::from_secs(10);

impl Faults {
    /// Creates the counter of a node; `node` is the node's name in the log.
    pub(crate) fn new(node: String) -> Faults {
        Faults {
            errors: Counter::default(),
            last: Arc::new(Mutex::new(LastFault {
                node,
                reason: None,
                logged: None,
                points: 0,
            })),
        }
    }

    /// Counts points that were dropped for this reason.
    pub(crate) fn add(&self, points: usize, reason: &dyn Display) {
        self.errors.add(points);
        let mut last = self.last.lock();
        last.points += points;
        let reason = reason.to_string();
        let now = Instant::now();
        if last.logged.is_none_or(|logged| now - logged >= PAUSE) {
            tracing::warn!("{}: {} points left out: {reason}", last.node, last.points);
            last.logged = Some(now);
            last.points = 0;
        }
        last.reason = Some(reason);
    }

    pub(crate) fn counter(&self) -> Counter {
        self.errors.clone()
    }

    /// Returns the reason why the last point was dropped.
    pub(crate) fn last(&self) -> Option<String> {
        self.last.lock().reason.clone()
    }
}
