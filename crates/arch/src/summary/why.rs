//! The explanation of a percentile as JSON.

use crate::experiment::Estimate;
use crate::why::{Measure, Part, Why};
use serde::Serialize;

/// An explanation. Times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct WhySummary {
    /// The explained percentile or mean.
    pub of: String,
    /// The value of the percentile or mean.
    pub value: f64,
    /// Half the width of the value's 95 % confidence interval.
    pub value_within: Option<f64>,
    /// The number of explained requests.
    pub requests: u64,
    /// The mean response time of these requests.
    pub mean: f64,
    /// The parts of the response time, the largest first.
    pub contributions: Vec<ContributionRow>,
    /// The changes that were tried, the most helpful first.
    pub changes: Vec<RemedyRow>,
    /// The change that helps most, if any helps for certain.
    pub best: Option<String>,
}

/// A part of the response time.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "see `Contribution`, whose fields these are")]
pub struct ContributionRow {
    pub service: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    pub part: Part,
    pub share: f64,
    pub seconds: f64,
    pub seconds_within: Option<f64>,
}

/// A single change.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "see `Remedy`, whose fields these are")]
pub struct RemedyRow {
    pub what: String,
    pub value: Option<f64>,
    pub difference: Option<f64>,
    pub difference_within: Option<f64>,
    pub errors_difference: Option<f64>,
    pub is_clear: bool,
}

impl WhySummary {
    /// Creates the summary of an explanation.
    pub fn new(of: &Measure, found: &Why) -> WhySummary {
        let number = |of: Estimate| (!of.is_empty()).then_some(of.mean);
        WhySummary {
            of: of.to_string(),
            value: found.value.mean,
            value_within: found.value.within,
            requests: found.requests,
            mean: found.mean,
            contributions: (found.contributions.iter())
                .map(|part| ContributionRow {
                    service: part.service.clone(),
                    called: part.called.clone(),
                    part: part.part,
                    share: part.share,
                    seconds: part.seconds.mean,
                    seconds_within: part.seconds.within,
                })
                .collect(),
            changes: (found.remedies.iter())
                .map(|remedy| RemedyRow {
                    what: remedy.what.clone(),
                    value: number(remedy.value),
                    difference: number(remedy.difference),
                    difference_within: remedy.difference.within,
                    errors_difference: number(remedy.errors),
                    is_clear: remedy.difference.is_clear(),
                })
                .collect(),
            best: found.best().map(|best| best.what.clone()),
        }
    }
}
