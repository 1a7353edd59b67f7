//! Runs a check with every strategy.

use corsair_serial::{Chunked, ParallelTasks, ParallelThreads, Pooled, Serial, Strategy};

/// A check that works with any strategy.
pub trait Check {
    fn check<S: Strategy + Sync>(&mut self, strategy: &S);
}

/// Runs the check with every strategy and this number of workers. `Chunked` is run twice: deciding by size, and calling
/// its pool for all values after the first ones.
pub fn strategy(workers: usize, check: &mut impl Check) {
    check.check(&Serial);
    check.check(&ParallelThreads::new(workers));
    check.check(&ParallelTasks::new(workers).unwrap());
    check.check(&Pooled::new(workers).unwrap());
    check.check(&Chunked::new(workers).unwrap());
    check.check(&Chunked::new(workers).unwrap().worth_waking(0));
}
