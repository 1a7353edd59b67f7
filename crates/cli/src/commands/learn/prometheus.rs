//! Rates and processor times from Prometheus: `GET /api/v1/query_range`.

use super::web::Web;
use anyhow::{Result, anyhow, bail};
use corsair_arch::{LearnReport, MetricSeries};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum size of an answer in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// The number of points of a range. The next constant is the minimum time between two points.
const POINTS: u32 = 60;
const LEAST_STEP: Duration = Duration::from_secs(5);

/// The queries.
#[derive(Debug)]
pub struct Query<'a> {
    pub address: &'a str,
    pub lookback: Duration,
    /// The expression for the rate of requests from outside, per second.
    pub rate: Option<&'a str>,
    /// The expression for the used processors of each service.
    pub cpu: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    data: Data,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    result: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct Series {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Replaces the learned rate by the measured one, and adds the processor time of a request at each service.
///
/// # Errors
/// If Prometheus does not answer, or answers with an error or without numbers.
pub fn apply(query: &Query, learned: &mut LearnReport) -> Result<()> {
    let web = Web::new("--prometheus", query.address, "http://localhost:9090")?;
    if let Some(rate) = query.rate {
        let series = range(&web, query, "--rate", rate)?;
        let [series] = &series[..] else {
            bail!(
                "--rate: the query has {} series; sum them, for example sum(rate(http_requests_total[1m]))",
                series.len()
            );
        };
        let replaced = learned.replace_rate(series);
        replaced.map_err(|what| anyhow!("--rate: {what}"))?;
    }
    if let Some(cpu) = query.cpu {
        let series = range(&web, query, "--cpu", cpu)?;
        let before = learned.numbers.len();
        for one in &series {
            learned.add_processor_time(one);
        }
        if learned.numbers.len() == before {
            let named: Vec<&str> = series
                .iter()
                .flat_map(|one| one.labels.values())
                .map(String::as_str)
                .take(20)
                .collect();
            bail!(
                "--cpu: no label names a learned service; the labels are {}; write for example sum by (service) (rate(process_cpu_seconds_total[1m]))",
                if named.is_empty() {
                    "none".to_owned()
                } else {
                    named.join(", ")
                }
            );
        }
    }
    Ok(())
}

/// Returns the series of an expression in the time of the look-back.
fn range(web: &Web, query: &Query, flag: &str, expression: &str) -> Result<Vec<MetricSeries>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let step = (query.lookback / POINTS).max(LEAST_STEP);
    let text = web.get(
        "/api/v1/query_range",
        &[
            ("query", expression.to_owned()),
            (
                "start",
                now.saturating_sub(query.lookback).as_secs().to_string(),
            ),
            ("end", now.as_secs().to_string()),
            ("step", step.as_secs_f64().to_string()),
        ],
        MOST_BYTES,
    )?;
    let answer: Answer = serde_json::from_slice(&text).map_err(|error| {
        anyhow!(
            "--prometheus {}: the answer is not that of Prometheus: {error}",
            query.address
        )
    })?;
    let series: Vec<MetricSeries> = answer.data.result.into_iter().map(as_series).collect();
    if series.iter().all(|one| one.points.is_empty()) {
        bail!(
            "{flag}: '{expression}' has no values in this time; check it, or give a longer --lookback"
        );
    }
    Ok(series)
}

/// Converts a series; values that are not numbers are left out.
fn as_series(series: Series) -> MetricSeries {
    let points = series.values.iter().filter_map(|(at, value)| {
        let value: f64 = value.parse().ok()?;
        let is_number = value.is_finite() && value >= 0.0 && *at >= 0.0 && at.is_finite();
        is_number.then_some((Duration::try_from_secs_f64(*at).ok()?, value))
    });
    MetricSeries {
        points: points.collect(),
        labels: series.metric,
    }
}
