//! The memory of a run in virtual time: live actors and what is on its way, and
//! nothing of what has been. Programs of their own, because they look at the whole process.

use corsair::{Config, Message};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

#[derive(Message)]
pub enum Note {
    Number(u32),
}

pub fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    }
}

/// Bytes of this process in memory now; 0 where the system does not tell.
pub fn resident() -> u64 {
    corsair::resident_memory().unwrap_or(0)
}

/// The maximum memory in the first tenth of a run, and in the rest of it.
#[derive(Clone, Default)]
pub struct Peaks(pub Arc<Mutex<(u64, u64)>>);

impl Peaks {
    /// Looks at the memory, `done` parts of `all` into the run.
    pub fn look(&self, done: u64, all: u64) {
        let now = resident();
        let mut peaks = self.0.lock().unwrap();
        if done * 10 <= all {
            peaks.0 = peaks.0.max(now);
        } else {
            peaks.1 = peaks.1.max(now);
        }
    }

    /// By how many bytes the later peak is higher.
    pub fn growth(&self) -> u64 {
        let (early, late) = *self.0.lock().unwrap();
        assert!(early > 0 && late > 0 || !cfg!(target_os = "linux"));
        late.saturating_sub(early)
    }
}
