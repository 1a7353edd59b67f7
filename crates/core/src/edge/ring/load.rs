//! The weights of the messages of a ring with a limit by weight. Only the sender uses them: it derives from
//! the head which messages have left, so nothing is shared.

use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Load {
    limit: u64,
    /// The weights of the messages that are buffered, the oldest first.
    weights: VecDeque<u64>,
    /// The sum of `weights`.
    total: u64,
    /// The position of the oldest message.
    first: u64,
}

impl Load {
    pub(super) fn new(limit: u64) -> Load {
        Load {
            limit,
            weights: VecDeque::new(),
            total: 0,
            first: 0,
        }
    }

    /// True if a message may be added. An empty edge accepts any message.
    pub(super) fn has_capacity_for(&self, weight: u64) -> bool {
        self.weights.is_empty() || self.total.saturating_add(weight) <= self.limit
    }

    /// True if the edge can accept another message.
    pub(super) fn has_capacity(&self) -> bool {
        self.weights.is_empty() || self.total < self.limit
    }

    /// Records the weight of a message that was put at the tail.
    pub(super) fn sent(&mut self, weight: u64) {
        self.weights.push_back(weight);
        self.total = self.total.saturating_add(weight);
    }

    /// Removes the weights of messages before the head.
    pub(super) fn received_up_to(&mut self, head: u64) {
        while self.first < head {
            let Some(weight) = self.weights.pop_front() else {
                break;
            };
            self.first += 1;
            self.total = match self.weights.is_empty() {
                true => 0,
                false => self.total.saturating_sub(weight),
            };
        }
    }
}
