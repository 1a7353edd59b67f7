//! The timeline of a run: requests, errors, times, queues and utilisation, for each interval, service and
//! zone.
//!
//! Each instance keeps separate slices, which are added up when it ends. A request belongs to the slice in which it
//! arrived.

use crate::csv::quoted;
use crate::geography::{Places, Zone};
use crate::saved::RestoreState;
use corsair::Buckets;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of slices of a timeline.
pub const MOST_SLICES: u64 = 10_000;

/// The totals of an interval, for the instances of a service in a zone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Requests that arrived. At entry points unanswered requests count as failed; at other services they are not
    /// counted.
    pub requests: u64,
    /// The failed requests.
    pub errors: u64,
    /// The longest queue of an instance.
    pub longest_queue: u32,
    /// Response times, each within 1 %.
    times: Buckets<u64, 64>,
    /// The time integrals of queued jobs, of slots or processors in use, and of all slots or processors, in
    /// nanoseconds.
    queued: f64,
    used: f64,
    available: f64,
}

impl Slice {
    /// Returns the quantile of the times of requests for the fraction `part`, from 0 to 1, with an error of at most 1
    /// %. At entry points the time is the response time; at other services it is the time from arrival to answer.
    /// `None` if there were no requests.
    pub fn percentile(&self, part: f64) -> Option<Duration> {
        self.times.quantile(part).map(Duration::from_nanos)
    }

    /// Returns the mean queue length over an interval of this length.
    pub fn queue(&self, interval: Duration) -> f64 {
        self.queued / interval.as_nanos().max(1) as f64
    }

    /// Returns the utilisation of slots or processors; `None` if they are unlimited.
    pub fn utilisation(&self) -> Option<f64> {
        (self.available > 0.0).then(|| (self.used / self.available).min(1.0))
    }

    /// Adds the totals of another zone in the same interval.
    pub fn add(&mut self, other: &Slice) {
        self.requests += other.requests;
        self.errors += other.errors;
        self.longest_queue = self.longest_queue.max(other.longest_queue);
        self.times.merge(&other.times);
        self.queued += other.queued;
        self.used += other.used;
        self.available += other.available;
    }
}

/// The timeline by service (its index in the topology) and zone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// The length of each slice.
    pub interval: Duration,
    /// The slices, beginning at the start of the load.
    #[serde(with = "crate::saved::pairs")]
    pub slices: BTreeMap<(u32, Zone), Vec<Slice>>,
}

impl Timeline {
    /// Returns the slices of a service, summed over all zones.
    pub fn of_service(&self, service: u32) -> Vec<Slice> {
        let mut sum: Vec<Slice> = Vec::new();
        let zones = self.slices.range((service, Zone::EVERYWHERE)..);
        for (_, slices) in zones.take_while(|((of, _), _)| *of == service) {
            if sum.len() < slices.len() {
                sum.resize_with(slices.len(), Slice::default);
            }
            sum.iter_mut()
                .zip(slices)
                .for_each(|(sum, slice)| sum.add(slice));
        }
        sum
    }

    /// Returns a row for each slice of each service and zone.
    pub fn rows(&self) -> impl Iterator<Item = TimelineRow> {
        self.slices
            .iter()
            .flat_map(move |(&(service, zone), slices)| {
                (0..).zip(slices).map(move |(number, slice)| TimelineRow {
                    begins: self.interval * number,
                    service,
                    zone,
                    requests: slice.requests,
                    errors: slice.errors,
                    percentiles: [0.5, 0.9, 0.95, 0.99].map(|part| slice.percentile(part)),
                    queue: slice.queue(self.interval),
                    longest_queue: slice.longest_queue,
                    utilisation: slice.utilisation(),
                })
            })
    }

