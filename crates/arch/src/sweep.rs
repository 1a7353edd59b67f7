//! Sweeps: runs over a grid of field values of a definition. The result is a file with a line for each run.
//!
//! Lines are in the order of the grid, regardless of the number of concurrent runs. So a sweep that was stopped resumes
//! after the last complete line of its file. Each job of a job array executes one [`Shard`].

mod file;
mod grid;
mod parameters;
mod shard;
mod values;

pub use file::SweepFile;
pub use grid::{Grid, field, typed_field};
pub use parameters::{OutputFormat, SweepParameters};
pub use shard::{FirstLine, LONGEST_FIRST_LINE, Shard};
pub use values::values_of;

use crate::experiment::{Measurement, in_parallel, measure};
use crate::plan::SimulateError;
use crate::setup::{Setup, SetupError};
use crate::variant::{DefinitionText, Setting};
use corsair::Config;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of runs of a sweep.
pub const MOST_RUNS: usize = 1_000_000;

/// The reasons why a sweep could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The values of a field are invalid.
    #[error("{path}: {what}")]
    Values {
        /// The path of the field.
        path: String,
        /// The reason why the values are invalid.
        what: String,
    },
    /// A field is given twice.
    #[error("{0} is set twice; give all of its values at once")]
    Twice(String),
    /// The number of runs is zero or too large.
    #[error("{0} runs are not possible; give 1 to {MOST_RUNS}")]
    Runs(usize),
    /// The first line of a shard's file would be too long.
    #[error("the values of the fields are too long for the first line of a shard's file")]
    FirstLine,
    /// A point of the grid cannot be run.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A run failed.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// The file belongs to another sweep.
    #[error(
        "{} belongs to another sweep or to another shard; name another file, or delete it", .0.display()
    )]
    OtherFile(PathBuf),
    /// The file cannot be read or written.
    #[error("cannot {verb} {}: {source}", file.display())]
    File {
        /// `open`, `read` or `write`.
        verb: &'static str,
        /// The path of the file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// The runs of a sweep, or of a shard, by number.
#[derive(Clone, Debug)]
pub struct Sweep {
    text: DefinitionText,
    setup: Setup,
    grid: Grid,
    shard: Option<Shard>,
}

impl Sweep {
    /// Creates a sweep over all combinations of values of these fields. Each combination runs with `seeds` consecutive
    /// seeds, beginning with the given one.
    ///
    /// # Errors
    /// [`SweepError::Twice`] or [`SweepError::Runs`].
    pub fn new(
        text: DefinitionText,
        setup: Setup,
        fields: Vec<(String, Vec<String>)>,
        seeds: usize,
        first_seed: u64,
        format: OutputFormat,
    ) -> Result<Sweep, SweepError> {
        let described = SweepParameters {
            definition: mark(&format!("{} {}", text.text(), setup.described())),
            fields,
            seeds,
            first_seed,
            format,
        };
        Ok(Sweep {
            grid: Grid::new(described)?,
            text,
            setup,
            shard: None,
        })
    }

    /// Restricts the sweep to this shard.
    ///
    /// # Errors
    /// [`SweepError::FirstLine`].
    pub fn shard(mut self, shard: Shard) -> Result<Sweep, SweepError> {
        if self.grid.head(Some(shard)).len() > LONGEST_FIRST_LINE {
            return Err(SweepError::FirstLine);
        }
        self.shard = Some(shard);
        Ok(self)
    }

    /// Returns the sweep with lines in this format.
    pub fn formatted(mut self, format: OutputFormat) -> Sweep {
        self.grid = self.grid.formatted(format);
        self
    }

    /// Checks that every point of the grid can be run, before the first run is made.
    ///
    /// # Errors
    /// [`SweepError::Setup`].
    pub fn check(&self) -> Result<(), SweepError> {
        self.setup.plan()?;
        for point in 0..self.grid.points() {
            let settings = self.grid.settings(point);
            self.setup.topology(&self.text, &settings, None)?;
        }
        Ok(())
    }

    /// Returns the grid of all combinations.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns the number of runs.
    #[allow(clippy::len_without_is_empty, reason = "a sweep is not a collection")]
    pub fn len(&self) -> usize {
        self.part().runs(self.grid.runs())
    }

    /// Returns the fields and the seed of a run.
    pub fn run(&self, number: usize) -> (Vec<Setting>, u64) {
        let (point, seed) = self.grid.run(self.part().run(number));
        (self.grid.settings(point), seed)
    }

    /// Makes a run. `None` if it was cancelled.
    ///
    /// # Errors
    /// [`SweepError::Setup`] or [`SweepError::Simulate`].
    pub fn measure(
        &self,
        config: &Config,
        number: usize,
    ) -> Result<Option<Measurement>, SweepError> {
        let (settings, seed) = self.run(number);
        let topology = self.setup.topology(&self.text, &settings, None)?;
        let plan = self.setup.plan()?;
        Ok(measure(config, &topology, &plan, seed)?)
    }

    /// Executes all runs that are missing from `made`, on `config.workers` threads, and adds their results to `made`
    /// and to the file. Calls `done` with the number of finished runs after each run. Returns false if the sweep was
    /// cancelled.
    ///
    /// # Errors
    /// If a run or the file fails; finished runs are in the file.
    pub fn make(
        &self,
        config: &Config,
        mut file: Option<&mut SweepFile>,
        made: &mut Vec<Measurement>,
        done: impl Fn(usize) + Sync,
    ) -> Result<bool, SweepError> {
        let workers = config.workers.get();
        while made.len() < self.len() {
            let first = made.len();
            let count = (4 * workers).min(self.len() - first);
            let finished = AtomicUsize::new(first);
            let results = in_parallel(workers, count, |number| {
                let measured = self.measure(config, first + number);
                done(finished.fetch_add(1, Ordering::Relaxed) + 1);
                measured
            });
            let mut failed = None;
            for result in results {
                match result {
                    Ok(Some(measured)) => made.push(measured),
                    other => {
                        failed = Some(other);
                        break;
                    }
                }
            }
            if let Some(file) = &mut file {
                file.add(self, &made[first..])?;
            }
            if let Some(failed) = failed {
                return failed.map(|_| false);
            }
        }
        Ok(true)
    }

    fn part(&self) -> Shard {
        self.shard.unwrap_or(Shard::WHOLE)
    }

    /// Returns the number of a run in the grid.
    fn in_grid(&self, number: usize) -> usize {
        self.part().run(number)
    }

    /// Returns the start of the sweep's file.
    fn head(&self) -> String {
        self.grid.head(self.shard)
    }
}

/// Returns eight hexadecimal digits that identify a text (FNV-1a).
fn mark(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
}
