//! Measurements of actors: named counters, gauges, histograms and time series. Merging gives the same bits regardless
//! of which worker recorded which measurement.
//!
//! Measurements are stored as sums of integers, as extremes and as bucket counts, which can be merged in any order.
//! Gauges and series are merged in the order of time and actor, and for one actor in the order of recording.

use super::address::Addr;
use super::buckets::Buckets;
use super::sum::Sum;
use super::time::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// The recorded measurements of a run, by name: see [`Context::count`](crate::Context::count),
/// [`gauge`](crate::Context::gauge), [`observe`](crate::Context::observe) and
/// [`track`](crate::Context::track). In virtual time they are equal for any number of workers.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Probes {
    /// Counters by name.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "interned"))]
    pub counters: BTreeMap<&'static str, u64>,
    /// Values of which only the last one is reported.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "interned"))]
    pub gauges: BTreeMap<&'static str, Gauge>,
    /// Distributions of values.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "interned"))]
    pub histograms: BTreeMap<&'static str, Histogram>,
    /// Time series by name.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "interned"))]
    pub series: BTreeMap<&'static str, Series>,
}

/// Reads a map whose keys are names, written by another process. Each distinct name is leaked once, to get a `&'static
/// str`.
#[cfg(feature = "serde")]
fn interned<'de, D: serde::Deserializer<'de>, V: serde::Deserialize<'de>>(
    from: D,
) -> Result<BTreeMap<&'static str, V>, D::Error> {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let read: BTreeMap<String, V> = serde::Deserialize::deserialize(from)?;
    let mut names = crate::sync::lock(&NAMES);
    let intern = |(name, value): (String, V)| {
        let known = names.get(name.as_str()).copied();
        let name = known.unwrap_or_else(|| {
            let name: &'static str = name.leak();
            names.insert(name);
            name
        });
        (name, value)
    };
    Ok(read.into_iter().map(intern).collect())
}

/// A measurement that an actor records.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// Adds to a counter.
    Count(u64),
    /// Sets a gauge.
    Gauge(f64),
    /// A value of a histogram.
    Observe(f64),
    /// A value of a time series.
    Track(f64),
}

impl Probes {
    /// True if nothing was recorded.
    pub fn is_empty(&self) -> bool {
        *self == Probes::default()
    }

    /// Returns a counter; 0 if nothing was counted under this name.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Records a measurement.
    pub(crate) fn record(&mut self, name: &'static str, at: Time, who: Addr, sample: Sample) {
        match sample {
            Sample::Count(more) => {
                let count = self.counters.entry(name).or_default();
                *count = count.saturating_add(more);
            }
            Sample::Gauge(value) => {
                let new = Gauge::new(value, at, who);
                let gauge = self.gauges.entry(name).or_insert(new);
                gauge.merge(&new);
            }
            Sample::Observe(value) => {
                self.histograms.entry(name).or_default().add(value);
            }
            Sample::Track(value) => {
                self.series.entry(name).or_default().add(at, value);
            }
        }
    }

    /// Adds the measurements of other actors.
    pub(crate) fn merge(&mut self, other: &Probes) {
        for (name, more) in &other.counters {
            let count = self.counters.entry(name).or_default();
            *count = count.saturating_add(*more);
        }
        for (name, new) in &other.gauges {
            self.gauges.entry(name).or_insert(*new).merge(new);
        }
        for (name, new) in &other.histograms {
            self.histograms.entry(name).or_default().merge(new);
        }
        for (name, new) in &other.series {
            self.series.entry(name).or_default().merge(new);
        }
    }
}

/// A measurement of which only the last value is reported: the latest in time, and at equal times the value of the
/// highest address.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gauge {
    /// The value set last.
    pub value: f64,
    /// The time when the gauge was set.
    pub at: Time,
    /// The actor that set the gauge.
    pub by: Addr,
    /// The lowest value of the gauge so far.
    pub least: f64,
    /// The highest value of the gauge so far.
    pub greatest: f64,
}

impl Gauge {
    fn new(value: f64, at: Time, by: Addr) -> Gauge {
        let (least, greatest) = (value, value);
        Gauge {
            value,
            at,
            by,
            least,
            greatest,
        }
    }

