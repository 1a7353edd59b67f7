//! Finds the faults that break the budgets of an architecture, and whether it recovers from them.

use crate::definition::{FaultKind, PlaceFault};
use crate::duration_text::{TimeSpan, duration};
use crate::experiment::{Measurement, measured, run_once};
use crate::plan::SimulateError;
use crate::setup::{Setup, SetupError};
use crate::topology::Topology;
use crate::totals::Totals;
use crate::variant::{DefinitionText, Setting};
use corsair::Config;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A bound on the response times, the errors or the recovery of a run.
///
/// ```
/// use corsair_arch::hunt::Budget;
///
/// let budget: Budget = "p99 < 200 ms".parse()?;
/// assert_eq!(budget.to_string(), "p99 < 200ms");
/// assert!("errors < 1 %".parse::<Budget>().is_ok());
/// assert!("recovers within 60 s".parse::<Budget>().is_ok());
/// assert!("p99 < soon".parse::<Budget>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Budget {
    /// A percentile of the response time, as a fraction from 0 to 1, stays below this time.
    Percentile(f64, TimeSpan),
    /// The share of requests that fail or stay unanswered, from 0 to 1, stays below this.
    Errors(f64),
    /// The time after the last fault from which on all other budgets must hold, until the end of the run.
    Recovers(TimeSpan),
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        let words: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let wrong = |what: String| format!("'{text}' is not a budget: {what}");
        if let Some(time) = words.strip_prefix("recoverswithin") {
            return Ok(Budget::Recovers(time.parse().map_err(wrong)?));
        }
        let Some((name, bound)) = words.split_once('<') else {
            let expected = "expected 'p99 < 200ms', 'errors < 1%' or 'recovers within 60s'";
            return Err(wrong(expected.to_owned()));
        };
        if name == "errors" {
            let number = bound.strip_suffix('%').and_then(|n| n.parse::<f64>().ok());
            return match number {
                Some(percent) if (0.0..=100.0).contains(&percent) => {
                    Ok(Budget::Errors(percent / 100.0))
                }
                _ => Err(wrong(format!(
                    "'{bound}' is not a percentage from 0% to 100%"
                ))),
            };
        }
        let part = match name {
            "p50" => 0.5,
            "p90" => 0.9,
            "p99" => 0.99,
            "p999" => 0.999,
            _ => {
                let expected = "expected p50, p90, p99, p999 or errors";
                return Err(wrong(format!("'{name}' is not measured; {expected}")));
            }
        };
        let limit = duration(bound).map_err(wrong)?;
        let limit = format!("{}ns", limit.as_nanos()).parse().map_err(wrong)?;
        Ok(Budget::Percentile(part, limit))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::Percentile(part, limit) => {
                write!(f, "{} < {limit}", percentile_name(*part))
            }
            Budget::Errors(part) => write!(f, "errors < {}%", part * 100.0),
            Budget::Recovers(time) => write!(f, "recovers within {time}"),
        }
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> String {
        budget.to_string()
    }
}

impl TryFrom<String> for Budget {
    type Error = String;

    fn try_from(text: String) -> Result<Budget, String> {
        text.parse()
    }
}

fn percentile_name(part: f64) -> &'static str {
    match part {
        0.5 => "p50",
        0.9 => "p90",
        0.99 => "p99",
        _ => "p999",
    }
}

/// The reasons why a hunt stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HuntError {
    /// The definition cannot be run.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] SimulateError),
    /// The faults leave no time to recover.
    #[error("the faults end at {0:?}, which is not before the end of the load at {1:?}")]
    NoTime(Duration, Duration),
}

/// The result of a run with some faults.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The measurements of the complete run.
    pub measured: Measurement,
    /// The time from the end of the last fault until the budgets hold for the rest of the run; `None` if they do not
    /// hold at the end.
    pub recovered: Option<Duration>,
    /// The broken budgets, each with its measured value.
    pub broken: Vec<String>,
    /// The digest of the run, equal for equal input.
    pub digest: u64,
}

/// A definition with its run options and budgets.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// The definition of the architecture.
    pub text: DefinitionText,
    /// The run options.
    pub setup: Setup,
    /// The budgets that must hold.
    pub budgets: Vec<Budget>,
}

