//! The current faults of an instance, and the messages deferred while it is paused.

use super::job::Job;
use crate::message::Answer;
use serde::{Deserialize, Serialize};

/// A message that arrived while an instance was paused.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Deferred {
    /// A job, with its travel time.
    Job(Job, u32),
    /// The response to the request with this number.
    Response {
        id: u32,
        travel: u32,
        answer: Answer,
    },
}

/// The current faults. Faults of one kind may overlap; each ends separately.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Health {
    /// The number of faults that have killed the instance, including the chaos monkey.
    pub(super) killed: u32,
    /// The number of reasons, other than being killed, for which the instance is in no registry.
    pub(super) away: u32,
    pub(super) paused: u32,
    pub(super) cut_off: u32,
    /// The commands from outside.
    pub(super) ordered: Ordered,
    /// The factor of each fault that slows the instance.
    factors: Vec<(u32, f64)>,
    held: Vec<Deferred>,
}

/// The state of an instance that commands have set during the run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ordered {
    pub(super) killed: bool,
    pub(super) paused: bool,
    pub(super) cut_off: bool,
    /// The percentage by which a command multiplies times; 0 and 100 mean no change.
    pub(super) slow_percent: u32,
}

impl Health {
    /// Creates the health of an instance without faults; idle instances are in no registry.
    pub(super) fn new(is_idle: bool) -> Health {
        Health {
            away: is_idle.into(),
            ..Health::default()
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.killed > 0 || self.ordered.killed
    }

    /// True if the registries should know the instance.
    pub(super) fn is_listed(&self) -> bool {
        !self.is_down() && self.away == 0
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused > 0 || self.ordered.paused
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off > 0 || self.ordered.cut_off
    }

    /// Returns the duration of work that takes this long without faults.
    #[inline]
    pub(super) fn slowed(&self, nanos: u64) -> u64 {
        if self.factors.is_empty() && self.ordered.slow_percent == 0 {
            return nanos;
        }
        (nanos as f64 * self.factor()) as u64
    }

    /// Returns the factor on times.
    pub(super) fn factor(&self) -> f64 {
        let ordered = match self.ordered.slow_percent {
            0 => 1.0,
            percent => f64::from(percent) / 100.0,
        };
        let faults = self.factors.iter().map(|(_, factor)| factor);
        faults.product::<f64>() * ordered
    }

    /// Begins the slow-down by the fault with this number.
    pub(super) fn slow_down(&mut self, fault: u32, factor: f64) {
        self.factors.push((fault, factor));
    }

    /// Ends the slow-down by the fault with this number.
    pub(super) fn speed_up(&mut self, fault: u32) {
        self.factors.retain(|(number, _)| *number != fault);
    }

    /// Stores a message that arrived during a pause.
    pub(super) fn hold(&mut self, held: Deferred) {
        self.held.push(held);
    }

    /// Takes the messages that arrived during a pause.
    pub(super) fn take_held(&mut self) -> Vec<Deferred> {
        std::mem::take(&mut self.held)
    }
}
