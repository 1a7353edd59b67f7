//! Learns caches from the keys of look-ups and from which of them missed.
//!
//! A cache that evicts the least recently used value has a key if fewer other keys than its size were used since the
//! key was used last. A cache with a time to live has a key for that time after a miss. The size and the time to live
//! are those that explain the recorded hits and misses. The popularity of keys follows from how many different keys were
//! used, and from how often two look-ups used equal keys; with it the hit rate follows at other loads and sizes.

use super::fit;
use super::invocation::{Invocation, Invocations};
use super::script::Target;
use crate::definition::{CacheDefinition, StepDefinition, Targets};
use rustc_hash::FxHashMap;

/// The minimum number of look-ups of keys that were used before, and of hits and of misses.
const LEAST: usize = 200;
const LEAST_OF_EACH: usize = 20;

/// The maximum number of look-ups that are examined.
const MOST: usize = 1_000_000;

/// The largest share of unexplained hits and misses, of the rarer of both.
const MOST_UNEXPLAINED: f64 = 0.1;

/// The largest difference between the recorded and the computed hit rate.
const MOST_OFF: f64 = 0.05;

/// The largest number of keys that definitions allow, and the largest exponent of the popularity.
const MOST_KEYS: f64 = 1e8;
const MOST_SKEW: f64 = 3.0;

/// A look-up at an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LookUp {
    instance: u32,
    at: u64,
    key: u64,
    missed: bool,
}

/// A look-up of a key that was used before.
#[derive(Clone, Copy, Debug)]
struct Reuse {
    /// The number of other keys since the last use, and the time since the last miss.
    others: u64,
    age: u64,
    missed: bool,
}

/// A learned cache.
#[derive(Debug)]
struct LearnedCache {
    cache: CacheDefinition,
    /// The share of look-ups of keys that were used before, which the cache explains.
    explained: f64,
}

impl LearnedCache {
    /// Describes the cache.
    fn shown(&self) -> String {
        let cache = &self.cache;
        let size = cache.size.map_or("all".to_owned(), |size| size.to_string());
        let ttl = cache
            .ttl
            .map(|ttl| format!(" for {:.3} s", ttl.nanos() as f64 / 1e9));
        let skew = cache
            .skew
            .map(|skew| format!(" with popularities of exponent {skew}"));
        format!(
            "{size} of {} keys{}{}",
            cache.keys.unwrap_or_default(),
            skew.unwrap_or_default(),
            ttl.unwrap_or_default()
        )
    }
}

/// Replaces a call that a part of the requests makes by a cache of keys with this call after a miss, if a cache explains
/// which requests make it. Returns a remark. If the requests have no keys, a description is added to `without_keys`.
pub(super) fn find(
    invocations: &Invocations,
    of: &[u32],
    step: &mut StepDefinition,
    place: &str,
    name: &dyn Fn(Target) -> String,
    without_keys: &mut Vec<String>,
) -> Option<String> {
    let share = step
        .probability
        .filter(|share| (0.01..=0.99).contains(share))?;
    let Some(Targets::One(target)) = &step.call else {
        return None;
    };
    let is_miss = |call: Invocation| name((call.service, call.operation)) == *target;
    let used = of.iter().filter(|&&made| {
        let about = &invocations.all[made as usize];
        about.key != 0 && !about.incomplete
    });
    let look_ups: Vec<LookUp> = used
        .map(|&made| LookUp {
            instance: invocations.all[made as usize].instance,
            at: invocations.all[made as usize].begin,
            key: invocations.all[made as usize].key,
            missed: invocations.calls(made).any(is_miss),
        })
        .collect();
    let hits = (1.0 - share) * 100.0;
    if look_ups.is_empty() {
        without_keys.push(format!("{hits:.0} % of {place} do not call {target}"));
        return None;
    }
    let Some(found) = learn(look_ups) else {
        return Some(format!(
            "no cache of keys explains which requests of {place} call {target}: {hits:.0} % do not, at any load"
        ));
    };
    let remark = format!(
        "a cache of {} explains {:.1} % of the hits and misses of {place}",
        found.shown(),
        found.explained * 100.0
    );
    step.probability = None;
    let miss = std::mem::take(step);
    *step = StepDefinition {
        cache: Some(found.cache),
        miss: vec![miss],
        ..StepDefinition::default()
    };
    Some(remark)
}

