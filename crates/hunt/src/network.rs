//! The network of a run: the core's faulty links, configured by a plan.

use crate::FaultPlan;
use crate::node::FIRST;
use corsair::network::{FaultyLinks, Jitter, LinkFault, Network, NetworkError};
use corsair::{Addr, Distribution, Time};
use std::ops::Range;
use std::time::Duration;

/// Returns the number of the node with this address, if it is a node.
fn node(addr: Addr, nodes: u32) -> Option<u32> {
    addr.as_u32()
        .checked_sub(FIRST)
        .filter(|node| *node < nodes)
}

fn time(milliseconds: u32) -> Time {
    Time::from_nanos(u64::from(milliseconds) * 1_000_000)
}

/// Returns a fault, during an interval, of the messages between the pairs of nodes for which
/// `concerns` is true.
fn between(
    nodes: u32,
    during: Range<u32>,
    concerns: impl Fn(u32, u32) -> bool + Send + Sync + 'static,
) -> LinkFault {
    let during = [time(during.start)..time(during.end)];
    LinkFault::new(during, move |from, to| {
        let pair = node(from, nodes).zip(node(to, nodes));
        pair.is_some_and(|(from, to)| from != to && concerns(from, to))
    })
}

/// Builds the network. Messages between nodes travel 1 to 5 ms and have the faults of the plan;
/// messages from and to the root, which observes, have no faults.
pub(crate) fn network(plan: &FaultPlan, nodes: u32) -> Result<FaultyLinks<Jitter>, NetworkError> {
    plan.links(Jitter::new(milliseconds(1), milliseconds(5))?, nodes)
}

fn milliseconds(number: u32) -> Duration {
    Duration::from_millis(number.into())
}

impl FaultPlan {
    /// Returns a network with the faults of the plan, except crashes, between the first `nodes`
    /// actors of the second spawn of a run. Other messages have none.
    ///
    /// # Errors
    /// If a part of the plan is not a probability; [`FaultPlan::check`] finds it first.
    pub fn links<N: Network>(&self, inner: N, nodes: u32) -> Result<FaultyLinks<N>, NetworkError> {
        let part = |number: u32| f64::from(number) / 1000.0;
        let all = || between(nodes, 0..self.faults_until(), |_, _| true);
        let mut faults = Vec::new();
        if self.loss > 0 {
            faults.push(all().losing(part(self.loss))?);
        }
        if self.duplicates > 0 {
            faults.push(all().duplicating(part(self.duplicates))?);
        }
        if self.late > 0 && self.lateness > 0 {
            let values = (0..1000u32).map(|number| {
                let late = (number + self.late + 1).saturating_sub(1000);
                f64::from(late) / f64::from(self.late) * f64::from(self.lateness) / 1000.0
            });
            // The numbers of a plan are finite, so they form a valid distribution.
            if let Ok(lateness) = Distribution::empirical(&values.collect::<Vec<_>>()) {
                faults.push(all().delaying(lateness, milliseconds(self.lateness)));
            }
        }
        for partition in &self.partitions {
            let (side, one_way) = (partition.side, partition.one_way);
            let fault = between(nodes, partition.from..partition.until, move |from, to| {
                let [from, to] = [from, to].map(|node| side >> node & 1 == 1);
                from && !to || to && !from && !one_way
            });
            faults.push(fault.losing(1.0)?);
        }
        for delay in &self.delays {
            let sender = delay.node;
            let fault = between(nodes, delay.from..delay.until, move |from, _| {
                from == sender
            });
            if let Ok(by) = Distribution::constant(f64::from(delay.by) / 1000.0) {
                faults.push(fault.delaying(by, milliseconds(delay.by)));
            }
        }
        Ok(FaultyLinks::new(inner, faults))
    }
}