impl Hunt {
    /// Returns the faults to try, each in the given interval. Every service and every zone is killed, paused and slowed
    /// down, and every zone is cut off. For a service with several instances, a single instance is killed as well.
    ///
    /// # Errors
    /// If the definition cannot be run.
    pub fn faults(&self, at: TimeSpan, lasting: TimeSpan) -> Result<Vec<PlaceFault>, HuntError> {
        let topology = self.setup.topology(&self.text, &[], None)?;
        let fault = |kind| PlaceFault {
            region: None,
            zone: None,
            services: Vec::new(),
            kind,
            at,
            lasting: Some(lasting),
            every: None,
            probability: None,
            share: None,
            factor: None,
            gap: None,
            drain: None,
        };
        let kinds = [FaultKind::Kill, FaultKind::Pause, FaultKind::Slow];
        let mut all = Vec::new();
        for (index, service) in (0..).zip(&topology.services) {
            let services = vec![service.name.clone()];
            let of = topology.instances.iter().filter(|of| of.service == index);
            if of.count() > 1 {
                all.push(PlaceFault {
                    services: services.clone(),
                    share: Some(f64::MIN_POSITIVE),
                    ..fault(FaultKind::Kill)
                });
            }
            all.extend(kinds.map(|kind| PlaceFault {
                services: services.clone(),
                ..fault(kind)
            }));
        }
        let zones: BTreeSet<_> = topology.instances.iter().map(|of| of.at).collect();
        for at in zones.into_iter().filter(|at| at.zone.is_some()) {
            let kinds = kinds.into_iter().chain([FaultKind::Partition]);
            all.extend(kinds.map(|kind| PlaceFault {
                region: Some(at.region_name(&topology.places).to_owned()),
                zone: Some(at.zone_name(&topology.places).to_owned()),
                ..fault(kind)
            }));
        }
        // Faults that the definition refuses are left out, such as faults of services that take no requests.
        all.retain(|fault| self.with(std::slice::from_ref(fault)).is_ok());
        Ok(all)
    }

    fn with(&self, faults: &[PlaceFault]) -> Result<Topology, HuntError> {
        let checked = self.text.with(&[]).map_err(SetupError::Definition)?;
        let mut all = checked.definition().faults.clone();
        all.extend_from_slice(faults);
        let setting = Setting {
            path: "faults".to_owned(),
            value: serde_json::to_value(all)
                .map_err(|error| SetupError::Definition(error.to_string()))?,
        };
        Ok(self.setup.topology(&self.text, &[setting], None)?)
    }

    /// Runs the definition once with these faults in addition to the definition's own faults; `None` if the run was
    /// cancelled.
    ///
    /// # Errors
    /// If the definition does not allow the faults, or the run fails.
    pub fn run(
        &self,
        faults: &[PlaceFault],
        config: &Config,
        seed: u64,
    ) -> Result<Option<Trial>, HuntError> {
        let ends = faults
            .iter()
            .map(|fault| fault.at.nanos() + fault.lasting.map_or(u64::MAX / 2, TimeSpan::nanos));
        let over = Duration::from_nanos(ends.max().unwrap_or(0));
        if over >= self.setup.duration {
            return Err(HuntError::NoTime(over, self.setup.duration));
        }
        let mut plan = self.setup.plan()?;
        let interval = (plan.duration / 50).max(Duration::from_millis(10));
        plan.interval = Some(interval);
        let config = Config {
            traces: false,
            ..config.clone()
        };
        let topology = self.with(faults)?;
        let names: Vec<String> = (topology.services.iter())
            .map(|service| service.name.clone())
            .collect();
        let Some((report, totals)) = run_once(&config, topology, &plan, seed)? else {
            return Ok(None);
        };
        // Services find each other during the warm-up, so recovery is measured after it at the earliest.
        let over = over.max(plan.warm_up);
        // Without a fault there is nothing to recover from.
        let recovered = match faults {
            [] => Some(Duration::ZERO),
            _ => self.recovered(&totals, &names, over, plan.duration),
        };
        let measured = measured(&totals, plan.duration.saturating_sub(plan.warm_up));
        Ok(Some(Trial {
            broken: self.broken(&measured, recovered),
            measured,
            recovered,
            digest: report.digest.unwrap_or(0),
        }))
    }

