//! Metrics beside traces: the rate of requests, and the processor time of services.

use super::fit::span;
use super::resample::work_of;
use super::{LearnReport, LearnedParameter};
use crate::definition::{Rate, RatePoint};
use std::collections::BTreeMap;
use std::time::Duration;

/// The relative range below which a rate counts as constant.
const STEADY: f64 = 0.05;

/// A series of measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricSeries {
    /// The labels of the series.
    pub labels: BTreeMap<String, String>,
    /// Pairs of a time and a value, in ascending order. Times are relative to any fixed moment.
    pub points: Vec<(Duration, f64)>,
}

impl MetricSeries {
    fn mean(&self) -> f64 {
        let sum: f64 = self.points.iter().map(|(_, value)| value).sum();
        sum / self.points.len().max(1) as f64
    }

    /// Returns 1.96 standard errors of the mean.
    fn error(&self) -> f64 {
        let (mean, count) = (self.mean(), self.points.len() as f64);
        let squares = self.points.iter().map(|(_, value)| (value - mean).powi(2));
        1.96 * (squares.sum::<f64>() / (count - 1.0).max(1.0) / count.max(1.0)).sqrt()
    }
}

/// Returns the mean rate of a learned load, whose points are equally far apart.
fn mean_rate(rate: &Rate) -> f64 {
    match rate {
        Rate::Constant(rate) => *rate,
        Rate::Profile(points) => {
            points.iter().map(|point| point.rate).sum::<f64>() / points.len().max(1) as f64
        }
        // It is never learned.
        Rate::Curve { .. } => 0.0,
    }
}

impl LearnReport {
    /// Replaces the learned rates by a measured rate of all requests from outside, in requests per second. Several
    /// entry points share the measured rate in proportion to their recorded requests.
    ///
    /// # Errors
    /// A sentence, if the series has no values, or only zeros.
    pub fn replace_rate(&mut self, series: &MetricSeries) -> Result<(), String> {
        let Some(&(first, _)) = series.points.first() else {
            return Err("the series has no values".to_owned());
        };
        let mean = series.mean();
        if mean <= 0.0 {
            return Err("the rate is always 0; check the query".to_owned());
        }
        let rates = || {
            self.definition
                .load
                .values()
                .filter_map(|load| load.rate.as_ref())
        };
        let total: f64 = rates().map(mean_rate).sum();
        let values = || series.points.iter().map(|(_, value)| *value);
        let (least, most) = (
            values().fold(f64::MAX, f64::min),
            values().fold(0.0, f64::max),
        );
        let is_steady = most - least < STEADY * mean;
        for load in self.definition.load.values_mut() {
            let Some(rate) = &mut load.rate else { continue };
            let share = mean_rate(rate) / total.max(1e-9);
            let scaled = |value: f64| (value * share * 1e3).round() / 1e3;
            let point = |&(at, value): &(Duration, f64)| RatePoint {
                at: span(at.saturating_sub(first).as_nanos() as u64),
                rate: scaled(value),
                ramp: false,
            };
            *rate = match is_steady {
                true => Rate::Constant(scaled(mean).max(1e-3)),
                false => Rate::Profile(series.points.iter().map(point).collect()),
            };
        }
        Ok(())
    }

    /// Adds the processor time of a request at a service, from the number of used processors over time. A label of the
    /// series names the service; without such a label nothing is added.
    pub fn add_processor_time(&mut self, series: &MetricSeries) {
        let is_named = |name: &str| {
            let mut labels = series.labels.values();
            labels.any(|label| label == name || label.replace(['.', '/'], "-") == name)
        };
        let mut visited = self.visited.iter();
        let Some((name, rates)) = visited.find(|(name, _)| is_named(name)) else {
            return;
        };
        let rate: f64 = rates.values().sum();
        if rate <= 0.0 || series.points.is_empty() {
            return;
        }
        let (value, error) = (series.mean() / rate, series.error() / rate);
        let mut services = self.definition.services.iter();
        let service = services.find(|one| one.name == *name);
        let work = service.map(|service| work_of(service, rates) / rate);
        let part = work
            .filter(|work| *work > 0.0)
            .map(|work| format!(", {:.0} % of its work", (value / work * 100.0).min(100.0)));
        self.remarks.push(format!(
            "{name} uses {:.3} ms of a processor per request{}: one processor is full at {:.0} requests/s",
            value * 1e3,
            part.unwrap_or_default(),
            1.0 / value.max(1e-9)
        ));
        self.numbers.push(LearnedParameter {
            name: format!("{name} processor"),
            value,
            between: ((value - error).max(0.0), value + error),
        });
    }
}
