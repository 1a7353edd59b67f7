//! Rate limits of requests.

use crate::limits::Limits;
use crate::model::UserId;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, NotUntil, Quota};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

/// The number of token look-ups per address for each allowed wrong token.
const LOOKUPS: NonZeroU32 = NonZeroU32::new(10).expect("10 is not 0");

/// Rates of users, and of addresses and account names from which no login has succeeded yet.
#[derive(Debug)]
pub(crate) struct Rates {
    users: DefaultKeyedRateLimiter<UserId>,
    /// The rates of recipients of a user's messages.
    recipients: DefaultKeyedRateLimiter<UserId>,
    most_recipients: NonZeroU32,
    strangers: DefaultKeyedRateLimiter<IpAddr>,
    /// The rates of look-ups of unknown tokens.
    lookups: DefaultKeyedRateLimiter<IpAddr>,
    /// The rates of logins to an account, by the hash of its name.
    accounts: DefaultKeyedRateLimiter<u64>,
    clock: DefaultClock,
}

impl Rates {
    pub fn new(limits: &Limits) -> Rates {
        let lookups = limits.strangers.saturating_mul(LOOKUPS);
        Rates {
            users: DefaultKeyedRateLimiter::dashmap(Quota::per_second(limits.rate)),
            recipients: DefaultKeyedRateLimiter::dashmap(Quota::per_second(limits.fanout)),
            most_recipients: limits.fanout,
            strangers: DefaultKeyedRateLimiter::dashmap(Quota::per_second(limits.strangers)),
            lookups: DefaultKeyedRateLimiter::dashmap(Quota::per_second(lookups)),
            accounts: DefaultKeyedRateLimiter::dashmap(Quota::per_second(limits.strangers)),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request of a user. The error of this and the following methods is the time to wait.
    pub fn user(&self, user: UserId) -> Result<(), Duration> {
        self.users.check_key(&user).map_err(|no| self.wait(&no))
    }

    /// Counts the recipients of a message. A single message to more than the limit uses up the
    /// whole limit.
    pub fn recipients(&self, user: UserId, count: u32) -> Result<(), Duration> {
        let count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let count = count.min(self.most_recipients);
        match self.recipients.check_key_n(&user, count) {
            Ok(checked) => checked.map_err(|no| self.wait(&no)),
            // The number of recipients is at most the quota, so this error cannot occur.
            Err(_) => Ok(()),
        }
    }

    /// Counts an attempt of an unknown client.
    pub fn stranger(&self, address: IpAddr) -> Result<(), Duration> {
        let checked = self.strangers.check_key(&address);
        checked.map_err(|no| self.wait(&no))
    }

    /// Counts the look-up of a token.
    pub fn lookup(&self, address: IpAddr) -> Result<(), Duration> {
        let checked = self.lookups.check_key(&address);
        checked.map_err(|no| self.wait(&no))
    }

    /// Counts a login to an account, whether it exists or not.
    pub fn account(&self, name: &str) -> Result<(), Duration> {
        let hash = blake3::hash(name.as_bytes());
        let (first, _) = hash.as_bytes().split_at(8);
        let key = first
            .iter()
            .fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        let checked = self.accounts.check_key(&key);
        checked.map_err(|no| self.wait(&no))
    }

    fn wait(&self, no: &NotUntil<<DefaultClock as Clock>::Instant>) -> Duration {
        no.wait_time_from(self.clock.now())
    }

    /// Forgets clients without recent requests.
    pub fn tidy(&self) {
        fn tidy<K: std::hash::Hash + Eq + Clone>(all: &DefaultKeyedRateLimiter<K>) {
            all.retain_recent();
            all.shrink_to_fit();
        }
        tidy(&self.users);
        tidy(&self.recipients);
        tidy(&self.strangers);
        tidy(&self.lookups);
        tidy(&self.accounts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_to_many_counts_as_many() {
        let rates = Rates::new(&Limits {
            fanout: NonZeroU32::new(100).unwrap(),
            ..Limits::default()
        });
        let (anne, mary) = (UserId(1), UserId(2));
        assert!(rates.recipients(anne, 60).is_ok());
        assert!(rates.recipients(anne, 60).is_err());
        assert!(rates.recipients(mary, 5000).is_ok());
        assert!(rates.recipients(mary, 1).is_err());
    }
}
