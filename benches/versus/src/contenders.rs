//! The contenders, and what is asked of one.

mod actix;
mod corsair;
mod go;
mod kameo;
mod nexosim;
mod ractor;
mod tokio;

use versus::{Load, Run};

/// Capacity of a mailbox where it is bounded: more than the six messages of a run.
const MAILBOX: usize = 16;

/// A runtime that does the work of the [`versus`] library.
pub trait Contender: Sync {
    /// Its name in the table and on the command line.
    fn name(&self) -> &'static str;

    /// Makes sure that it can run here, building what is not built yet.
    ///
    /// # Errors
    /// What is missing and what to do about it.
    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }

    /// Does the work, in a process that does nothing else.
    ///
    /// # Errors
    /// Why the work could not be done.
    fn run(&self, load: Load) -> Result<Run, String>;
}

/// All of them, in the order of the table.
pub fn all() -> Vec<&'static dyn Contender> {
    vec![
        &corsair::HANDLER,
        &corsair::HANDLER_1,
        &corsair::ASYNC,
        &corsair::ASYNC_1,
        &corsair::TOKIO,
        &corsair::POOL,
        &tokio::Unbounded,
        &tokio::Bounded,
        &actix::OneThread,
        &actix::ThreadPerCore,
        &ractor::Ractor,
        &kameo::Unbounded,
        &kameo::Bounded,
        &nexosim::Nexosim,
        &go::Buffered,
        &go::Unbuffered,
    ]
}

/// One thread per core, as all contenders with a choice are given.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