/// Learns a cache from look-ups; `None` if no cache of keys explains them.
fn learn(mut look_ups: Vec<LookUp>) -> Option<LearnedCache> {
    look_ups.sort_unstable();
    look_ups.truncate(MOST);
    let reuses = reuses(&look_ups);
    let count = |missed: bool| reuses.iter().filter(|one| one.missed == missed).count();
    let (hits, misses) = (count(false), count(true));
    if reuses.len() < LEAST || hits < LEAST_OF_EACH {
        return None;
    }
    let rarer = hits.min(misses).max(LEAST_OF_EACH) as f64;
    let (size, ttl, wrong) = limits(&reuses);
    if wrong as f64 > MOST_UNEXPLAINED * rarer {
        return None;
    }
    let popularity = Popularity::of(&look_ups)?;
    let instances = look_ups.chunk_by(|a, b| a.instance == b.instance).count();
    let lasted: u64 = look_ups
        .chunk_by(|a, b| a.instance == b.instance)
        .map(|of| of[of.len() - 1].at - of[0].at)
        .sum();
    let rate = (look_ups.len() - instances) as f64 / lasted.max(1) as f64;
    let recorded = hits as f64 / reuses.len() as f64;
    let is_same = match (size, ttl) {
        // The reuses are a biased sample while the cache fills; a cache without limits has a hit rate of 1.
        (None, None) => true,
        _ => (popularity.hit_rate(size, ttl, rate) - steady(&look_ups)).abs() <= MOST_OFF,
    };
    (is_same && recorded > 0.0).then(|| LearnedCache {
        cache: CacheDefinition {
            hit_rate: None,
            keys: Some(popularity.keys as i64),
            skew: (popularity.skew > 0.0).then_some(popularity.skew),
            size: size.map(|size| size as i64),
            ttl: ttl.map(fit::span),
        },
        explained: 1.0 - wrong as f64 / reuses.len() as f64,
    })
}

/// Returns the hit rate of the second half of the recording, when the cache is full.
fn steady(look_ups: &[LookUp]) -> f64 {
    let halves = look_ups
        .chunk_by(|a, b| a.instance == b.instance)
        .map(|of| &of[of.len() / 2..]);
    let (mut all, mut hits) = (0u64, 0u64);
    for one in halves.flatten() {
        all += 1;
        hits += u64::from(!one.missed);
    }
    hits as f64 / all.max(1) as f64
}

/// Returns the look-ups of keys that the same instance has used before, after a miss.
fn reuses(look_ups: &[LookUp]) -> Vec<Reuse> {
    let mut found = Vec::new();
    for of in look_ups.chunk_by(|a, b| a.instance == b.instance) {
        // A Fenwick tree counts the places of the last use of each key.
        let mut tree = vec![0u32; of.len() + 1];
        let add = |tree: &mut Vec<u32>, mut place: usize, is_added: bool| {
            place += 1;
            while place < tree.len() {
                tree[place] = tree[place].wrapping_add(if is_added { 1 } else { u32::MAX });
                place += place & place.wrapping_neg();
            }
        };
        let sum = |tree: &[u32], mut end: usize| {
            let mut sum = 0u64;
            while end > 0 {
                sum += u64::from(tree[end]);
                end &= end - 1;
            }
            sum
        };
        let mut last: FxHashMap<u64, (usize, Option<u64>)> = FxHashMap::default();
        for (place, one) in of.iter().enumerate() {
            let known = last.get(&one.key).copied();
            if let Some((used, stored)) = known {
                if let Some(stored) = stored {
                    found.push(Reuse {
                        others: sum(&tree, place) - sum(&tree, used + 1),
                        age: one.at - stored,
                        missed: one.missed,
                    });
                }
                add(&mut tree, used, false);
            }
            add(&mut tree, place, true);
            let stored = known.and_then(|(_, stored)| stored);
            let stored = if one.missed { Some(one.at) } else { stored };
            last.insert(one.key, (place, stored));
        }
    }
    found
}

/// Returns the size and the time to live that explain most hits and misses, and the number that they do not explain.
fn limits(reuses: &[Reuse]) -> (Option<u64>, Option<u64>, usize) {
    let none = reuses.iter().filter(|one| one.missed).count();
    let by_size = |ttl: Option<u64>| {
        let alive = reuses
            .iter()
            .filter(|one| ttl.is_none_or(|ttl| one.age < ttl));
        let dead = reuses
            .iter()
            .filter(|one| ttl.is_some_and(|ttl| one.age >= ttl));
        let (limit, wrong) = threshold(alive.map(|one| (one.others, one.missed)).collect());
        (limit, wrong + dead.filter(|one| !one.missed).count())
    };
    let by_age = |size: Option<u64>| {
        let held = reuses
            .iter()
            .filter(|one| size.is_none_or(|size| one.others < size));
        let evicted = reuses
            .iter()
            .filter(|one| size.is_some_and(|size| one.others >= size));
        let (limit, wrong) = threshold(held.map(|one| (one.age, one.missed)).collect());
        (limit, wrong + evicted.filter(|one| !one.missed).count())
    };
    let (size, wrong_by_size) = by_size(None);
    let (ttl, wrong_by_age) = by_age(None);
    let both = match wrong_by_size <= wrong_by_age {
        true => by_age(size),
        false => by_size(ttl),
    };
    let (one, wrong) = match wrong_by_size <= wrong_by_age {
        true => ((size, None), wrong_by_size),
        false => ((None, ttl), wrong_by_age),
    };
    let (limits, wrong) = match both.1 + LEAST_OF_EACH < wrong && 5 * both.1 < 4 * wrong {
        true => match wrong_by_size <= wrong_by_age {
            true => ((size, both.0), both.1),
            false => ((both.0, ttl), both.1),
        },
        false => (one, wrong),
    };
    // Without limits, only the first look-up of a key misses.
    match wrong + LEAST_OF_EACH >= none {
        true => (None, None, none),
        false => (limits.0, limits.1, wrong),
    }
}

