//! How often somebody may ask.

use crate::limits::Limits;
use crate::model::UserId;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, NotUntil, Quota};
use std::net::IpAddr;
use std::time::Duration;

/// A rate for each user, and one for each address from which strangers come.
#[derive(Debug)]
pub(crate) struct Rates {
    users: DefaultKeyedRateLimiter<UserId>,
    strangers: DefaultKeyedRateLimiter<IpAddr>,
    clock: DefaultClock,
}

impl Rates {
    pub fn new(limits: &Limits) -> Rates {
        Rates {
            users: DefaultKeyedRateLimiter::dashmap(Quota::per_second(limits.rate)),
            strangers: DefaultKeyedRateLimiter::dashmap(Quota::per_second(limits.strangers)),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request of a user; an error says how long to wait.
    pub fn user(&self, user: UserId) -> Result<(), Duration> {
        self.users.check_key(&user).map_err(|no| self.wait(&no))
    }

    /// Counts a request of somebody unknown; an error says how long to wait.
    pub fn stranger(&self, address: IpAddr) -> Result<(), Duration> {
        self.strangers
            .check_key(&address)
            .map_err(|no| self.wait(&no))
    }

    fn wait(&self, no: &NotUntil<<DefaultClock as Clock>::Instant>) -> Duration {
        no.wait_time_from(self.clock.now())
    }

    /// Forgets those who have not asked for long.
    pub fn tidy(&self) {
        self.users.retain_recent();
        self.strangers.retain_recent();
        self.users.shrink_to_fit();
        self.strangers.shrink_to_fit();
    }
}
