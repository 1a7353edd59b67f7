//! Histograms of times, written as a value of each bucket and the count there: none of it gets lost.

use hdrhistogram::Histogram;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Creates a histogram with three significant digits that grows with its values.
pub(crate) fn new() -> Histogram<u64> {
    Histogram::new(3).expect("a histogram may have three digits")
}

pub(crate) fn record(histogram: &mut Histogram<u64>, nanos: u64) {
    histogram
        .record(nanos)
        .expect("a histogram that grows takes any value");
}

pub(crate) fn merge(into: &mut Histogram<u64>, from: &Histogram<u64>) {
    into.add(from)
        .expect("a histogram that grows takes any other");
}

pub(crate) fn serialize<S: Serializer>(
    histogram: &Histogram<u64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let recorded = histogram.iter_recorded();
    let recorded: Vec<(u64, u64)> = recorded
        .map(|step| (step.value_iterated_to(), step.count_at_value()))
        .collect();
    recorded.serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram<u64>, D::Error> {
    let recorded = Vec::<(u64, u64)>::deserialize(from)?;
    let mut histogram = new();
    for (value, count) in recorded {
        histogram.record_n(value, count).map_err(D::Error::custom)?;
    }
    Ok(histogram)
}
