//! Connections of an instance to a service: a constant maximum of concurrent calls, with waiting.
//!
//! Some clients wait for a connection before their span begins, other clients wait within the span. In the first case
//! the concurrency of spans never exceeds the maximum, and when it falls below the maximum, the next call begins at
//! once. In the second case, calls that find the maximum number of calls in flight arrive at the server later than
//! other calls, by the time for which they waited.

use crate::learn::invocation::Invocations;
use crate::learn::slots::{self, Visit};
use rustc_hash::{FxHashMap, FxHashSet};

/// The minimum number of calls that waited, and of calls altogether.
const LEAST_WAITING: usize = 20;
const LEAST: usize = 100;

/// The share of calls that may exceed the maximum; they occur at the borders of resampled blocks.
const MOST_BEYOND: usize = 500;

/// The longest time in nanoseconds from a free connection to the next call.
const AT_ONCE: u64 = 200_000;

/// A pool of connections of each instance, and the calls that waited.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) most: u32,
    pub(super) waited: Vec<u32>,
    /// True if the waits are part of the calls' spans.
    pub(super) is_inside: bool,
}

/// A call of an instance to a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) call: u32,
    caller: u32,
    /// The instance that was called.
    pub(super) instance: u32,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The arrival at the server.
    pub(super) arrival: u64,
}

/// The calls of each instance to one service.
#[derive(Debug, Default)]
pub(super) struct Uses(Vec<Vec<Use>>);

/// Returns the calls between each pair of services, by calling instance.
pub(super) fn uses(invocations: &Invocations) -> FxHashMap<(u32, u32), Uses> {
    let mut by_instance: FxHashMap<(u32, u32, u32), Vec<Use>> = FxHashMap::default();
    for (call, made) in (0..).zip(&invocations.all) {
        let (Some(caller), Some((begin, end))) = (made.caller, made.client) else {
            continue;
        };
        if made.one_way || made.incomplete {
            continue;
        }
        let by = &invocations.all[caller as usize];
        let of = by_instance
            .entry((by.service, made.service, by.instance))
            .or_default();
        let arrival = made.begin.max(begin);
        of.push(Use {
            call,
            caller,
            instance: made.instance,
            begin,
            end,
            arrival,
        });
    }
    let mut found: FxHashMap<(u32, u32), Uses> = FxHashMap::default();
    let mut by_instance: Vec<_> = by_instance.into_iter().collect();
    by_instance.sort_unstable_by_key(|(pair, _)| *pair);
    for ((by, to, _), mut uses) in by_instance {
        uses.sort_unstable_by_key(|one| (one.begin, one.end, one.call));
        found.entry((by, to)).or_default().0.push(uses);
    }
    found
}

/// The concurrency of calls, and the calls that began as soon as there was a free connection.
#[derive(Debug, Default)]
struct Concurrency {
    /// The number of calls that began at each concurrency, which includes the call.
    at: Vec<usize>,
    /// For each call: the concurrency, and the wait since a call of another caller ended.
    began: Vec<(u32, usize, u64)>,
}

impl Concurrency {
    fn of(uses: &[Vec<Use>]) -> Concurrency {
        let mut found = Concurrency::default();
        for instance in uses {
            let mut ends: Vec<(u64, u32)> =
                instance.iter().map(|one| (one.end, one.caller)).collect();
            ends.sort_unstable();
            let mut ended = 0;
            for (place, one) in instance.iter().enumerate() {
                while ended < place && ends[ended].0 <= one.begin {
                    ended += 1;
                }
                let now = place + 1 - ended;
                if found.at.len() <= now {
                    found.at.resize(now + 1, 0);
                }
                found.at[now] += 1;
                let last = ended.checked_sub(1).map(|last| ends[last]);
                let since = last.filter(|(_, caller)| *caller != one.caller);
                let since = since.map_or(u64::MAX, |(end, _)| one.begin - end);
                found.began.push((one.call, now, since));
            }
        }
        found
    }

