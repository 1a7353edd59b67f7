//! Attempts of calls: retries, time-outs and hedges.
//!
//! A call of the same target by the same invocation may be a further attempt. It is a retry if such calls follow
//! failures, but not successes. It is a hedge, or a retry after a time-out, if it begins a constant time after an attempt
//! that is still in flight, and only then. The caller of a hedge continues with the first answer; after a time-out it waits
//! for the answer of the last attempt.

use crate::definition::{CallPolicy, Hedge, Retries};
use crate::learn::fit::{quantile, span};
use crate::learn::invocation::Invocations;

/// The minimum number of samples for a rule.
const LEAST: usize = 10;

/// The minimum difference between the shares of failures and of successes that are followed by a further call.
const CLEAR: f64 = 0.3;

/// The relative range in which a time counts as constant.
const CONSTANT: f64 = 0.05;

/// Times below this, in nanoseconds, are the error of clocks and of the operating system.
const NO_TIME: u64 = 20_000;

/// The maximum number of attempts of a call in definitions.
const MOST_ATTEMPTS: usize = 31;

/// A call as its caller saw it.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    call: u32,
    begin: u64,
    end: u64,
    failed: bool,
}

/// The relation of an attempt to an earlier one of the same target and invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// No earlier attempt.
    Nothing,
    /// The attempt begins after the end of this earlier attempt.
    After(usize),
    /// It begins while this attempt is in flight.
    During(usize),
}

/// The attempts of one target by an invocation.
#[derive(Debug, Default)]
struct Group {
    attempts: Vec<Attempt>,
    follows: Vec<Follows>,
    /// The time at which the caller's invocation ended.
    caller_end: u64,
    /// The beginnings of the caller's other calls.
    others: Vec<u64>,
}

impl Group {
    /// Finds the attempt that each attempt follows: the attempt that ended last before it began; if there is none, the
    /// attempt that began before it.
    fn relate(&mut self) {
        self.follows.clear();
        let mut is_followed = vec![false; self.attempts.len()];
        for (place, attempt) in self.attempts.iter().enumerate() {
            let earlier = self.attempts[..place].iter().enumerate();
            let ended =
                earlier.filter(|(one, other)| other.end <= attempt.begin && !is_followed[*one]);
            let last = ended.max_by_key(|(_, other)| other.end).map(|(one, _)| one);
            let follows = match (last, place.checked_sub(1)) {
                (Some(last), _) => Follows::After(last),
                (None, Some(before)) if !is_followed[before] => Follows::During(before),
                _ => Follows::Nothing,
            };
            if let Follows::After(one) | Follows::During(one) = follows {
                is_followed[one] = true;
            }
            self.follows.push(follows);
        }
    }

    /// Returns the time at which the caller continued after an attempt began: its next other call, or its end.
    fn resumes(&self, attempt: &Attempt) -> u64 {
        let others = self.others.iter().filter(|&&begin| begin > attempt.begin);
        others
            .min()
            .copied()
            .unwrap_or(self.caller_end)
            .min(self.caller_end)
    }
}

/// The observations of the calls of one service by another.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Two numbers of failures: all, and those that a further attempt follows. `successes` has the same numbers of
    /// successes.
    failures: [u64; 2],
    successes: [u64; 2],
    /// The waits before retries, by the number of the retry.
    gaps: Vec<Vec<u64>>,
    /// The times from the start of a first attempt to the start of a further attempt that overlaps it.
    offsets: Vec<u64>,
    /// The durations of first attempts that no further one overlaps.
    alone: Vec<u64>,
    /// Callers that waited for the last attempt, and callers that continued with the first answer.
    votes: [u64; 2],
    /// The times that callers waited for attempts that were answered after the callers had ended.
    given_up: Vec<u64>,
    failed: Vec<u64>,
    /// The longest duration of a success, and the total and the number of all durations.
    pub(super) longest: u64,
    pub(super) total: u64,
    pub(super) calls: u64,
}

impl Evidence {
    pub(super) fn has_failures(&self) -> bool {
        self.failures[0] > 0
    }

