//! Which points a task wants.

use crate::pipeline::What;
use std::sync::Arc;

/// What a `from` lets in; `None`: any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wants {
    pub(super) database: Option<Arc<str>>,
    pub(super) policy: Option<Arc<str>>,
    pub(super) measurement: Option<Arc<str>>,
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

    /// Which of the three it leaves open, as bits.
    pub(super) fn kind(&self) -> usize {
        usize::from(self.database.is_some())
            | usize::from(self.policy.is_some()) << 1
            | usize::from(self.measurement.is_some()) << 2
    }
}
