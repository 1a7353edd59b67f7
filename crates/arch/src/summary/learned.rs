//! The result of learning from traces as JSON.

use crate::learn::{LearnReport, Resemblance, UnseenPolicies};
use serde::Serialize;

/// The result of learning and its similarity to the recording, without the definition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LearnedSummary {
    /// The number of spans that were read.
    pub spans: u64,
    /// The number of traces to which the spans belong.
    pub traces: u64,
    /// The length of the recording in seconds.
    pub recorded_seconds: f64,
    /// The numbers of the definition with their 95 % intervals, if recordings were resampled.
    pub numbers: Vec<NumberRow>,
    /// True if the recorded response times are of traces that were not learned from.
    pub held_out: bool,
    /// Sentences about facts that the traces do not contain.
    pub remarks: Vec<String>,
    /// The policies of calls that the traces cannot show.
    pub unseen: Vec<UnseenPolicies>,
    /// The kinds of requests.
    pub requests: Vec<RequestsSummary>,
}

/// A number of the definition; times are in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "see `Learnt`, whose fields these are")]
pub struct NumberRow {
    pub name: String,
    pub value: f64,
    pub least: f64,
    pub most: f64,
}

/// A kind of requests, recorded and simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "see `Resemblance`, whose fields these are")]
pub struct RequestsSummary {
    pub entry: String,
    pub kind: String,
    pub recorded: u64,
    pub simulated: u64,
    pub distance: f64,
    pub quantiles: Vec<QuantileRow>,
}

/// A quantile of response times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "see `Quantile`, whose fields these are")]
pub struct QuantileRow {
    pub part: f64,
    pub recorded_seconds: f64,
    pub simulated_seconds: f64,
    /// The interval that contains 95 % of the simulations of resampled recordings; null without them.
    pub least_seconds: Option<f64>,
    pub most_seconds: Option<f64>,
}

impl LearnedSummary {
    /// Creates the summary.
    pub fn new(learned: &LearnReport, judged: &[Resemblance]) -> LearnedSummary {
        let requests = judged.iter().map(|kind| RequestsSummary {
            entry: kind.entry.clone(),
            kind: kind.kind.clone(),
            recorded: kind.recorded,
            simulated: kind.simulated,
            distance: kind.distance,
            quantiles: kind
                .quantiles
                .iter()
                .map(|quantile| QuantileRow {
                    part: quantile.part,
                    recorded_seconds: quantile.recorded.as_secs_f64(),
                    simulated_seconds: quantile.simulated.as_secs_f64(),
                    least_seconds: quantile.between.map(|(least, _)| least.as_secs_f64()),
                    most_seconds: quantile.between.map(|(_, most)| most.as_secs_f64()),
                })
                .collect(),
        });
        LearnedSummary {
            spans: learned.spans,
            traces: learned.traces,
            recorded_seconds: learned.lasted.as_secs_f64(),
            numbers: (learned.numbers.iter())
                .map(|number| NumberRow {
                    name: number.name.clone(),
                    value: number.value,
                    least: number.between.0,
                    most: number.between.1,
                })
                .collect(),
            held_out: learned.is_held_out,
            remarks: learned.remarks.clone(),
            unseen: learned.unseen.clone(),
            requests: requests.collect(),
        }
    }
}