    fn add(&mut self, group: &Group) {
        let mut is_followed = vec![false; group.attempts.len()];
        let mut is_overlapped = vec![false; group.attempts.len()];
        let mut retries = vec![0usize; group.attempts.len()];
        for (place, attempt) in group.attempts.iter().enumerate() {
            match group.follows[place] {
                Follows::Nothing => {}
                Follows::After(one) => {
                    is_followed[one] = true;
                    let before = &group.attempts[one];
                    if before.failed && retries[one] < MOST_ATTEMPTS {
                        retries[place] = retries[one] + 1;
                        if self.gaps.len() <= retries[one] {
                            self.gaps.resize(retries[one] + 1, Vec::new());
                        }
                        self.gaps[retries[one]].push(attempt.begin - before.end);
                    }
                }
                Follows::During(one) => {
                    is_overlapped[one] = true;
                    retries[place] = retries[one] + 1;
                    let before = &group.attempts[one];
                    if group.follows[one] == Follows::Nothing {
                        self.offsets.push(attempt.begin - before.begin);
                    }
                    self.vote(group, before, attempt);
                }
            }
        }
        for (place, attempt) in group.attempts.iter().enumerate() {
            let lasted = attempt.end - attempt.begin;
            self.calls += 1;
            self.total += lasted;
            if group.follows[place] == Follows::Nothing && !is_overlapped[place] {
                self.alone.push(lasted);
            }
            // A caller that ends with the failure of another call has not waited for this one.
            let mut others = group.attempts.iter();
            let has_failed = others
                .any(|one| one.failed && one.end > attempt.begin && one.end <= group.caller_end);
            if attempt.end > group.caller_end && !is_overlapped[place] && !has_failed {
                self.given_up
                    .push(group.caller_end.saturating_sub(attempt.begin));
            }
            let of = match attempt.failed {
                true => &mut self.failures,
                false => &mut self.successes,
            };
            of[0] += u64::from(!is_overlapped[place]);
            of[1] += u64::from(is_followed[place]);
            match attempt.failed {
                true => self.failed.push(lasted),
                false => self.longest = self.longest.max(lasted),
            }
        }
    }

    /// Records whether the caller waited for the later one of two attempts in flight.
    fn vote(&mut self, group: &Group, first: &Attempt, second: &Attempt) {
        let is_cancelled =
            second.failed != first.failed && first.end.abs_diff(second.end) < 1_000_000;
        if is_cancelled {
            self.votes[1] += 1;
        } else if !first.failed && first.end < second.end {
            self.votes[usize::from(group.resumes(second) < second.end)] += 1;
        }
    }

    /// Derives the rules of the attempts.
    pub(super) fn rules(&mut self) -> Rules {
        let share = |of: [u64; 2]| of[1] as f64 / of[0].max(1) as f64;
        let retries = self.failures[0] >= LEAST as u64
            && share(self.failures) - share(self.successes) > CLEAR;
        let mut rules = Rules {
            retries,
            retried: share(self.failures),
            ..Rules::default()
        };
        if retries {
            self.backoff(&mut rules);
        }
        let overlap = self.overlap();
        if let Some(offset) = overlap.filter(|_| self.votes[1] > self.votes[0]) {
            rules.overlap = Some((offset, true));
            rules.timeout = self.failed_late();
            return rules;
        }
        rules.overlap = overlap.map(|offset| (offset, false));
        rules.timeout = constant(&mut self.given_up).or_else(|| self.failed_late());
        if let Some(offset) = overlap {
            let backoff = rules.backoff.unwrap_or(0);
            let timeout = rules.timeout.filter(|timeout| *timeout <= offset + NO_TIME);
            let timeout = timeout.unwrap_or(offset.saturating_sub(backoff).max(1));
            rules.timeout = Some(timeout);
            let wait = offset.saturating_sub(timeout);
            if rules.backoff.is_none() && wait > NO_TIME {
                rules.backoff = Some(wait);
            }
            rules.retries = true;
        }
        rules
    }

    /// Returns the constant time after which a further attempt begins while the first is in flight.
    fn overlap(&mut self) -> Option<u64> {
        let offsets = &mut self.offsets;
        offsets.sort_unstable();
        if offsets.len() < LEAST {
            return None;
        }
        let (least, most) = (quantile(offsets, 0.02), quantile(offsets, 0.98));
        if least <= NO_TIME || most - least > least / 2 {
            return None;
        }
        // Calls that are always made at once are not attempts of one call.
        let short = self.alone.iter().filter(|&&lasted| lasted < least).count();
        let long = self
            .alone
            .iter()
            .filter(|&&lasted| lasted > most + most / 50)
            .count();
        let is_conditional = short >= LEAST && long * 4 <= offsets.len();
        is_conditional.then(|| quantile(offsets, 0.5))
    }

