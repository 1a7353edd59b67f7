//! Faults of a run, drawn from its seed: which instances have them and when, and which links.

use crate::definition::FaultKind;
use crate::topology::{Instance, TimedFault, TimedLink, Topology};
use corsair::Random;
use rustc_hash::FxHashMap;

/// What an instance has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    Kill,
    Pause,
    /// Its times are multiplied.
    Slow(f64),
    /// It is cut off from other zones.
    Partition,
    /// It is in no registry.
    Leave,
}

/// Something that an instance has at a time, in nanoseconds after the load has begun.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) effect: Effect,
    pub(crate) at: u64,
    /// For how long; none: until the end.
    pub(crate) lasting: Option<u64>,
}

/// Shares are decimal numbers: 0.07 of 100 is 7, though the product of floats is a little more.
const SHARE_NOISE: f64 = 1e-6;

/// What each instance has, in the order in which definitions say it.
pub(crate) fn draw(
    topology: &Topology,
    seed: u64,
    duration: u64,
) -> FxHashMap<u32, Vec<Occurrence>> {
    let mut drawn: FxHashMap<u32, Vec<Occurrence>> = FxHashMap::default();
    for (index, service) in (0u64..).zip(&topology.services) {
        for (number, fault) in (0u64..).zip(&service.faults) {
            let seed = seed ^ 0xFA_0175 ^ index << 32 ^ number << 20;
            draw_one(
                service.defined().collect(),
                fault,
                seed,
                duration,
                &mut drawn,
            );
        }
    }
    for (number, (side, services, fault)) in (0u64..).zip(&topology.faults) {
        let instances = (0..topology.len()).filter(|&index| {
            let instance = topology.instances[index as usize];
            let package = topology.service_of(index).package;
            let is_meant = if services.is_empty() {
                package.takes_requests()
            } else {
                services.contains(&instance.service)
            };
            let is_there = topology.service_of(index).defined().contains(&index);
            is_meant && is_there && side.has(instance)
        });
        let seed = seed ^ 0xFA_0176 ^ number << 20;
        draw_one(instances.collect(), fault, seed, duration, &mut drawn);
    }
    drawn
}

fn draw_one(
    all: Vec<u32>,
    fault: &TimedFault,
    seed: u64,
    duration: u64,
    drawn: &mut FxHashMap<u32, Vec<Occurrence>>,
) {
    if all.is_empty() {
        return;
    }
    let count = (all.len() as f64 * fault.share - SHARE_NOISE)
        .ceil()
        .max(1.0) as usize;
    for (time, at) in fault.schedule().times(duration, seed) {
        let mut instances = all.clone();
        let mut random = Random::new(seed ^ time);
        for place in 0..count.min(instances.len()) {
            // A restart goes through them in their order.
            if fault.kind != FaultKind::Restart {
                let left = (instances.len() - place) as u32;
                instances.swap(place, place + random.below(left) as usize);
            }
            let here = drawn.entry(instances[place]).or_default();
            let effect = match fault.kind {
                FaultKind::Kill => Effect::Kill,
                FaultKind::Pause => Effect::Pause,
                FaultKind::Slow => Effect::Slow(fault.factor),
                FaultKind::Partition => Effect::Partition,
                FaultKind::Restart => {
                    let turn = at.saturating_add(fault.gap.saturating_mul(place as u64));
                    let down = fault.lasting.unwrap_or(0);
                    here.push(Occurrence {
                        effect: Effect::Leave,
                        at: turn,
                        lasting: Some(fault.drain.saturating_add(down)),
                    });
                    here.push(Occurrence {
                        effect: Effect::Kill,
                        at: turn.saturating_add(fault.drain),
                        lasting: fault.lasting,
                    });
                    continue;
                }
            };
            here.push(Occurrence {
                effect,
                at,
                lasting: fault.lasting,
            });
        }
    }
}

/// A link that goes wrong in a run.
#[derive(Debug)]
pub(crate) struct Link {
    about: TimedLink,
    /// When it begins and ends, in nanoseconds, in this order.
    spells: Vec<(u64, u64)>,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) is_lost: bool,
    pub(crate) is_doubled: bool,
    pub(crate) delay: u64,
}

impl Link {
    /// The links of a topology, whose load begins at a time.
    pub(crate) fn draw(topology: &Topology, seed: u64, load_at: u64, duration: u64) -> Vec<Link> {
        let links = (0u64..).zip(&topology.links);
        let links = links.map(|(number, about)| {
            let times = about
                .schedule
                .times(duration, seed ^ 0x11_4B ^ number << 20);
            let spells = times.map(|(_, at)| {
                let begins = load_at.saturating_add(at);
                let ends = about
                    .lasting
                    .map_or(u64::MAX, |time| begins.saturating_add(time));
                (begins, ends)
            });
            Link {
                spells: spells.collect(),
                about: about.clone(),
            }
        });
        links.collect()
    }

    /// Adds what this link does to a message between two instances at a time.
    pub(crate) fn decide(
        &self,
        ends: (Instance, Instance),
        now: u64,
        fate: &mut Fate,
        mut bits: impl FnMut() -> u64,
    ) {
        let (from, to) = ends;
        let before = self.spells.partition_point(|&(begins, _)| begins <= now);
        let is_now = before > 0 && now < self.spells[before - 1].1;
        if !is_now || !self.about.from.has(from) || !self.about.to.has(to) {
            return;
        }
        fate.is_lost |= self.about.loss > 0 && bits() <= self.about.loss;
        fate.is_doubled |= self.about.twice > 0 && bits() <= self.about.twice;
        if let Some(delay) = &self.about.delay {
            fate.delay = fate.delay.saturating_add(delay.sample(bits));
        }
    }
}
