//! Traffic on edges, with rates that are smoothed for display.

use crate::EdgeState;
use corsair_arch::live::{Recent, ResponseTimes};
use rustc_hash::FxHashMap;

/// The time constant of smoothed rates, in seconds of virtual time.
const SMOOTH: f64 = 0.5;

/// Returns the weight of an interval of `seconds` in smoothed rates.
pub(super) fn weight(seconds: f64) -> f64 {
    1.0 - (-seconds / SMOOTH).exp()
}

/// Returns the new smoothed rate, after a rate of `measured` was measured in an interval of this weight.
pub(super) fn smooth(rate: f32, measured: f64, weight: f64) -> f32 {
    let next = f64::from(rate) + (measured - f64::from(rate)) * weight;
    if next < 1e-3 { 0.0 } else { next as f32 }
}

/// Sets the percentiles of an edge, unless there are no times.
fn set_percentiles(state: &mut EdgeState, times: &ResponseTimes) {
    if let Some((p50, p99)) = times.percentiles() {
        (state.p50, state.p99) = (p50 as f32 / 1e9, p99 as f32 / 1e9);
    }
}

/// The traffic on edges, in the order in which the edges first had traffic.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    places: FxHashMap<(u32, u32), usize>,
    edges: Vec<Edge>,
}

#[derive(Debug, Default)]
pub(super) struct Edge {
    pub(super) state: EdgeState,
    /// The rates of answers and errors, per second.
    answered: f32,
    failed: f32,
    /// The counts of the current interval.
    pub(super) new: (u64, u64, u64),
    pub(super) times: ResponseTimes,
}

impl Traffic {
    /// Adds the counts of an interval. The percentiles of an edge between two instances need no copy of the times, because
    /// there is one addition in each interval.
    pub(super) fn add(&mut self, (from, to): (u32, u32), recent: &Recent<'_>, is_only: bool) {
        let place = *self.places.entry((from, to)).or_insert_with(|| {
            let mut new = Edge::default();
            (new.state.from, new.state.to) = (from, to);
            self.edges.push(new);
            self.edges.len() - 1
        });
        let edge = &mut self.edges[place];
        edge.new.0 += recent.sent;
        edge.new.1 += recent.answered;
        edge.new.2 += recent.errors;
        match is_only {
            true => set_percentiles(&mut edge.state, recent.times),
            false => edge.times.merge(recent.times),
        }
    }

    /// Updates the rates after an interval of `seconds`, and passes each edge with times to `each`.
    pub(super) fn end_interval(&mut self, seconds: f64, mut each: impl FnMut(&Edge)) {
        let weight = weight(seconds);
        for edge in &mut self.edges {
            if !edge.times.is_empty() {
                edge.times.compact();
                set_percentiles(&mut edge.state, &edge.times);
                each(edge);
                edge.times.clear();
            }
            let (sent, answered, failed) = std::mem::take(&mut edge.new);
            edge.state.rate = smooth(edge.state.rate, sent as f64 / seconds, weight);
            edge.answered = smooth(edge.answered, answered as f64 / seconds, weight);
            edge.failed = smooth(edge.failed, failed as f64 / seconds, weight);
            // Without answers the quotient is not a number.
            edge.state.errors = (edge.failed / edge.answered).max(0.0);
        }
    }

    pub(super) fn states(&self) -> Vec<EdgeState> {
        self.edges.iter().map(|edge| edge.state).collect()
    }
}
