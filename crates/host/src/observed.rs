//! Methods that observe a running simulation from outside.

use crate::state::HostId;
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
use {
    crate::log::Line, crate::sim::Sim, crate::state::HostState, std::collections::BTreeMap,
    std::sync::PoisonError,
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

    /// True while the program of a host stands still because of [`Fault::pause`](crate::Fault::pause).
    pub fn is_paused(&self, host: &HostId) -> bool {
        let record = self.records().get(host.0);
        record.is_some_and(|record| {
            let record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.is_paused && record.state == HostState::Running
        })
    }

    /// Returns the hosts from which a partition separates a host now, in one or both directions, in ascending order.
    pub fn separated_from(&self, host: &HostId) -> Vec<HostId> {
        let run = self.active();
        let others = run.map(|run| run.links.separated_from(host.0 as u32, self.now()));
        let others = others.unwrap_or_default().into_iter();
        others.map(|other| HostId(other as usize)).collect()
    }

    /// Returns the last `count` lines of output of a host's programs.
    pub fn last_lines(&self, host: &HostId, count: usize) -> Vec<Line> {
        let Some(record) = self.records().get(host.0) else {
            return vec![];
        };
        let record = record.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = record.lines.finished();
        lines[lines.len().saturating_sub(count)..].to_vec()
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