    /// Returns the time-out of attempts that end with it: many failures last equally long, and no success lasts longer.
    fn failed_late(&mut self) -> Option<u64> {
        self.failed.sort_unstable();
        let longest = *self.failed.last()?;
        let from = longest - longest / 8;
        let late = &self.failed[self.failed.partition_point(|&lasted| lasted < from)..];
        let is_limit = late.len() >= LEAST && 10 * late.len() >= self.failed.len();
        let timeout = quantile(late, 0.1);
        let is_constant = quantile(late, 0.75) - timeout <= (timeout / 20).max(2_000_000);
        (is_limit && is_constant && self.longest <= longest && timeout > NO_TIME).then_some(timeout)
    }

    /// Derives the waits before retries. Quartiles are used, because a part of the waits may belong to other retries.
    fn backoff(&mut self, rules: &mut Rules) {
        let mut quartiles = self.gaps.iter_mut().map(|gaps| {
            gaps.sort_unstable();
            let at = |part| quantile(gaps, part) as f64;
            (gaps.len() >= LEAST).then(|| (at(0.25), at(0.5), at(0.75)))
        });
        let Some(Some((low, median, high))) = quartiles.next() else {
            return;
        };
        if median <= NO_TIME as f64 {
            return;
        }
        if let Some(Some((_, second, _))) = quartiles.next() {
            rules.factor = Some((second / median * 20.0).round().max(20.0) / 20.0);
        }
        // Uniform waits between a part and the whole have these quartiles.
        let ratio = low / high;
        let jitter = ((1.0 - ratio) / (0.75 - 0.25 * ratio)).min(1.0);
        if jitter < CONSTANT {
            rules.backoff = Some(median as u64);
            return;
        }
        rules.backoff = Some((high / (1.0 - 0.25 * jitter)) as u64);
        rules.jitter = (jitter * 100.0).round() / 100.0;
    }
}

/// Returns the constant value of samples, if there are enough samples and they are nearly equal.
fn constant(samples: &mut [u64]) -> Option<u64> {
    samples.sort_unstable();
    if samples.len() < LEAST {
        return None;
    }
    let (low, high) = (quantile(samples, 0.1), quantile(samples, 0.9));
    let is_constant = (high - low) as f64 <= (low as f64 * CONSTANT).max(NO_TIME as f64);
    (is_constant && low > NO_TIME).then(|| quantile(samples, 0.5))
}

/// The rules of the attempts of calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// Whether failures are retried, and the share of failures that a further attempt follows.
    retries: bool,
    retried: f64,
    backoff: Option<u64>,
    factor: Option<f64>,
    jitter: f64,
    timeout: Option<u64>,
    /// The time after which a further attempt overlaps the first, and true if it is a hedge.
    overlap: Option<(u64, bool)>,
    most_retries: usize,
    most_hedges: usize,
}

/// Attempts that are one call: the first of them, the others, and the end and the result of the call.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) first: u32,
    pub(super) others: Vec<u32>,
    pub(super) end: u64,
    pub(super) failed: bool,
}

impl Rules {
    pub(super) fn is_empty(&self) -> bool {
        !self.retries && self.timeout.is_none() && self.overlap.is_none()
    }

    /// Returns the policy that these rules describe.
    pub(super) fn policy(&self) -> CallPolicy {
        let hedge = self.overlap.filter(|(_, is_hedge)| *is_hedge);
        let is_retrying = self.retries && self.most_retries > 0;
        CallPolicy {
            timeout: self.timeout.map(span),
            retries: is_retrying.then(|| Retries {
                most: self.most_retries.min(MOST_ATTEMPTS - 1) as i64,
                backoff: self.backoff.map(span),
                factor: self.factor.filter(|_| self.backoff.is_some()),
                limit: None,
                jitter: (self.jitter > 0.0).then_some(self.jitter),
                budget: None,
            }),
            hedge: hedge.map(|(after, _)| Hedge {
                after: span(after),
                most: (self.most_hedges > 1).then_some(self.most_hedges.min(3) as i64),
            }),
            ..CallPolicy::default()
        }
    }

    /// Returns the share of failures that were retried, if failures are retried.
    pub(super) fn retried(&self) -> Option<f64> {
        (self.retries && self.retried > 0.0).then_some(self.retried)
    }

    /// True if two attempts belong to the same call.
    fn continues(&self, group: &Group, place: usize) -> Option<usize> {
        match group.follows[place] {
            Follows::After(one) => {
                let before = &group.attempts[one];
                (self.retries && (before.failed || self.is_late(before))).then_some(one)
            }
            Follows::During(one) => {
                let (offset, _) = self.overlap?;
                let since = group.attempts[place].begin - group.attempts[one].begin;
                (since + since / 4 >= offset).then_some(one)
            }
            _ => None,
        }
    }

