//! Failures as files that replay them.

use crate::{FaultPlan, Hunt, HuntError, Hunted, RunResult, Subject, Trace, hunt_with};
use corsair::Random;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A failure as a file.
///
/// ```
/// use corsair_hunt::{FaultPlan, Replay};
///
/// let replay = Replay {
///     program: "wal".into(),
///     property: "acknowledged writes are read".into(),
///     seed: 7,
///     plan: FaultPlan::calm(100),
/// };
/// assert_eq!(Replay::from_json(&replay.to_json())?, replay);
/// assert!(Replay::from_json("{\"seed\": 1}").is_err());
/// # Ok::<(), corsair_hunt::ReplayError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The program's name.
    pub program: String,
    /// The property that is violated.
    pub property: String,
    /// The seed of the run.
    pub seed: u64,
    /// The faults of the run.
    pub plan: FaultPlan,
}

/// An error in the text of a replay.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The text is not JSON with the fields of a replay.
    #[error("it is not a replay: {0}")]
    Json(#[from] serde_json::Error),
    /// The text is longer than a replay can be.
    #[error("it has {0} bytes; a replay has at most 1048576")]
    Length(u64),
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The replay does not give the same violation on any number of workers, so it was not written.
    #[error(transparent)]
    Run(#[from] HuntError),
}

/// The maximum length of a replay, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// The numbers of workers with which a replay is verified.
const WORKERS: std::ops::RangeInclusive<usize> = 1..=4;

impl Replay {
    /// Returns the replay as JSON.
    pub fn to_json(&self) -> String {
        // Numbers and strings are always JSON.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Reads a replay.
    ///
    /// # Errors
    /// If the text is not a replay, or is longer than a mebibyte.
    pub fn from_json(text: &str) -> Result<Replay, ReplayError> {
        let length = text.len() as u64;
        if length > MOST_BYTES {
            return Err(ReplayError::Length(length));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Reads a replay from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or its text is not a replay.
    pub fn load(path: &Path) -> Result<Replay, ReplayError> {
        let mut text = String::new();
        let file = File::open(path).map_err(in_file(path))?;
        let mut bounded = file.take(MOST_BYTES + 1);
        bounded.read_to_string(&mut text).map_err(in_file(path))?;
        Replay::from_json(&text)
    }

    /// Writes the replay to a file. The text is first written beside the file, read, and run on 1 to 4 workers; only if
    /// every run violates the property with the same digest, the file is replaced.
    ///
    /// # Errors
    /// If the file cannot be written, or a run differs.
    pub fn save(&self, subject: &dyn Subject, path: &Path) -> Result<(), ReplayError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".unverified");
        let beside = PathBuf::from(beside);
        let write = || {
            let mut file = File::create(&beside)?;
            file.write_all(self.to_json().as_bytes())?;
            file.sync_all()
        };
        let saved = write().map_err(in_file(&beside)).and_then(|()| {
            Replay::load(&beside)?.verify(subject)?;
            std::fs::rename(&beside, path).map_err(in_file(path))
        });
        if saved.is_err() {
            // The error of the run or of the file is the one to report.
            let _ = std::fs::remove_file(&beside);
        }
        saved
    }

    /// Runs the replay on 1 to 4 workers, and returns the digest of the runs.
    ///
    /// # Errors
    /// If a run does not violate the property, or the digests differ.
    pub fn verify(&self, subject: &dyn Subject) -> Result<u64, HuntError> {
        let mut first = None;
        for workers in WORKERS {
            let digest = self.run(subject, workers)?.digest;
            if *first.get_or_insert(digest) != digest {
                return Err(HuntError::NotReproduced {
                    property: self.property.clone(),
                });
            }
        }
        Ok(first.unwrap_or(0))
    }

    /// Runs the replay on `workers` workers, and returns its result; the digest does not depend on
    /// `workers`.
    ///
    /// # Errors
    /// If the run cannot be completed, or the property is not violated.
    pub fn run(&self, subject: &dyn Subject, workers: usize) -> Result<RunResult, HuntError> {
        let result = subject.run(self.seed, &self.plan, workers)?;
        match result
            .properties
            .violated()
            .contains(&self.property.as_str())
        {
            true => Ok(result),
            false => Err(HuntError::NotReproduced {
                property: self.property.clone(),
            }),
        }
    }

    /// Searches for the violation in runs that resemble the replay: the faults of its plan, at the same times or up to
    /// a twentieth of the run earlier or later, with other seeds.
    ///
    /// A seed gives the same run only as long as the program is unchanged. For real programs that means the same
    /// executable, so after a rebuild the plan is what remains of a failure. Use the plan as it was found, because a
    /// shrunk plan suits only its seed.
    ///
    /// # Errors
    /// If a run cannot be completed.
    pub fn search(
        &self,
        subject: &dyn Subject,
        hunt: &Hunt,
        progress: impl FnMut(&Hunted),
    ) -> Result<Hunted, HuntError> {
        let near = Near {
            subject,
            plan: &self.plan,
        };
        hunt_with(&near, hunt, progress)
    }
}

/// A subject whose plans resemble one plan.
struct Near<'a> {
    subject: &'a dyn Subject,
    plan: &'a FaultPlan,
}

/// The part of a run by which a fault is moved at most.
const MOST_MOVED: u32 = 20;

impl Subject for Near<'_> {
    fn name(&self) -> &'static str {
        self.subject.name()
    }

    fn nodes(&self) -> u32 {
        self.subject.nodes()
    }

    fn time(&self) -> u32 {
        self.subject.time()
    }

    fn loses_disks(&self) -> bool {
        self.subject.loses_disks()
    }

    fn draw(&self, random: &mut Random, _: u32) -> FaultPlan {
        let mut plan = self.plan.clone();
        if random.below(2) == 0 {
            let (most, end) = (plan.time / MOST_MOVED, plan.last_fault());
            for fault in &mut plan.faults {
                *fault = fault.earlier(random.below(most + 1));
                *fault = fault.later(random.below(most + 1), end);
            }
        }
        plan
    }

    fn run(&self, seed: u64, plan: &FaultPlan, workers: usize) -> Result<RunResult, HuntError> {
        self.subject.run(seed, plan, workers)
    }

    fn trace(&self, seed: u64, plan: &FaultPlan) -> Result<Trace, HuntError> {
        self.subject.trace(seed, plan)
    }
}

fn in_file(path: &Path) -> impl Fn(std::io::Error) -> ReplayError {
    let path = path.to_owned();
    move |source| ReplayError::File {
        path: path.clone(),
        source,
    }
}
