//! Faults that wrap another network.

use super::latencies::NetworkError;
use super::{Delivery, Network, Route, unit};
use crate::contract::{Addr, Random, Time};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn probability(part: f64) -> Result<f64, NetworkError> {
    if (0.0..=1.0).contains(&part) {
        return Ok(part);
    }
    Err(NetworkError::Probability(part))
}

/// Forwards the latency methods to the inner network.
macro_rules! of_inner {
    () => {
        fn least(&self) -> Duration {
            self.inner().least()
        }

        fn most(&self) -> Duration {
            self.inner().most()
        }

        fn latency(&self, route: &Route, random: &mut Random) -> Duration {
            self.inner().latency(route, random)
        }
    };
}

/// A network that loses messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Lossy<N> {
    inner: N,
    part: f64,
}

impl<N: Network> Lossy<N> {
    /// Creates a network that loses each message with the probability `part`.
    ///
    /// # Errors
    /// If `part` is not a probability from 0 to 1.
    pub fn new(inner: N, part: f64) -> Result<Lossy<N>, NetworkError> {
        let part = probability(part)?;
        Ok(Lossy { inner, part })
    }

    fn inner(&self) -> &N {
        &self.inner
    }
}

impl<N: Network> Network for Lossy<N> {
    of_inner!();

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        if unit(random) < self.part {
            return Delivery::Lost;
        }
        self.inner.delivery(route, random)
    }

    fn duplicates(&self) -> bool {
        self.inner.duplicates()
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }
}

/// A network that delivers some messages twice, if their type can be
/// [copied](crate::Message::duplicate).
#[derive(Clone, Debug, PartialEq)]
pub struct Duplicating<N> {
    inner: N,
    part: f64,
}

impl<N: Network> Duplicating<N> {
    /// Creates a network that delivers each message twice with the probability `part`.
    ///
    /// # Errors
    /// If `part` is not a probability from 0 to 1.
    pub fn new(inner: N, part: f64) -> Result<Duplicating<N>, NetworkError> {
        let part = probability(part)?;
        Ok(Duplicating { inner, part })
    }

    fn inner(&self) -> &N {
        &self.inner
    }
}

impl<N: Network> Network for Duplicating<N> {
    of_inner!();

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        let twice = unit(random) < self.part;
        match self.inner.delivery(route, random) {
            Delivery::Arrives if twice => Delivery::Twice,
            delivery => delivery,
        }
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }

    fn duplicates(&self) -> bool {
        self.part > 0.0 || self.inner.duplicates()
    }
}

/// A network in which messages from one actor to another keep their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Fifo<N>(
    /// The wrapped network.
    pub N,
);

impl<N: Network> Fifo<N> {
    fn inner(&self) -> &N {
        &self.0
    }
}

impl<N: Network> Network for Fifo<N> {
    of_inner!();

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        self.0.delivery(route, random)
    }

    fn duplicates(&self) -> bool {
        self.0.duplicates()
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

/// True if messages from one actor to another are cut off.
type IsCut = Arc<dyn Fn(Addr, Addr) -> bool + Send + Sync>;

/// An interval in which some messages are lost.
#[derive(Clone)]
pub struct Cutoff {
    during: Range<Time>,
    is_cut: IsCut,
}

impl Cutoff {
    /// Creates an interval `during` (start included, end excluded) in which messages are lost if `is_cut(sender,
    /// receiver)` is true. `is_cut` must always return the same value for the same two actors.
    pub fn new(
        during: Range<Time>,
        is_cut: impl Fn(Addr, Addr) -> bool + Send + Sync + 'static,
    ) -> Cutoff {
        Cutoff {
            during,
            is_cut: Arc::new(is_cut),
        }
    }

    /// Creates a partition: messages between the actors on one side and all other actors are lost, in both directions.
    pub fn between(
        during: Range<Time>,
        is_on_one_side: impl Fn(Addr) -> bool + Send + Sync + 'static,
    ) -> Cutoff {
        Cutoff::new(during, move |from, to| {
            is_on_one_side(from) != is_on_one_side(to)
        })
    }
}

impl fmt::Debug for Cutoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cutoff({:?})", self.during)
    }
}

/// A network with partitions in some intervals.
#[derive(Clone, Debug)]
pub struct Partitioned<N> {
    inner: N,
    /// The partitions in the order of their start. They form an implicit tree: the root is the middle partition, and
    /// each of the two halves is a subtree of the same form.
    cutoffs: Vec<Cutoff>,
    /// For each partition, the latest end within its subtree.
    ended: Vec<Time>,
}

