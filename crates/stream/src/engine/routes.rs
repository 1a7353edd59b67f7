//! Routes: the tasks that take the points of a database, policy and measurement.
//!
//! A `from` may leave out each of these three keys, so there are eight shapes. The tasks are looked up once for each
//! measurement of a write. This takes one hash look-up for each shape in use, for any number of tasks. So a task that
//! does not match costs nothing per point. Tasks that take any measurement are looked up once per write.

use super::entrance::Entrance;
use super::task::Task;
use crate::pipeline::Subscription;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    takers: FxHashMap<Subscription, Vec<Arc<Entrance>>>,
    /// The number of `from` nodes of each shape; the bits of the index are the keys left open.
    shapes: [usize; 8],
    /// The number of changes of tasks, including earlier processes on the same log.
    pub(super) generation: u64,
}

impl Routes {
    pub(super) fn add(&mut self, task: &Task) {
        self.generation += 1;
        for entrance in &task.entrances {
            let takers = self.takers.entry(entrance.wants.clone()).or_default();
            self.shapes[entrance.wants.shape()] += usize::from(takers.is_empty());
            takers.push(entrance.clone());
        }
    }

    pub(super) fn remove(&mut self, task: &Task) {
        self.generation += 1;
        for entrance in &task.entrances {
            let Some(takers) = self.takers.get_mut(&entrance.wants) else {
                continue;
            };
            takers.retain(|other| !Arc::ptr_eq(other, entrance));
            if takers.is_empty() {
                self.takers.remove(&entrance.wants);
                self.shapes[entrance.wants.shape()] -= 1;
            }
        }
    }

    /// Returns the entrances that take points of this database and policy. With a measurement, these are the
    /// entrances for that measurement; with `None`, the entrances for any measurement.
    pub(super) fn look_up(
        &self,
        database: &Arc<str>,
        policy: &Arc<str>,
        measurement: Option<&Arc<str>>,
    ) -> Vec<Arc<Entrance>> {
        let mut takers = Vec::new();
        let wanted = |shape: usize| (shape >> 2 & 1 == 1) == measurement.is_some();
        let shapes = self.shapes.iter().enumerate();
        for (shape, _) in shapes.filter(|(shape, keys)| **keys > 0 && wanted(*shape)) {
            let given =
                |bit: usize, value: &Arc<str>| (shape >> bit & 1 == 1).then(|| value.clone());
            let key = Subscription {
                database: given(0, database),
                policy: given(1, policy),
                measurement: measurement.cloned(),
                ..Subscription::default()
            };
            takers.extend(self.takers.get(&key).into_iter().flatten().cloned());
        }
        takers
    }

    /// Returns no routes, of the same generation. It is saved: with a lower one, the saved states of tasks would seem
    /// older than the tasks.
    pub(super) fn emptied(&self) -> Routes {
        Routes {
            generation: self.generation,
            ..Routes::default()
        }
    }

    /// Closes all entrances; the points that they already contain are still processed.
    pub(super) fn close(&self) {
        for entrance in self.takers.values().flatten() {
            entrance.close();
        }
    }
}
