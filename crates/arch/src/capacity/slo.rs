//! Service-level objectives: limits of response times and errors, for all requests or one kind.

use crate::duration_text::TimeSpan;
use crate::nearest::did_you_mean;
use crate::topology::Topology;
use crate::totals::{EntryTotals, Totals};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A service-level objective, such as `p99 < 100ms`, `mean < 20ms` or `errors < 1%`, or one for a kind of request:
/// `cart.list p95 < 80ms`.
///
/// ```
/// use corsair_arch::Slo;
///
/// let slo: Slo = "cart.list p95 < 80ms".parse()?;
/// assert_eq!(slo.to_string(), "cart.list p95 < 80ms");
/// assert!("cart.list p95".parse::<Slo>().is_err());
/// # Ok::<(), corsair_arch::SloError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// The kind of request; `None` for all requests, at the slowest entry point.
    pub kind: Option<String>,
    /// The measured quantity.
    pub measure: SloMeasure,
    /// The upper limit: seconds, or a share of the requests.
    pub most: f64,
}

/// The quantity of a service-level objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloMeasure {
    /// The response time that this fraction of the requests, from 0 to 1, does not exceed. Unanswered requests count
    /// with the time for which they have waited.
    Percentile(f64),
    /// The mean response time.
    Mean,
    /// The share of requests that fail or stay unanswered.
    Errors,
}

/// An error in the text of a service-level objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SloError(String);

const EXAMPLES: &str =
    "write for example 'p99 < 100ms', 'mean < 20ms', 'errors < 1%' or 'cart.list p95 < 80ms'";

impl SloError {
    pub(crate) fn new(what: String) -> SloError {
        SloError(what)
    }
}

impl Slo {
    /// Returns the usual objectives: a limit of the 99th percentile, and a limit of errors.
    pub fn usual(limit: Duration, errors: f64) -> Vec<Slo> {
        let all = |measure, most| Slo {
            kind: None,
            measure,
            most,
        };
        vec![
            all(SloMeasure::Percentile(0.99), limit.as_secs_f64()),
            all(SloMeasure::Errors, errors),
        ]
    }

    /// True for a response time, false for errors.
    pub fn is_time(&self) -> bool {
        self.measure != SloMeasure::Errors
    }

    /// Checks that the load has requests of the objective's kind.
    ///
    /// # Errors
    /// If the load lacks the kind of request that the objective names.
    pub fn check(&self, topology: &Topology) -> Result<(), SloError> {
        let Some(wanted) = &self.kind else {
            return Ok(());
        };
        let loads = topology
            .services
            .iter()
            .filter_map(|service| service.load.as_ref());
        let kinds: Vec<&str> = loads.flat_map(|load| load.kind_names()).collect();
        if kinds.iter().any(|kind| is_same_kind(wanted, kind)) {
            return Ok(());
        }
        let meant = match did_you_mean(wanted, kinds.iter().copied()) {
            meant if meant.is_empty() && kinds.is_empty() => {
                "; the load has no kinds of requests: give --load with requests".to_owned()
            }
            meant if meant.is_empty() => format!("; expected one of {}", kinds.join(", ")),
            meant => meant,
        };
        Err(SloError(format!(
            "the load has no kind of request '{}'{meant}",
            wanted.escape_debug()
        )))
    }

    /// Returns the measured value of the objective in a run; NaN if there were no requests.
    pub(crate) fn value(&self, totals: &Totals) -> f64 {
        match &self.kind {
            None => {
                let entries = totals.entries.values();
                entries.map(|entry| self.of(entry)).fold(f64::NAN, f64::max)
            }
            Some(wanted) => self.of(&of_kind(totals, wanted)),
        }
    }

    /// Returns the number of requests from which the value is computed.
    pub(crate) fn requests(&self, totals: &Totals) -> u64 {
        match &self.kind {
            None => totals.requests(),
            Some(wanted) => of_kind(totals, wanted).requests,
        }
    }

    fn of(&self, entry: &EntryTotals) -> f64 {
        let has_times = !entry.times.is_empty() || !entry.ages.is_empty();
        match self.measure {
            SloMeasure::Percentile(part) if has_times => entry.percentile(part).time.as_secs_f64(),
            SloMeasure::Mean => entry.times.mean().map_or(f64::NAN, |nanos| nanos / 1e9),
            SloMeasure::Errors if entry.requests > 0 => {
                (entry.errors + entry.unanswered()) as f64 / entry.requests as f64
            }
            _ => f64::NAN,
        }
    }
}

