//! The kinds of faults.

use crate::PlanError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// A set of nodes. In JSON it is a list of indices: `[0, 3]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct Nodes(u64);

impl Nodes {
    /// Creates a set from a bit mask.
    pub const fn from_bits(bits: u64) -> Nodes {
        Nodes(bits)
    }

    /// True if the set contains this node.
    pub const fn contains(self, node: u32) -> bool {
        node < 64 && self.0 >> node & 1 == 1
    }

    /// Adds the nodes of another set that are missing, and removes the others of them.
    pub(crate) const fn differing_in(self, other: Nodes) -> Nodes {
        Nodes(self.0 ^ other.0)
    }

    /// Returns the indices of the nodes.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |node| self.contains(*node))
    }
}

impl FromIterator<u32> for Nodes {
    /// Collects the nodes with an index below 64.
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> Nodes {
        let bits = |bits, node| bits | 1u64.checked_shl(node).unwrap_or(0);
        Nodes(nodes.into_iter().fold(0, bits))
    }
}

impl From<Nodes> for Vec<u32> {
    fn from(nodes: Nodes) -> Vec<u32> {
        nodes.iter().collect()
    }
}

impl TryFrom<Vec<u32>> for Nodes {
    type Error = String;

    fn try_from(nodes: Vec<u32>) -> Result<Nodes, String> {
        match nodes.iter().find(|node| **node > 62) {
            Some(node) => Err(format!(
                "{node} is not the index of a node; a program has the nodes 0 to 62 at most"
            )),
            None => Ok(nodes.into_iter().collect()),
        }
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.iter().map(|node| node.to_string()).collect();
        let word = if names.len() == 1 { "node" } else { "nodes" };
        match &names[..] {
            [] => write!(f, "no node"),
            _ => write!(f, "{word} {}", names.join(", ")),
        }
    }
}

/// A fault. Times are in milliseconds of virtual time, shares and rates in thousandths. In an interval, `from` is
/// included and `until` is not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// A share of the messages is lost, until faults stop.
    Loss {
        /// The share of messages.
        share: u32,
    },
    /// A share of the messages arrives twice, if their type can be copied, until faults stop.
    Duplicates {
        /// The share of messages.
        share: u32,
    },
    /// A share of the messages is late, so that later messages overtake them, until faults stop.
    Late {
        /// The share of messages.
        share: u32,
        /// The maximum additional latency.
        by: u32,
    },
    /// Messages between some nodes and others are lost.
    Partition {
        /// The time at which the partition begins.
        from: u32,
        /// The time at which the partition ends.
        until: u32,
        /// The nodes on one side.
        side: Nodes,
        /// The nodes on the other side of a partial partition; the remaining nodes reach all. Without it all remaining
        /// nodes are on the other side.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<Nodes>,
        /// True if only messages from this side to the other are lost.
        #[serde(default)]
        one_way: bool,
        /// The period of a partition that flaps: in the second half of each period messages pass. Without it the
        /// partition lasts for the entire interval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every: Option<u32>,
    },
    /// Nodes crash together: they lose their memory and the unsynced data of their disks, and start again later.
    Crash {
        /// The nodes.
        nodes: Nodes,
        /// The time of the crash.
        at: u32,
        /// The duration for which the nodes are down.
        down: u32,
        /// True if the nodes also lose the synced data of their disks.
        #[serde(default)]
        loses_disk: bool,
    },
    /// All messages of some nodes travel longer.
    Delay {
        /// The nodes.
        nodes: Nodes,
        /// The time at which the interval begins.
        from: u32,
        /// The time at which the interval ends.
        until: u32,
        /// The latency added to each message.
        by: u32,
    },
    /// Nodes handle nothing, and then everything that has arrived in the meantime.
    Pause {
        /// The nodes.
        nodes: Nodes,
        /// The time at which the pause begins.
        from: u32,
        /// The time at which the pause ends.
        until: u32,
    },
    /// Nodes take some time for each message and each timer, one after the other.
    Slow {
        /// The nodes.
        nodes: Nodes,
        /// The time at which the interval begins.
        from: u32,
        /// The time at which the interval ends.
        until: u32,
        /// The time that each message or timer takes.
        by: u32,
    },
    /// The clocks and timers of nodes run too fast or too slowly.
    Skew {
        /// The nodes.
        nodes: Nodes,
        /// The time at which the interval begins.
        from: u32,
        /// The time at which the interval ends.
        until: u32,
        /// The speed of the clock: 500 is half the normal speed, 2000 is twice the normal speed.
        rate: u32,
    },
    /// The points in the code of the nodes that use [`Machine::buggify`](crate::Machine::buggify) are in effect, until
    /// faults stop.
    Buggify,
}

