//! Methods that observe a running simulation from outside.

use crate::state::HostId;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
use {
    crate::sim::Sim, crate::state::HostState, std::collections::BTreeMap, std::sync::PoisonError,
};

/// The packets from one host to another so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The sending host.
    pub from: HostId,
    /// The receiving host.
    pub to: HostId,
    /// The number of packets, including those that were lost.
    pub packets: u64,
    /// The bytes that programs have written, including repetitions.
    pub bytes: u64,
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
impl Sim {
    /// Returns all hosts with their names, in the order in which they were added.
    pub fn all_hosts(&self) -> Vec<(HostId, String)> {
        let names = self.specs().iter().map(|host| host.name.clone());
        names
            .enumerate()
            .map(|(index, name)| (HostId(index), name))
            .collect()
    }

    /// True if the simulation has begun, all programs have ended, and no remaining fault can start a program.
    pub fn is_over(&self) -> bool {
        let count = self.records().len();
        let mut states = (0..count).map(|index| self.state(&HostId(index)));
        count > 0 && !self.has_faults() && states.all(|state| state != HostState::Running)
    }

    /// Returns the counters of all programs and actors ([`Host::count`](crate::Host::count)), by name.
    ///
    /// `corsair_hunt::Properties::of_counters` reads them as properties.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for record in self.records() {
            let record = record.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, count) in record.lines.counters() {
                *all.entry(name.clone()).or_insert(0) += count;
            }
        }
        all
    }

    /// Returns the traffic between hosts so far, by sender and receiver.
    pub fn traffic(&self) -> Vec<Traffic> {
        let mut all = vec![];
        for (from, record) in self.records().iter().enumerate() {
            let record = record.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(record.sent.iter().map(|(&to, &(packets, bytes))| Traffic {
                from: HostId(from),
                to: HostId(to),
                packets,
                bytes,
            }));
        }
        all
    }
}
