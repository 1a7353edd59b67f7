//! The network of a run: the core's faulty links, configured by a plan.

use crate::node::FIRST;
use crate::{Fault, FaultPlan, Transmission};
use corsair::network::{Delivery, FaultyLinks, Jitter, LinkFault, Network, NetworkError, Route};
use corsair::{Addr, Distribution, Random, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The outcome of a random fault, by the messages that it happened to.
pub(crate) type Choices = BTreeMap<Transmission, Choice>;

/// What a random fault does to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Lost,
    Twice,
    Late,
}

/// Returns the index of the node with this address, if it is a node.
fn node(addr: Addr, nodes: u32) -> Option<u32> {
    addr.as_u32()
        .checked_sub(FIRST)
        .filter(|node| *node < nodes)
}

fn time(milliseconds: u32) -> Time {
    Time::from_nanos(u64::from(milliseconds) * 1_000_000)
}

fn milliseconds(number: u32) -> Duration {
    Duration::from_millis(number.into())
}

/// Returns a fault, during some intervals, of the messages between the pairs of nodes for which
/// `concerns` is true.
fn between(
    nodes: u32,
    during: impl IntoIterator<Item = Range<u32>>,
    concerns: impl Fn(u32, u32) -> bool + Send + Sync + 'static,
) -> LinkFault {
    let during = during.into_iter();
    LinkFault::new(
        during.map(|span| time(span.start)..time(span.end)),
        move |from, to| {
            let pair = node(from, nodes).zip(node(to, nodes));
            pair.is_some_and(|(from, to)| from != to && concerns(from, to))
        },
    )
}

/// Builds the network. Messages between nodes travel 1 to 5 ms and have the faults of the plan;
/// messages from and to the root, which observes, have no faults.
pub(crate) fn network(plan: &FaultPlan, nodes: u32) -> Result<PlanLinks<Jitter>, NetworkError> {
    plan.links(Jitter::new(milliseconds(1), milliseconds(5))?, nodes)
}

/// A network with the faults of a [`FaultPlan`].
#[derive(Clone, Debug)]
pub struct PlanLinks<N> {
    nodes: u32,
    /// The network with all faults.
    all: FaultyLinks<N>,
    /// The network without random faults.
    certain: FaultyLinks<N>,
    only: Option<Arc<BTreeSet<Transmission>>>,
    choices: Option<Arc<Mutex<Choices>>>,
}

impl<N: Network> PlanLinks<N> {
    /// Records what happens to messages by chance.
    pub(crate) fn recording(self, choices: Arc<Mutex<Choices>>) -> PlanLinks<N> {
        let choices = Some(choices);
        PlanLinks { choices, ..self }
    }

    fn is_plain(&self) -> bool {
        self.only.is_none() && self.choices.is_none()
    }

    /// True if the message may have a random fault. If so, the fault is recorded.
    fn allows(&self, route: &Route, choice: Choice) -> bool {
        let pair = node(route.from, self.nodes).zip(node(route.to, self.nodes));
        let Some((from, to)) = pair else { return true };
        let sent = route.sent.as_nanos();
        let message = Transmission { sent, from, to };
        let is_allowed = (self.only.as_ref()).is_none_or(|only| only.contains(&message));
        if let (true, Some(choices)) = (is_allowed, &self.choices) {
            let mut choices = choices.lock().unwrap_or_else(PoisonError::into_inner);
            choices.entry(message).or_insert(choice);
        }
        is_allowed
    }
}

/// Both networks draw the same random numbers for the latency, so that a message without a random fault travels as long
/// as with a fault that does not happen.
impl<N: Network> Network for PlanLinks<N> {
    fn least(&self) -> Duration {
        self.all.least()
    }

    fn most(&self) -> Duration {
        self.all.most()
    }

    fn latency(&self, route: &Route, random: &mut Random) -> Duration {
        let mut same = random.clone();
        let drawn = self.all.latency(route, random);
        if self.is_plain() {
            return drawn;
        }
        let certain = self.certain.latency(route, &mut same);
        match drawn != certain && !self.allows(route, Choice::Late) {
            true => certain,
            false => drawn,
        }
    }

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        let mut same = random.clone();
        let drawn = self.all.delivery(route, random);
        if self.is_plain() {
            return drawn;
        }
        let certain = self.certain.delivery(route, &mut same);
        let choice = match drawn {
            Delivery::Lost => Choice::Lost,
            _ => Choice::Twice,
        };
        match drawn != certain && !self.allows(route, choice) {
            true => certain,
            false => drawn,
        }
    }

    fn duplicates(&self) -> bool {
        self.all.duplicates()
    }

    fn keeps_order(&self) -> bool {
        self.all.keeps_order()
    }
}

impl FaultPlan {
    /// Returns a network with the faults of the plan that concern messages, between the first `nodes`
    /// actors of the second spawn of a run. Other messages have none.
    ///
    /// # Errors
    /// If a part of the plan is not a probability; [`FaultPlan::check`] finds it first.
    pub fn links<N: Network + Clone>(
        &self,
        inner: N,
        nodes: u32,
    ) -> Result<PlanLinks<N>, NetworkError> {
        let (mut all, mut certain) = (Vec::new(), Vec::new());
        for fault in &self.faults {
            let Some(link) = self.link(fault, nodes)? else {
                continue;
            };
            if fault.share().is_none() {
                certain.push(link.clone());
            }
            all.push(link);
        }
        let only = self.only.as_ref();
        Ok(PlanLinks {
            nodes,
            all: FaultyLinks::new(inner.clone(), all),
            certain: FaultyLinks::new(inner, certain),
            only: only.map(|only| Arc::new(only.iter().copied().collect())),
            choices: None,
        })
    }

    /// Returns the effect of a fault on messages, if it has one.
    fn link(&self, fault: &Fault, nodes: u32) -> Result<Option<LinkFault>, NetworkError> {
        let part = |number: u32| f64::from(number) / 1000.0;
        let any = || between(nodes, once(0..self.faults_until()), |_, _| true);
        let link = match *fault {
            Fault::Loss { share } => any().losing(part(share))?,
            Fault::Duplicates { share } => any().duplicating(part(share))?,
            Fault::Late { share, by } if share > 0 && by > 0 => {
                let values = (0..1000u32).map(|number| {
                    let late = (number + share + 1).saturating_sub(1000);
                    f64::from(late) / f64::from(share) * f64::from(by) / 1000.0
                });
                // The numbers of a plan are finite, so they form a valid distribution.
                let Ok(lateness) = Distribution::empirical(&values.collect::<Vec<_>>()) else {
                    return Ok(None);
                };
                any().delaying(lateness, milliseconds(by))
            }
            Fault::Partition {
                side,
                others,
                one_way,
                ..
            } => {
                let crosses = move |from, to| {
                    let is_other = others.is_none_or(|others| others.contains(to));
                    side.contains(from) && !side.contains(to) && is_other
                };
                let link = between(nodes, fault.intervals(), move |from, to| {
                    crosses(from, to) || crosses(to, from) && !one_way
                });
                link.losing(1.0)?
            }
            Fault::Delay {
                nodes: slow, by, ..
            } => {
                let link = between(nodes, fault.intervals(), move |from, _| slow.contains(from));
                let Ok(constant) = Distribution::constant(f64::from(by) / 1000.0) else {
                    return Ok(None);
                };
                link.delaying(constant, milliseconds(by))
            }
            _ => return Ok(None),
        };
        Ok(Some(link))
    }
}
