//! The memory of a run in virtual time depends on live actors and messages in flight, not on those of the past. These
//! tests are separate programs because they measure the complete process.

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

/// Returns the resident memory of this process in bytes; 0 if the system does not report it.
pub fn resident() -> u64 {
    corsair::resident_memory().unwrap_or(0)
}

/// The maximum memory in the first tenth of a run, and in the other nine tenths.
#[derive(Clone, Default)]
pub struct Peaks(pub Arc<Mutex<(u64, u64)>>);

impl Peaks {
    /// Samples the memory when `done` of `all` steps of the run are complete.
    pub fn look(&self, done: u64, all: u64) {
        let now = resident();
        let mut peaks = self.0.lock().unwrap();
        if done * 10 <= all {
            peaks.0 = peaks.0.max(now);
        } else {
            peaks.1 = peaks.1.max(now);
        }
    }

    /// Returns the difference between the later and the earlier maximum in bytes.
    pub fn growth(&self) -> u64 {
        let (early, late) = *self.0.lock().unwrap();
        assert!(early > 0 && late > 0 || !cfg!(target_os = "linux"));
        late.saturating_sub(early)
    }
}
