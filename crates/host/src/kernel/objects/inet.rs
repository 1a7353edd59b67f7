//! The data of internet sockets, and the ports and connections of a host.

use crate::packet::Packet;
use crate::tcp::{Id, NEVER};
use corsair::Random;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// The number of ports for sockets that request no port.
pub(crate) const EPHEMERAL_PORTS: u16 = 28_232;

/// A TCP socket before `connect` and `listen`.
#[derive(Debug, Default)]
pub(crate) struct NewSocket {
    /// The address set by `bind`.
    pub local: Option<SocketAddr>,
}

/// A socket that accepts connections.
#[derive(Debug)]
pub(crate) struct Listener {
    pub local: SocketAddr,
    pub backlog: usize,
    /// Established connections that have not been accepted.
    pub queue: VecDeque<Id>,
}

impl Listener {
    pub(crate) fn readiness(&self) -> u32 {
        if self.queue.is_empty() {
            0
        } else {
            libc::EPOLLIN as u32
        }
    }
}

/// A UDP socket.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    pub queue: VecDeque<(SocketAddr, Vec<u8>)>,
    pub queued: usize,
    pub error: i32,
}

impl Datagrams {
    /// Returns the length of the next datagram.
    pub(crate) fn first_len(&self) -> usize {
        self.queue.front().map_or(0, |(_, data)| data.len())
    }

    pub(crate) fn take(&mut self, peek: bool) -> Option<(SocketAddr, Vec<u8>)> {
        if peek {
            return self.queue.front().cloned();
        }
        let taken = self.queue.pop_front()?;
        self.queued -= taken.1.len();
        Some(taken)
    }

    pub(crate) fn readiness(&self) -> u32 {
        let input = if self.queue.is_empty() {
            0
        } else {
            libc::EPOLLIN
        };
        let error = if self.error == 0 {
            0
        } else {
            libc::EPOLLERR | libc::EPOLLIN
        };
        (libc::EPOLLOUT | input | error) as u32
    }
}

/// The ports and connections of a host.
#[derive(Debug)]
pub(crate) struct Inet {
    /// Connections by local and remote address.
    pub connections: BTreeMap<(SocketAddr, SocketAddr), Id>,
    /// Sockets that are bound or listen, by port.
    pub tcp_ports: BTreeMap<u16, Vec<(IpAddr, Id)>>,
    pub udp_ports: BTreeMap<u16, Vec<(IpAddr, Id)>>,
    pub next_port: u16,
    /// Packets from the host to itself, by arrival time and number.
    pub loopback: BTreeMap<(u64, u64), Packet>,
    pub sent: u64,
}

impl Inet {
    pub(crate) fn new(random: &mut Random) -> Inet {
        Inet {
            connections: BTreeMap::new(),
            tcp_ports: BTreeMap::new(),
            udp_ports: BTreeMap::new(),
            next_port: random.below(EPHEMERAL_PORTS.into()) as u16,
            loopback: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Returns the arrival time of the next packet from the host to itself.
    pub(crate) fn next_loopback(&self) -> u64 {
        self.loopback
            .first_key_value()
            .map_or(NEVER, |((at, _), _)| *at)
    }

    pub(crate) fn take_loopback(&mut self, now: u64) -> Option<Packet> {
        let entry = self
            .loopback
            .first_entry()
            .filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    fn release(ports: &mut BTreeMap<u16, Vec<(IpAddr, Id)>>, local: Option<SocketAddr>, id: Id) {
        let Some(local) = local else { return };
        if let Some(bound) = ports.get_mut(&local.port()) {
            bound.retain(|&(_, of)| of != id);
            if bound.is_empty() {
                ports.remove(&local.port());
            }
        }
    }

    /// Releases the port of a bound or listening TCP socket.
    pub(crate) fn release_tcp(&mut self, local: Option<SocketAddr>, id: Id) {
        Inet::release(&mut self.tcp_ports, local, id);
    }

    /// Releases the port of a UDP socket.
    pub(crate) fn release_udp(&mut self, local: Option<SocketAddr>, id: Id) {
        Inet::release(&mut self.udp_ports, local, id);
    }
}
