//! Plans of faults, as data.

use corsair::Random;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The faults of a run. Times are in milliseconds of virtual time, probabilities in thousandths. A plan can
/// be written to a file, edited and replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultPlan {
    /// The length of the run. Faults stop after two thirds of it, so that the system has time to recover.
    pub time: u32,
    /// Ends the run at this time, without the observer's [`end`](crate::Observer::end), for violations that happen
    /// before it.
    pub until: Option<u32>,
    /// The share of messages that are lost, in thousandths.
    pub loss: u32,
    /// The share of messages that arrive twice, in thousandths, if their type can be copied.
    pub duplicates: u32,
    /// The share of messages that are late, in thousandths, by up to `lateness`.
    pub late: u32,
    /// The maximum additional latency.
    pub lateness: u32,
    /// Network partitions.
    pub partitions: Vec<Partition>,
    /// Nodes that crash and start again.
    pub crashes: Vec<Crash>,
    /// Nodes whose messages are slow during an interval, so that other messages overtake them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<Delay>,
}

/// An interval in which messages from some nodes to all others are lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Partition {
    /// The time at which the interval begins.
    pub from: u32,
    /// The time at which the interval ends.
    pub until: u32,
    /// The nodes on one side, as a bit mask.
    pub side: u64,
    /// True if only messages from this side to the other are lost.
    pub one_way: bool,
}

/// A crash of a node: the node loses its memory and the unsynced data of its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// The index of the node.
    pub node: u32,
    /// The time of the crash.
    pub at: u32,
    /// The duration for which the node is down.
    pub down: u32,
}

/// An interval in which all messages of a node travel longer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// The time at which the interval begins.
    pub from: u32,
    /// The time at which the interval ends.
    pub until: u32,
    /// The index of the node.
    pub node: u32,
    /// The latency added to each message.
    pub by: u32,
}

/// The reasons why a plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A probability exceeds 1,000 thousandths.
    #[error("{field} is {value}, but is a part of 1000")]
    Probability {
        /// The name of the field.
        field: &'static str,
        /// The invalid value.
        value: u32,
    },
    /// A fault concerns a node that the program does not have.
    #[error("a {fault} names node {node}, but the program has the nodes 0 to {last}")]
    Node {
        /// The kind of fault, for the message.
        fault: &'static str,
        /// The index of the missing node.
        node: u32,
        /// The index of the program's last node.
        last: u32,
    },
    /// A fault begins or ends after the run.
    #[error("a {fault} is at {at} ms, after the end of the run at {time} ms")]
    TooLate {
        /// The kind of fault, for the message.
        fault: &'static str,
        /// The time at which the fault begins or ends, or the lateness of messages.
        at: u64,
        /// The length of the run.
        time: u32,
    },
    /// The length of the run is zero or more than an hour.
    #[error("time is {0} ms; expected 1 to 3600000")]
    Time(u32),
    /// The number of faults is too large.
    #[error("the plan has {0} partitions, crashes and delays; at most 1000 are allowed")]
    Faults(usize),
}

impl FaultPlan {
    /// Creates a plan for a run of this length without faults.
    pub fn calm(time: u32) -> FaultPlan {
        FaultPlan {
            time,
            ..FaultPlan::default()
        }
    }

    /// Returns the end of the faults.
    pub fn faults_until(&self) -> u32 {
        self.time - self.time / 3
    }

    /// Draws a random set of faults with random strengths (swarm testing: Groce et al., ISSTA 2012).
    pub fn draw(random: &mut Random, nodes: u32, time: u32) -> FaultPlan {
        let mut plan = FaultPlan::calm(time);
        let until = plan.faults_until();
        if random.below(2) == 0 {
            plan.loss = 1 << random.below(9);
        }
        if random.below(2) == 0 {
            plan.duplicates = 1 << random.below(9);
        }
        if random.below(2) == 0 {
            plan.late = 1 << random.below(10);
            plan.lateness = 1 << random.below(11);
        }
        if random.below(2) == 0 {
            for _ in 0..=random.below(3) {
                plan.partitions.push(Partition::draw(random, nodes, until));
            }
        }
        if random.below(2) == 0 {
            for _ in 0..=random.below(4) {
                plan.crashes.push(Crash::draw(random, nodes, until));
            }
        }
        if random.below(2) == 0 {
            for _ in 0..=random.below(4) {
                plan.delays.push(Delay::draw(random, nodes, until));
            }
        }
        plan
    }

    /// Returns the end of the run.
    pub(crate) fn end(&self) -> u32 {
        self.until.unwrap_or(self.time)
    }

    /// Ends the run earlier, and drops the faults that come later.
    pub(crate) fn shorten(&mut self, until: u32) {
        let until = until.max(1);
        self.until = Some(until);
        self.crashes.retain(|crash| crash.at < until);
        self.partitions.retain(|partition| partition.from < until);
        self.delays.retain(|delay| delay.from < until);
    }

