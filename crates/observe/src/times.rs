//! Histograms of response time, service time, network time and round trips, for each service.
//!
//! The range of a histogram grows with its values, so no value is clamped. Values have three significant digits.
//! Threads count in separate sets of histograms. The sum of the sets does not depend on the order of the measurements
//! or on the threads that made them.

pub(crate) mod csv;
pub(crate) mod guess;
#[cfg(feature = "metrics")]
pub(crate) mod prometheus;
pub(crate) mod table;

use crate::{Metric, ServiceId};
use corsair::Buckets;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;

/// The number of sets of histograms. If there are more threads, they share sets, because a set may take megabytes.
const SETS: usize = 8;

/// Times in nanoseconds, to three digits.
pub type TimesHistogram = Buckets<u64, 1024>;

/// The times of all services.
#[derive(Debug, Default)]
pub(crate) struct Times {
    names: RwLock<Vec<String>>,
    sets: [CachePadded<Mutex<Vec<ServiceTimes>>>; SETS],
}

/// The times of one service. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct ServiceTimes {
    /// A histogram for each of [`Metric::ALL`].
    histograms: [TimesHistogram; Metric::ALL.len()],
    /// The exact sum of the values of each metric.
    sums: [u128; Metric::ALL.len()],
    errors: u64,
}

/// Returns the suffix of a metric in file names, like spigo's.
pub(crate) fn suffix(metric: Metric) -> &'static str {
    match metric {
        Metric::Response => "resp",
        Metric::Service => "serv",
        Metric::Network => "net",
        Metric::RoundTrip => "rt",
    }
}

impl ServiceTimes {
    /// Returns the histogram of a metric; `None` if nothing was measured.
    pub fn histogram(&self, metric: Metric) -> Option<&TimesHistogram> {
        Some(&self.histograms[metric as usize]).filter(|histogram| !histogram.is_empty())
    }

    /// Returns the number of failed requests.
    pub fn errors(&self) -> u64 {
        self.errors
    }

    /// Returns the exact sum of all values of a metric.
    pub fn sum(&self, metric: Metric) -> u128 {
        self.sums[metric as usize]
    }

    pub(crate) fn error(&mut self) {
        self.errors += 1;
    }

    pub(crate) fn sample(&mut self, metric: Metric, nanos: u64) {
        self.sums[metric as usize] += u128::from(nanos);
        self.histograms[metric as usize].record(nanos);
    }

    fn add(&mut self, other: &ServiceTimes) {
        self.errors += other.errors;
        for (sum, other) in self.sums.iter_mut().zip(other.sums) {
            *sum += other;
        }
        for (mine, theirs) in self.histograms.iter_mut().zip(&other.histograms) {
            mine.merge(theirs);
        }
    }
}

/// The saved form of the times of one service.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedTimes {
    histograms: [TimesHistogram; Metric::ALL.len()],
    /// The upper and the lower 64 bits of each sum.
    sums: [(u64, u64); Metric::ALL.len()],
    errors: u64,
}

impl ServiceTimes {
    fn save(&self) -> SavedTimes {
        SavedTimes {
            histograms: self.histograms.clone(),
            sums: self.sums.map(|sum| ((sum >> 64) as u64, sum as u64)),
            errors: self.errors,
        }
    }

    fn resume(saved: SavedTimes) -> ServiceTimes {
        ServiceTimes {
            histograms: saved.histograms,
            sums: (saved.sums).map(|(high, low)| u128::from(high) << 64 | u128::from(low)),
            errors: saved.errors,
        }
    }
}

impl Times {
    /// Returns the serialized times by service.
    pub(crate) fn save(&self) -> Vec<(String, SavedTimes)> {
        saved(self.by_service())
    }

    /// Returns all times and resets them. A time that is measured during the call is returned by this call or the next.
    pub(crate) fn take(&self) -> Vec<(String, SavedTimes)> {
        let sets = self.sets.iter().map(|set| std::mem::take(&mut *set.lock()));
        let sets: Vec<Vec<ServiceTimes>> = sets.collect();
        saved(self.summed(sets.iter()))
    }

    /// Adds the times of a saved run, or of another process.
    pub(crate) fn resume(&self, saved: Vec<(String, SavedTimes)>) {
        for (name, times) in saved {
            let service = self.service(&name);
            let times = ServiceTimes::resume(times);
            self.with(0, service, |own| own.add(&times));
        }
    }

    /// Returns the number of the service with this name.
    pub(crate) fn service(&self, name: &str) -> ServiceId {
        let mut names = self.names.write();
        let number = names
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
        ServiceId(u16::try_from(number).expect("a run has at most 65,535 services"))
    }

    // Only the check is inlined, so that a call costs little if nothing is measured.
    #[inline(never)]
    pub(crate) fn sample(&self, thread: usize, service: ServiceId, metric: Metric, nanos: u64) {
        self.with(thread, service, |times| times.sample(metric, nanos));
    }

    #[inline(never)]
    pub(crate) fn error(&self, thread: usize, service: ServiceId) {
        self.with(thread, service, ServiceTimes::error);
    }

    #[inline]
    fn with(&self, thread: usize, service: ServiceId, act: impl FnOnce(&mut ServiceTimes)) {
        let mut set = self.sets[thread % SETS].lock();
        let index = usize::from(service.0);
        if index >= set.len() {
            set.resize_with(index + 1, ServiceTimes::default);
        }
        act(&mut set[index]);
    }

    /// Returns the times measured so far, by service.
    pub(crate) fn by_service(&self) -> BTreeMap<String, ServiceTimes> {
        self.summed(self.sets.iter().map(|set| set.lock()))
    }

    fn summed(
        &self,
        sets: impl Iterator<Item = impl Deref<Target = Vec<ServiceTimes>>>,
    ) -> BTreeMap<String, ServiceTimes> {
        let names = self.names.read();
        let mut sums = vec![ServiceTimes::default(); names.len()];
        for set in sets {
            // `sums` has only the services that existed when it was created.
            for (sum, times) in sums.iter_mut().zip(set.iter()) {
                sum.add(times);
            }
        }
        names.iter().cloned().zip(sums).collect()
    }
}

fn saved(times: BTreeMap<String, ServiceTimes>) -> Vec<(String, SavedTimes)> {
    let times = times.into_iter();
    times.map(|(name, times)| (name, times.save())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: observe-8.
    #[test]
    fn times_longer_than_a_millisecond_are_what_they_are() {
        let times = Times::default();
        let www = times.service("www");
        for millis in [1, 20, 3_000] {
            times.sample(0, www, Metric::Response, millis * 1_000_000);
        }
        let all = times.by_service();
        let response = all["www"].histogram(Metric::Response).unwrap();
        assert_eq!(response.len(), 3);
        let longest = response.greatest().unwrap();
        assert!(longest.abs_diff(3_000_000_000) < 3_000_000, "{longest}");
        assert!(all["www"].histogram(Metric::Service).is_none());
    }

    // Guarantee: observe-8.
    #[test]
    fn sets_add_up_and_services_are_found_by_name() {
        let times = Times::default();
        let (a, b) = (times.service("a"), times.service("b"));
        assert_eq!(times.service("a"), a);
        for thread in 0..20 {
            times.sample(thread, b, Metric::Network, 5);
            times.error(thread, a);
        }
        let all = times.by_service();
        assert_eq!(all["b"].histogram(Metric::Network).unwrap().len(), 20);
        assert_eq!(all["a"].errors(), 20);
    }
}
