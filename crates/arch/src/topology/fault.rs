//! What goes wrong: when, how often, with whom, and between which places.

use super::Instance;
use crate::definition::{Fault, FaultKind};
use crate::distribution::Sampler;
use corsair::Random;
use serde::Serialize;

/// One side of a link, or where a fault is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkSide {
    pub(crate) region: Option<u8>,
    pub(crate) zone: Option<u8>,
    pub(crate) service: Option<u32>,
}

impl LinkSide {
    /// What stands for the service of registries, which is none of the topology's.
    pub(crate) const REGISTRIES: u32 = u32::MAX;
    /// The same of actors of no service.
    pub(crate) const NONE: u32 = u32::MAX - 1;

    /// Whether an instance is there.
    pub(crate) fn has(&self, instance: Instance) -> bool {
        let Instance { service, at, .. } = instance;
        (self.region.is_none() || self.region == at.region)
            && (self.zone.is_none() || self.zone == at.zone)
            && self.service.is_none_or(|wanted| wanted == service)
    }
}

/// A fault with its times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimedFault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// When, after the load has begun.
    pub at: u64,
    /// For how long; none: until the end.
    pub lasting: Option<u64>,
    /// Which part of the instances.
    pub share: f64,
    /// By how much times are multiplied.
    pub factor: f64,
    /// Again after so long.
    pub every: Option<u64>,
    /// How likely it is each time.
    pub probability: Option<f64>,
    /// For restarts: from one instance to the next, and how long each leaves its registries before.
    pub gap: u64,
    /// See `gap`.
    pub drain: u64,
}

impl TimedFault {
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule {
            at: self.at,
            every: self.every,
            probability: self.probability,
        }
    }

    pub(super) fn new(fault: &Fault) -> TimedFault {
        TimedFault {
            kind: fault.kind,
            at: fault.at.nanos(),
            lasting: fault.lasting.map(|time| time.nanos()),
            share: fault.share.unwrap_or(1.0),
            factor: fault.factor.unwrap_or(10.0),
            every: fault.every.map(|time| time.nanos()),
            probability: fault.probability,
            gap: fault.gap.map_or(0, |time| time.nanos()),
            drain: fault.drain.map_or(0, |time| time.nanos()),
        }
    }
}

/// A fault comes at most this often.
const MOST_TIMES: u64 = 100_000;

/// When something comes, by its first time and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Schedule {
    pub(crate) at: u64,
    pub(crate) every: Option<u64>,
    pub(crate) probability: Option<f64>,
}

impl Schedule {
    /// Its times within a load of a duration, each with its number.
    pub(crate) fn times(self, duration: u64, seed: u64) -> impl Iterator<Item = (u64, u64)> {
        let times = match self.every {
            Some(every) if every > 0 && self.at < duration => {
                (duration - self.at).div_ceil(every).clamp(1, MOST_TIMES)
            }
            _ => 1,
        };
        let mut random = Random::new(seed ^ 0x5C_4ED0);
        (0..times).filter_map(move |number| {
            let comes = self.probability.is_none_or(|part| {
                // Casts of floats saturate, so that 1 is all bits.
                random.bits() <= (part * 2f64.powi(64)) as u64 && part > 0.0
            });
            let at = self.at + number * self.every.unwrap_or(0);
            comes.then_some((number, at))
        })
    }
}

/// What goes wrong between two sides.
#[derive(Clone, Debug, Serialize)]
pub struct TimedLink {
    pub(crate) from: LinkSide,
    pub(crate) to: LinkSide,
    pub(crate) schedule: Schedule,
    pub(crate) lasting: Option<u64>,
    /// The part that is lost, and that arrives twice, in 2^64ths.
    pub(crate) loss: u64,
    pub(crate) twice: u64,
    pub(crate) delay: Option<Sampler>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(every: Option<u64>, probability: Option<f64>) -> Schedule {
        Schedule {
            at: 10,
            every,
            probability,
        }
    }

    #[test]
    fn a_schedule_repeats_until_the_load_ends_as_likely_as_it_says() {
        let times = |schedule: Schedule, duration| {
            let times = schedule.times(duration, 7);
            times.map(|(_, at)| at).collect::<Vec<_>>()
        };
        assert_eq!(times(schedule(None, None), 100), [10]);
        assert_eq!(times(schedule(Some(30), None), 100), [10, 40, 70]);
        assert_eq!(times(schedule(Some(30), None), 101), [10, 40, 70, 100]);
        assert!(times(schedule(Some(1), Some(0.0)), 1000).is_empty());
        let some = times(schedule(Some(1), Some(0.3)), 10_010).len();
        assert!((2_850..3_150).contains(&some), "{some}");
    }
}
