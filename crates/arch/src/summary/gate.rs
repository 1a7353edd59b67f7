//! The result of a gate as JSON.

use crate::experiment::Estimate;
use crate::gate::{FieldChange, GateReport, ServiceChange, Verdict, reason, verdict_word};
use serde::Serialize;

/// The result of a gate.
#[derive(Clone, Debug, Serialize)]
pub struct GateSummary {
    /// `met`, `missed` or `undecided`.
    pub verdict: &'static str,
    /// The result in one line.
    pub reason: String,
    /// The number of further runs that would decide, if it is known.
    pub more_runs: Option<u64>,
    /// The number of runs of each system.
    pub runs: usize,
    /// The measured duration of each run in seconds.
    pub measured_seconds: f64,
    /// The objectives with their verdicts.
    pub objectives: Vec<JudgedSummary>,
    /// The fields that differ from the system before the change.
    pub changes: Vec<FieldChange>,
    /// The use of services, the largest increase first.
    pub services: Vec<ServiceChange>,
    /// Sentences about assumptions and about parts that were left out.
    pub notes: Vec<String>,
}

/// An objective. Its values are seconds or shares of requests. They are `None` if there were no requests.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "see `Judged`, whose fields these are")]
pub struct JudgedSummary {
    pub slo: String,
    pub verdict: &'static str,
    pub limit: f64,
    pub value: Option<f64>,
    pub value_within: Option<f64>,
    pub base: Option<f64>,
    pub base_within: Option<f64>,
    pub difference: Option<f64>,
    pub difference_within: Option<f64>,
    pub requests: u64,
}

impl GateSummary {
    /// Creates the summary of a report.
    pub fn new(report: &GateReport) -> GateSummary {
        let result = report.result;
        let number = |of: Option<Estimate>| {
            let of = of.filter(|of| !of.is_empty());
            (of.map(|of| of.mean), of.and_then(|of| of.within))
        };
        let objectives = result.objectives.iter().map(|judged| {
            let (value, value_within) = number(Some(judged.value));
            let (base, base_within) = number(judged.base);
            let (difference, difference_within) = number(judged.difference);
            JudgedSummary {
                slo: judged.slo.to_string(),
                verdict: verdict_word(judged.verdict),
                limit: judged.slo.most,
                value,
                value_within,
                base,
                base_within,
                difference,
                difference_within,
                requests: judged.requests,
            }
        });
        GateSummary {
            verdict: verdict_word(result.verdict),
            reason: reason(result, report.base),
            more_runs: match result.verdict {
                Verdict::Undecided(more) => more,
                _ => None,
            },
            runs: result.runs,
            measured_seconds: result.measured.as_secs_f64(),
            objectives: objectives.collect(),
            changes: report.changes.to_vec(),
            services: result.services.clone(),
            notes: report.notes.to_vec(),
        }
    }
}
