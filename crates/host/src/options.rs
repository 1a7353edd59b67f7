//! The possible results of a test, and its options.

use std::fmt::Debug;

/// The return type of a test function.
pub trait Outcome {
    /// Returns a description of the failure; `None` if the test has passed.
    fn failure(self) -> Option<String>;
}

impl Outcome for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<T, E: std::fmt::Display + Debug> Outcome for Result<T, E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// The options of a test; see [`test`](macro@crate::test).
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of seeds to run, from `first_seed` on.
    pub seeds: u64,
    /// The first seed.
    pub first_seed: u64,
    /// True to run each seed also on 2 and 4 workers, and to fail if a digest differs.
    pub deterministic: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seeds: 1,
            first_seed: 1,
            deterministic: false,
        }
    }
}
