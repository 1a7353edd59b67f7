//! Learns the policies of calls that traces show: retries, time-outs, hedges, connections and the choice of an instance.
//! Policies that the traces cannot show are reported with the range of values that leave no mark in the traces, and with
//! their effect.

mod attempts;
mod balance;
mod connect;
mod pool;

use super::fit::span;
use super::invocation::Invocations;
use crate::definition::{CallPolicy, Connections};
use attempts::{Evidence, Rules};
use connect::Opening;
use pool::{Pool, Uses};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A service that calls, and the service that it calls.
pub(super) type Pair = (u32, u32);

/// The policies of the calls between services.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) by_pair: BTreeMap<Pair, CallPolicy>,
    /// The calls before which their callers waited for a connection, and the calls whose spans include such a wait.
    pub(super) waited_before: FxHashSet<u32>,
    pub(super) waited_inside: FxHashSet<u32>,
    pub(super) unseen: Vec<Unseen>,
    /// The pairs of services with the share of failures that were retried, if it is not all.
    pub(super) budgets: Vec<(Pair, f64)>,
    /// The pairs of services with a time in nanoseconds to open a connection, but no known number of connections.
    pub(super) unlimited: Vec<(Pair, u64)>,
}

/// The observations that bound the policies that the traces do not show, for calls between two services.
#[derive(Clone, Debug)]
pub(super) struct Unseen {
    pub(super) pair: Pair,
    pub(super) calls: u64,
    /// The longest successful call and the mean of all, in seconds.
    longest: f64,
    mean: f64,
    most_at_once: usize,
    most_in_a_second: usize,
    has_failures: bool,
    policy: CallPolicy,
}

/// Learns the policies of calls, and joins the attempts of each call to one call.
pub(super) fn learn(invocations: &mut Invocations) -> Policies {
    let mut policies = Policies::default();
    let mut seen: BTreeMap<Pair, Evidence> = attempts::evidence(invocations).into_iter().collect();
    let mut rules: BTreeMap<Pair, Rules> = BTreeMap::new();
    for (pair, evidence) in &mut seen {
        rules.insert(*pair, evidence.rules());
    }
    let chains = attempts::chains(invocations, &mut rules);
    let uses = pool::uses(invocations);
    for (pair, rules) in &rules {
        let mut policy = rules.policy();
        let retried = rules
            .retried()
            .filter(|share| *share < 0.9 && policy.retries.is_some());
        policies.budgets.extend(retried.map(|share| (*pair, share)));
        let (pool, opening) = uses.get(pair).map_or((None, None), pool_and_opening);
        if let Some(opening) = &opening {
            policies.waited_inside.extend(&opening.calls);
            if pool.is_none() {
                policies.unlimited.push((*pair, opening.nanos));
            }
        }
        if let Some(pool) = pool {
            policy.connections = Some(Connections {
                most: pool.most.into(),
                waiting: None,
                connect: opening.map(|opening| span(opening.nanos)),
            });
            match pool.is_inside {
                true => policies.waited_inside.extend(pool.waited),
                false => policies.waited_before.extend(pool.waited),
            }
        }
        policy.balance = uses.get(pair).and_then(balance::find);
        policies
            .unseen
            .push(Unseen::of(*pair, &seen[pair], uses.get(pair), &policy));
        if policy != CallPolicy::default() {
            policies.by_pair.insert(*pair, policy);
        }
    }
    policies
        .unseen
        .sort_by_key(|one| (std::cmp::Reverse(one.calls), one.pair));
    invocations.join_attempts(
        chains
            .into_iter()
            .map(|chain| (chain.first, chain.others, (chain.end, chain.failed))),
    );
    policies
}

/// Returns the calls that waited for a connection of their callers within their spans.
pub(super) fn waiting_inside(invocations: &Invocations) -> FxHashSet<u32> {
    let pools = pool::uses(invocations);
    let pools = pools.values().filter_map(|uses| pool_and_opening(uses).0);
    let inside = pools.filter(|pool| pool.is_inside);
    inside.flat_map(|pool| pool.waited).collect()
}

/// Finds the number of connections, and the time to open one.
fn pool_and_opening(uses: &Uses) -> (Option<Pool>, Option<Opening>) {
    let opening = connect::find(uses, None);
    let opened = opening.as_ref().map_or(&[][..], |opening| &opening.calls);
    match uses.pool(opened) {
        None => (None, opening),
        Some(pool) => {
            let opening = connect::find(uses, Some(&pool));
            (Some(pool), opening)
        }
    }
}

