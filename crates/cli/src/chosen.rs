//! The workload that the options choose.

use crate::arch::Services;
use crate::fsm::Pirates;
use crate::options::{Options, WorkloadOptions};
use crate::workload::Workload;
use anyhow::Result;

/// What is done with a workload, whichever it is.
pub trait Purpose {
    /// The result of the purpose.
    type Output;

    /// Uses the workload, or the reason why it cannot run.
    fn fulfil<W: Workload>(self, workload: Result<W>) -> Self::Output;
}

/// Makes the workload that the options choose, for one of `machines` machines that run equal parts of it.
pub fn with_workload<P: Purpose>(options: &Options, machines: u32, purpose: P) -> P::Output {
    match &options.what {
        WorkloadOptions::Pirates(pirates) => {
            purpose.fulfil(Pirates::new(options, pirates, machines))
        }
        WorkloadOptions::Services(services) => purpose.fulfil(Services::new(options, services)),
    }
}
