//! The data that the actor of a host shares with the simulation, for both processes and async bodies.

use crate::log::Lines;
use crate::packet::Packet;
use crate::state::HostState;
use crate::wire::Wire;
use crate::world::World;
use corsair::{Addr, Context};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The simulation's record of a host.
#[derive(Debug)]
pub(crate) struct Record {
    pub state: HostState,
    /// True after `SIGSTOP`, until `SIGCONT` or the next start of the program.
    pub is_paused: bool,
    pub lines: Lines,
    /// The numbers of simulated calls and of thread switches of all processes of the host.
    pub calls: u64,
    pub switches: u64,
    /// A hash of all calls of all its processes.
    pub trace: u64,
    /// The packets and bytes sent to each host.
    pub sent: BTreeMap<usize, (u64, u64)>,
    /// The host's packets with their times in nanoseconds, if packets are recorded.
    pub packets: Vec<(u64, Packet)>,
}

impl Record {
    pub(crate) fn new() -> Record {
        Record {
            state: HostState::Off,
            is_paused: false,
            lines: Lines::default(),
            calls: 0,
            switches: 0,
            trace: 0,
            sent: BTreeMap::new(),
            packets: vec![],
        }
    }

    /// Records the start of the program.
    pub(crate) fn boot(&mut self) {
        (self.state, self.is_paused) = (HostState::Running, false);
    }
}

/// The actors of all hosts.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The addresses of actors, by host.
    pub actors: Vec<Addr>,
    hosts: BTreeMap<Addr, u32>,
}

impl Directory {
    /// Creates a directory of actors in the order of their hosts.
    pub(crate) fn new(actors: Vec<Addr>) -> Directory {
        let hosts = actors.iter().copied().zip(0..).collect();
        Directory { actors, hosts }
    }

    /// Returns the host of an actor.
    pub(crate) fn host(&self, actor: Addr) -> Option<u32> {
        self.hosts.get(&actor).copied()
    }
}

/// A host's access to its record and to the network.
#[derive(Clone, Debug)]
pub(crate) struct Uplink {
    pub world: &'static World,
    pub host: usize,
    /// The directory, which is set before the first host is started.
    pub directory: Arc<OnceLock<Directory>>,
    pub records: Arc<Vec<Mutex<Record>>>,
}

impl Uplink {
    /// Returns the record of this host.
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.records[self.host]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a packet to the host that has its destination address.
    pub(crate) fn send<C: Context<Wire>>(&self, cx: &mut C, packet: Packet) {
        let Some(to) = self.world.host_of(packet.destination.ip()) else {
            return;
        };
        {
            let mut record = self.record();
            let sent = record.sent.entry(to).or_default();
            *sent = (sent.0 + 1, sent.1 + packet.payload.bytes() as u64);
            if self.world.debug.packets.is_some() {
                let packet = (cx.now().as_nanos(), packet.clone());
                record.packets.push(packet);
            }
        }
        if let Some(directory) = self.directory.get() {
            cx.send(directory.actors[to], Wire::Packet(Box::new(packet)));
        }
    }
}
