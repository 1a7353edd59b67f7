//! The report's records of single actors.

use crate::contract::{Addr, Report, WaitReason};
use std::collections::BTreeMap;

/// The records that contexts make when they are dropped.
#[derive(Default)]
pub(crate) struct Records {
    /// The waiting actors with the lowest addresses: the reason, and the number of stashed events.
    pub(super) waiting: BTreeMap<Addr, (WaitReason, usize)>,
    pub(super) waiting_total: u64,
    /// The numbers of sent and received messages.
    pub(super) totals: Vec<(Addr, u64, u64)>,
}

impl Records {
    /// Records that an actor existed at the end of the run.
    pub(super) fn wait(&mut self, who: Addr, waiting: Option<WaitReason>, stashed: usize) {
        self.waiting_total += 1;
        self.waiting
            .insert(who, (waiting.unwrap_or(WaitReason::Other), stashed));
        if self.waiting.len() > Report::MOST_WAITING {
            self.waiting.pop_last();
        }
    }

    /// Records the totals of an actor.
    pub(super) fn count(&mut self, who: Addr, sent: u64, received: u64) {
        self.totals.push((who, sent, received));
    }
}