    /// Merges two gauges. If actor and time are equal, the value of `new` is used.
    fn merge(&mut self, new: &Gauge) {
        if (new.at, new.by) >= (self.at, self.by) {
            (self.value, self.at, self.by) = (new.value, new.at, new.by);
        }
        self.least = self.least.min(new.least);
        self.greatest = self.greatest.max(new.greatest);
    }
}

/// A histogram with exact count, sum and extremes. Quantiles have an error of at most 3 %.
///
/// NaN is ignored. The mean is exact to the last bits, whatever the range of the values; it is infinite if a value is
/// infinite.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Histogram {
    sum: Sum,
    least: f64,
    greatest: f64,
    /// True if all values are integers.
    whole: bool,
    buckets: Buckets<f64, 32>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            sum: Sum::default(),
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
            whole: true,
            buckets: Buckets::default(),
        }
    }
}

impl Histogram {
    fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.sum.add(value);
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
        self.whole &= value.fract() == 0.0;
        self.buckets.record(value);
    }

    fn merge(&mut self, other: &Histogram) {
        self.sum.merge(&other.sum);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.whole &= other.whole;
        self.buckets.merge(&other.buckets);
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Returns the mean; `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (!self.buckets.is_empty()).then(|| self.sum.mean(self.count()))
    }

    /// Returns the least and the greatest value.
    pub fn range(&self) -> Option<(f64, f64)> {
        (!self.buckets.is_empty()).then_some((self.least, self.greatest))
    }

    /// Returns the quantile for the fraction `part`, from 0 to 1, with an error of at most 3 %. If all values are
    /// integers, the result is an integer, and exact up to 64.
    ///
    /// # Panics
    /// If `part` is not between 0 and 1.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        assert!(
            (0.0..=1.0).contains(&part),
            "a quantile is between 0 and 1, not {part}"
        );
        let found = self.buckets.quantile(part);
        // If a bucket contains an integer, its lower end is an integer, so truncation stays in the bucket.
        let found = found.map(|value| if self.whole { value.trunc() } else { value });
        found.map(|value| value.clamp(self.least, self.greatest))
    }
}

/// Values over time, in at most 4,096 intervals of equal width. The width is a power of two in nanoseconds, and doubles
/// when a time lies beyond the last interval.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Series {
    /// The base-2 logarithm of an interval's width in nanoseconds.
    width_bits: u32,
    intervals: Vec<Bin>,
}

/// The values of one interval.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Bin {
    count: u64,
    sum: Sum,
    least: f64,
    greatest: f64,
}

impl Bin {
    const EMPTY: Bin = Bin {
        count: 0,
        sum: Sum::NONE,
        least: f64::INFINITY,
        greatest: f64::NEG_INFINITY,
    };

    fn merge(&mut self, other: &Bin) {
        self.count += other.count;
        self.sum.merge(&other.sum);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }
}

/// The measurements within an interval of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The start of the interval.
    pub from: Time,
    /// The number of recorded values.
    pub count: u64,
    /// The mean of the values.
    pub mean: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
}

impl Series {
    const MOST: u64 = 4096;

    /// Doubles the interval width until the time fits into the maximum number of intervals.
    fn widen(&mut self, last: u64, width_bits: u32) {
        while self.width_bits < width_bits || last >> self.width_bits >= Series::MOST {
            self.width_bits += 1;
            let pairs = self.intervals.chunks(2).map(|pair| {
                let mut both = pair[0].clone();
                pair[1..].iter().for_each(|second| both.merge(second));
                both
            });
            self.intervals = pairs.collect();
        }
    }

    fn bin(&mut self, index: usize) -> &mut Bin {
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, Bin::EMPTY);
        }
        &mut self.intervals[index]
    }

    fn add(&mut self, at: Time, value: f64) {
        if value.is_nan() {
            return;
        }
        self.widen(at.as_nanos(), 0);
        let index = (at.as_nanos() >> self.width_bits) as usize;
        let mut new = Bin {
            count: 1,
            least: value,
            greatest: value,
            ..Bin::EMPTY
        };
        new.sum.add(value);
        self.bin(index).merge(&new);
    }

    fn merge(&mut self, other: &Series) {
        self.widen(0, other.width_bits);
        let narrower = self.width_bits - other.width_bits;
        for (index, new) in other.intervals.iter().enumerate() {
            if new.count > 0 {
                self.bin(index >> narrower).merge(new);
            }
        }
    }

    /// Returns the width of an interval.
    pub fn width(&self) -> Duration {
        Duration::from_nanos(1 << self.width_bits)
    }

    /// Returns the intervals that have values, in the order of time.
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        let bins = self.intervals.iter().enumerate();
        bins.filter(|(_, bin)| bin.count > 0)
            .map(|(index, bin)| Interval {
                from: Time::from_nanos((index as u64) << self.width_bits),
                count: bin.count,
                mean: bin.sum.mean(bin.count),
                least: bin.least,
                greatest: bin.greatest,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Random;

    /// Records samples of several actors, distributed by actor over `recorders` recorders, and merges them.
    fn recorded(recorders: usize) -> Probes {
        let mut random = Random::new(8);
        let mut parts = vec![Probes::default(); recorders];
        for step in 0..if cfg!(miri) { 50 } else { 5000u64 } {
            let who = random.below(7);
            let at = Time::from_nanos(step * 1_000_003 / 3);
            let value = f64::from(random.below(1_000_000)) / 997.0 - 300.0;
            let part = &mut parts[who as usize % recorders];
            part.record("count", at, Addr(who), Sample::Count(u64::from(who)));
            part.record("gauge", at, Addr(who), Sample::Gauge(value));
            part.record("values", at, Addr(who), Sample::Observe(value));
            part.record("series", at, Addr(who), Sample::Track(value));
        }
        let mut all = Probes::default();
        parts.iter().rev().for_each(|part| all.merge(part));
        all
    }

    // Guarantee: core-56.
    #[test]
    fn what_is_merged_does_not_depend_on_who_recorded_it() {
        let one = recorded(1);
        for recorders in 2..6 {
            assert_eq!(recorded(recorders), one);
        }
        let series = &one.series["series"];
        let counted: u64 = series.intervals().map(|interval| interval.count).sum();
        assert_eq!(counted, one.histograms["values"].count());
        assert!(series.intervals().count() <= Series::MOST as usize);
    }

    // Guarantee: core-56.
    #[test]
    fn quantiles_of_integers_are_integers() {
        let mut histogram = Histogram::default();
        let values = [-70.0, -3.0, 0.0, 3.0, 3.0, 7.0, 63.0, 1000.0];
        values.iter().for_each(|&value| histogram.add(value));
        let at =
            |histogram: &Histogram, rank: usize| histogram.quantile(rank as f64 / 8.0).unwrap();
        for (rank, value) in (1..).zip(values) {
            let found = at(&histogram, rank);
            assert_eq!(found.fract(), 0.0);
            let exact = value.abs() <= 64.0;
            assert!(
                found == value || !exact && (found / value - 1.0).abs() < 0.03,
                "{found}"
            );
        }
        let mut more = Histogram::default();
        more.add(3.25);
        histogram.merge(&more);
        assert_ne!(at(&histogram, 5).fract(), 0.0);
    }

    #[test]
    fn quantiles_are_within_three_per_cent_and_extremes_exact() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|n| histogram.add(f64::from(n)));
        histogram.add(f64::NAN);
        assert_eq!(histogram.count(), 1000);
        assert_eq!(histogram.mean(), Some(500.5));
        assert_eq!(histogram.range(), Some((1.0, 1000.0)));
        for part in [0.1, 0.5, 0.9, 0.99] {
            let quantile = histogram.quantile(part).unwrap();
            assert!(
                (quantile / (part * 1000.0) - 1.0).abs() < 0.031,
                "{part}: {quantile}"
            );
        }
        assert_eq!(histogram.quantile(1.0).map(|q| q > 984.0), Some(true));
        let mut below = Histogram::default();
        [-5.0, -1.0, 0.0, 2.0]
            .into_iter()
            .for_each(|value| below.add(value));
        assert!(below.quantile(0.25).unwrap() < -4.8);
        assert_eq!(below.quantile(0.75), Some(0.0));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    // Guarantee: core-56.
    #[test]
    fn a_gauge_has_the_value_set_last_and_its_extremes() {
        let mut probes = Probes::default();
        let at = Time::from_nanos;
        for (time, who, value) in [(5, 1, 1.0), (9, 1, 7.0), (9, 0, 3.0), (2, 4, -2.0)] {
            probes.record("gauge", at(time), Addr(who), Sample::Gauge(value));
        }
        let gauge = probes.gauges["gauge"];
        assert_eq!((gauge.value, gauge.least, gauge.greatest), (7.0, -2.0, 7.0));
    }
}
