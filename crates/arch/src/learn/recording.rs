//! Spans from files or from a collector, from which a definition is learned.

use super::invocation::Invocations;
use super::read::{SpanSet, TraceError};
use super::{LearnError, LearnOptions, LearnReport, define, hold_out, resample};
use crate::definition::Definition;
use corsair::Random;
use std::path::PathBuf;
use std::time::Duration;

/// Recorded spans.
///
/// ```
/// let mut recording = corsair_arch::Recording::default();
/// let span = r#"[{"traceId": "a1", "id": "1", "kind": "SERVER", "name": "get", "timestamp": 1000,
///     "duration": 9000, "localEndpoint": {"serviceName": "web"}}]"#;
/// assert_eq!(recording.add(span.as_bytes())?, 1);
/// let learned = recording.learn("shop", &corsair_arch::LearnOptions::default())?;
/// assert_eq!(learned.definition.services[0].name, "web");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Recording {
    pub(super) spans: SpanSet,
}

impl Recording {
    /// The maximum number of resampled recordings.
    pub const MOST_RESAMPLES: usize = 1_000;

    /// Reads files of traces: OTLP/JSON, Zipkin or Jaeger.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read(files: &[PathBuf]) -> Result<Recording, TraceError> {
        Recording::read_with_key(files, None)
    }

    /// Reads files of traces in which an attribute of spans has the key of a request, from which caches are learned. With
    /// `None` these are `cache.key` and the attributes that begin with `db.query.parameter.`.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read_with_key(files: &[PathBuf], key: Option<&str>) -> Result<Recording, TraceError> {
        let spans = SpanSet::read(files, key)?;
        Ok(Recording { spans })
    }

    /// Adds the spans of a JSON text in one of these formats, and returns their number.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn add(&mut self, text: &[u8]) -> Result<usize, String> {
        let before = self.spans.spans.len();
        self.spans.read_bytes(text).map_err(|wrong| wrong.what)?;
        Ok(self.spans.spans.len() - before)
    }

    /// Returns the usual number of resampled recordings: 20, or none for more than 200,000 spans, because a definition is
    /// learned from each.
    pub fn usual_resamples(&self) -> usize {
        if self.spans() > 200_000 { 0 } else { 20 }
    }

    /// Returns the number of spans.
    pub fn spans(&self) -> usize {
        self.spans.spans.len()
    }

    /// Learns a definition.
    ///
    /// # Errors
    /// See [`LearnError`].
    pub fn learn(self, name: &str, options: &LearnOptions) -> Result<LearnReport, LearnError> {
        let mut recorded = self.spans;
        let spans = recorded.spans.len() as u64;
        let mut all = Invocations::join(&recorded);
        recorded.spans = Vec::new();
        all.part_inner(&mut recorded.names);
        let from_outside = |of: &Invocations| of.all.iter().any(|made| made.caller.is_none());
        if !from_outside(&all) {
            return Err(LearnError::NoRequests(spans));
        }
        let traces = all.traces;
        let mut held_out = hold_out(&mut all, options.holdout).filter(&from_outside);
        let sampled = options.sampled.or(recorded.sampled()).unwrap_or(1.0);
        let describe = |of: &mut Invocations| define::describe(&recorded.names, of, name, sampled);
        let described = describe(&mut all);
        let mut random = Random::new(options.seed);
        let blocks = resample::Blocks::of(&all).filter(|_| options.resamples > 0);
        let resampled: Vec<Definition> = blocks
            .iter()
            .flat_map(|blocks| {
                let random = &mut random;
                let drawn: Vec<Definition> = (0..options.resamples)
                    .map(|_| describe(&mut blocks.draw(random)).definition)
                    .collect();
                drawn
            })
            .collect();
        let mut remarks = described.remarks;
        if options.resamples > 0 && resampled.is_empty() {
            remarks.push("there are too few traces for confidence intervals".to_owned());
        }
        Ok(LearnReport {
            numbers: resample::intervals(&described.definition, &resampled),
            resampled,
            is_held_out: held_out.is_some(),
            recorded: match &mut held_out {
                Some(held_out) => describe(held_out).kinds,
                None => described.kinds,
            },
            visited: described.visited,
            unseen: described.unseen,
            definition: described.definition,
            spans,
            traces,
            lasted: Duration::from_nanos(described.lasted),
            remarks,
        })
    }
}
