//! A network with the faults of a plan.

use crate::FaultPlan;
use crate::node::FIRST;
use corsair::network::{Fate, Network, Way};
use corsair::{Addr, Random};
use std::time::Duration;

/// Messages between nodes travel 1 to 5 ms and have the faults of the plan; those from and to the
/// root, which observes, have none.
#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) plan: FaultPlan,
    pub(crate) nodes: u32,
}

impl Faulty {
    fn node(&self, addr: Addr) -> Option<u32> {
        addr.as_u32()
            .checked_sub(FIRST)
            .filter(|node| *node < self.nodes)
    }

    fn is_parted(&self, way: &Way) -> bool {
        let (Some(from), Some(to)) = (self.node(way.from), self.node(way.to)) else {
            return false;
        };
        let now = milliseconds(way);
        self.plan.partitions.iter().any(|partition| {
            let [from, to] = [from, to].map(|node| partition.side >> node & 1 == 1);
            (partition.from..partition.until).contains(&now)
                && if partition.one_way {
                    from && !to
                } else {
                    from != to
                }
        })
    }

    fn is_faulty(&self, way: &Way) -> bool {
        let between_nodes = self.node(way.from).is_some() && self.node(way.to).is_some();
        between_nodes && way.from != way.to && milliseconds(way) < self.plan.faults_until()
    }
}

fn milliseconds(way: &Way) -> u32 {
    u32::try_from(way.sent.as_nanos() / 1_000_000).unwrap_or(u32::MAX)
}

impl Network for Faulty {
    fn least(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn most(&self) -> Duration {
        Duration::from_millis(5 + u64::from(self.plan.lateness))
    }

    fn latency(&self, way: &Way, random: &mut Random) -> Duration {
        let base = Duration::from_micros(1_000 + u64::from(random.below(4_000)));
        if self.is_faulty(way) && random.below(1000) < self.plan.late {
            return base
                + Duration::from_micros(u64::from(random.below(self.plan.lateness * 1000)));
        }
        base
    }

    fn fate(&self, way: &Way, random: &mut Random) -> Fate {
        if !self.is_faulty(way) {
            return Fate::Arrives;
        }
        let (lost, twice) = (random.below(1000), random.below(1000));
        if self.is_parted(way) || lost < self.plan.loss {
            return Fate::Lost;
        }
        if twice < self.plan.duplicates {
            Fate::Twice
        } else {
            Fate::Arrives
        }
    }
}