/// The maximum number of periods of a flapping partition.
const MOST_FLAPS: u32 = 1_000;
/// The allowed speeds of a clock.
const RATES: std::ops::RangeInclusive<u32> = 100..=10_000;

impl Fault {
    /// Returns the name of the kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Loss { .. } => "loss",
            Fault::Duplicates { .. } => "duplicates",
            Fault::Late { .. } => "late",
            Fault::Partition { .. } => "partition",
            Fault::Crash { .. } => "crash",
            Fault::Delay { .. } => "delay",
            Fault::Pause { .. } => "pause",
            Fault::Slow { .. } => "slow",
            Fault::Skew { .. } => "skew",
            Fault::Buggify => "buggify",
        }
    }

    /// Returns the share of messages that a random fault affects.
    pub(crate) fn share(&self) -> Option<u32> {
        match *self {
            Fault::Loss { share } | Fault::Duplicates { share } | Fault::Late { share, .. } => {
                Some(share)
            }
            _ => None,
        }
    }

    /// Returns the nodes that a fault affects.
    pub(crate) fn nodes(&self) -> Option<Nodes> {
        self.clone().nodes_mut().copied()
    }

    /// Returns the interval of a fault in milliseconds; `None` if the fault lasts until all faults stop.
    pub(crate) fn span(&self) -> Option<Range<u64>> {
        let (from, until) = match *self {
            Fault::Partition { from, until, .. }
            | Fault::Delay { from, until, .. }
            | Fault::Pause { from, until, .. }
            | Fault::Slow { from, until, .. }
            | Fault::Skew { from, until, .. } => (from.into(), until.into()),
            Fault::Crash { at, down, .. } => (at.into(), u64::from(at) + u64::from(down)),
            _ => return None,
        };
        Some(from..until)
    }

    /// True if the fault affects this node at this time.
    pub(crate) fn affects(&self, node: u32, at: u64) -> bool {
        let nodes = self.nodes().is_some_and(|nodes| nodes.contains(node));
        nodes && self.span().is_some_and(|span| span.contains(&at))
    }

    /// Returns the intervals in which messages are lost or late.
    pub fn intervals(&self) -> Vec<Range<u32>> {
        let Some(span) = self.span() else {
            return Vec::new();
        };
        let (from, until) = (span.start as u32, span.end as u32);
        match self {
            Fault::Partition {
                every: Some(every), ..
            } => {
                let starts = (from..until).step_by((*every).max(1) as usize);
                let end = |start: u32| start.saturating_add(every.div_ceil(2)).min(until);
                starts.map(|start| start..end(start)).collect()
            }
            _ => std::iter::once(from..until).collect(),
        }
    }

    /// Checks the fault against a program with `nodes` nodes, and a run of this length.
    pub(crate) fn check(&self, nodes: u32, time: u32) -> Result<(), PlanError> {
        let fault = self.kind();
        if let Some(value) = self.share().filter(|share| *share > 1_000) {
            return Err(PlanError::Probability { fault, value });
        }
        let mut all = self.nodes().unwrap_or_default();
        if let Fault::Partition {
            others: Some(others),
            ..
        } = self
        {
            all.0 |= others.0;
        }
        if let Some(node) = all.iter().find(|node| *node >= nodes) {
            let last = nodes.saturating_sub(1);
            return Err(PlanError::Node { fault, node, last });
        }
        let end = self.span().map_or(0, |span| span.end);
        let by = match *self {
            Fault::Late { by, .. } | Fault::Delay { by, .. } | Fault::Slow { by, .. } => by,
            _ => 0,
        };
        let at = end.max(by.into());
        if at > time.into() {
            return Err(PlanError::TooLate { fault, at, time });
        }
        match *self {
            Fault::Skew { rate, .. } if !RATES.contains(&rate) => Err(PlanError::Rate(rate)),
            Fault::Partition {
                from,
                until,
                every: Some(every),
                ..
            } if every == 0 || until.saturating_sub(from) / every > MOST_FLAPS => {
                Err(PlanError::Flaps(every))
            }
            _ => Ok(()),
        }
    }

    /// Returns a fault that begins earlier by `by`, and lasts as long.
    pub(crate) fn earlier(&self, by: u32) -> Fault {
        let mut other = self.clone();
        if let Some(span) = self.span() {
            let by = u64::from(by).min(span.start);
            other.set_span((span.start - by) as u32..span.end.saturating_sub(by) as u32);
        }
        other
    }

    /// Returns a fault that begins later by `by` and lasts as long. It is moved by less, if it would end after `end`.
    pub(crate) fn later(&self, by: u32, end: u32) -> Fault {
        let mut other = self.clone();
        if let Some(span) = self.span() {
            let by = u64::from(by).min(u64::from(end).saturating_sub(span.end));
            other.set_span((span.start + by) as u32..(span.end + by) as u32);
        }
        other
    }

    /// Sets the interval of a fault that has one.
    pub(crate) fn set_span(&mut self, span: Range<u32>) {
        match self {
            Fault::Partition { from, until, .. }
            | Fault::Delay { from, until, .. }
            | Fault::Pause { from, until, .. }
            | Fault::Slow { from, until, .. }
            | Fault::Skew { from, until, .. } => (*from, *until) = (span.start, span.end),
            Fault::Crash { at, down, .. } => {
                (*at, *down) = (span.start, span.end.saturating_sub(span.start));
            }
            _ => {}
        }
    }

    /// Limits the lateness of messages to the length of a run.
    pub(crate) fn limit(&mut self, time: u32) {
        if let Fault::Late { by, .. } | Fault::Delay { by, .. } | Fault::Slow { by, .. } = self {
            *by = time.min(*by);
        }
    }

    /// Returns weaker faults: for fewer nodes, for a shorter time, or with less effect.
    pub(crate) fn weaker(&self) -> Vec<Fault> {
        let mut all = Vec::new();
        let mut with = |change: &dyn Fn(&mut Fault)| {
            let mut other = self.clone();
            change(&mut other);
            if other != *self {
                all.push(other);
            }
        };
        let nodes = self.nodes().unwrap_or_default();
        for node in nodes.iter().filter(|_| nodes.0.count_ones() > 1) {
            with(&|fault| {
                if let Some(nodes) = fault.nodes_mut() {
                    nodes.0 &= !(1 << node);
                }
            });
        }
        with(&|fault| match fault {
            Fault::Loss { share } | Fault::Duplicates { share } | Fault::Late { share, .. } => {
                *share -= *share / 2;
            }
            Fault::Partition { from, until, .. }
            | Fault::Delay { from, until, .. }
            | Fault::Pause { from, until, .. }
            | Fault::Slow { from, until, .. }
            | Fault::Skew { from, until, .. } => *until -= until.saturating_sub(*from) / 2,
            Fault::Crash { down, .. } => *down -= *down / 2,
            Fault::Buggify => {}
        });
        with(&|fault| match fault {
            Fault::Partition { from, until, .. }
            | Fault::Delay { from, until, .. }
            | Fault::Pause { from, until, .. }
            | Fault::Slow { from, until, .. }
            | Fault::Skew { from, until, .. } => *from += until.saturating_sub(*from) / 2,
            Fault::Crash { loses_disk, .. } => *loses_disk = false,
            _ => {}
        });
        with(&|fault| match fault {
            Fault::Late { by, .. } | Fault::Delay { by, .. } | Fault::Slow { by, .. } => {
                *by -= *by / 2;
            }
            Fault::Skew { rate, .. } => *rate = (*rate + 1_000) / 2,
            Fault::Partition { every, .. } => *every = None,
            _ => {}
        });
        with(&|fault| {
            if let Fault::Partition { one_way, .. } = fault {
                *one_way = false;
            }
        });
        with(&|fault| {
            if let Fault::Partition { others, .. } = fault {
                *others = None;
            }
        });
        all
    }

    fn nodes_mut(&mut self) -> Option<&mut Nodes> {
        match self {
            Fault::Partition { side: nodes, .. }
            | Fault::Crash { nodes, .. }
            | Fault::Delay { nodes, .. }
            | Fault::Pause { nodes, .. }
            | Fault::Slow { nodes, .. }
            | Fault::Skew { nodes, .. } => Some(nodes),
            _ => None,
        }
    }

    /// Returns a number that is smaller for a weaker or earlier fault.
    pub(crate) fn strength(&self) -> u64 {
        let span = self.span().unwrap_or(0..0);
        let own = match *self {
            Fault::Late { by, .. } | Fault::Delay { by, .. } | Fault::Slow { by, .. } => by,
            Fault::Skew { rate, .. } => rate.abs_diff(1_000),
            Fault::Partition {
                one_way,
                every,
                others,
                ..
            } => u32::from(one_way) + 2 * u32::from(every.is_some()) + u32::from(others.is_some()),
            Fault::Crash { loses_disk, .. } => u32::from(loses_disk),
            _ => 0,
        };
        let nodes = self.nodes().map_or(0, |nodes| nodes.0.count_ones());
        let share = self.share().unwrap_or(0);
        span.start + 2 * span.end.saturating_sub(span.start) + u64::from(own + nodes + share)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Loss { share } => write!(f, "{share} of 1000 messages are lost"),
            Fault::Duplicates { share } => write!(f, "{share} of 1000 messages arrive twice"),
            Fault::Late { share, by } => {
                write!(f, "{share} of 1000 messages are up to {by} ms late")
            }
            Fault::Partition {
                from,
                until,
                side,
                others,
                one_way,
                every,
            } => {
                write!(f, "from {from} to {until} ms all messages are lost ")?;
                match (others, one_way) {
                    (None, true) => write!(f, "from {side}")?,
                    (None, false) => write!(f, "from and to {side}")?,
                    (Some(others), true) => write!(f, "from {side} to {others}")?,
                    (Some(others), false) => write!(f, "between {side} and {others}")?,
                }
                every.map_or(Ok(()), |every| {
                    write!(f, ", in the first half of every {every} ms")
                })
            }
            Fault::Crash {
                nodes,
                at,
                down,
                loses_disk,
            } => {
                let disk = if *loses_disk { " without a disk" } else { "" };
                let start = at.saturating_add(*down);
                write!(f, "crash of {nodes} at {at} ms, start{disk} at {start} ms")
            }
            Fault::Delay {
                nodes,
                from,
                until,
                by,
            } => write!(
                f,
                "from {from} to {until} ms messages from {nodes} are {by} ms late"
            ),
            Fault::Pause { nodes, from, until } => {
                write!(f, "pause of {nodes} from {from} to {until} ms")
            }
            Fault::Slow {
                nodes,
                from,
                until,
                by,
            } => write!(
                f,
                "from {from} to {until} ms each event takes {by} ms on {nodes}"
            ),
            Fault::Skew {
                nodes,
                from,
                until,
                rate,
            } => write!(
                f,
                "from {from} to {until} ms the clocks of {nodes} run at {rate} of 1000"
            ),
            Fault::Buggify => write!(f, "rare paths are taken (buggify)"),
        }
    }
}
