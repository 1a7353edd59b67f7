//! What goes wrong in a network, around any other.

use super::latencies::NetworkError;
use super::{Fate, Network, Way, unit};
use crate::contract::{Addr, Random, Time};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

fn probability(part: f64) -> Result<f64, NetworkError> {
    if (0.0..=1.0).contains(&part) {
        return Ok(part);
    }
    Err(NetworkError::Probability(part))
}

/// Passes on what a network says of latencies.
macro_rules! of_inner {
    () => {
        fn least(&self) -> Duration {
            self.inner().least()
        }

        fn most(&self) -> Duration {
            self.inner().most()
        }

        fn latency(&self, way: &Way, random: &mut Random) -> Duration {
            self.inner().latency(way, random)
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
    /// `part` of the messages are lost, each by itself.
    ///
    /// # Errors
    /// If that is no probability.
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

    fn fate(&self, way: &Way, random: &mut Random) -> Fate {
        if unit(random) < self.part {
            return Fate::Lost;
        }
        self.inner.fate(way, random)
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
    /// `part` of the messages arrive twice, each by itself.
    ///
    /// # Errors
    /// If that is no probability.
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

    fn fate(&self, way: &Way, random: &mut Random) -> Fate {
        let twice = unit(random) < self.part;
        match self.inner.fate(way, random) {
            Fate::Arrives if twice => Fate::Twice,
            fate => fate,
        }
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }
}

/// A network in which messages of a pair of actors keep their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Fifo<N>(
    /// The network whose latencies it has.
    pub N,
);

impl<N: Network> Fifo<N> {
    fn inner(&self) -> &N {
        &self.0
    }
}

impl<N: Network> Network for Fifo<N> {
    of_inner!();

    fn fate(&self, way: &Way, random: &mut Random) -> Fate {
        self.0.fate(way, random)
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

/// Whether messages from one actor to another are cut off.
type IsCut = Arc<dyn Fn(Addr, Addr) -> bool + Send + Sync>;

/// A time in which some messages are lost.
#[derive(Clone)]
pub struct Cutoff {
    during: Range<Time>,
    is_cut: IsCut,
}

impl Cutoff {
    /// From `during.start` on and before `during.end`, what is sent from one actor to another is lost
    /// if `is_cut` says so, which says the same each time.
    pub fn new(
        during: Range<Time>,
        is_cut: impl Fn(Addr, Addr) -> bool + Send + Sync + 'static,
    ) -> Cutoff {
        Cutoff {
            during,
            is_cut: Arc::new(is_cut),
        }
    }

    /// A partition: nothing gets from those on one side to the others, or back.
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

/// A network that is parted from time to time.
#[derive(Clone, Debug)]
pub struct Partitioned<N> {
    inner: N,
    cutoffs: Vec<Cutoff>,
}

impl<N: Network> Partitioned<N> {
    /// With these partitions. A message is lost if one holds at the time at which it is sent.
    pub fn new(inner: N, cutoffs: Vec<Cutoff>) -> Partitioned<N> {
        Partitioned { inner, cutoffs }
    }

    fn inner(&self) -> &N {
        &self.inner
    }
}

impl<N: Network> Network for Partitioned<N> {
    of_inner!();

    fn fate(&self, way: &Way, random: &mut Random) -> Fate {
        let cut = |cutoff: &Cutoff| {
            cutoff.during.contains(&way.sent) && (cutoff.is_cut)(way.from, way.to)
        };
        if self.cutoffs.iter().any(cut) {
            return Fate::Lost;
        }
        self.inner.fate(way, random)
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }
}
