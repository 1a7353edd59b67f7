//! What the processes of a run tell the first one at the end.

use crate::{ClusterError, ClusterRun, ExchangeReport};
use serde::{Deserialize, Serialize};

/// What a process tells at the end of its part of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// How its part of the run ended, for [`conclude_parts`](corsair::cluster::conclude_parts).
    pub part: Vec<u8>,
    /// What its actors have to tell beside that.
    pub beside: Vec<u8>,
    /// What its workers had to do with others.
    pub exchange: ExchangeReport,
    /// The most memory that it has used, if the system says so.
    pub peak_memory: Option<u64>,
}

impl ClusterRun {
    /// The run is over here, and its workers are gone; `part` and `beside` is what they have to tell. Waits until it is over
    /// everywhere. The first process gets what all have told, in the order of their numbers; others nothing.
    ///
    /// # Errors
    /// [`ClusterError::Lost`] if a process did not come so far.
    pub fn end(self, part: Vec<u8>, beside: Vec<u8>) -> Result<Vec<ProcessEnd>, ClusterError> {
        let end = ProcessEnd {
            part,
            beside,
            exchange: self.exchanged(),
            peak_memory: corsair::peak_memory(),
        };
        let senseless =
            |error| ClusterError::Lost(format!("the end of a process makes no sense: {error}"));
        let told = self.finish(postcard::to_allocvec(&end).map_err(senseless)?)?;
        told.iter()
            .map(|told| postcard::from_bytes(told).map_err(senseless))
            .collect()
    }
}
