//! The network between hosts: a network model of the engine, with partitions.

use crate::uplink::Directory;
use corsair::network::{Delivery, Network, Route};
use corsair::{Random, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

/// An interval in which packets from some hosts to others are lost.
#[derive(Clone, Debug)]
struct Partition {
    from: Time,
    until: Time,
    groups: [Vec<u32>; 2],
    /// Packets from the second group to the first are lost as well.
    both_ways: bool,
}

/// Network models by pair of hosts.
pub(crate) type OwnModels = BTreeMap<(u32, u32), Arc<dyn Network>>;

/// A network model and the partitions of a simulation. Partitions are changed only while the simulation is paused.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    model: Arc<dyn Network>,
    /// The models of the links between two hosts. The key has the lower number first.
    own: Arc<OwnModels>,
    directory: Arc<OnceLock<Directory>>,
    cuts: Arc<RwLock<Vec<Partition>>>,
}

impl Links {
    pub(crate) fn new(
        model: Arc<dyn Network>,
        own: OwnModels,
        directory: Arc<OnceLock<Directory>>,
    ) -> Links {
        Links {
            model,
            own: Arc::new(own),
            directory,
            cuts: Arc::default(),
        }
    }

    /// Loses packets from the first group of hosts to the second from a time on. If `both_ways` is true, loses packets
    /// in the other direction too.
    pub(crate) fn cut(&self, from: Time, groups: [Vec<u32>; 2], both_ways: bool) {
        let mut cuts = self.cuts.write().unwrap_or_else(PoisonError::into_inner);
        cuts.push(Partition {
            from,
            until: Time::MAX,
            groups,
            both_ways,
        });
    }

    /// Ends, at a time, the partitions between hosts of one group and hosts of the other.
    pub(crate) fn heal(&self, at: Time, groups: [Vec<u32>; 2]) {
        let mut cuts = self.cuts.write().unwrap_or_else(PoisonError::into_inner);
        for &one in &groups[0] {
            for &other in &groups[1] {
                let mut rest = vec![];
                for cut in cuts
                    .iter_mut()
                    .filter(|cut| cut.until > at && cut.from <= at)
                {
                    if cut.parts(one, other) || cut.parts(other, one) {
                        rest.extend(cut.without(one, other, at));
                        cut.until = at;
                    }
                }
                cuts.extend(rest);
            }
        }
    }

    /// Returns the hosts to or from which a partition loses the packets of a host at a time, in ascending order.
    pub(crate) fn separated_from(&self, host: u32, now: Time) -> Vec<u32> {
        let cuts = self.cuts.read().unwrap_or_else(PoisonError::into_inner);
        let mut others = vec![];
        for cut in cuts.iter().filter(|cut| cut.from <= now && now < cut.until) {
            let [left, right] = &cut.groups;
            for (one, other) in [(left, right), (right, left)] {
                if one.contains(&host) {
                    others.extend(other.iter().filter(|other| **other != host));
                }
            }
        }
        others.sort_unstable();
        others.dedup();
        others
    }

    /// Returns the sending and the receiving host of a route.
    fn hosts(&self, route: &Route) -> Option<(u32, u32)> {
        let directory = self.directory.get()?;
        Some((directory.host(route.from)?, directory.host(route.to)?))
    }

    /// Returns the network model of a route.
    fn model(&self, route: &Route) -> &dyn Network {
        let hosts = (!self.own.is_empty()).then(|| self.hosts(route)).flatten();
        let own = hosts.and_then(|(from, to)| self.own.get(&(from.min(to), from.max(to))));
        &**own.unwrap_or(&self.model)
    }

    fn is_cut(&self, route: &Route) -> bool {
        let cuts = self.cuts.read().unwrap_or_else(PoisonError::into_inner);
        if cuts.is_empty() {
            return false;
        }
        let Some((from, to)) = self.hosts(route) else {
            return false;
        };
        cuts.iter()
            .any(|cut| cut.from <= route.sent && route.sent < cut.until && cut.parts(from, to))
    }
}

impl Partition {
    /// True if packets from one host to another are lost.
    fn parts(&self, from: u32, to: u32) -> bool {
        let [left, right] = &self.groups;
        left.contains(&from) && right.contains(&to)
            || self.both_ways && left.contains(&to) && right.contains(&from)
    }

    /// Returns the partitions that replace this partition from `at` on. They separate the same hosts, except these two.
    fn without(&self, one: u32, other: u32, at: Time) -> Vec<Partition> {
        let mut rest = vec![];
        for &left in &self.groups[0] {
            for &right in &self.groups[1] {
                if (left, right) != (one, other) && (right, left) != (one, other) {
                    rest.push(Partition {
                        from: at,
                        until: self.until,
                        groups: [vec![left], vec![right]],
                        both_ways: self.both_ways,
                    });
                }
            }
        }
        rest
    }
}

impl Network for Links {
    fn least(&self) -> Duration {
        let own = self.own.values().map(|model| model.least());
        own.fold(self.model.least(), Duration::min)
    }

    fn most(&self) -> Duration {
        let own = self.own.values().map(|model| model.most());
        own.fold(self.model.most(), Duration::max)
    }

    fn latency(&self, route: &Route, random: &mut Random) -> Duration {
        self.model(route).latency(route, random)
    }

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        match self.is_cut(route) {
            true => Delivery::Lost,
            false => self.model(route).delivery(route, random),
        }
    }

    fn keeps_order(&self) -> bool {
        self.model.keeps_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair::Addr;
    use corsair::network::Constant;

    #[test]
    fn a_partition_holds_in_both_directions_until_it_is_healed_pair_by_pair() {
        let model = Arc::new(Constant::new(Duration::from_millis(1)).unwrap());
        let directory = Directory::new((10..13).map(Addr::from_u32).collect());
        let links = Links::new(model, OwnModels::new(), Arc::new(OnceLock::from(directory)));
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let is_lost = |from: u32, to: u32, at| {
            let route = Route {
                from: Addr::from_u32(10 + from),
                to: Addr::from_u32(10 + to),
                sent: second(at),
            };
            links.delivery(&route, &mut Random::new(1)) == Delivery::Lost
        };
        links.cut(second(2), [vec![0], vec![1, 2]], true);
        links.heal(second(4), [vec![1], vec![0]]);
        links.heal(second(6), [vec![0], vec![1, 2]]);
        for (at, with_one, with_two) in [
            (1, false, false),
            (3, true, true),
            (5, false, true),
            (7, false, false),
        ] {
            assert_eq!(
                (is_lost(0, 1, at), is_lost(1, 0, at)),
                (with_one, with_one),
                "{at}"
            );
            assert_eq!(
                (is_lost(0, 2, at), is_lost(2, 0, at)),
                (with_two, with_two),
                "{at}"
            );
            assert!(!is_lost(1, 2, at));
        }
        links.cut(second(8), [vec![0], vec![1, 2]], false);
        links.heal(second(10), [vec![1], vec![0]]);
        for (at, to_one, to_two) in [(9, true, true), (11, false, true)] {
            assert_eq!((is_lost(0, 1, at), is_lost(0, 2, at)), (to_one, to_two));
            assert!(!is_lost(1, 0, at) && !is_lost(2, 0, at));
        }
    }
}
