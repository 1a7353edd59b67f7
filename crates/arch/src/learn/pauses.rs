//! Finds repeated pauses of instances, for example for the collection of garbage.
//!
//! A pause is a silence of an instance that its open work does not explain ([`silence`]). Long silences by chance come at
//! random times, so silences that come with a period ([`rhythm`]) are pauses. The most surprising silences are considered:
//! as many of them as are best explained by a period. Without a period, there must be several silences of a similar length,
//! of which each is improbable among all.
//!
//! A pause is not counted as work: the times of an instance with pauses are converted by a clock that stands still
//! during its pauses, before work, slots and processors are learned.
//!
//! While an instance is paused, its callers may wait for slots or connections, and then they are silent, too. So a service
//! has no pauses if these coincide with the pauses of a service that it calls.

mod rhythm;
mod silence;

use super::clock::Clock;
use super::fit::span;
use super::invocation::Invocations;
use super::policies::Policies;
use crate::definition::{Fault, FaultKind};
use rhythm::Rhythm;
use rustc_hash::{FxHashMap, FxHashSet};
use silence::{Silence, Silences};
use std::collections::BTreeMap;

/// The least score of a silence that may be a pause: by chance, one of 55 silences has it.
const LEAST_SCORE: f64 = 4.0;

/// The minimum number of silences among which a period is sought.
const LEAST: usize = 12;

/// The share of pauses that must coincide with pauses of another instance, or of called services. Not all pauses are known.
const TOGETHER: f64 = 0.3;
const EXPLAINED: f64 = 0.6;

/// Pauses have a fixed period if their times deviate from it by less than this part of their length. The period is fitted
/// to at most this number of pauses at a time, and to at least this number if it may differ from the mean period.
const FIXED: f64 = 0.25;
const MOST_FITTED: usize = 32;
const LEAST_FITTED: usize = 8;

/// Pauses at irregular times: the negative logarithm of the probability with which some silence has the score of the
/// clearest pauses, the share of these with a similar length, and the least score of further silences of this length.
const CLEAR: f64 = 9.0;
const SIMILAR: f64 = 0.8;
const FURTHER_SCORE: f64 = 8.0;

/// The largest number of silences of half the length, for each that is as long as these pauses.
const RARE: f64 = 0.5;

/// The least probability with which a pause at an irregular time is drawn for an instance.
const LEAST_DRAWN: f64 = 0.1;

/// The pauses of all services.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    by_service: BTreeMap<u32, Pause>,
    clocks: FxHashMap<(u32, u32), Clock>,
}

/// The pauses of a service; times are in nanoseconds.
#[derive(Debug)]
struct Pause {
    length: f64,
    period: f64,
    /// The end of a pause.
    end: u64,
    /// The share of the instances that pause at the same time.
    share: f64,
    /// The ends of the pauses of each instance.
    by_instance: Vec<(u32, Vec<u64>)>,
    /// The periods during parts of the recording.
    slopes: Vec<f64>,
    is_regular: bool,
    evidence: f64,
    variation: f64,
}