/// Returns the value from which on look-ups miss, and the number of look-ups for which this is wrong.
fn threshold(mut samples: Vec<(u64, bool)>) -> (Option<u64>, usize) {
    samples.sort_unstable();
    // With a limit of 0 every hit is wrong; each larger limit turns misses below it into errors.
    let mut wrong = samples.iter().filter(|(_, missed)| !missed).count();
    let (mut least, mut from, mut to) = (wrong, 0, 0);
    let mut place = 0;
    while place < samples.len() {
        let value = samples[place].0;
        while place < samples.len() && samples[place].0 == value {
            wrong = if samples[place].1 {
                wrong + 1
            } else {
                wrong - 1
            };
            place += 1;
        }
        if wrong < least {
            (least, from) = (wrong, value + 1);
            to = samples.get(place).map_or(u64::MAX, |next| next.0);
        }
    }
    // The limit is anywhere between the longest hit and the next miss.
    let limit = (to < u64::MAX).then(|| from + (to - from) / 2);
    (limit, least)
}

/// The popularity of keys: Zipf's law.
#[derive(Clone, Copy, Debug)]
struct Popularity {
    keys: f64,
    skew: f64,
}

impl Popularity {
    /// Finds the law with which as many different keys would be used, and as many pairs of look-ups of equal keys.
    fn of(look_ups: &[LookUp]) -> Option<Popularity> {
        let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
        for one in look_ups {
            *counts.entry(one.key).or_default() += 1;
        }
        let count = look_ups.len() as f64;
        let pairs: u64 = counts.values().map(|&of| of * (of - 1)).sum();
        let equal = pairs as f64 / (count * (count - 1.0)).max(1.0);
        let different = counts.len() as f64;
        if equal <= 0.0 {
            return None;
        }
        let with = |skew: f64| {
            let keys = bisect(different, MOST_KEYS, |keys| {
                let law = Popularity { keys, skew };
                law.sum(|p| -libm::expm1(-p * count)) >= different * (1.0 - 1e-4)
            });
            Popularity {
                keys: keys.round(),
                skew,
            }
        };
        let skew = bisect(0.0, MOST_SKEW, |skew| with(skew).sum(|p| p * p) >= equal);
        let skew = (skew * 100.0).round() / 100.0;
        Some(with(if skew < 0.05 { 0.0 } else { skew }))
    }

    /// Sums a function of the probability over all keys.
    fn sum(&self, of: impl Fn(f64) -> f64) -> f64 {
        let groups = groups(self.keys);
        let weight = |rank: f64| libm::pow(rank, -self.skew);
        let total: f64 = groups.iter().map(|&(rank, size)| weight(rank) * size).sum();
        let groups = groups.into_iter();
        groups
            .map(|(rank, size)| of(weight(rank) / total) * size)
            .sum()
    }

    /// Returns the hit rate of a full cache (Che's approximation for a size), with look-ups per nanosecond.
    fn hit_rate(&self, size: Option<u64>, ttl: Option<u64>, rate: f64) -> f64 {
        let lives = ttl.map_or(f64::INFINITY, |ttl| ttl as f64 * rate);
        // The number of look-ups for which an unused value stays.
        let stays = size.map_or(f64::INFINITY, |size| {
            bisect(0.0, 1e12, |stays| {
                self.sum(|p| -libm::expm1(-p * stays)) >= size as f64
            })
        });
        self.sum(|p| {
            let by_size = -libm::expm1(-p * stays);
            let by_age = if lives.is_finite() {
                p * lives / (1.0 + p * lives)
            } else {
                1.0
            };
            p * by_size.min(by_age)
        })
    }
}

/// Returns ranks from 1 up to a number of keys, each with the number of ranks for which it stands.
fn groups(keys: f64) -> Vec<(f64, f64)> {
    let mut groups = Vec::new();
    let mut first = 1.0;
    while first <= keys {
        let size = libm::floor(first * 0.02)
            .max(1.0)
            .min(keys - first + 1.0)
            .max(1.0);
        groups.push((first + (size - 1.0) / 2.0, size));
        first += size;
    }
    groups
}

/// Returns the least value for which a condition holds that holds for all larger ones.
fn bisect(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low, high);
    if holds(low) {
        return low;
    }
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match holds(middle) {
            true => high = middle,
            false => low = middle,
        }
        if high - low <= 1e-4 * high {
            break;
        }
    }
    high
}
