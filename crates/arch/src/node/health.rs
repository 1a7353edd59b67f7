//! The faults that an instance has at the moment, and what it holds back while it is paused.

use super::job::Job;
use crate::message::Answer;
use serde::{Deserialize, Serialize};

/// What arrived while an instance was paused.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Deferred {
    /// A job, and how long it travelled.
    Job(Job, u32),
    /// The response to the request with this number.
    Response {
        id: u32,
        travel: u32,
        answer: Answer,
    },
}

/// The faults that an instance has. Those of one kind may overlap; each ends by itself.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Health {
    /// How many faults have killed it, the chaos monkey among them.
    pub(super) killed: u32,
    /// How many reasons there are to be in no registry, beside being killed.
    pub(super) away: u32,
    pub(super) paused: u32,
    pub(super) cut_off: u32,
    /// What was done to it from outside.
    pub(super) ordered: Ordered,
    /// By how much times are multiplied, for each fault that slows it.
    factors: Vec<(u32, f64)>,
    held: Vec<Deferred>,
}

/// The state of an instance that commands have set during the run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ordered {
    pub(super) killed: bool,
    pub(super) paused: bool,
    pub(super) cut_off: bool,
    /// By how many per cent times are multiplied; 0 and 100 leave them as they are.
    pub(super) slow_percent: u32,
}

impl Health {
    /// A good one; idle instances are in no registry.
    pub(super) fn new(is_idle: bool) -> Health {
        Health {
            away: is_idle.into(),
            ..Health::default()
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.killed > 0 || self.ordered.killed
    }

    /// Whether the registries should know it.
    pub(super) fn is_listed(&self) -> bool {
        !self.is_down() && self.away == 0
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused > 0 || self.ordered.paused
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off > 0 || self.ordered.cut_off
    }

    /// How long something takes that takes so long in good health.
    #[inline]
    pub(super) fn slowed(&self, nanos: u64) -> u64 {
        if self.factors.is_empty() && self.ordered.slow_percent == 0 {
            return nanos;
        }
        (nanos as f64 * self.factor()) as u64
    }

    /// By how much times are multiplied.
    pub(super) fn factor(&self) -> f64 {
        let ordered = match self.ordered.slow_percent {
            0 => 1.0,
            percent => f64::from(percent) / 100.0,
        };
        let faults = self.factors.iter().map(|(_, factor)| factor);
        faults.product::<f64>() * ordered
    }

    /// The fault of this number begins to slow it.
    pub(super) fn slow_down(&mut self, fault: u32, factor: f64) {
        self.factors.push((fault, factor));
    }

    /// The fault of this number slows it no more.
    pub(super) fn speed_up(&mut self, fault: u32) {
        self.factors.retain(|(number, _)| *number != fault);
    }

    /// Keeps what has arrived during a pause.
    pub(super) fn hold(&mut self, held: Deferred) {
        self.held.push(held);
    }

    /// Removes what has arrived during a pause.
    pub(super) fn take_held(&mut self) -> Vec<Deferred> {
        std::mem::take(&mut self.held)
    }
}