impl Pauses {
    /// Finds the pauses of all services. Requests waited for a slot for the time in `waited`.
    pub(super) fn find(invocations: &Invocations, waited: &[u64], policies: &Policies) -> Pauses {
        let mut by_service: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, made) in (0..).zip(&invocations.all) {
            // Without a span of the server, the times are those of its client.
            if made.client != Some((made.begin, made.end)) {
                by_service.entry(made.service).or_default().push(number);
            }
        }
        let mut found = Pauses::default();
        let begins = invocations.all.iter().map(|made| made.seen().0);
        let first = begins.min().unwrap_or(0);
        for (service, mine) in by_service {
            let with = |begins| {
                let found = silence::of_service(invocations, &mine, waited, policies, begins);
                Pause::of(&found).map(|pause| (pause, found))
            };
            let both = [false, true].into_iter().filter_map(with);
            let clearest =
                both.max_by(|(one, _), (other, _)| one.evidence.total_cmp(&other.evidence));
            let Some((mut pause, silences)) = clearest else {
                continue;
            };
            for (silences, (_, ends)) in silences.iter().zip(&pause.by_instance) {
                let clock = pause.clock(silences, ends);
                found.clocks.insert((service, silences.instance), clock);
            }
            pause.end = pause.end.saturating_sub(first);
            found.by_service.insert(service, pause);
        }
        found.drop_callers(invocations);
        found
    }

    /// True if the instances of a service pause.
    pub(super) fn has(&self, service: u32) -> bool {
        self.by_service.contains_key(&service)
    }

    /// Returns the clock of an instance, if it pauses.
    pub(super) fn clock(&self, service: u32, instance: u32) -> Option<&Clock> {
        self.clocks.get(&(service, instance))
    }

    /// True if an instance pauses between two times.
    pub(super) fn is_between(&self, service: u32, instance: u32, from: u64, to: u64) -> bool {
        let clock = self.clock(service, instance);
        clock.is_some_and(|clock| clock.at(to).saturating_sub(clock.at(from)) + 1_000 < to - from)
    }

    /// Returns the pauses of a service as a fault of a definition.
    pub(super) fn fault(&self, service: u32) -> Option<Fault> {
        let pause = self.by_service.get(&service)?;
        let period = pause.period * pause.share;
        let begin = (pause.end as f64 - pause.length).rem_euclid(period);
        // Drawn with a probability p, the intervals of an instance have the squared coefficient of variation 1 - p.
        let drawn = (1.0 - pause.variation).max(LEAST_DRAWN) * pause.period;
        let every = match pause.is_regular {
            true => period,
            false => drawn.max(1.25 * pause.length).min(period),
        };
        Some(Fault {
            kind: FaultKind::Pause,
            at: rounded(begin),
            lasting: Some(rounded(pause.length)),
            every: Some(rounded(every)),
            probability: (!pause.is_regular).then(|| (every / period * 1e4).round() / 1e4),
            share: (pause.share < 1.0).then_some(pause.share),
            factor: None,
            gap: None,
            drain: None,
        })
    }

    /// Returns a remark about a service whose pauses have no period.
    pub(super) fn remark(&self, service: u32, name: &str) -> Option<String> {
        let pause = self
            .by_service
            .get(&service)
            .filter(|pause| !pause.is_regular)?;
        Some(format!(
            "{name} pauses for about {:.1} ms at irregular times, {:.1} s apart on average: the pauses are simulated at \
             random times",
            pause.length / 1e6,
            pause.period / 1e9
        ))
    }

    /// Drops the pauses that coincide with pauses of called services.
    fn drop_callers(&mut self, invocations: &Invocations) {
        if self.by_service.len() < 2 {
            return;
        }
        let calls = invocations.all.iter().filter_map(|call| {
            let caller = invocations.all[call.caller? as usize].service;
            (caller != call.service).then_some((caller, call.service))
        });
        let mut explained: Vec<u32> = Vec::new();
        for (caller, called) in calls.collect::<FxHashSet<_>>() {
            let pauses = [caller, called].map(|service| self.by_service.get(&service));
            if let [Some(of_caller), Some(of_called)] = pauses
                && of_caller.coincides(of_called)
            {
                explained.push(caller);
            }
        }
        for service in explained {
            self.by_service.remove(&service);
            self.clocks.retain(|(of, _), _| *of != service);
        }
    }
}

/// Rounds nanoseconds to microseconds.
fn rounded(nanos: f64) -> crate::TimeSpan {
    span((nanos / 1e3).round() as u64 * 1_000)
}

