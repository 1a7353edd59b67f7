//! The instances that an instance may call.

use serde::{Deserialize, Serialize};

/// Instances that may be called, each once, in ascending order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Routes(Vec<u32>);

impl Routes {
    /// Adds an instance. True if it is new. Instances usually arrive in ascending order.
    pub(crate) fn add(&mut self, node: u32) -> bool {
        if self.0.last().is_none_or(|&last| last < node) {
            self.0.push(node);
            return true;
        }
        match self.0.binary_search(&node) {
            Ok(_) => false,
            Err(place) => {
                self.0.insert(place, node);
                true
            }
        }
    }

    /// Removes an instance. True if it was present.
    pub(crate) fn remove(&mut self, node: u32) -> bool {
        let place = self.0.binary_search(&node);
        place.is_ok_and(|place| {
            self.0.remove(place);
            true
        })
    }

    /// True if the instance is present.
    pub(crate) fn has(&self, node: u32) -> bool {
        self.0.binary_search(&node).is_ok()
    }

    /// Returns a random instance.
    #[inline]
    pub(crate) fn pick(&self, bits: u64) -> Option<u32> {
        let place = ((u128::from(bits) * self.0.len() as u128) >> 64) as usize;
        self.0.get(place).copied()
    }

    /// Returns a random instance in a range, if there is one.
    pub(crate) fn pick_within(
        &self,
        range: &std::ops::Range<u32>,
        bits: impl FnOnce() -> u64,
    ) -> Option<u32> {
        let first = self.0.partition_point(|&node| node < range.start);
        let end = self.0.partition_point(|&node| node < range.end);
        let within = &self.0[first..end];
        if within.is_empty() {
            return None;
        }
        let place = ((u128::from(bits()) * within.len() as u128) >> 64) as usize;
        Some(within[place])
    }

    /// Iterates over all instances.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_unique_sorted_and_all_picked() {
        let mut routes = Routes::default();
        assert_eq!(routes.pick(7), None);
        for (node, new) in [(3, true), (9, true), (5, true), (3, false), (9, false)] {
            assert_eq!(routes.add(node), new);
        }
        assert_eq!(routes.iter().collect::<Vec<_>>(), [3, 5, 9]);
        let third = u64::MAX / 3;
        assert_eq!(
            [0, third + 2, 2 * third + 2].map(|bits| routes.pick(bits)),
            [Some(3), Some(5), Some(9)]
        );
        assert!(routes.remove(5) && !routes.remove(5) && !routes.has(5) && routes.has(9));
    }
}
