//! Plans of faults, as data.

use crate::{Fault, swarm};
use corsair::Random;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The faults of a run. Times are in milliseconds of virtual time. A plan can be written to a file, edited and
/// replayed.
///
/// ```
/// use corsair_hunt::FaultPlan;
///
/// let text = r#"{"time": 1000, "faults": [
///     {"loss": {"share": 20}},
///     {"partition": {"from": 100, "until": 300, "side": [0, 1], "one_way": true}},
///     {"crash": {"nodes": [2], "at": 400, "down": 50}}
/// ]}"#;
/// let plan: FaultPlan = serde_json::from_str(text)?;
/// plan.check(3)?;
/// assert!(plan.check(2).unwrap_err().to_string().contains("node 2"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultPlan {
    /// The length of the run. Faults stop after two thirds of it, so that the system has time to recover.
    pub time: u32,
    /// Ends the run at this time, without the observer's [`end`](crate::Observer::end), for violations that happen
    /// before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// The only messages to which the random faults (loss, duplicates, late messages) may happen; `None` for all
    /// messages. Shrinking replaces random choices by those that the violation needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<Transmission>>,
    /// Intervals in which nodes do not take part. They are no faults: shrinking removes nodes and load with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absence>,
}

/// The messages that a node sends to another at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transmission {
    /// The send time in nanoseconds.
    pub sent: u64,
    /// The index of the sender.
    pub from: u32,
    /// The index of the receiver.
    pub to: u32,
}

/// An interval in which a node does not take part: the node receives and does nothing. Afterwards it starts, with
/// the data of its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absence {
    /// The index of the node.
    pub node: u32,
    /// The time at which the interval begins.
    pub from: u32,
    /// The time at which the interval ends.
    pub until: u32,
}

/// The reasons why a plan is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A probability exceeds 1,000 thousandths.
    #[error("{fault} has the share {value}; expected at most 1000 thousandths")]
    Probability {
        /// The kind of fault.
        fault: &'static str,
        /// The invalid value.
        value: u32,
    },
    /// A fault concerns a node that the program does not have.
    #[error("the fault {fault} names node {node}, but the program has the nodes 0 to {last}")]
    Node {
        /// The kind of fault, for the message.
        fault: &'static str,
        /// The index of the missing node.
        node: u32,
        /// The index of the program's last node.
        last: u32,
    },
    /// A fault begins or ends after the run.
    #[error("the fault {fault} is at {at} ms, after the end of the run at {time} ms")]
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
    #[error("the plan has {0} faults and absences; at most 1000 are allowed")]
    Faults(usize),
    /// The speed of a clock is too low or too high.
    #[error("a skew has the rate {0}; expected 100 to 10000 thousandths")]
    Rate(u32),
    /// The period of a partition is zero, or too short for its interval.
    #[error("a partition flaps every {0} ms; expected 1 to 1000 periods")]
    Flaps(u32),
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

    /// Draws a random set of faults with random strengths (swarm testing: Groce et al., ISSTA 2012). Only if
    /// `loses_disks` is true, nodes may lose the synced data of their disks.
    pub fn draw(random: &mut Random, nodes: u32, time: u32, loses_disks: bool) -> FaultPlan {
        let mut plan = FaultPlan::calm(time);
        plan.faults = swarm::draw(random, nodes, plan.faults_until(), loses_disks);
        plan
    }

    /// Returns a plan with the same faults until a time, from which other faults are drawn that happen in turn. A run is
    /// the same until then. Faults that have begun end at that time, or last as long as before.
    pub(crate) fn branch(
        &self,
        random: &mut Random,
        at: u32,
        nodes: u32,
        loses_disks: bool,
    ) -> FaultPlan {
        let mut plan = self.clone();
        let spans = |fault: &Fault| fault.span().unwrap_or_default();
        plan.faults
            .retain(|fault| spans(fault).start < at.into() || fault.span().is_none());
        let sides = |fault: &Fault| match fault {
            Fault::Partition { from, side, .. } => Some((*from, *side)),
            _ => None,
        };
        let before = plan.faults.iter().filter_map(sides);
        let before = before.max_by_key(|(from, _)| *from).map(|(_, side)| side);
        if random.below(4) > 0 {
            for fault in &mut plan.faults {
                let span = spans(fault);
                fault.set_span(span.start as u32..at.min(span.end as u32));
            }
        }
        plan.faults.extend(swarm::in_turn(
            random,
            nodes,
            at..self.last_fault(),
            loses_disks,
            before,
        ));
        plan
    }

    /// Returns the end of the faults, or of the run.
    pub(crate) fn last_fault(&self) -> u32 {
        self.faults_until().min(self.end())
    }

    /// Returns the end of the run.
    pub(crate) fn end(&self) -> u32 {
        self.until.unwrap_or(self.time)
    }

    /// Ends the run earlier, and drops the faults that come later.
    pub(crate) fn shorten(&mut self, until: u32) {
        let until = until.max(1);
        self.until = Some(until);
        let starts = |span: Option<std::ops::Range<u64>>| span.map_or(0, |span| span.start);
        self.faults
            .retain(|fault| starts(fault.span()) < until.into());
        self.absent.retain(|absence| absence.from < until);
    }

    /// True if the node does not take part at this time.
    pub(crate) fn is_absent(&self, node: u32, at: u64) -> bool {
        self.absent.iter().any(|absence| {
            let span = absence.from.into()..absence.until.into();
            absence.node == node && span.contains(&at)
        })
    }

    /// Checks the plan against a program with `nodes` nodes.
    ///
    /// # Errors
    /// The first part of the plan that is invalid.
    pub fn check(&self, nodes: u32) -> Result<(), PlanError> {
        if !(1..=3_600_000).contains(&self.time) {
            return Err(PlanError::Time(self.time));
        }
        let count = self.faults.len() + self.absent.len();
        if count > 1_000 {
            return Err(PlanError::Faults(count));
        }
        let time = self.time;
        let too_late = |fault, at: u32| PlanError::TooLate {
            fault,
            at: at.into(),
            time,
        };
        if let Some(until) = self.until.filter(|until| !(1..=time).contains(until)) {
            return Err(too_late("limit", until));
        }
        self.faults
            .iter()
            .try_for_each(|fault| fault.check(nodes, time))?;
        let last = nodes.saturating_sub(1);
        let missing = |fault, node| PlanError::Node { fault, node, last };
        for absence in &self.absent {
            if absence.node >= nodes {
                return Err(missing("absence", absence.node));
            }
            if absence.until > time {
                return Err(too_late("absence", absence.until));
            }
        }
        for Transmission { from, to, .. } in self.only.iter().flatten() {
            if let Some(node) = [*from, *to].into_iter().find(|node| *node >= nodes) {
                return Err(missing("message", node));
            }
        }
        Ok(())
    }
}

/// One line for each fault.
impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.faults.iter().map(Fault::to_string).collect();
        match &lines[..] {
            [] => write!(f, "no faults"),
            lines => write!(f, "{}", lines.join("\n")),
        }
    }
}