impl Pause {
    /// Finds the pauses of a service in the silences of its instances.
    fn of(silences: &[Silences]) -> Option<Pause> {
        let found = periodic(silences);
        let (members, rhythm) = found.or_else(|| irregular(silences))?;
        let before = recurrence(silences, &members);
        let mut lengths: Vec<f64> = (members.iter())
            .filter(|(_, silence)| silence.open == silence.after)
            .map(|(_, silence)| (silence.until - silence.after) as f64 - before - silence.next)
            .collect();
        if lengths.len() < LEAST / 2 {
            return None;
        }
        lengths.sort_unstable_by(f64::total_cmp);
        let median = lengths[lengths.len() / 2];
        lengths.retain(|length| (0.5..=1.5).contains(&(length / median)));
        let length = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        if length.is_nan() || length <= 0.0 || 2.0 * length >= rhythm.period {
            return None;
        }
        let mut pause = Pause {
            length,
            period: rhythm.period,
            end: 0,
            share: 1.0,
            by_instance: Vec::new(),
            slopes: Vec::new(),
            is_regular: rhythm.evidence > 0.0,
            evidence: rhythm.evidence,
            variation: rhythm.variation,
        };
        for (place, of) in silences.iter().enumerate() {
            let from = members.partition_point(|(instance, _)| *instance < place);
            let mine = members[from..].iter().take_while(|one| one.0 == place);
            let ends: Vec<u64> = mine
                .map(|(_, silence)| silence.until - silence.next.min(length) as u64)
                .collect();
            let ends = match pause.is_regular {
                true => pause.all_ends(ends),
                false => ends,
            };
            pause.by_instance.push((of.instance, ends));
        }
        let ends = pause
            .by_instance
            .iter()
            .filter_map(|(_, ends)| ends.first());
        pause.end = ends.min().copied().unwrap_or(0);
        pause.slopes.sort_unstable_by(f64::total_cmp);
        if let Some(&slope) = pause.slopes.get(pause.slopes.len() / 2) {
            pause.period = slope;
        }
        pause.share = pause.share_of_instances();
        Some(pause)
    }

    /// Adds the pauses between the known ones of an instance whose times have a fixed period for some time.
    fn all_ends(&mut self, mut known: Vec<u64>) -> Vec<u64> {
        known.sort_unstable();
        let (mut ends, mut first) = (Vec::new(), 0);
        let mut from = 0;
        while first < known.len() {
            let mut next = first + 1;
            while next < known.len().min(first + MOST_FITTED)
                && rhythm::multiple(known[next] - known[next - 1], self.period).is_some()
            {
                next += 1;
            }
            let after = known.get(next);
            let until = after.map_or(u64::MAX, |&end| end.midpoint(known[next - 1]));
            match line(&known[first..next], self.period, self.length) {
                Some((offset, slope)) => {
                    let turns = ((known[next - 1] as f64 - offset) / slope).round();
                    let turns =
                        -rhythm::MOST_MISSING as i64..=(turns + rhythm::MOST_MISSING) as i64;
                    let times = turns.map(|turn| (offset + slope * turn as f64) as u64);
                    ends.extend(times.filter(|end| (from..until).contains(end)));
                    self.slopes.push(slope);
                }
                None => ends.extend(&known[first..next]),
            }
            (first, from) = (next, until);
        }
        ends
    }

    /// Returns the clock of an instance, which stands still in its pauses.
    fn clock(&self, silences: &Silences, ends: &[u64]) -> Clock {
        let actions = &silences.actions;
        let stops = ends.iter().filter_map(|&end| {
            // The instance did nothing between two actions.
            let middle = end.saturating_sub((self.length / 2.0) as u64);
            let next = actions.partition_point(|&at| at <= middle);
            let (after, until) = (
                next.checked_sub(1).map(|last| actions[last])?,
                actions.get(next)?,
            );
            let begin = end.saturating_sub(self.length as u64).max(after);
            (begin < end.min(*until)).then_some([(begin, 0.0), (end.min(*until), 1.0)])
        });
        Clock::new(stops.flatten())
    }

    /// Returns the share of the instances that pause at the same time: all, or as many as keep the time between two pauses
    /// above the length of a pause.
    fn share_of_instances(&self) -> f64 {
        let instances = self.by_instance.len();
        let of = |place: usize| &self.by_instance[place].1;
        let (mut together, mut all) = (0, 0);
        for place in 1..instances {
            together += self.matches(of(place), of(0));
            all += of(place).len();
        }
        if together as f64 >= TOGETHER * all as f64 {
            return 1.0;
        }
        let least = (2.0 * self.length / self.period * instances as f64).ceil();
        (least.max(1.0) / instances as f64).min(1.0)
    }