/// Computes the latest end of each subtree.
fn last_ends(cutoffs: &[Cutoff], ended: &mut [Time]) -> Time {
    if cutoffs.is_empty() {
        return Time::ZERO;
    }
    let middle = cutoffs.len() / 2;
    let before = last_ends(&cutoffs[..middle], &mut ended[..middle]);
    let behind = last_ends(&cutoffs[middle + 1..], &mut ended[middle + 1..]);
    ended[middle] = cutoffs[middle].during.end.max(before).max(behind);
    ended[middle]
}

/// True if one of the partitions affects a message on `route`.
fn holds(cutoffs: &[Cutoff], ended: &[Time], route: &Route) -> bool {
    let middle = cutoffs.len() / 2;
    if ended.get(middle).is_none_or(|&ended| ended <= route.sent) {
        return false;
    }
    let Cutoff { during, is_cut } = &cutoffs[middle];
    during.contains(&route.sent) && is_cut(route.from, route.to)
        || holds(&cutoffs[..middle], &ended[..middle], route)
        || during.start <= route.sent && holds(&cutoffs[middle + 1..], &ended[middle + 1..], route)
}

impl<N: Network> Partitioned<N> {
    /// Wraps a network with partitions. A message is lost if a partition affects it at its send time. Partitions at
    /// other times cost almost nothing.
    pub fn new(inner: N, mut cutoffs: Vec<Cutoff>) -> Partitioned<N> {
        cutoffs.retain(|cutoff| !cutoff.during.is_empty());
        cutoffs.sort_by_key(|cutoff| cutoff.during.start);
        let mut ended = vec![Time::ZERO; cutoffs.len()];
        last_ends(&cutoffs, &mut ended);
        Partitioned {
            inner,
            cutoffs,
            ended,
        }
    }

    fn inner(&self) -> &N {
        &self.inner
    }
}

impl<N: Network> Network for Partitioned<N> {
    of_inner!();

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        if holds(&self.cutoffs, &self.ended, route) {
            return Delivery::Lost;
        }
        self.inner.delivery(route, random)
    }

    fn duplicates(&self) -> bool {
        self.inner.duplicates()
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Constant;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    // Guarantee: core-7.
    #[test]
    fn a_message_is_lost_if_any_of_many_partitions_holds() {
        let mut random = Random::new(11);
        let inner = Constant::new(Duration::from_millis(1)).unwrap();
        for count in 0..40 {
            let ranges: Vec<(u64, u64, u32)> = (0..count)
                .map(|_| {
                    let [start, length] =
                        [100, 1 << random.below(7)].map(|n| u64::from(random.below(n)));
                    (start, start + length, random.below(3))
                })
                .collect();
            let cutoff = |&(start, end, whom): &(u64, u64, u32)| {
                Cutoff::new(Time(start)..Time(end), move |from, _| from.0 % 3 == whom)
            };
            let parted = Partitioned::new(inner, ranges.iter().map(cutoff).collect());
            for (sent, from) in (0..170).flat_map(|sent| (0..3).map(move |from| (sent, from))) {
                let (to, sent) = (Addr(9), Time(sent));
                let from = Addr(from);
                let delivery = parted.delivery(&Route { from, to, sent }, &mut random);
                let lost = ranges
                    .iter()
                    .any(|&(start, end, whom)| (start..end).contains(&sent.0) && whom == from.0);
                assert_eq!(delivery == Delivery::Lost, lost, "{ranges:?} at {sent}");
            }
        }
    }

    // Guarantee: core-7.
    #[test]
    fn partitions_at_other_times_are_not_looked_at() {
        let asked = Arc::new(AtomicU64::new(0));
        let cutoffs = (0..if cfg!(miri) { 100 } else { 100_000 }).map(|n| {
            let asked = asked.clone();
            Cutoff::new(Time(n * 10)..Time(n * 10 + 5), move |_, _| {
                asked.fetch_add(1, Relaxed);
                true
            })
        });
        let inner = Constant::new(Duration::from_millis(1)).unwrap();
        let parted = Partitioned::new(inner, cutoffs.collect());
        let (from, to) = (Addr(0), Addr(1));
        let mut random = Random::new(1);
        for sent in 0..1000 {
            let delivery = parted.delivery(
                &Route {
                    from,
                    to,
                    sent: Time(sent),
                },
                &mut random,
            );
            assert_eq!(delivery == Delivery::Lost, sent % 10 < 5);
        }
        assert_eq!(asked.load(Relaxed), 500);
    }
}
