//! What all hosts of a simulation know of each other. It is complete before the first one is started.

use crate::channel::Channel;
use crate::debug::Debug;
use crate::disk::Disk;
use crate::storage::Medium;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host's program: its main function, which returns the exit status.
pub(crate) type Program = Box<dyn Fn() -> u8 + Send + Sync>;

/// A host.
pub(crate) struct HostSpec {
    pub name: String,
    /// IPv4 first.
    pub addresses: [IpAddr; 2],
    pub program: Program,
    /// The program's arguments, with its name.
    pub arguments: Vec<String>,
    pub channel: Channel,
}

impl fmt::Debug for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSpec")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The hosts of a simulation, and its settings.
#[derive(Debug)]
pub(crate) struct World {
    pub seed: u64,
    /// Calls of 1,000 before which another thread is let run.
    pub preemption: u32,
    /// Environment variables of all hosts.
    pub environment: Vec<(String, String)>,
    pub hosts: Vec<HostSpec>,
    /// What is asked for by people who debug.
    pub debug: Debug,
    /// The disks of all hosts.
    pub medium: Medium,
    /// The settings of each disk.
    pub disk: Disk,
    /// Files that are on a disk from the beginning: host, path, contents.
    pub files: Vec<(usize, String, Vec<u8>)>,
}

impl World {
    /// The host with this address.
    pub(crate) fn host_of(&self, ip: IpAddr) -> Option<usize> {
        self.hosts
            .iter()
            .position(|host| host.addresses.contains(&ip))
    }
}

/// The addresses of the host with this index.
pub(crate) fn addresses(index: usize) -> [IpAddr; 2] {
    let number = index as u32 + 1;
    [
        Ipv4Addr::from(0x0a00_0000 + number).into(),
        Ipv6Addr::from((0xfd00_u128 << 112) + u128::from(number)).into(),
    ]
}
