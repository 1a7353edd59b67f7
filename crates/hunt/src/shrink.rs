//! The smallest plan that still fails, and files that replay it.

use crate::{Failure, FaultPlan, HuntError, RunResult, Subject};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A failure that was shrunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The failure. If any one of its faults is removed, its seed no longer violates the property.
    pub failure: Failure,
    /// The digest of the run with the remaining faults.
    pub digest: u64,
    /// The number of runs that shrinking took.
    pub runs: u32,
}

/// The maximum number of runs for shrinking.
const MOST_RUNS: u32 = 2_000;
/// The number of other seeds that are tried with each smaller plan.
const SEEDS: u64 = 4;

/// Removes faults, weakens the others and shortens the run, while the same property is still
/// violated. Every step is a run.
///
/// # Errors
/// If a run cannot be completed, or the failure does not violate its property.
pub fn shrink(subject: &dyn Subject, failure: &Failure) -> Result<Shrunk, HuntError> {
    let mut shrinker = Shrinker {
        subject,
        runs: 0,
        failure: failure.clone(),
        digest: 0,
    };
    let Some(result) = shrinker.try_run(failure.seed, &failure.plan)? else {
        return Err(HuntError::NotReproduced {
            property: failure.property.clone(),
        });
    };
    shrinker.digest = result.digest;
    loop {
        let mut smaller = false;
        for plan in candidates(&shrinker.failure.plan) {
            if shrinker.runs >= MOST_RUNS {
                break;
            }
            // An earlier candidate may have replaced the plan from which this candidate was made.
            if is_smaller(&plan, &shrinker.failure.plan) && shrinker.accept(&plan)? {
                smaller = true;
                break;
            }
        }
        if !smaller {
            break;
        }
    }
    let Shrinker {
        runs,
        failure,
        digest,
        ..
    } = shrinker;
    Ok(Shrunk {
        failure,
        digest,
        runs,
    })
}

struct Shrinker<'a> {
    subject: &'a dyn Subject,
    runs: u32,
    failure: Failure,
    digest: u64,
}

impl Shrinker<'_> {
    fn try_run(&mut self, seed: u64, plan: &FaultPlan) -> Result<Option<RunResult>, HuntError> {
        self.runs += 1;
        let result = self.subject.run(seed, plan, 1)?;
        let fails = result
            .properties
            .violated()
            .contains(&self.failure.property.as_str());
        Ok(fails.then_some(result))
    }

    /// Accepts the plan if it fails with the seed of the failure, or with one of a few other seeds.
    fn accept(&mut self, plan: &FaultPlan) -> Result<bool, HuntError> {
        for seed in std::iter::once(self.failure.seed).chain(0..SEEDS) {
            if let Some(result) = self.try_run(seed, plan)? {
                self.failure.seed = seed;
                self.failure.plan = plan.clone();
                self.failure.delivered = result.delivered;
                self.digest = result.digest;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns smaller plans: first plans with one fault less, then plans with weaker faults, then
/// shorter plans.
fn candidates(plan: &FaultPlan) -> Vec<FaultPlan> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut FaultPlan)| {
        let mut other = plan.clone();
        change(&mut other);
        if other != *plan && !all.contains(&other) {
            all.push(other);
        }
    };
    with(&|plan| {
        let until = plan.until;
        *plan = FaultPlan {
            until,
            ..FaultPlan::calm(plan.time)
        };
    });
    with(&|plan| plan.partitions.clear());
    with(&|plan| plan.crashes.clear());
    with(&|plan| plan.loss = 0);
    with(&|plan| plan.duplicates = 0);
    with(&|plan| (plan.late, plan.lateness) = (0, 0));
    for index in 0..plan.partitions.len() {
        with(&|plan| {
            plan.partitions.remove(index);
        });
    }
    for index in 0..plan.crashes.len() {
        with(&|plan| {
            plan.crashes.remove(index);
        });
    }
    with(&|plan| plan.delays.clear());
    for index in 0..plan.delays.len() {
        with(&|plan| {
            plan.delays.remove(index);
        });
    }
    for part in [8, 4, 2] {
        with(&|plan| plan.shorten(plan.end() / part));
    }
    with(&|plan| plan.shorten(plan.end() - plan.end() / 4));
    with(&|plan| plan.shorten(plan.end() - plan.end() / 16));
    with(&|plan| plan.loss /= 2);
    with(&|plan| plan.duplicates /= 2);
    with(&|plan| plan.late /= 2);
    with(&|plan| plan.lateness /= 2);
    for index in 0..plan.partitions.len() {
        with(&|plan| {
            let partition = &mut plan.partitions[index];
            partition.until -= (partition.until.saturating_sub(partition.from)) / 2;
        });
        with(&|plan| {
            let partition = &mut plan.partitions[index];
            partition.from += (partition.until.saturating_sub(partition.from)) / 2;
        });
    }
    for index in 0..plan.crashes.len() {
        with(&|plan| plan.crashes[index].down /= 2);
    }
    for index in 0..plan.delays.len() {
        with(&|plan| {
            let delay = &mut plan.delays[index];
            delay.until -= delay.until.saturating_sub(delay.from) / 2;
        });
        with(&|plan| plan.delays[index].by /= 2);
    }
    all
}

/// True if a plan is smaller than another: by the number of faults, then their strength, then the
/// time.
fn is_smaller(plan: &FaultPlan, than: &FaultPlan) -> bool {
    weight(plan) < weight(than)
}

fn weight(plan: &FaultPlan) -> u64 {
    let lengths: u64 = plan
        .partitions
        .iter()
        .map(|partition| u64::from(partition.until.saturating_sub(partition.from)))
        .chain(plan.crashes.iter().map(|crash| u64::from(crash.down)))
        .chain(
            (plan.delays.iter())
                .map(|delay| u64::from(delay.until.saturating_sub(delay.from) + delay.by)),
        )
        .sum();
    let faults = plan.partitions.len() + plan.crashes.len();
    let faults = faults + plan.delays.len();
    let strengths = [plan.loss, plan.duplicates, plan.late, plan.lateness];
    let kinds = strengths.iter().filter(|strength| **strength > 0).count();
    let strengths: u64 = strengths.into_iter().map(u64::from).sum();
    ((faults + kinds) as u64) << 48
        | u64::from(plan.end()) << 24
        | (strengths + lengths).min(0xff_ffff)
}

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
    Length(usize),
}

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
        if text.len() > 1 << 20 {
            return Err(ReplayError::Length(text.len()));
        }
        Ok(serde_json::from_str(text)?)
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
}
