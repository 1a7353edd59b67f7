//! The contenders, and the interface that they implement.

mod actix;
mod corsair;
mod go;
mod kameo;
mod nexosim;
mod ractor;
mod tokio;

use versus::{Load, Run};

/// The capacity of bounded mailboxes: more than the six messages of a run.
const MAILBOX: usize = 16;

/// A runtime that does the work of the [`versus`] library.
pub trait Contender: Sync {
    /// Returns the name of the contender in the table and on the command line.
    fn name(&self) -> &'static str;

    /// Makes sure that the contender can run on this machine, and builds it if necessary.
    ///
    /// # Errors
    /// Names the missing program and the command that installs it.
    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }

    /// Runs the load in a separate process.
    ///
    /// # Errors
    /// The reason why the load could not be run.
    fn run(&self, load: Load) -> Result<Run, String>;
}

/// Returns all contenders, in the order of the table.
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

/// Returns the number of cores, which contenders with a choice use as their number of threads.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
