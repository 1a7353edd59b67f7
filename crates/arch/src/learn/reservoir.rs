//! A bounded sample of the traces that a collector receives.
//!
//! The kind of a trace is the service and the operation of its root span. Of each kind a uniform sample is kept: the
//! traces whose hashed ids are smallest. Each span of a kept trace contains the number of traces of its kind that it
//! stands for, so that rates and weights describe all requests. Rare kinds are kept completely.

use super::Recording;
use super::names::Names;
use super::read::{Span, SpanSet};
use corsair::Random;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};

/// The maximum number of spans: about 500 MB with their index.
const MOST_SPANS: usize = 4_000_000;

/// The maximum number of spans of a trace; further spans are dropped.
const MOST_OF_TRACE: usize = 10_000;

/// The maximum number of different names; further ones become one.
const MOST_NAMES: usize = 100_000;

/// The maximum number of kinds; further ones become one.
const MOST_KINDS: usize = 10_000;
const OTHERS: Kind = (u32::MAX, u32::MAX);

/// The number of dropped traces whose late spans are recognised.
const MOST_DROPPED: usize = 200_000;

/// Parsed spans.
#[derive(Debug, Default)]
pub struct SpanBatch(SpanSet);

impl SpanBatch {
    /// Parses a JSON text: OTLP/JSON, Zipkin's JSON or Jaeger's JSON.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &[u8]) -> Result<SpanBatch, String> {
        let mut spans = SpanSet::default();
        spans.read_bytes(text).map_err(|wrong| wrong.what)?;
        Ok(SpanBatch(spans))
    }
}

/// The service and the operation of a root span.
type Kind = (u32, u32);

#[derive(Debug, Default)]
struct Trace {
    spans: Vec<Span>,
    kind: Option<Kind>,
}

/// The traces of a kind.
#[derive(Debug, Default)]
struct Chosen {
    seen: u64,
    /// The hashes and ids of the kept traces.
    kept: BTreeSet<(u64, u128)>,
}

/// A bounded sample of traces.
#[derive(Debug)]
pub struct Reservoir {
    names: Names,
    /// Spans with a known sampling rate, and the requests that they stand for.
    known: (u64, f64),
    traces: FxHashMap<u128, Trace>,
    kinds: FxHashMap<Kind, Chosen>,
    /// The ids of traces in the order of their first spans.
    order: VecDeque<u128>,
    dropped: FxHashSet<u128>,
    dropped_order: VecDeque<u128>,
    spans: usize,
    most_spans: usize,
    most_of_kind: usize,
    received: u64,
    lost: u64,
}

impl Reservoir {
    /// Creates an empty reservoir that keeps at most this number of traces of each kind.
    pub fn new(most_of_kind: usize) -> Reservoir {
        Reservoir {
            names: Names::default(),
            known: (0, 0.0),
            traces: FxHashMap::default(),
            kinds: FxHashMap::default(),
            order: VecDeque::new(),
            dropped: FxHashSet::default(),
            dropped_order: VecDeque::new(),
            spans: 0,
            most_spans: MOST_SPANS,
            most_of_kind: most_of_kind.max(1),
            received: 0,
            lost: 0,
        }
    }

    /// Returns the number of received spans.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of kept traces.
    pub fn traces(&self) -> usize {
        self.traces.len()
    }

    /// Returns the number of spans of kept traces that were dropped, because their traces were too long.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Adds spans. Drops traces if there are too many.
    pub fn add(&mut self, batch: SpanBatch) {
        let SpanBatch(batch) = batch;
        let numbers = self.names.merge_at_most(&batch.names, MOST_NAMES);
        let number = |name: u32| numbers[name as usize];
        let (known, stand_for) = batch.shares();
        self.known = (self.known.0 + known, self.known.1 + stand_for);
        for span in batch.spans {
            self.add_span(Span {
                service: number(span.service),
                instance: number(span.instance),
                region: number(span.region),
                operation: number(span.operation),
                peer: span.peer.map(number),
                ..span
            });
        }
        while self.spans > self.most_spans {
            self.make_room();
        }
    }

    fn add_span(&mut self, span: Span) {
        self.received += 1;
        if self.dropped.contains(&span.trace) {
            return;
        }
        let trace = self.traces.entry(span.trace).or_default();
        if trace.spans.is_empty() {
            self.order.push_back(span.trace);
            if self.order.len() > 2 * self.traces.len() + 1_000 {
                self.order.retain(|id| self.traces.contains_key(id));
            }
        }
        let trace = self.traces.entry(span.trace).or_default();
        if trace.spans.len() == MOST_OF_TRACE {
            self.lost += 1;
            return;
        }
        trace.spans.push(span);
        self.spans += 1;
        if span.parent != 0 || trace.kind.is_some() {
            return;
        }
        let kind = (span.service, span.operation);
        let is_new = !self.kinds.contains_key(&kind);
        let kind = match is_new && self.kinds.len() >= MOST_KINDS {
            true => OTHERS,
            false => kind,
        };
        trace.kind = Some(kind);
        let chosen = self.kinds.entry(kind).or_default();
        chosen.seen += 1;
        chosen.kept.insert((hash(span.trace), span.trace));
        self.shrink(kind);
    }