/// Returns the totals of a kind of request over all entry points.
fn of_kind(totals: &Totals, wanted: &str) -> EntryTotals {
    let kinds = totals.entries.values().flat_map(|entry| &entry.kinds);
    let mut sum = EntryTotals::default();
    for (_, totals) in kinds.filter(|(kind, _)| is_same_kind(wanted, kind)) {
        sum.add(totals);
    }
    sum
}

/// True if a name means a kind of request: `list` matches `cart.list`.
pub(crate) fn is_same_kind(wanted: &str, kind: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.ends_with('.'))
    };
    wanted == kind || ends(kind, wanted) || ends(wanted, kind)
}

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Slo, SloError> {
        let unclear = || {
            SloError(format!(
                "'{}' is not an objective; {EXAMPLES}",
                text.escape_debug()
            ))
        };
        let (left, right) = text.split_once('<').ok_or_else(unclear)?;
        let right = right.trim_start_matches('=').trim();
        let mut words = left.split_whitespace().rev();
        let measure = words.next().ok_or_else(unclear)?;
        let kind = words.next().map(str::to_owned);
        if words.next().is_some() {
            return Err(unclear());
        }
        let measure = match measure {
            "mean" => SloMeasure::Mean,
            "errors" => SloMeasure::Errors,
            percentile => {
                let number = percentile.strip_prefix('p').and_then(|n| n.parse().ok());
                let number: f64 = number.ok_or_else(unclear)?;
                if !(number > 0.0 && number < 100.0) {
                    return Err(SloError(format!(
                        "'{percentile}' is not a percentile; write a number above 0 and below 100, such as p99.9"
                    )));
                }
                SloMeasure::Percentile(number / 100.0)
            }
        };
        let most = match measure {
            SloMeasure::Errors => {
                let (number, factor) = match right.strip_suffix('%') {
                    Some(percent) => (percent.trim(), 0.01),
                    None => (right, 1.0),
                };
                let share = number.parse::<f64>().ok().map(|number| number * factor);
                let share = share.filter(|share| (0.0..=1.0).contains(share));
                share.ok_or_else(|| {
                    let right = right.escape_debug();
                    SloError(format!(
                        "'{right}' is not a share of requests; write for example 1% or 0.01"
                    ))
                })?
            }
            _ => {
                let time: TimeSpan = right.parse().map_err(SloError)?;
                if time.0.is_zero() {
                    return Err(SloError(
                        "no request takes 0s; give a longer time".to_owned(),
                    ));
                }
                time.0.as_secs_f64()
            }
        };
        Ok(Slo {
            kind,
            measure,
            most,
        })
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind} ")?;
        }
        match self.measure {
            // Two digits more than a float prints exactly: 99.9, not 99.90000000000001.
            SloMeasure::Percentile(part) => write!(f, "p{}", (part * 1e8).round() / 1e6)?,
            SloMeasure::Mean => f.write_str("mean")?,
            SloMeasure::Errors => f.write_str("errors")?,
        }
        match self.is_time() {
            true => write!(f, " < {}", TimeSpan(Duration::from_secs_f64(self.most))),
            false => write!(f, " < {}%", (self.most * 1e8).round() / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_and_shown_alike() {
        for text in [
            "p99 < 100ms",
            "p99.9 < 1s",
            "mean < 20ms",
            "errors < 0.1%",
            "cart.list p95 < 80ms",
            "list errors < 5%",
        ] {
            assert_eq!(text.parse::<Slo>().unwrap().to_string(), text);
        }
        let same: Slo = " cart.list  p95<=80ms".parse().unwrap();
        assert_eq!(same, "cart.list p95 < 80ms".parse().unwrap());
        assert_eq!("errors < 0.05".parse::<Slo>().unwrap().most, 0.05);
    }

    #[test]
    fn what_is_no_objective_is_refused_with_examples() {
        for (text, said) in [
            ("p99", "'p99' is not an objective; write for example"),
            ("p99 > 5ms", "'p99 > 5ms' is not an objective"),
            ("a b p99 < 5ms", "'a b p99 < 5ms' is not an objective"),
            ("p100 < 5ms", "'p100' is not a percentile"),
            ("p99 < 5", "'5' "),
            ("p99 < 0s", "no request takes 0s"),
            ("errors < 5ms", "'5ms' is not a share of requests"),
            ("errors < 200%", "'200%' is not a share of requests"),
        ] {
            let error = text.parse::<Slo>().unwrap_err().to_string();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }

    #[test]
    fn the_end_of_a_kinds_name_is_enough() {
        assert!(is_same_kind("list", "cart.list") && is_same_kind("cart.list", "list"));
        assert!(!is_same_kind("ist", "cart.list") && !is_same_kind("cart.list", "other.list"));
    }
}
