//! Clocks that run faster or slower than virtual time.

use crate::packet::Reader;

const MILLION: i128 = 1_000_000;

/// The relation between virtual time and the time that a host's clocks count, both in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// The virtual time at which the rate was set, and the host's time at that moment.
    since: u64,
    local: u64,
    /// By how many millionths the clocks are faster than virtual time; more than minus a million.
    rate: i32,
}

impl Drift {
    /// Sets the rate at a virtual time. The host's time is continuous.
    pub(crate) fn change(&mut self, now: u64, rate: i32) {
        *self = Drift {
            since: now,
            local: self.local(now),
            rate: rate.max(1 - MILLION as i32),
        };
    }

    /// Returns the host's time at a virtual time, which is not before the last change of the rate.
    pub(crate) fn local(&self, time: u64) -> u64 {
        let passed = i128::from(time.saturating_sub(self.since));
        let counted = passed * (MILLION + i128::from(self.rate)) / MILLION;
        self.local.saturating_add(counted as u64)
    }

    /// Returns the first virtual time at which the host's time is at least `local`; the maximum stands for never.
    pub(crate) fn virtual_at(&self, local: u64) -> u64 {
        if local == u64::MAX {
            return local;
        }
        let counted = i128::from(local.saturating_sub(self.local)) * MILLION;
        let rate = MILLION + i128::from(self.rate);
        let passed = (counted + rate - 1) / rate;
        self.since
            .saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    pub(crate) fn to_bytes(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&self.since.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.local.to_le_bytes());
        bytes[16..].copy_from_slice(&self.rate.to_le_bytes());
        bytes
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Drift> {
        Some(Drift {
            since: reader.u64()?,
            local: reader.u64()?,
            rate: i32::from_le_bytes(reader.array()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_without_drift_counts_virtual_time() {
        let drift = Drift::default();
        assert_eq!((drift.local(7), drift.virtual_at(7)), (7, 7));
        assert_eq!(drift.virtual_at(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_virtual_time_of_a_wait_is_the_first_at_which_it_is_over() {
        let mut random = corsair::Random::new(1);
        for _ in 0..10_000 {
            let (mut drift, mut now) = (Drift::default(), 0);
            for _ in 0..random.below(5) {
                now += u64::from(random.below(1_000_000_000));
                let before = drift.local(now);
                drift.change(now, random.below(4_000_000) as i32 - 2_000_000);
                assert_eq!(drift.local(now), before);
            }
            let due = drift.local(now) + (random.bits() >> 24);
            let at = drift.virtual_at(due);
            assert!(at == now || drift.local(at - 1) < due, "{drift:?} {due}");
            assert!(drift.local(at) >= due, "{drift:?} {due}");
        }
    }
}