    /// Returns the number of ends that coincide with an end of the other pauses.
    fn matches(&self, ends: &[u64], others: &[u64]) -> usize {
        let near = self.length as u64 / 2;
        let is_near = |end: &&u64| {
            let next = others.partition_point(|&other| other + near < **end);
            others.get(next).is_some_and(|&other| other <= **end + near)
        };
        ends.iter().filter(is_near).count()
    }

    /// True if most of these pauses coincide with a pause of another service.
    fn coincides(&self, other: &Pause) -> bool {
        let mut others: Vec<u64> = (other.by_instance.iter())
            .flat_map(|(_, ends)| ends.iter().copied())
            .collect();
        others.sort_unstable();
        let all: usize = self.by_instance.iter().map(|(_, ends)| ends.len()).sum();
        let matches = |(_, ends): &(u32, Vec<u64>)| self.matches(ends, &others);
        let together: usize = self.by_instance.iter().map(matches).sum();
        together as f64 >= EXPLAINED * all as f64
    }
}

/// Returns the most surprising silences, as many as are best explained by a period, each with the place of its instance.
fn periodic(silences: &[Silences]) -> Option<(Vec<(usize, Silence)>, Rhythm)> {
    let mut all: Vec<(usize, Silence)> = silences
        .iter()
        .enumerate()
        .flat_map(|(place, of)| of.scored.iter().map(move |silence| (place, *silence)))
        .filter(|(_, silence)| silence.score >= LEAST_SCORE)
        .collect();
    all.sort_by(|(a, one), (b, other)| {
        let order = other.score.total_cmp(&one.score);
        order.then((a, one.until).cmp(&(b, other.until)))
    });
    let mut best: Option<(usize, Rhythm)> = None;
    let mut count = LEAST.min(all.len());
    while count >= LEAST {
        let mut times: Vec<(usize, u64)> = all[..count]
            .iter()
            .map(|(place, silence)| (*place, silence.until))
            .collect();
        times.sort_unstable();
        let pairs = times.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let mut intervals: Vec<u64> = pairs.map(|pair| pair[1].1 - pair[0].1).collect();
        if let Some(found) = rhythm::find(&mut intervals)
            && best.is_none_or(|(_, best)| found.evidence > best.evidence)
        {
            best = Some((count, found));
        }
        if count == all.len() {
            break;
        }
        count = (count + count / 4).min(all.len());
    }
    let (count, rhythm) = best?;
    all.truncate(count);
    all.sort_unstable_by_key(|(place, silence)| (*place, silence.until));
    let is_regular = |place: usize| {
        let pair = all.get(place..place + 2);
        pair.is_some_and(|pair| {
            pair[0].0 == pair[1].0
                && rhythm::multiple(pair[1].1.until - pair[0].1.until, rhythm.period).is_some()
        })
    };
    let members = (0..all.len())
        .filter(|&place| is_regular(place) || place.checked_sub(1).is_some_and(is_regular));
    let members: Vec<_> = members.map(|place| all[place]).collect();
    Some((members, rhythm))
}

