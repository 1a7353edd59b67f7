//! Which tasks want the points of a database, policy and measurement.
//!
//! A `from` may leave each of the three open, so there are eight kinds of it. Looking up the takers of
//! one measurement takes a hash per kind in use, whatever the number of tasks, and is done once per
//! measurement of a write: a task that does not match costs nothing per point.

use super::task::Task;
use crate::passage::Collector;
use crate::pipeline::What;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The way from the writes into a task.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) wants: Wants,
    /// `None` when nothing more comes.
    pub(super) edge: Mutex<Option<Collector>>,
}

/// What a `from` lets in; `None`: any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wants {
    database: Option<Arc<str>>,
    policy: Option<Arc<str>>,
    measurement: Option<Arc<str>>,
}

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    takers: FxHashMap<Wants, Vec<Arc<Entrance>>>,
    /// Which kinds there are: how many keys leave open what the bits of the place say.
    kinds: [usize; 8],
}

impl Wants {
    pub(super) fn of(what: &What) -> Option<Wants> {
        match what {
            What::From {
                database,
                policy,
                measurement,
            } => Some(Wants {
                database: database.clone(),
                policy: policy.clone(),
                measurement: measurement.clone(),
            }),
            _ => None,
        }
    }

    fn kind(&self) -> usize {
        usize::from(self.database.is_some())
            | usize::from(self.policy.is_some()) << 1
            | usize::from(self.measurement.is_some()) << 2
    }
}

impl Routes {
    pub(super) fn add(&mut self, task: &Task) {
        for entrance in &task.entrances {
            let takers = self.takers.entry(entrance.wants.clone()).or_default();
            self.kinds[entrance.wants.kind()] += usize::from(takers.is_empty());
            takers.push(entrance.clone());
        }
    }

    pub(super) fn remove(&mut self, task: &Task) {
        for entrance in &task.entrances {
            let Some(takers) = self.takers.get_mut(&entrance.wants) else {
                continue;
            };
            takers.retain(|other| !Arc::ptr_eq(other, entrance));
            if takers.is_empty() {
                self.takers.remove(&entrance.wants);
                self.kinds[entrance.wants.kind()] -= 1;
            }
        }
    }

    /// Puts everybody who wants points of this origin at the end of `takers`.
    pub(super) fn look_up(
        &self,
        [database, policy, measurement]: [&Arc<str>; 3],
        takers: &mut Vec<Arc<Entrance>>,
    ) {
        for (kind, _) in self.kinds.iter().enumerate().filter(|(_, keys)| **keys > 0) {
            let given =
                |bit: usize, value: &Arc<str>| (kind >> bit & 1 == 1).then(|| value.clone());
            let key = Wants {
                database: given(0, database),
                policy: given(1, policy),
                measurement: given(2, measurement),
            };
            takers.extend(self.takers.get(&key).into_iter().flatten().cloned());
        }
    }

    /// Ends all first edges; what lies on them goes its way.
    pub(super) async fn close(&self) {
        for entrance in self.takers.values().flatten() {
            drop(entrance.edge.lock().await.take());
        }
    }
}
