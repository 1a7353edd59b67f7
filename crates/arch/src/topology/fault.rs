//! Faults with their times, probabilities and places.

use super::{Instance, Topology};
use crate::definition::{Fault, FaultKind};
use crate::distribution::Sampler;
use crate::geography::Zone;
use corsair::Time;
use corsair::network::Schedule;
use serde::Serialize;
use std::time::Duration;

/// The maximum number of listed occurrences of a fault.
const MOST_LISTED: u64 = 100;

impl Topology {
    /// Returns the starts and ends of all faults in a load of this length, in the order of time. Each entry has the
    /// time after the start of the load and a text such as `kill login` or `kill login ends`. A fault with a
    /// probability is listed at every possible time.
    pub fn fault_times(&self, load: Duration) -> Vec<(Duration, String)> {
        let name = |service: u32| match self.services.get(service as usize) {
            Some(service) => service.name.as_str(),
            None => "eureka",
        };
        let side = |side: &LinkSide| {
            let region = side.region.map(|region| self.places.region(Some(region)));
            let zone = side.zone.map(|zone| self.places.zone(Some(zone)));
            let parts = [side.service.map(name), region, zone];
            let named: Vec<&str> = parts.into_iter().flatten().collect();
            if named.is_empty() {
                "all".to_owned()
            } else {
                named.join(" ")
            }
        };
        let kind = |fault: &TimedFault| format!("{:?}", fault.kind).to_lowercase();
        let mut all: Vec<(String, u64, Option<u64>, Option<u64>)> = Vec::new();
        for service in &self.services {
            all.extend(service.faults.iter().map(|fault| {
                (
                    format!("{} {}", kind(fault), service.name),
                    fault.at,
                    fault.every,
                    fault.lasting,
                )
            }));
        }
        for (place, services, fault) in &self.faults {
            let services: Vec<&str> = services.iter().map(|&service| name(service)).collect();
            let what = format!("{} {} {}", kind(fault), side(place), services.join(", "));
            all.push((
                what.trim_end().to_owned(),
                fault.at,
                fault.every,
                fault.lasting,
            ));
        }
        for link in &self.links {
            let every = link.schedule.every.map(|every| every.as_nanos() as u64);
            let what = format!("link {} to {}", side(&link.from), side(&link.to));
            all.push((what, link.schedule.first.as_nanos(), every, link.lasting));
        }
        if let Some(victim) = self.victim {
            let half = (load / 2).as_nanos() as u64;
            all.push((format!("kill one {}", name(victim)), half, None, None));
        }
        let mut times = Vec::new();
        for (what, first, every, lasting) in all {
            for n in 0..if every.is_some() { MOST_LISTED } else { 1 } {
                let at = first.saturating_add(every.unwrap_or(0).saturating_mul(n));
                times.push((Duration::from_nanos(at), what.clone()));
                if let Some(lasting) = lasting {
                    times.push((
                        Duration::from_nanos(at.saturating_add(lasting)),
                        format!("{what} ends"),
                    ));
                }
            }
        }
        times.retain(|(at, _)| *at < load);
        times.sort();
        times
    }
}

/// One side of a link, or the place of a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkSide {
    pub(crate) region: Option<u8>,
    pub(crate) zone: Option<u8>,
    pub(crate) service: Option<u32>,
}

impl Instance {
    /// The placeholder for actors that are neither instances nor registries.
    pub(crate) const OTHER: Instance = Instance {
        service: u32::MAX - 1,
        number: None,
        at: Zone::EVERYWHERE,
    };
}

impl LinkSide {
    /// The placeholder for the service of registries, which is not in the topology.
    pub(crate) const REGISTRIES: u32 = u32::MAX;

    /// True if an instance is included.
    pub(crate) fn has(&self, instance: Instance) -> bool {
        let Instance { service, at, .. } = instance;
        (self.region.is_none() || self.region == at.region)
            && (self.zone.is_none() || self.zone == at.zone)
            && self.service.is_none_or(|wanted| wanted == service)
    }
}

/// Creates a schedule from the first time and the interval in nanoseconds.
pub(super) fn schedule(at: u64, every: Option<u64>, probability: Option<f64>) -> Schedule {
    Schedule {
        first: Time::from_nanos(at),
        every: every.map(Duration::from_nanos),
        probability: probability.unwrap_or(1.0),
    }
}

/// A fault with its times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimedFault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The time after the start of the load.
    pub at: u64,
    /// The duration; `None`: until the end.
    pub lasting: Option<u64>,
    /// The fraction of the instances.
    pub share: f64,
    /// The factor on times.
    pub factor: f64,
    /// The interval in nanoseconds at which the fault repeats; `None` if it occurs once.
    pub every: Option<u64>,
    /// The probability of each occurrence.
    pub probability: Option<f64>,
    /// For restarts: the pause between two instances, and the time between leaving the registries and going
    /// down.
    pub gap: u64,
    /// For restarts: the time between leaving the registries and going down.
    pub drain: u64,
}

impl TimedFault {
    pub(crate) fn schedule(&self) -> Schedule {
        schedule(self.at, self.every, self.probability)
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

/// A fault of the link between two sides.
#[derive(Clone, Debug, Serialize)]
pub struct TimedLink {
    pub(crate) from: LinkSide,
    pub(crate) to: LinkSide,
    pub(crate) schedule: Schedule,
    pub(crate) lasting: Option<u64>,
    /// The fraction of messages that are lost, and the fraction that arrives twice, from 0 to 1.
    pub(crate) loss: f64,
    pub(crate) twice: f64,
    pub(crate) delay: Option<Sampler>,
}
