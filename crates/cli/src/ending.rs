//! The end of a run: its output files and its summary.

use crate::console::{Console, complain};
use crate::options::Options;
use crate::summary::{ProcessSummary, Summary};
use crate::workload::Results;
use crate::{interrupt, observed, per_actor};
use anyhow::{Context, Result};
use corsair::{Outcome, Report};
use corsair_observe::{Observer, Replacement};
use std::io;
use std::process::ExitCode;

/// The parts of a run that are completed after its end.
pub struct Ending {
    pub observer: Observer,
    pub per_actor: Option<Replacement>,
    /// The exchange statistics of each process, if there are several.
    pub processes: Vec<ProcessSummary>,
}

impl Ending {
    /// Finishes the output files, and prints the summary of a run.
    ///
    /// # Errors
    /// If an output could not be written.
    pub fn finish(
        self,
        options: &Options,
        console: &Console,
        report: &Report,
        results: impl Results,
    ) -> Result<ExitCode> {
        let observed = self.observer.finish()?;
        let mut files = observed::report_losses(&observed);
        if let (Some(file), Some(path)) = (self.per_actor, &options.per_actor) {
            let totals = report.per_actor.iter().enumerate();
            let names = totals.map(|(place, totals)| results.name(place, totals.who));
            per_actor::write(file, names, &report.per_actor).context("--per-actor")?;
            files.push(path.display().to_string());
        }
        files.extend(results.files());
        let profile = options.profile.iter();
        files.extend(profile.map(|path| path.display().to_string()));
        for panic in &report.panics {
            complain(panic);
        }
        let (subject, before) = results.summary(report, &observed);
        let summary = Summary::new(options, report, subject, files).over(self.processes);
        console.print(|out| {
            if options.json {
                serde_json::to_writer(&mut *out, &summary).map_err(io::Error::from)?;
                return writeln!(out);
            }
            write!(out, "{before}{summary}")
        });
        Ok(match report.outcome {
            Outcome::Completed | Outcome::Running => ExitCode::SUCCESS,
            Outcome::Cancelled => ExitCode::from(interrupt::EXIT_CODE),
        })
    }
}