impl Policies {
    /// Returns a remark for each pair of services with fewer retries than failures, or with connections without a known
    /// maximum.
    pub(super) fn remarks(&self, name: &dyn Fn(u32) -> String) -> Vec<String> {
        let remark = |((by, to), share): &(Pair, f64)| {
            format!(
                "{} retried only {:.0} % of the failed calls of {}: a retry budget or a breaker stopped the others; give it \
                 by --with",
                name(*by),
                share * 100.0,
                name(*to)
            )
        };
        let opening = |((by, to), nanos): &(Pair, u64)| {
            format!(
                "calls of {} to {} take {:.1} ms longer when they need a new connection: a definition states this only \
                 with the number of connections, and it has an effect only at a start and after time-outs; set connections",
                name(*by),
                name(*to),
                *nanos as f64 / 1e6
            )
        };
        let opening = self.unlimited.iter().map(opening);
        self.budgets.iter().map(remark).chain(opening).collect()
    }
}

impl Unseen {
    fn of(pair: Pair, seen: &Evidence, uses: Option<&Uses>, policy: &CallPolicy) -> Unseen {
        Unseen {
            pair,
            calls: seen.calls,
            longest: seen.longest as f64 / 1e9,
            mean: seen.total as f64 / seen.calls.max(1) as f64 / 1e9,
            most_at_once: uses.map_or(0, Uses::most_at_once).max(1),
            most_in_a_second: uses.map_or(0, Uses::most_in_a_second).max(1),
            has_failures: seen.has_failures(),
            policy: policy.clone(),
        }
    }

    /// Returns the policies that the traces do not show, with the names of both services.
    pub(super) fn named(&self, by: String, to: String) -> UnseenPolicies {
        let policy = &self.policy;
        let mut policies = Vec::new();
        let mut add = |policy, beyond: f64, effect: String| {
            policies.push(UnseenPolicy {
                policy,
                beyond,
                effect,
            });
        };
        if policy.timeout.is_none() {
            let effect = "at a higher load it fails the slower calls".to_owned();
            add("timeout", self.longest, effect);
        }
        if policy.retries.is_none() && !self.has_failures {
            let effect = format!("while {to} fails, each adds up to its whole load again");
            add("retries", 0.0, effect);
        }
        if policy.connections.is_none() {
            let most = self.most_at_once as f64;
            let effect = format!(
                "{most} of an instance carry {:.0} calls/s",
                most / self.mean.max(1e-9)
            );
            add("connections", most, effect);
        }
        if policy.hedge.is_none() {
            add(
                "hedge",
                self.longest,
                "it asks twice when a call is slow".to_owned(),
            );
        }
        let effect = "calls beyond it fail at once".to_owned();
        add("rate_limit", self.most_in_a_second as f64, effect);
        UnseenPolicies {
            caller: by,
            called: to,
            policies,
        }
    }
}

/// The policies of the calls of a service that a recording cannot show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnseenPolicies {
    /// The service that calls.
    pub caller: String,
    /// The service that it calls.
    pub called: String,
    /// The policies.
    pub policies: Vec<UnseenPolicy>,
}

/// A policy that a recording cannot show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnseenPolicy {
    /// The name of the policy in definitions.
    pub policy: &'static str,
    /// The value above which the policy leaves no mark in the traces: seconds for a time-out or a hedge, the number of
    /// connections, or calls per second.
    pub beyond: f64,
    /// The effect that the policy would have.
    pub effect: String,
}

impl fmt::Display for UnseenPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls {}, and these would not have shown: ",
            self.caller, self.called
        )?;
        for (place, one) in self.policies.iter().enumerate() {
            let between = if place == 0 { "" } else { ", " };
            write!(f, "{between}{one}")?;
        }
        Ok(())
    }
}

impl fmt::Display for UnseenPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnseenPolicy { beyond, effect, .. } = self;
        match self.policy {
            "timeout" => write!(f, "a time-out above {:.1} ms", beyond * 1e3),
            "hedge" => write!(f, "a hedge after {:.1} ms", beyond * 1e3),
            "connections" => write!(f, "{beyond:.0} or more connections"),
            "rate_limit" => write!(f, "a rate limit above {beyond:.0}/s"),
            other => f.write_str(other),
        }?;
        write!(f, " ({effect})")
    }
}