    /// Formats the rows as CSV; `services` are the names of services, with true for entry points.
    pub fn csv(&self, services: &[(String, bool)], places: &Places) -> String {
        let mut text = format!("{}\n", TimelineRow::COLUMNS.join(","));
        for row in self.rows() {
            let [p50, p90, p95, p99] = row.percentiles.map(|time| {
                time.map_or(String::new(), |time| format!("{:.9}", time.as_secs_f64()))
            });
            let used = row.utilisation.map(|part| format!("{part:.4}"));
            text += &format!(
                "{},{},{},{},{},{},{p50},{p90},{p95},{p99},{:.3},{},{}\n",
                row.begins.as_secs_f64(),
                quoted(&services[row.service as usize].0),
                quoted(row.zone.region_name(places)),
                quoted(row.zone.zone_name(places)),
                row.requests,
                row.errors,
                row.queue,
                row.longest_queue,
                used.unwrap_or_default(),
            );
        }
        text
    }

    pub(crate) fn add(&mut self, service: u32, zone: Zone, track: Track) {
        self.interval = Duration::from_nanos(track.interval);
        self.add_slices(service, zone, &track.slices);
    }

    pub(crate) fn merge(&mut self, other: &Timeline) {
        self.interval = other.interval;
        for (&(service, zone), slices) in &other.slices {
            self.add_slices(service, zone, slices);
        }
    }

    fn add_slices(&mut self, service: u32, zone: Zone, slices: &[Slice]) {
        let into = self.slices.entry((service, zone)).or_default();
        if into.len() < slices.len() {
            into.resize_with(slices.len(), Slice::default);
        }
        for (sum, slice) in into.iter_mut().zip(slices) {
            sum.add(slice);
        }
    }
}

/// A row of a timeline's table.
#[derive(Clone, Copy, Debug)]
pub struct TimelineRow {
    /// The start of the slice, from the start of the load.
    pub begins: Duration,
    /// The service, by its index in the topology.
    pub service: u32,
    /// The zone of the instances.
    pub zone: Zone,
    /// The number of requests that arrived.
    pub requests: u64,
    /// The number of failed requests.
    pub errors: u64,
    /// The 50th, 90th, 95th and 99th percentile of response times; none without requests.
    pub percentiles: [Option<Duration>; 4],
    /// The mean number of queued jobs.
    pub queue: f64,
    /// The longest queue of an instance.
    pub longest_queue: u32,
    /// The utilisation of slots or processors; `None` if they are unlimited.
    pub utilisation: Option<f64>,
}

impl TimelineRow {
    /// The names of the columns: service name, region and zone replace the service index and the zone.
    pub const COLUMNS: [&str; 13] = [
        "seconds",
        "service",
        "region",
        "zone",
        "requests",
        "errors",
        "p50_seconds",
        "p90_seconds",
        "p95_seconds",
        "p99_seconds",
        "queue",
        "longest_queue",
        "utilisation",
    ];
}

/// A level over time, with the area below it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Level {
    value: f64,
    since: u64,
}

/// The timeline of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Track {
    #[serde(skip)]
    interval: u64,
    /// The start and end of the load in nanoseconds.
    #[serde(skip)]
    begins: u64,
    #[serde(skip)]
    ends: u64,
    slices: Vec<Slice>,
    queue: Level,
    busy: Level,
    available: Level,
    /// The use of shared processors at the last update.
    used: Level,
}

impl RestoreState for Track {
    fn take_over(&mut self, saved: Track) {
        let Track {
            interval,
            begins,
            ends,
            ..
        } = *self;
        *self = Track {
            interval,
            begins,
            ends,
            ..saved
        };
    }
}

impl Track {
    pub(crate) fn new(interval: u64, begins: u64, ends: u64) -> Track {
        let count = (ends - begins).div_ceil(interval.max(1)).min(MOST_SLICES);
        Track {
            interval: interval.max(1),
            begins,
            ends,
            slices: vec![Slice::default(); count as usize],
            queue: Level::default(),
            busy: Level::default(),
            available: Level::default(),
            used: Level::default(),
        }
    }

    /// Returns the slice that contains a time. Times after the end of the load belong to the last slice.
    fn slice(&mut self, at: u64) -> Option<&mut Slice> {
        let after = at.checked_sub(self.begins)? / self.interval;
        let last = self.slices.len().checked_sub(1)?;
        self.slices.get_mut((after as usize).min(last))
    }

