//! Checked policies for calls, with times in nanoseconds.

use crate::definition::{Balance, CallPolicy, RateLimit};
use crate::duration_text::TimeSpan;
use crate::saved::RestoreState;
use serde::{Deserialize, Serialize};

/// The maximum deadline of a call, in nanoseconds: an hour. A message has 32 bits for the microseconds until its
/// deadline, which is enough for 71 minutes.
const LONGEST_DEADLINE: u64 = 3_600_000_000_000;
/// The maximum number of attempts of a call: the first attempt, retries and hedges.
pub(crate) const MOST_ATTEMPTS: i64 = 31;
/// The maximum number of hedges.
pub(crate) const MOST_HEDGES: i64 = 3;
/// The maximum length of a breaker's window.
const LONGEST_WINDOW: i64 = 1024;

/// The policy for calls to a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Policy {
    pub(crate) balance: Balance,
    pub(crate) hash_bound: f64,
    pub(crate) zone_spill: u32,
    pub(crate) connections: Option<Pool>,
    pub(crate) timeout: Option<u64>,
    pub(crate) deadline: Option<u64>,
    pub(crate) retries: Option<Retry>,
    /// The delay of a hedge in nanoseconds, and the maximum number of hedges.
    pub(crate) hedge: Option<(u64, u8)>,
    pub(crate) breaker: Option<BreakerRules>,
    pub(crate) bulkhead: Option<u32>,
    pub(crate) rate_limit: Option<Rate>,
    pub(crate) ejection: Option<EjectionRules>,
}

impl Policy {
    /// True if the policy depends on the outcome of calls. A policy that only chooses instances does not.
    pub(crate) fn minds_answers(&self) -> bool {
        let chooses = Policy {
            balance: self.balance,
            hash_bound: self.hash_bound,
            zone_spill: self.zone_spill,
            ..Policy::default()
        };
        *self != chooses
    }
}

/// The rules for the connections of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Pool {
    pub(crate) most: u32,
    pub(crate) waiting: usize,
    pub(crate) connect: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Retry {
    pub(crate) most: u8,
    pub(crate) backoff: u64,
    pub(crate) factor: f64,
    pub(crate) limit: u64,
    pub(crate) jitter: f64,
    /// The number of retries that each call earns, and the maximum number of saved retries.
    pub(crate) budget: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct BreakerRules {
    /// The number of failed attempts in the window that opens the breaker.
    pub(crate) failures: u32,
    pub(crate) window: u32,
    pub(crate) open: u64,
    pub(crate) probes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct EjectionRules {
    pub(crate) failures: u32,
    pub(crate) lasting: u64,
    pub(crate) most: f64,
}

/// A rate in tokens per nanosecond, with a burst after a rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    per_nano: f64,
    burst: f64,
}

impl Rate {
    pub(crate) fn new(limit: &RateLimit) -> Result<Rate, String> {
        let burst = limit.burst.unwrap_or(1.0);
        if !(limit.rate > 0.0 && limit.rate <= 1e9) {
            let rate = limit.rate;
            return Err(format!(
                "a rate limit of {rate} is not possible; give a number above 0, up to 1000000000"
            ));
        }
        if !(1.0..=1e9).contains(&burst) {
            return Err(format!(
                "a burst of {burst} is not possible; give 1 to 1000000000"
            ));
        }
        Ok(Rate {
            per_nano: limit.rate / 1e9,
            burst,
        })
    }
}

/// A token bucket of a rate limit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Bucket {
    #[serde(skip)]
    rate: Rate,
    tokens: f64,
    at: u64,
}

impl RestoreState for Bucket {
    fn take_over(&mut self, saved: Bucket) {
        let rate = self.rate;
        *self = Bucket { rate, ..saved };
    }
}

impl Bucket {
    pub(crate) fn new(rate: Rate) -> Bucket {
        Bucket {
            rate,
            tokens: rate.burst,
            at: 0,
        }
    }

    /// Takes a token at a time in nanoseconds; false if there is none.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let filled = now.saturating_sub(self.at) as f64 * self.rate.per_nano;
        self.at = now;
        self.tokens = (self.tokens + filled).min(self.rate.burst);
        // Rounding errors may leave a full token slightly below 1.
        let is_there = self.tokens >= 1.0 - 1e-9;
        if is_there {
            self.tokens = (self.tokens - 1.0).max(0.0);
        }
        is_there
    }
}

