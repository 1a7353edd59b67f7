//! A circuit breaker: closed, open for some time after too many failures, half open during some probes.

use crate::policy::BreakerRules;
use crate::saved::RestoreState;
use serde::{Deserialize, Serialize};

/// A circuit breaker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Breaker {
    #[serde(skip)]
    rules: BreakerRules,
    state: State,
    /// A ring of the last attempts; true for failures.
    last: Vec<bool>,
    next: usize,
    failures: u32,
    /// The number of times that the breaker has opened.
    opened: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Closed,
    /// Open until a time in nanoseconds.
    Open(u64),
    /// The number of probes that were let through, and the number that were answered.
    HalfOpen {
        begun: u32,
        good: u32,
    },
}

impl RestoreState for Breaker {
    fn take_over(&mut self, saved: Breaker) {
        let rules = self.rules;
        *self = Breaker { rules, ..saved };
        self.forget_beyond_window();
    }
}

impl Breaker {
    pub(super) fn new(rules: BreakerRules) -> Breaker {
        Breaker {
            rules,
            state: State::Closed,
            last: Vec::new(),
            next: 0,
            failures: 0,
            opened: 0,
        }
    }

    /// True if an attempt may be made now. The caller then reports its outcome with `record`, or calls `forget`.
    pub(super) fn allows(&mut self, now: u64) -> bool {
        if let State::Open(until) = self.state
            && now >= until
        {
            self.state = State::HalfOpen { begun: 0, good: 0 };
        }
        match &mut self.state {
            State::Closed => true,
            State::Open(_) => false,
            State::HalfOpen { begun, .. } if *begun < self.rules.probes => {
                *begun += 1;
                true
            }
            State::HalfOpen { .. } => false,
        }
    }

    /// Records that an allowed attempt was not made, or was abandoned.
    pub(super) fn forget(&mut self) {
        if let State::HalfOpen { begun, good } = &mut self.state {
            *begun = begun.saturating_sub(1).max(*good);
        }
    }

    /// Records that an attempt has ended.
    pub(super) fn record(&mut self, failed: bool, now: u64) {
        match &mut self.state {
            State::Closed => {
                if self.last.len() < self.rules.window as usize {
                    self.last.push(failed);
                } else {
                    let old = std::mem::replace(&mut self.last[self.next], failed);
                    self.failures -= u32::from(old);
                }
                self.next = (self.next + 1) % self.rules.window as usize;
                self.failures += u32::from(failed);
                let is_full = self.last.len() == self.rules.window as usize;
                if is_full && self.failures >= self.rules.failures {
                    self.open(now);
                }
            }
            // The attempt was made before the breaker opened.
            State::Open(_) => {}
            State::HalfOpen { .. } if failed => self.open(now),
            State::HalfOpen { good, .. } => {
                *good += 1;
                if *good >= self.rules.probes {
                    self.state = State::Closed;
                }
            }
        }
    }

    /// Removes the oldest attempts beyond the window.
    fn forget_beyond_window(&mut self) {
        let window = self.rules.window as usize;
        let oldest = self.next.min(self.last.len());
        self.last.rotate_left(oldest);
        let beyond = self.last.len().saturating_sub(window);
        self.last.drain(..beyond);
        self.next = self.last.len() % window.max(1);
        self.failures = self.last.iter().map(|&failed| u32::from(failed)).sum();
    }

    fn open(&mut self, now: u64) {
        self.state = State::Open(now.saturating_add(self.rules.open));
        self.opened += 1;
        self.last.clear();
        self.next = 0;
        self.failures = 0;
    }

    /// Returns how often the breaker has opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Breaker {
        Breaker::new(BreakerRules {
            failures: 2,
            window: 4,
            open: 100,
            probes: 2,
        })
    }

    #[test]
    fn it_opens_when_enough_of_a_full_window_have_failed() {
        let mut breaker = breaker();
        for failed in [true, false, false] {
            breaker.record(failed, 0);
        }
        assert!(breaker.allows(1));
        // The window slides: the first failure leaves it.
        for failed in [false, true, false, false] {
            breaker.record(failed, 1);
            assert!(breaker.allows(2));
        }
        breaker.record(true, 5);
        assert!(!breaker.allows(6) && !breaker.allows(104));
        assert_eq!(breaker.opened(), 1);
    }

    fn opened_at_zero() -> Breaker {
        let mut breaker = breaker();
        (0..4).for_each(|_| breaker.record(true, 0));
        breaker
    }

    #[test]
    fn half_open_it_lets_probes_through_and_closes_when_all_succeed() {
        let mut breaker = opened_at_zero();
        assert!(breaker.allows(100) && breaker.allows(101) && !breaker.allows(102));
        breaker.record(false, 103);
        assert!(!breaker.allows(104), "the other probe is under way");
        breaker.record(false, 105);
        assert!((0..9).all(|_| breaker.allows(106)));
    }

    #[test]
    fn a_probe_that_fails_opens_it_again_and_one_that_is_not_made_leaves_its_place() {
        let mut breaker = opened_at_zero();
        assert!(breaker.allows(100) && breaker.allows(100));
        breaker.forget();
        assert!(breaker.allows(101) && !breaker.allows(101));
        breaker.record(true, 110);
        assert!(!breaker.allows(209) && breaker.allows(210));
        assert_eq!(breaker.opened(), 2);
    }

    #[test]
    fn what_was_sent_before_it_opened_does_not_count() {
        let mut breaker = opened_at_zero();
        breaker.record(false, 50);
        breaker.record(true, 60);
        assert!(!breaker.allows(99) && breaker.allows(100));
    }
}