    /// Records a request that arrived at `came` and was answered after `lasted` nanoseconds. `lasted` is `None` if the
    /// request was not answered.
    pub(crate) fn request(&mut self, came: u64, lasted: Option<u64>, failed: bool) {
        if let Some(slice) = self.slice(came) {
            slice.requests += 1;
            slice.errors += u64::from(failed);
            if let Some(lasted) = lasted {
                slice.times.record(lasted);
            }
        }
    }

    /// Sets the length of the queue from `now` on.
    pub(crate) fn queue(&mut self, length: usize, now: u64) {
        let is_over = now >= self.ends;
        if let Some(slice) = self.slice(now).filter(|_| !is_over) {
            slice.longest_queue = slice.longest_queue.max(length as u32);
        }
        let before = std::mem::replace(&mut self.queue, level(length as f64, now));
        self.spread(before, now, |slice| &mut slice.queued);
    }

    /// Sets the number of slots in use from `now` on.
    pub(crate) fn busy(&mut self, slots: u32, now: u64) {
        let before = std::mem::replace(&mut self.busy, level(slots.into(), now));
        self.spread(before, now, |slice| &mut slice.used);
    }

    /// Sets the number of available slots or processors from `now` on.
    pub(crate) fn available(&mut self, count: f64, now: u64) {
        let before = std::mem::replace(&mut self.available, level(count, now));
        self.spread(before, now, |slice| &mut slice.available);
    }

    /// Records the total work of shared processors until now, in nanoseconds.
    pub(crate) fn used(&mut self, used: f64, now: u64) {
        let before = std::mem::replace(&mut self.used, level(used, now));
        let lasted = now.saturating_sub(before.since).max(1) as f64;
        let mean = level((used - before.value) / lasted, before.since);
        self.spread(mean, now, |slice| &mut slice.used);
    }

    /// Sets the total work of shared processors before `now`, in nanoseconds.
    pub(crate) fn used_before(&mut self, used: f64, now: u64) {
        self.used = level(used, now);
    }

    /// Ends the timeline because the run has ended or was cancelled.
    pub(crate) fn end(&mut self, now: u64) {
        let (queue, busy, available) = (self.queue, self.busy, self.available);
        self.spread(queue, now, |slice| &mut slice.queued);
        self.spread(busy, now, |slice| &mut slice.used);
        self.spread(available, now, |slice| &mut slice.available);
    }

    /// Adds the area below a level to the slices between its last change and now.
    fn spread(&mut self, level: Level, now: u64, area: impl Fn(&mut Slice) -> &mut f64) {
        if level.value == 0.0 {
            return;
        }
        let (mut from, until) = (level.since.max(self.begins), now.min(self.ends));
        while from < until {
            let end = self.begins + ((from - self.begins) / self.interval + 1) * self.interval;
            let end = end.min(until);
            if let Some(slice) = self.slice(from) {
                *area(slice) += level.value * (end - from) as f64;
            }
            from = end;
        }
    }
}

fn level(value: f64, since: u64) -> Level {
    Level { value, since }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_spread_over_the_slices_that_they_reach_over() {
        let mut track = Track::new(10, 100, 140);
        track.available(2.0, 0);
        track.busy(1, 95);
        track.busy(2, 115);
        track.busy(0, 120);
        track.queue(3, 128);
        track.queue(0, 132);
        track.end(1_000);
        let used: Vec<f64> = track
            .slices
            .iter()
            .map(|s| s.utilisation().unwrap())
            .collect();
        assert_eq!(used, [0.5, 0.75, 0.0, 0.0]);
        let queued = |slice: &Slice| slice.queue(Duration::from_nanos(10));
        let queued: Vec<f64> = track.slices.iter().map(queued).collect();
        assert_eq!(queued, [0.0, 0.0, 0.6, 0.6]);
        assert_eq!(track.slices[2].longest_queue, 3);
    }
}
