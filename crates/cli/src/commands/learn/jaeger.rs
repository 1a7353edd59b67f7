//! Traces from the query API of Jaeger: `GET /api/traces`.

use super::web::Web;
use anyhow::{Result, anyhow, bail};
use corsair_arch::Recording;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The maximum size of an answer in bytes. The next constant is the maximum number of traces in an answer.
const MOST_BYTES: u64 = 256 << 20;
const PAGE: usize = 1_500;

/// The maximum number of queries.
const MOST_QUERIES: usize = 2_000;

/// The query for traces.
#[derive(Debug)]
pub struct Query<'a> {
    pub address: &'a str,
    pub services: &'a [String],
    pub lookback: Duration,
    /// The maximum number of traces of a service.
    pub limit: usize,
}

/// The part of an answer that says how many traces there are.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    data: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    errors: Option<Vec<Fault>>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    #[serde(default)]
    msg: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    #[serde(default, rename = "traceID")]
    trace_id: String,
    #[serde(default)]
    spans: Vec<SpanStart>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpanStart {
    #[serde(default)]
    start_time: u64,
}

#[derive(Debug, Deserialize)]
struct Services {
    #[serde(default)]
    data: Option<Vec<String>>,
}

/// Reads the traces of services. If an answer has the maximum number of traces, the remaining time range is requested
/// again.
///
/// # Errors
/// If Jaeger does not answer, answers with an error, or knows none of the services.
pub fn read(query: &Query) -> Result<Recording> {
    let web = Web::new("--jaeger", query.address, "http://localhost:16686")?;
    let mut recording = Recording::default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_micros() as u64;
    let from = now.saturating_sub(query.lookback.as_micros() as u64);
    // A trace is found for each of its services, and at the end of a page as well as at the start of the next one.
    let mut known = HashSet::new();
    for service in query.services {
        let mut until = now;
        let mut traces = 0;
        let mut queries = 0;
        while traces < query.limit && queries < MOST_QUERIES && from < until {
            queries += 1;
            let limit = PAGE.min(query.limit - traces);
            let text = web.get(
                "/api/traces",
                &[
                    ("service", service.clone()),
                    ("start", from.to_string()),
                    ("end", until.to_string()),
                    ("limit", limit.to_string()),
                ],
                MOST_BYTES,
            )?;
            let wrong = |error: serde_json::Error| {
                anyhow!(
                    "--jaeger {}: the answer is not Jaeger's: {error}",
                    query.address
                )
            };
            let answer: Answer = serde_json::from_slice(&text).map_err(wrong)?;
            if let Some(fault) = answer.errors.iter().flatten().next() {
                bail!("--jaeger {}: {}", query.address, fault.msg);
            }
            let found = answer.data.unwrap_or_default();
            if found.is_empty() {
                break;
            }
            let starts: Vec<Start> = (found.iter())
                .map(|trace| serde_json::from_str(trace.get()))
                .collect::<Result<_, _>>()
                .map_err(wrong)?;
            let new = found.iter().zip(&starts);
            let new = new.filter(|(_, start)| known.insert(start.trace_id.clone()));
            let new: Vec<&str> = new.map(|(trace, _)| trace.get()).collect();
            if !new.is_empty() {
                let text = format!(r#"{{"data":[{}]}}"#, new.join(","));
                let added = recording.add(text.as_bytes());
                added.map_err(|what| anyhow!("--jaeger {}: {what}", query.address))?;
            }
            traces += found.len();
            if found.len() < limit {
                break;
            }
            // Jaeger answers with the newest traces, so the next are older than the oldest of these.
            let begins = starts.iter().map(|trace| {
                let starts = trace.spans.iter().map(|span| span.start_time);
                starts.min().unwrap_or(0)
            });
            match begins.min() {
                Some(oldest) if oldest > from && oldest < until => until = oldest,
                _ => break,
            }
        }
        if traces == 0 {
            return nothing(&web, query, service);
        }
    }
    Ok(recording)
}

/// Explains why there are no traces of a service.
fn nothing(web: &Web, query: &Query, service: &str) -> Result<Recording> {
    let text = web.get("/api/services", &[], MOST_BYTES)?;
    let services = serde_json::from_slice::<Services>(&text).ok();
    let services = services.and_then(|one| one.data).unwrap_or_default();
    let address = query.address;
    if services.iter().any(|known| known == service) {
        bail!(
            "--jaeger {address}: there are no traces of '{service}' in this time; give a longer --lookback"
        );
    }
    let known: Vec<&str> = services.iter().take(20).map(String::as_str).collect();
    bail!(
        "--jaeger {address}: there is no service '{service}'; it has {}",
        match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        }
    );
}
