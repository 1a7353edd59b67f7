//! Workloads of the command and their results: the interface that pirates and services implement.

use crate::console::Console;
use crate::driver::Driver;
use crate::options::Options;
use crate::summary::Subject;
use anyhow::Result;
use corsair::{Addr, Report};
use corsair_observe::{OutputSummary, Recorder, Settings};
use std::borrow::Cow;
use std::sync::Arc;

/// A workload of the command.
pub trait Workload {
    /// The type of the workload's results.
    type Results: Results;

    /// Adds the settings that are specific to this workload.
    ///
    /// # Errors
    /// If the settings are not available.
    fn describe(&self, settings: &mut Settings) -> Result<()>;

    /// Runs the workload. Returns `None` in a process of a distributed run whose part is reported by the first process.
    ///
    /// # Errors
    /// If the run fails.
    fn run(
        self,
        options: &Options,
        recorder: Recorder,
        console: &Arc<Console>,
        driver: &mut impl Driver,
    ) -> Result<Option<(Report, Self::Results)>>;
}

/// The results of a workload.
pub trait Results {
    /// The workload's part of the summary.
    type Summary: Subject;

    /// Returns the name of an actor, given its index in the report and its address.
    fn name(&self, place: usize, actor: Addr) -> Cow<'_, str>;

    /// Returns the files that the workload has written itself.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the workload's part of the summary, and the text printed before it.
    fn summary(self, report: &Report, observed: &OutputSummary) -> (Self::Summary, String);
}