/// Checks that a whole number is within these bounds.
fn whole(number: i64, from: i64, to: i64, what: &str) -> Result<u32, String> {
    if (from..=to).contains(&number) {
        return Ok(number as u32);
    }
    Err(format!(
        "{what} of {number} is not possible; give {from} to {to}"
    ))
}

/// Checks that a number is within these bounds.
fn number(number: f64, from: f64, to: f64, what: &str) -> Result<f64, String> {
    if (from..=to).contains(&number) {
        return Ok(number);
    }
    Err(format!(
        "{what} of {number} is not possible; give {from} to {to}"
    ))
}

fn above_zero(time: TimeSpan, what: &str) -> Result<u64, String> {
    match time.nanos() {
        0 => Err(format!(
            "{what} of 0s is not possible; give more, or leave it out"
        )),
        nanos => Ok(nanos),
    }
}

impl Policy {
    /// Converts the policy of a definition. Returns an error if a value is invalid.
    pub(crate) fn new(from: &CallPolicy) -> Result<Policy, String> {
        const MANY: i64 = 1_000_000;
        let balance = from.balance.unwrap_or_default();
        if from.hash_bound.is_some() && balance != Balance::Hash {
            return Err("only the balance hash has a hash_bound; remove it".to_owned());
        }
        if from.zone_spill.is_some() && balance != Balance::Zone {
            return Err("only the balance zone has a zone_spill; remove it".to_owned());
        }
        let retries = from.retries.as_ref().map(Retry::new).transpose()?;
        let hedge = match &from.hedge {
            None => None,
            Some(hedge) => {
                let most = whole(hedge.most.unwrap_or(1), 1, MOST_HEDGES, "\"most\" hedges")?;
                Some((above_zero(hedge.after, "hedging \"after\"")?, most as u8))
            }
        };
        let attempts = 1
            + retries.map_or(0, |retries| i64::from(retries.most))
            + hedge.map_or(0, |(_, most)| i64::from(most));
        if attempts > MOST_ATTEMPTS {
            return Err(format!(
                "{attempts} attempts for one call are too many; give at most {MOST_ATTEMPTS}, with the first, retries and hedges"
            ));
        }
        let deadline = from.deadline.map(|time| above_zero(time, "a deadline"));
        let deadline = deadline.transpose()?;
        if deadline.is_some_and(|deadline| deadline > LONGEST_DEADLINE) {
            return Err("a deadline of more than an hour is too far away; leave it out".to_owned());
        }
        Ok(Policy {
            balance,
            hash_bound: number(from.hash_bound.unwrap_or(1.25), 1.0, 1e6, "a hash_bound")?,
            zone_spill: match from.zone_spill {
                None => u32::MAX,
                Some(spill) => whole(spill, 1, MANY, "a zone_spill")?,
            },
            connections: match &from.connections {
                None => None,
                Some(pool) => Some(Pool {
                    most: whole(pool.most, 1, MANY, "\"most\" connections")?,
                    waiting: match pool.waiting {
                        None => usize::MAX,
                        Some(waiting) => whole(waiting, 0, MANY, "\"waiting\"")? as usize,
                    },
                    connect: pool.connect.map_or(0, |time| time.nanos()),
                }),
            },
            timeout: from
                .timeout
                .map(|time| above_zero(time, "a timeout"))
                .transpose()?,
            deadline,
            retries,
            hedge,
            breaker: from.breaker.as_ref().map(BreakerRules::new).transpose()?,
            bulkhead: from
                .bulkhead
                .map(|most| whole(most, 1, MANY, "a bulkhead"))
                .transpose()?,
            rate_limit: from.rate_limit.as_ref().map(Rate::new).transpose()?,
            ejection: match &from.ejection {
                None => None,
                Some(ejection) => Some(EjectionRules {
                    failures: whole(ejection.failures, 1, MANY, "\"failures\" for an ejection")?,
                    lasting: above_zero(ejection.lasting, "an ejection")?,
                    most: number(ejection.most.unwrap_or(0.5), 0.0, 1.0, "\"most\" ejected")?,
                }),
            },
        })
    }
}

impl Retry {
    fn new(from: &crate::definition::Retries) -> Result<Retry, String> {
        Ok(Retry {
            most: whole(from.most, 1, MOST_ATTEMPTS, "\"most\" retries")? as u8,
            backoff: from.backoff.map_or(0, |time| time.nanos()),
            factor: number(from.factor.unwrap_or(2.0), 1.0, 1e3, "a factor")?,
            limit: from.limit.map_or(10_000_000_000, |time| time.nanos()),
            jitter: number(from.jitter.unwrap_or(0.0), 0.0, 1.0, "a jitter")?,
            budget: match from.budget {
                None => None,
                Some(budget) => Some((
                    number(budget.share, 0.0, 1e3, "the share of a retry budget")?,
                    number(
                        budget.burst.unwrap_or(10.0),
                        0.0,
                        1e9,
                        "the burst of a retry budget",
                    )?,
                )),
            },
        })
    }

