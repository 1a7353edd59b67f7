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

/// What is simulated.
pub trait Workload {
    /// What it has done when it is over.
    type Results: Results;

    /// Adds to the settings what this workload has of its own.
    ///
    /// # Errors
    /// If it cannot be had.
    fn describe(&self, settings: &mut Settings) -> Result<()>;

    /// Runs it. Returns nothing in a process of a distributed run whose part is reported by the first one.
    ///
    /// # Errors
    /// How the run failed.
    fn run(
        self,
        options: &Options,
        recorder: Recorder,
        console: &Arc<Console>,
        driver: &mut impl Driver,
    ) -> Result<Option<(Report, Self::Results)>>;
}

/// What a workload has done.
pub trait Results {
    /// What the summary says of it.
    type Summary: Subject;

    /// The name of an actor: its place in the report, and its address.
    fn name(&self, place: usize, actor: Addr) -> Cow<'_, str>;

    /// Files that it has written itself.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the summary says of it, and what is printed before that.
    fn summary(self, report: &Report, observed: &OutputSummary) -> (Self::Summary, String);
}