    /// Drops the traces of a kind with the largest hashes, until there are few enough.
    fn shrink(&mut self, kind: Kind) {
        while let Some(chosen) = self.kinds.get_mut(&kind)
            && chosen.kept.len() > self.most_of_kind
            && let Some((_, trace)) = chosen.kept.pop_last()
        {
            self.drop_trace(trace);
        }
    }

    fn drop_trace(&mut self, id: u128) {
        let Some(trace) = self.traces.remove(&id) else {
            return;
        };
        self.spans -= trace.spans.len();
        if self.dropped.insert(id) {
            self.dropped_order.push_back(id);
        }
        if self.dropped_order.len() > MOST_DROPPED
            && let Some(oldest) = self.dropped_order.pop_front()
        {
            self.dropped.remove(&oldest);
        }
    }

    /// Drops the older half of the traces without a root span, then halves the traces of each kind.
    fn make_room(&mut self) {
        let before = self.spans;
        self.order.retain(|id| self.traces.contains_key(id));
        let has_no_root = |id: &&u128| self.traces[*id].kind.is_none();
        let rootless: Vec<u128> = self.order.iter().filter(has_no_root).copied().collect();
        for &id in &rootless[..rootless.len().div_ceil(2)] {
            self.drop_trace(id);
        }
        if self.spans > before / 4 * 3 {
            let most = self.kinds.values().map(|kind| kind.kept.len()).max();
            self.most_of_kind = (most.unwrap_or(1) / 2).max(1);
            let kinds: Vec<Kind> = self.kinds.keys().copied().collect();
            kinds.into_iter().for_each(|kind| self.shrink(kind));
        }
        if self.spans == before {
            // Every kind has a single trace: the oldest go.
            let oldest: Vec<u128> = self.order.iter().take(1_000).copied().collect();
            oldest.into_iter().for_each(|id| self.drop_trace(id));
        }
    }

    /// Ends the sample.
    pub fn into_recording(self) -> Recording {
        let mut spans = Vec::with_capacity(self.spans);
        for trace in self.traces.into_values() {
            let chosen = trace.kind.and_then(|kind| self.kinds.get(&kind));
            let weight = chosen.map_or(1.0, |chosen| {
                chosen.seen as f32 / chosen.kept.len().max(1) as f32
            });
            spans.extend(trace.spans.into_iter().map(|span| Span { weight, ..span }));
        }
        Recording {
            spans: SpanSet::from_parts(spans, self.names, self.known),
        }
    }
}

/// Returns a hash of a trace's id, because the ids of some systems are not random.
fn hash(trace: u128) -> u64 {
    Random::new(trace as u64 ^ (trace >> 64) as u64).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(trace: u64, kind: &str, children: u64) -> SpanBatch {
        let spans: Vec<String> = (0..=children)
            .map(|number| {
                let parent = if number == 0 { "" } else { "1" };
                format!(
                    r#"{{"traceId": "{:x}", "id": "{:x}", "parentId": "{parent}", "kind": "SERVER", "name": "{kind}",
                    "timestamp": {}, "duration": 5, "localEndpoint": {{"serviceName": "web"}}}}"#,
                    trace + 1,
                    number + 1,
                    trace * 1_000
                )
            })
            .collect();
        SpanBatch::parse(format!("[{}]", spans.join(",")).as_bytes()).unwrap()
    }

    #[test]
    fn each_kind_keeps_a_sample_that_stands_for_all() {
        let mut reservoir = Reservoir::new(50);
        for trace in 0..1_000 {
            let kind = if trace % 100 == 0 { "rare" } else { "often" };
            reservoir.add(batch(trace, kind, 2));
        }
        assert_eq!((reservoir.received(), reservoir.traces()), (3_000, 60));
        let spans = reservoir.into_recording().spans;
        assert_eq!(spans.spans.len(), 180);
        let weight = |name: &str| {
            let mut of = spans.spans.iter();
            of.find(|span| spans.names.name(span.operation) == name)
                .unwrap()
                .weight
        };
        assert!((weight("often") - 990.0 / 50.0).abs() < 1e-3 && weight("rare") == 1.0);
    }

    #[test]
    fn late_spans_of_dropped_traces_are_dropped() {
        let mut reservoir = Reservoir::new(1);
        reservoir.add(batch(1, "a", 0));
        reservoir.add(batch(2, "a", 0));
        let late = |trace| {
            let mut late = batch(trace, "a", 0);
            late.0.spans[0].parent = 1;
            late
        };
        reservoir.add(late(1));
        reservoir.add(late(2));
        assert_eq!((reservoir.traces(), reservoir.spans), (1, 2));
    }

    #[test]
    fn the_number_of_spans_is_bounded_whatever_arrives() {
        for children in [0, 3, 20_000] {
            for roots in [true, false] {
                let mut reservoir = Reservoir::new(1_000_000);
                reservoir.most_spans = 12_000;
                for trace in 0..if children > 100 { 3 } else { 9_000 } {
                    // Each has its own kind.
                    let mut batch = batch(trace, &format!("kind {trace}"), children);
                    if !roots {
                        batch.0.spans.iter_mut().for_each(|span| span.parent = 7);
                    }
                    reservoir.add(batch);
                    assert!(reservoir.spans <= 12_000);
                    let counted: usize = reservoir.traces.values().map(|t| t.spans.len()).sum();
                    assert_eq!(reservoir.spans, counted);
                }
                assert!(reservoir.traces() > 0);
            }
        }
    }
}