    fn broken(&self, measured: &Measurement, recovered: Option<Duration>) -> Vec<String> {
        let breaks = |budget: &Budget| match budget {
            Budget::Percentile(part, limit) => {
                let name = percentile_name(*part);
                let columns = measured.columns();
                let value = columns.iter().find(|(column, _)| column.starts_with(name));
                let seconds = value.map_or(0.0, |(_, seconds)| *seconds);
                (seconds * 1e9 >= limit.nanos() as f64)
                    .then(|| format!("{name} {:.0} ms", seconds * 1e3))
            }
            Budget::Errors(part) => (measured.errors >= *part)
                .then(|| format!("errors {:.2} %", measured.errors * 100.0)),
            Budget::Recovers(within) => match recovered {
                None => Some("does not recover".to_owned()),
                Some(time) => (time.as_nanos() > within.nanos().into())
                    .then(|| format!("recovers after {:.1} s", time.as_secs_f64())),
            },
        };
        self.budgets.iter().filter_map(breaks).collect()
    }

    /// Returns the time after the faults from which the entry points keep the budgets in every slice until
    /// the end.
    fn recovered(
        &self,
        totals: &Totals,
        names: &[String],
        over: Duration,
        end: Duration,
    ) -> Option<Duration> {
        let timeline = totals.timeline.as_ref()?;
        let interval = timeline.interval;
        let entries = (timeline.rows())
            .filter(|row| totals.entries.contains_key(&names[row.service as usize]));
        let errors = self.budgets.iter().find_map(|budget| match budget {
            Budget::Errors(part) => Some(*part),
            _ => None,
        });
        let errors = errors.unwrap_or(0.01);
        let mut good_from = over;
        for row in entries {
            let ends = row.begins + interval;
            if row.requests == 0 || ends <= over || ends > end {
                continue;
            }
            let is_slow = self.budgets.iter().any(|budget| match budget {
                Budget::Percentile(part, limit) => {
                    let index = [0.5, 0.9, 0.99].iter().position(|p| p >= part).unwrap_or(2);
                    row.percentiles[index]
                        .is_some_and(|time| time.as_nanos() >= limit.nanos().into())
                }
                _ => false,
            });
            if is_slow || row.errors as f64 >= errors * row.requests as f64 && row.errors > 0 {
                good_from = good_from.max(ends);
            }
        }
        (good_from + interval <= end).then(|| good_from - over)
    }
}

/// Describes a fault in words: `kill mysql from 2s for 1s`.
pub fn describe(fault: &PlaceFault) -> String {
    let kind = match fault.kind {
        FaultKind::Kill => "kill",
        FaultKind::Pause => "pause",
        FaultKind::Slow => "slow down",
        FaultKind::Partition => "cut off",
        FaultKind::Restart => "restart",
    };
    let mut text = kind.to_owned();
    if fault.share.is_some() {
        text += " one instance of";
    }
    match fault.services.is_empty() {
        true => text += " everything",
        false => text = format!("{text} {}", fault.services.join(", ")),
    }
    if let Some(zone) = &fault.zone {
        let region = fault.region.as_deref().unwrap_or("every region");
        text = format!("{text} in {zone} of {region}");
    }
    match fault.lasting {
        Some(lasting) => format!("{text} from {} for {lasting}", fault.at),
        None => format!("{text} from {}", fault.at),
    }
}

/// A hunt's finding as a file, which can be run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The name of the architecture.
    pub arch: String,
    /// The number of regions.
    pub regions: u32,
    /// The percentage of the definition's instances.
    pub population: u32,
    /// The duration of the load.
    pub duration: TimeSpan,
    /// The load; `None` for the load of the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// The seed of the run.
    pub seed: u64,
    /// The budgets that must hold.
    pub budgets: Vec<Budget>,
    /// The faults that break a budget.
    pub faults: Vec<PlaceFault>,
    /// The digest of the run, in hexadecimal.
    pub digest: String,
}