    /// Checks the plan against a program with `nodes` nodes.
    ///
    /// # Errors
    /// The first part of the plan that is invalid.
    pub fn check(&self, nodes: u32) -> Result<(), PlanError> {
        let last = nodes.saturating_sub(1);
        if !(1..=3_600_000).contains(&self.time) {
            return Err(PlanError::Time(self.time));
        }
        let parts = [
            ("loss", self.loss),
            ("duplicates", self.duplicates),
            ("late", self.late),
        ];
        if let Some((field, value)) = parts.into_iter().find(|(_, value)| *value > 1000) {
            return Err(PlanError::Probability { field, value });
        }
        let faults = self.partitions.len() + self.crashes.len();
        let faults = faults + self.delays.len();
        if faults > 1000 {
            return Err(PlanError::Faults(faults));
        }
        let too_late = |fault, at: u64| PlanError::TooLate {
            fault,
            at,
            time: self.time,
        };
        if let Some(until) = self.until.filter(|until| !(1..=self.time).contains(until)) {
            return Err(too_late("limit", until.into()));
        }
        if self.lateness > self.time {
            return Err(too_late("late message", self.lateness.into()));
        }
        for crash in &self.crashes {
            if crash.node >= nodes {
                return Err(PlanError::Node {
                    fault: "crash",
                    node: crash.node,
                    last,
                });
            }
            let end = u64::from(crash.at) + u64::from(crash.down);
            if end > u64::from(self.time) {
                return Err(too_late("crash", end));
            }
        }
        for delay in &self.delays {
            if delay.node >= nodes {
                return Err(PlanError::Node {
                    fault: "delay",
                    node: delay.node,
                    last,
                });
            }
            let end = delay.until.max(delay.by);
            if end > self.time {
                return Err(too_late("delay", end.into()));
            }
        }
        for partition in &self.partitions {
            let beyond = partition.side.checked_shr(nodes).unwrap_or(0);
            if beyond != 0 {
                let node = nodes + beyond.trailing_zeros();
                return Err(PlanError::Node {
                    fault: "partition",
                    node,
                    last,
                });
            }
            if partition.until > self.time {
                return Err(too_late("partition", partition.until.into()));
            }
        }
        Ok(())
    }

    /// Describes the plan, with one line for each fault.
    pub fn describe(&self) -> String {
        let mut lines = Vec::new();
        let mut part = |value: u32, what: &str| {
            if value > 0 {
                lines.push(format!("{value} of 1000 messages {what}"));
            }
        };
        part(self.loss, "are lost");
        part(self.duplicates, "arrive twice");
        part(self.late, &format!("are up to {} ms late", self.lateness));
        for Partition {
            from,
            until,
            side,
            one_way,
        } in &self.partitions
        {
            let nodes: Vec<String> = (0..64)
                .filter(|bit| side >> bit & 1 == 1)
                .map(|bit| bit.to_string())
                .collect();
            let way = if *one_way {
                "nothing comes from"
            } else {
                "cut off are"
            };
            lines.push(format!(
                "from {from} to {until} ms {way} the nodes {}",
                nodes.join(", ")
            ));
        }
        for Crash { node, at, down } in &self.crashes {
            lines.push(format!(
                "node {node} crashes at {at} ms and is down for {down} ms"
            ));
        }
        for Delay {
            from,
            until,
            node,
            by,
        } in &self.delays
        {
            lines.push(format!(
                "from {from} to {until} ms messages of node {node} are {by} ms late"
            ));
        }
        if lines.is_empty() {
            lines.push("no faults".to_owned());
        }
        lines.join("\n")
    }
}

impl Partition {
    fn draw(random: &mut Random, nodes: u32, until: u32) -> Partition {
        let from = random.below(until);
        let length = 1 + random.below((until / 2).max(1));
        let all = (1u64 << nodes.min(63)) - 1;
        let side = match random.below(2) {
            0 => 1 << random.below(nodes.max(1)),
            _ => random.bits() & all,
        };
        let one_way = random.below(3) == 0;
        Partition {
            from,
            until: (from + length).min(until),
            side,
            one_way,
        }
    }
}

impl Crash {
    fn draw(random: &mut Random, nodes: u32, until: u32) -> Crash {
        let at = random.below(until);
        let down = 1 + random.below((until / 4).max(1));
        Crash {
            node: random.below(nodes.max(1)),
            at,
            down: down.min(until - at),
        }
    }
}

impl Delay {
    fn draw(random: &mut Random, nodes: u32, until: u32) -> Delay {
        let from = random.below(until);
        let length = 1 << random.below(9);
        let by = 1 << random.below(9);
        Delay {
            from,
            until: (from + length).min(until),
            node: random.below(nodes.max(1)),
            by: by.min(until),
        }
    }
}
