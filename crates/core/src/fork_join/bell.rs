//! Waking of sleeping workers.

use crate::sync::lock;
use std::fmt;
use std::sync::{Condvar, Mutex, PoisonError};

/// The bell of a worker. Ringing the bell wakes the worker, or prevents its next sleep.
///
/// The bell belongs to a worker, not to a thread, because a worker changes threads when its recursion outgrows a stack.
pub(super) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    pub(super) fn new() -> Bell {
        Bell {
            rung: Mutex::new(false),
            heard: Condvar::new(),
        }
    }

    /// Sleeps until the bell is rung, unless it was rung since the last sleep.
    pub(super) fn wait(&self) {
        let rung = lock(&self.rung);
        let mut rung = self
            .heard
            .wait_while(rung, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }

    pub(super) fn ring(&self) {
        *lock(&self.rung) = true;
        self.heard.notify_one();
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}
