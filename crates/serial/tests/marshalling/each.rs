//! The same check against every strategy.

use corsair_serial::{Chunked, ParallelTasks, ParallelThreads, Pooled, Serial, Strategy};

/// A check that does not know which strategy it is given.
pub trait Check {
    fn check<S: Strategy + Sync>(&mut self, strategy: &S);
}

/// Runs the check against every strategy with this many workers. `Chunked` comes twice: deciding
/// by size, and calling its pool for whatever is left after the first values.
pub fn strategy(workers: usize, check: &mut impl Check) {
    check.check(&Serial);
    check.check(&ParallelThreads::new(workers));
    check.check(&ParallelTasks::new(workers).unwrap());
    check.check(&Pooled::new(workers).unwrap());
    check.check(&Chunked::new(workers).unwrap());
    check.check(&Chunked::new(workers).unwrap().worth_waking(0));
}
