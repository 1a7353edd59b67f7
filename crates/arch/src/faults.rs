//! The faults of a run, drawn from its seed: which instances and links have them, and when.

use crate::definition::FaultKind;
use crate::topology::{Instance, LinkSide, TimedFault, Topology};
use corsair::network::LinkFault;
use corsair::{Addr, Random, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// The effect of a fault on an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    Kill,
    Pause,
    /// The times of the instance are multiplied by this factor.
    Slow(f64),
    /// The instance is cut off from other zones.
    Partition,
    /// The instance leaves all registries.
    Leave,
}

/// An occurrence of a fault, with its time in nanoseconds after the start of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) effect: Effect,
    pub(crate) at: u64,
    /// The duration; `None`: until the end.
    pub(crate) lasting: Option<u64>,
}

/// A tolerance for shares, which are decimal numbers: 0.07 of 100 is 7, although the floating-point product is slightly
/// greater.
const SHARE_NOISE: f64 = 1e-6;

/// Draws the occurrences of faults for each instance, in the order of the definition.
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
    for (time, at) in fault.schedule().times(Time::from_nanos(duration), seed) {
        let at = at.as_nanos();
        let mut instances = all.clone();
        let mut random = Random::new(seed ^ time);
        for place in 0..count.min(instances.len()) {
            // A restart affects the instances in their order; other faults choose them at random.
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

/// Returns the faulty links of a topology, in a run whose load begins at `load_at`. Actors are identified by their
/// numbers: instances come first, then registries, then all other actors.
pub(crate) fn links(topology: &Topology, seed: u64, load_at: u64, duration: u64) -> Vec<LinkFault> {
    if topology.links.is_empty() {
        return Vec::new();
    }
    let registries = (0..topology.registries()).map(|registry| Instance {
        service: LinkSide::REGISTRIES,
        number: None,
        at: topology.registry_at(registry),
    });
    let ends: Arc<[Instance]> = topology
        .instances
        .iter()
        .copied()
        .chain(registries)
        .collect();
    let links = (0u64..).zip(&topology.links).map(|(number, link)| {
        let seed = seed ^ 0x11_4B ^ number << 20;
        let times = link.schedule.times(Time::from_nanos(duration), seed);
        let during = times.map(|(_, at)| {
            let begins = load_at.saturating_add(at.as_nanos());
            let lasting = link.lasting.unwrap_or(u64::MAX);
            Time::from_nanos(begins)..Time::from_nanos(begins.saturating_add(lasting))
        });
        let (ends, from, to) = (Arc::clone(&ends), link.from, link.to);
        let fault = LinkFault::new(during, move |sender, receiver| {
            let has = |side: LinkSide, actor: Addr| {
                let end = ends.get(actor.as_u32() as usize);
                side.has(end.copied().unwrap_or(Instance::OTHER))
            };
            has(from, sender) && has(to, receiver)
        });
        let fault = fault
            .losing(link.loss)
            .and_then(|fault| fault.duplicating(link.twice));
        let fault = fault.expect("definitions are checked");
        match &link.delay {
            None => fault,
            Some(delay) => fault.delaying(delay.seconds(), Duration::MAX),
        }
    });
    links.collect()
}
