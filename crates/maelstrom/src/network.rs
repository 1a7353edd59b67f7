//! The network of a test: latencies between nodes, and partitions.

use crate::Cluster;
use corsair::network::{Network, Route};
use corsair::{Addr, Distribution, DistributionError, Random};
use corsair_hunt::{Fault, Nodes};
use std::str::FromStr;
use std::time::Duration;

/// The distribution of latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyShape {
    /// Every message takes exactly the mean latency.
    #[default]
    Constant,
    /// Uniform, from zero to twice the mean.
    Uniform,
    /// An exponential distribution, limited to twenty times the mean.
    Exponential,
}

impl FromStr for LatencyShape {
    type Err = String;

    fn from_str(name: &str) -> Result<LatencyShape, String> {
        match name {
            "constant" => Ok(LatencyShape::Constant),
            "uniform" => Ok(LatencyShape::Uniform),
            "exponential" => Ok(LatencyShape::Exponential),
            other => Err(format!(
                "'{other}' is not a distribution of latencies; expected constant, uniform or exponential"
            )),
        }
    }
}

/// The latency of messages from and to clients, which is also the minimum for all other messages.
const LEAST: Duration = Duration::from_micros(10);

/// The latencies between nodes and services. Latencies to clients are short, because longer ones would hide anomalies.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    cluster: Cluster,
    mean: Duration,
    /// The distribution of latencies in seconds; `None` if there is no latency.
    latencies: Option<Distribution>,
}

impl Links {
    pub(crate) fn new(
        cluster: Cluster,
        mean: Duration,
        shape: LatencyShape,
    ) -> Result<Links, DistributionError> {
        let seconds = mean.as_secs_f64();
        let latencies = match shape {
            _ if mean.is_zero() => None,
            LatencyShape::Constant => Some(Distribution::constant(seconds)?),
            LatencyShape::Uniform => Some(Distribution::uniform(0.0, 2.0 * seconds)?),
            LatencyShape::Exponential => Some(Distribution::exponential(seconds)?),
        };
        Ok(Links {
            cluster,
            mean,
            latencies,
        })
    }
}

impl Network for Links {
    fn least(&self) -> Duration {
        LEAST
    }

    fn most(&self) -> Duration {
        LEAST + 20 * self.mean
    }

    fn latency(&self, route: &Route, random: &mut Random) -> Duration {
        let is_client = |addr: Addr| self.cluster.is_client(addr);
        match &self.latencies {
            Some(latencies) if !is_client(route.from) && !is_client(route.to) => {
                let seconds = latencies.draw(random.bits());
                LEAST + Duration::try_from_secs_f64(seconds).unwrap_or_default()
            }
            _ => LEAST,
        }
    }
}

/// Returns partitions that begin and end at random times, with `interval` between the changes on average.
pub(crate) fn partitions(
    random: &mut Random,
    nodes: u32,
    interval: Duration,
    limit: u32,
) -> Vec<Fault> {
    let interval = u32::try_from(interval.as_millis())
        .unwrap_or(u32::MAX / 4)
        .max(1);
    let gap = |random: &mut Random| 1 + random.below(interval.saturating_mul(2));
    let mut all = Vec::new();
    let mut now = gap(random);
    while now < limit && nodes > 1 {
        let until = now.saturating_add(gap(random)).min(limit);
        // One node, a minority, or half of them.
        let size = match random.below(3) {
            0 => 1,
            1 => (nodes - 1) / 2,
            _ => nodes / 2,
        };
        let mut left: Vec<u32> = (0..nodes).collect();
        let mut side = 0u64;
        for _ in 0..size.max(1) {
            let index = random.below(left.len() as u32) as usize;
            side |= 1 << left.swap_remove(index);
        }
        all.push(Fault::Partition {
            from: now,
            until,
            side: Nodes::from_bits(side),
            others: None,
            one_way: false,
            every: None,
        });
        now = until.saturating_add(gap(random));
    }
    all
}