/// Returns the silences of a similar length that chance does not explain, if there are enough. Their rhythm has the mean
/// time between two and no evidence.
fn irregular(silences: &[Silences]) -> Option<(Vec<(usize, Silence)>, Rhythm)> {
    let all: usize = silences.iter().map(|of| of.actions.len()).sum();
    let least = CLEAR + libm::log(all.max(1) as f64);
    let length = |silence: &Silence| silence.until - silence.open;
    let scored = || silences.iter().flat_map(|of| &of.scored);
    let clear = scored().filter(|silence| silence.work >= least);
    let mut lengths: Vec<u64> = clear.map(length).collect();
    lengths.sort_unstable();
    let median = *lengths.get(lengths.len() / 2)?;
    let is_similar = |length: &u64| (median / 2..=median + median / 2).contains(length);
    let similar = lengths.iter().filter(|length| is_similar(length)).count();
    if similar < LEAST || (similar as f64) < SIMILAR * lengths.len() as f64 {
        return None;
    }
    // The long silences of requests that wait for each other are the last of many that are slightly shorter.
    let (half, near) = (median / 2, median / 5 * 4);
    let is_cut = |of: &Silences| {
        let shortest = of.scored.iter().map(length).min();
        of.scored.len() + 1 < of.actions.len() && shortest.is_some_and(|shortest| shortest > half)
    };
    let shorter = scored()
        .map(length)
        .filter(|length| (half..near).contains(length));
    let longer = scored().filter(|silence| length(silence) >= near).count();
    if silences.iter().any(is_cut) || shorter.count() as f64 > RARE * longer as f64 {
        return None;
    }
    let mut members: Vec<(usize, Silence)> = Vec::new();
    let mut intervals: Vec<f64> = Vec::new();
    for (place, of) in silences.iter().enumerate() {
        let first = members.len();
        let mine = of
            .scored
            .iter()
            .filter(|silence| silence.score >= FURTHER_SCORE);
        let mine = mine.filter(|silence| is_similar(&length(silence)));
        members.extend(mine.map(|silence| (place, *silence)));
        let pairs = members[first..].windows(2);
        intervals.extend(pairs.map(|pair| (pair[1].1.until - pair[0].1.until) as f64));
    }
    let count = intervals.len().max(1) as f64;
    let period = intervals.iter().sum::<f64>() / count;
    let squares: f64 = intervals.iter().map(|one| (one - period).powi(2)).sum();
    let rhythm = Rhythm {
        period,
        evidence: 0.0,
        variation: squares / count / period.max(1.0).powi(2),
    };
    Some((members, rhythm))
}

/// Fits a line to the ends of consecutive pauses: the time of the first turn, and the time between two. `None` if pauses
/// of this length are too far from the line.
fn line(ends: &[u64], period: f64, length: f64) -> Option<(f64, f64)> {
    let first = *ends.first()?;
    let mut points: Vec<(f64, f64)> = (ends.iter())
        .map(|&end| ((end - first) as f64 / period, (end - first) as f64))
        .map(|(turn, time)| (turn.round(), time))
        .collect();
    let (mut offset, mut slope, mut error) = (0.0, period, f64::INFINITY);
    for _ in 0..2 {
        let count = points.len() as f64;
        if count < 3.0 {
            return None;
        }
        let mean =
            |values: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(values).sum::<f64>() / count;
        let (turns, time) = (mean(&|point| point.0), mean(&|point| point.1));
        if points.len() >= LEAST_FITTED {
            slope = mean(&|point| (point.0 - turns) * (point.1 - time))
                / mean(&|point| (point.0 - turns).powi(2)).max(1e-9);
        }
        offset = time - slope * turns;
        let off = |point: &(f64, f64)| point.1 - offset - slope * point.0;
        error = libm::sqrt(mean(&|point| off(point).powi(2)));
        points.retain(|point| off(point).abs() <= length / 2.0);
    }
    let is_fixed = error <= FIXED * length && (0.8..1.25).contains(&(slope / period));
    is_fixed.then_some((first as f64 + offset, slope))
}

/// Returns the mean time since the last action, at a time at which work has been open since then and no pause begins.
fn recurrence(silences: &[Silences], members: &[(usize, Silence)]) -> f64 {
    let (mut total, mut squares) = (0.0, 0.0);
    for of in silences {
        (total, squares) = (total + of.lengths.0, squares + of.lengths.1);
    }
    for (_, silence) in members.iter().filter(|(_, one)| one.open == one.after) {
        let length = (silence.until - silence.after) as f64;
        (total, squares) = (total - length, squares - length * length);
    }
    (squares / total.max(1.0) / 2.0).max(0.0)
}