    /// Returns the concurrency that nearly no call exceeds.
    fn most(&self) -> usize {
        let mut beyond = self.began.len() / MOST_BEYOND;
        let mut most = self.at.len().saturating_sub(1);
        while most > 1 && self.at[most] <= beyond {
            beyond -= self.at[most];
            most -= 1;
        }
        most
    }
}

impl Uses {
    /// Iterates over the calling instances, each with its calls in the order of time.
    pub(super) fn by_caller(&self) -> impl Iterator<Item = &[Use]> {
        self.0.iter().map(Vec::as_slice)
    }

    pub(super) fn calls(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Returns the maximum number of concurrent calls of an instance.
    pub(super) fn most_at_once(&self) -> usize {
        Concurrency::of(&self.0).at.len().saturating_sub(1)
    }

    /// Returns the maximum number of calls of an instance within a second.
    pub(super) fn most_in_a_second(&self) -> usize {
        let of = |uses: &Vec<Use>| {
            let mut from = 0;
            let mut most = 0;
            for (place, one) in uses.iter().enumerate() {
                while uses[from].begin + 1_000_000_000 < one.begin {
                    from += 1;
                }
                most = most.max(place + 1 - from);
            }
            most
        };
        self.0.iter().map(of).max().unwrap_or(0)
    }

    /// Estimates the number of connections; `None` if no limit is visible. The calls in `opening` did not wait for a
    /// connection, but opened one.
    pub(super) fn pool(&self, opening: &[u32]) -> Option<Pool> {
        if self.calls() < LEAST {
            return None;
        }
        self.before_spans().or_else(|| self.inside_spans(opening))
    }

    fn before_spans(&self) -> Option<Pool> {
        let concurrency = Concurrency::of(&self.0);
        let most = concurrency.most();
        let total: u64 = self.0.iter().flatten().map(|one| one.end - one.begin).sum();
        let mean = total / self.calls().max(1) as u64;
        let at_once = AT_ONCE.min(mean / 20).max(2_000);
        let full = concurrency.began.iter().filter(|(_, now, _)| *now == most);
        let (mut waited, mut others) = (Vec::new(), 0);
        for &(call, _, since) in full {
            match since <= at_once {
                true => waited.push(call),
                false => others += 1,
            }
        }
        // By chance, a call begins so soon after another has ended with this probability.
        let lasted = |uses: &Vec<Use>| Some(uses.last()?.end.saturating_sub(uses.first()?.begin));
        let lasted: u64 = self.0.iter().filter_map(lasted).sum();
        let chance = self.calls() as f64 / lasted.max(1) as f64 * at_once as f64;
        let share = waited.len() as f64 / (waited.len() + others).max(1) as f64;
        let is_clear = waited.len() >= LEAST_WAITING && share > (5.0 * chance).max(0.2);
        is_clear.then_some(Pool {
            most: most as u32,
            waited,
            is_inside: false,
        })
    }

    fn inside_spans(&self, opening: &[u32]) -> Option<Pool> {
        let opening: FxHashSet<u32> = opening.iter().copied().collect();
        let visit = |one: &Use| Visit {
            begin: one.begin,
            end: one.end,
            first: match opening.contains(&one.call) {
                true => 0,
                false => one.arrival - one.begin,
            },
        };
        let visits: Vec<Vec<Visit>> = self
            .0
            .iter()
            .map(|uses| uses.iter().map(visit).collect())
            .collect();
        let most = slots::estimate(&visits)?;
        let mut waited = Vec::new();
        for (uses, visits) in self.0.iter().zip(&visits) {
            let starts = slots::starts(visits, most);
            let waits = uses
                .iter()
                .zip(starts)
                .filter(|(one, start)| *start > one.begin + 2_000);
            waited.extend(waits.map(|(one, _)| one.call));
        }
        Some(Pool {
            most,
            waited,
            is_inside: true,
        })
    }
}
