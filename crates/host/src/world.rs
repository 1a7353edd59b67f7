//! The data that all hosts of a simulation share. It does not change after the first host is started.

use crate::channel::Channel;
use crate::debug::Debug;
use crate::disk::Disk;
use crate::settings::{Setting, Settings};
use crate::storage::Medium;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

/// The network address of all hosts: the address of the first host follows it.
const NET_V4: u32 = 0x0a00_0000;
const NET_V6: u128 = 0xfd00 << 112;

/// A program of this machine.
#[derive(Debug)]
pub(crate) struct Executable {
    pub path: PathBuf,
    /// The shared object with the simulated kernel.
    pub preload: PathBuf,
    /// The directories and files of this machine that the program may read.
    pub readable: Vec<PathBuf>,
    /// The additional environment variables of the program.
    pub environment: Vec<(String, String)>,
    /// The descriptor of the channel's file.
    pub channel_fd: i32,
}

/// The program of a host.
pub(crate) enum Program {
    /// A main function, which returns the exit status, in a separate process.
    Main(Box<dyn Fn() -> u8 + Send + Sync>, Channel),
    /// A program of this machine, in a separate process.
    File(Executable, Channel),
    /// An async body within the engine.
    Actor,
    /// A host in the view of a process that runs an executed program. Only the process's own host has a channel.
    Elsewhere(Option<Channel>),
}

/// A host.
pub(crate) struct HostSpec {
    pub name: String,
    /// The addresses; IPv4 comes first.
    pub addresses: [IpAddr; 2],
    pub program: Program,
    /// The program's arguments; the first one is its name.
    pub arguments: Vec<String>,
}

impl HostSpec {
    /// Returns the channel to the host's process; `None` if the host is an actor.
    pub(crate) fn channel(&self) -> Option<&Channel> {
        match &self.program {
            Program::Main(_, channel) | Program::File(_, channel) => Some(channel),
            Program::Actor => None,
            Program::Elsewhere(channel) => channel.as_ref(),
        }
    }
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
    /// The number of calls among 1,000 before which another thread runs.
    pub preemption: u32,
    /// The processor time that a program may use between two system calls.
    pub processor_limit: Duration,
    /// Environment variables of all hosts.
    pub environment: Vec<(String, String)>,
    pub hosts: Vec<HostSpec>,
    /// Hosts by name in lower case.
    pub names: BTreeMap<String, usize>,
    /// The settings for debugging.
    pub debug: Debug,
    /// The medium with the disks of all hosts.
    pub medium: Medium,
    /// The settings of each disk.
    pub disk: Disk,
    /// Changes of the settings of hosts before their start: host, change.
    pub settings: Vec<(usize, Setting)>,
    /// The initial files: the host, the path and the contents of each.
    pub files: Vec<(usize, String, Vec<u8>)>,
    /// Paths of this machine that the program may read.
    pub readable: Vec<Vec<u8>>,
}

impl World {
    /// Returns the host with this address.
    pub(crate) fn host_of(&self, ip: IpAddr) -> Option<usize> {
        let number = match ip {
            IpAddr::V4(ip) => u32::from(ip).checked_sub(NET_V4)?.into(),
            IpAddr::V6(ip) => u128::from(ip).checked_sub(NET_V6)?,
        };
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        (index < self.hosts.len()).then_some(index)
    }

    /// Returns the settings of a host before its start.
    pub(crate) fn settings_of(&self, host: usize) -> Settings {
        let mut settings = Settings::new(self.disk);
        let own = self.settings.iter().filter(|(of, _)| *of == host);
        own.for_each(|(_, setting)| settings.change(*setting, 0));
        settings
    }

    /// Resolves a host's name, or an address in text form.
    pub(crate) fn resolve(&self, name: &str) -> Vec<IpAddr> {
        if let Ok(ip) = name.parse::<IpAddr>() {
            return vec![ip];
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let host = self.names.get(&name).map(|&host| &self.hosts[host]);
        host.map_or(vec![], |host| host.addresses.to_vec())
    }
}

/// Returns the addresses of the host with this index.
pub(crate) fn addresses(index: usize) -> [IpAddr; 2] {
    let number = index as u32 + 1;
    [
        Ipv4Addr::from(NET_V4 + number).into(),
        Ipv6Addr::from(NET_V6 + u128::from(number)).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back_to_their_host() {
        let names: Vec<String> = (0..300).map(|number| format!("host-{number}")).collect();
        let host = |(index, name): (usize, &String)| HostSpec {
            name: name.clone(),
            addresses: addresses(index),
            program: Program::Actor,
            arguments: vec![],
        };
        let world = World {
            seed: 1,
            preemption: 0,
            processor_limit: Duration::MAX,
            environment: vec![],
            hosts: names.iter().enumerate().map(host).collect(),
            names: names.iter().cloned().zip(0..).collect(),
            debug: Debug::default(),
            medium: Medium::new().unwrap(),
            disk: Disk::new(),
            settings: vec![],
            files: vec![],
            readable: vec![],
        };
        for (index, name) in names.iter().enumerate() {
            for ip in world.resolve(&name.to_uppercase()) {
                assert_eq!(world.host_of(ip), Some(index));
            }
        }
        for other in ["10.0.0.0", "10.0.1.45", "9.255.255.255", "fd00::", "::1"] {
            assert_eq!(world.host_of(other.parse().unwrap()), None, "{other}");
        }
    }
}