    /// True if the caller had timed out before the recorded answer of an attempt.
    fn is_late(&self, attempt: &Attempt) -> bool {
        let is_hedge = self.overlap.is_some_and(|(_, is_hedge)| is_hedge);
        let timeout = self.timeout.filter(|_| !is_hedge);
        timeout.is_some_and(|time| attempt.end - attempt.begin > time + NO_TIME)
    }

    /// Joins the attempts of a group to calls, and counts retries and hedges.
    fn chains(&mut self, group: &Group, found: &mut Vec<Chain>) {
        let mut chain_of: Vec<usize> = Vec::new();
        let mut chains: Vec<(Vec<usize>, usize, usize)> = Vec::new();
        let is_hedge = self.overlap.is_some_and(|(_, is_hedge)| is_hedge);
        for place in 0..group.attempts.len() {
            let number = match self.continues(group, place) {
                Some(one) => {
                    let number = chain_of[one];
                    let (attempts, retries, hedges) = &mut chains[number];
                    attempts.push(place);
                    match is_hedge && matches!(group.follows[place], Follows::During(_)) {
                        true => *hedges += 1,
                        false => *retries += 1,
                    }
                    number
                }
                None => {
                    chains.push((vec![place], 0, 0));
                    chains.len() - 1
                }
            };
            chain_of.push(number);
        }
        for (places, retries, hedges) in chains {
            self.most_retries = self.most_retries.max(retries);
            self.most_hedges = self.most_hedges.max(hedges);
            let attempts: Vec<Attempt> =
                places.iter().map(|&place| group.attempts[place]).collect();
            if attempts.len() == 1 && !self.is_late(&attempts[0]) {
                continue;
            }
            let good = attempts
                .iter()
                .filter(|one| !one.failed && !self.is_late(one));
            let end = |one: &Attempt| match self.timeout.filter(|_| self.is_late(one)) {
                Some(time) => one.begin + time,
                None => one.end,
            };
            let answered = good.map(|one| one.end).min();
            let last = attempts.iter().map(end).max().unwrap_or(0);
            found.push(Chain {
                first: attempts[0].call,
                others: attempts[1..].iter().map(|one| one.call).collect(),
                end: answered.unwrap_or(last),
                failed: answered.is_none(),
            });
        }
    }
}

/// Calls `each` with the attempts of each target by each invocation, and the services of both sides.
fn groups(invocations: &Invocations, mut each: impl FnMut((u32, u32), &Group)) {
    let mut group = Group::default();
    let (mut calls, mut rest): (Vec<u32>, Vec<u32>) = Default::default();
    let target = |call: u32| {
        let call = &invocations.all[call as usize];
        (call.service, call.operation)
    };
    for (place, made) in (0..).zip(&invocations.all) {
        if made.incomplete || made.one_way {
            continue;
        }
        calls.clear();
        calls.extend(invocations.call_numbers(place));
        calls.retain(|&call| {
            let call = &invocations.all[call as usize];
            !call.one_way && call.client.is_some()
        });
        rest.clone_from(&calls);
        while let Some(&first) = rest.first() {
            let of = target(first);
            group.caller_end = made.end;
            group.attempts.clear();
            group.others.clear();
            for &call in &calls {
                let about = &invocations.all[call as usize];
                let (begin, end) = about.seen();
                match target(call) == of {
                    true => group.attempts.push(Attempt {
                        call,
                        begin,
                        end,
                        failed: about.failed,
                    }),
                    false => group.others.push(begin),
                }
            }
            group.relate();
            each((made.service, of.0), &group);
            rest.retain(|&call| target(call) != of);
        }
    }
}

/// Returns the observations for each pair of services.
pub(super) fn evidence(invocations: &Invocations) -> Vec<((u32, u32), Evidence)> {
    let mut found: std::collections::BTreeMap<(u32, u32), Evidence> = Default::default();
    groups(invocations, |pair, group| {
        found.entry(pair).or_default().add(group)
    });
    found.into_iter().collect()
}

/// Returns the attempts that are one call, by the rules of each pair of services.
pub(super) fn chains(
    invocations: &Invocations,
    rules: &mut std::collections::BTreeMap<(u32, u32), Rules>,
) -> Vec<Chain> {
    let mut found = Vec::new();
    groups(invocations, |pair, group| {
        if let Some(rules) = rules.get_mut(&pair).filter(|rules| !rules.is_empty()) {
            rules.chains(group, &mut found);
        }
    });
    found
}