    /// Returns the wait in nanoseconds before the retry with this number, counted from 0, using random bits.
    pub(crate) fn wait(&self, number: u8, bits: u64) -> u64 {
        let mut wait = self.backoff as f64;
        for _ in 0..number {
            wait *= self.factor;
        }
        let wait = wait.min(self.limit as f64);
        let random = self.jitter * crate::distribution::unit(bits);
        (wait * (1.0 - self.jitter + random)) as u64
    }
}

impl BreakerRules {
    fn new(from: &crate::definition::BreakerDefinition) -> Result<BreakerRules, String> {
        let window = whole(from.window.unwrap_or(20), 1, LONGEST_WINDOW, "a window")?;
        let share = from.failures;
        if !(share > 0.0 && share <= 1.0) {
            return Err(format!(
                "a breaker that opens at a share of {share} failures is not possible; give a number above 0, up to 1"
            ));
        }
        Ok(BreakerRules {
            failures: (libm::ceil(share * f64::from(window) - 1e-6) as u32).max(1),
            window,
            open: above_zero(from.open, "\"open\" of a breaker")?,
            probes: whole(from.probes.unwrap_or(1), 1, LONGEST_WINDOW, "\"probes\"")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        Policy::new(&serde_json::from_str(json).unwrap()).unwrap_err()
    }

    #[test]
    fn policies_that_make_no_sense_are_refused_in_a_sentence() {
        for (json, said) in [
            (
                r#"{"timeout": "0s"}"#,
                "a timeout of 0s is not possible; give more, or leave it out",
            ),
            (
                r#"{"bulkhead": 0}"#,
                "a bulkhead of 0 is not possible; give 1 to 1000000",
            ),
            (
                r#"{"hash_bound": 2}"#,
                "only the balance hash has a hash_bound; remove it",
            ),
            (
                r#"{"retries": {"most": 30}, "hedge": {"after": "1ms", "most": 3}}"#,
                "34 attempts for one call are too many; give at most 31, with the first, retries and hedges",
            ),
            (
                r#"{"breaker": {"failures": 0, "open": "1s"}}"#,
                "a breaker that opens at a share of 0 failures is not possible; give a number above 0, up to 1",
            ),
            (
                r#"{"rate_limit": {"rate": -1}}"#,
                "a rate limit of -1 is not possible; give a number above 0, up to 1000000000",
            ),
            (
                r#"{"retries": {"most": 2, "jitter": 1.5}}"#,
                "a jitter of 1.5 is not possible; give 0 to 1",
            ),
        ] {
            assert_eq!(refusal(json), said);
        }
    }

    #[test]
    fn waits_grow_by_the_factor_up_to_the_limit_and_jitter_shortens_them() {
        let retries = |jitter| {
            let json = format!(
                r#"{{"most": 9, "backoff": "10ms", "factor": 3, "limit": "50ms", "jitter": {jitter}}}"#
            );
            Retry::new(&serde_json::from_str(&json).unwrap()).unwrap()
        };
        let waits = [0, 1, 2, 8].map(|number| retries(0.0).wait(number, 7) / 1_000_000);
        assert_eq!(waits, [10, 30, 50, 50]);
        let mut random = corsair::Random::new(3);
        let waits: Vec<u64> = (0..1000)
            .map(|_| retries(0.5).wait(0, random.bits()))
            .collect();
        assert!(
            waits
                .iter()
                .all(|&wait| (5_000_000..=10_000_000).contains(&wait))
        );
        let mean = waits.iter().sum::<u64>() as f64 / 1e3;
        assert!((mean / 7.5e6 - 1.0).abs() < 0.03, "{mean}");
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let rate = Rate::new(&RateLimit {
            rate: 10.0,
            burst: Some(3.0),
        });
        let mut bucket = Bucket::new(rate.unwrap());
        let given = |bucket: &mut Bucket, now| (0..9).filter(|_| bucket.take(now)).count();
        assert_eq!(given(&mut bucket, 0), 3);
        assert_eq!(given(&mut bucket, 200_000_000), 2);
        assert_eq!(given(&mut bucket, 10_000_000_000), 3);
    }
}
