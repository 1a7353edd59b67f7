//! The internet sockets of a host: ports, connections by their addresses, and incoming and outgoing packets.

use super::objects::inet::{Datagrams, EPHEMERAL_PORTS, Listener};
use super::objects::{Descriptors, Kind, Object};
use super::user::{Error, error};
use super::{Id, Kernel, NEVER};
use crate::packet::{Packet, Payload, Segment};
use crate::tcp::{Change, Connection, State};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The latency of a packet from a host to itself, in nanoseconds.
const LOOPBACK: u64 = 20_000;
/// The start of the range of ports for sockets that request no port (`ip_local_port_range`).
const FIRST_EPHEMERAL: u16 = 32_768;
/// The maximum size in bytes of all datagrams that wait to be read.
const DATAGRAM_BUFFER: usize = 208 << 10;

fn conflicts(one: IpAddr, other: IpAddr) -> bool {
    one == other || one.is_unspecified() || other.is_unspecified()
}

/// True if a socket may share its port with others (`SO_REUSEPORT`).
fn shares_port(descriptors: &Descriptors, id: Id) -> bool {
    descriptors.get(id).is_some_and(|object| {
        let option = object.options.get(&(libc::SOL_SOCKET, libc::SO_REUSEPORT));
        option.is_some_and(|&value| value != 0)
    })
}

/// Chooses one of the sockets that share a port. The choice is always the same for the same peer.
fn choose(sockets: impl Iterator<Item = Id>, peer: SocketAddr) -> Option<Id> {
    let sockets: Vec<Id> = sockets.collect();
    let host = match peer.ip() {
        IpAddr::V4(ip) => u32::from(ip),
        IpAddr::V6(ip) => u128::from(ip) as u32,
    };
    let number = (host ^ u32::from(peer.port())).wrapping_mul(0x9e37_79b9) >> 16;
    let index = number as usize % sockets.len().max(1);
    sockets.get(index).copied()
}

impl Kernel {
    /// True if the address belongs to this host.
    fn is_own(&self, ip: IpAddr) -> bool {
        let host = &self.world.hosts[self.host];
        ip.is_loopback() || ip.is_unspecified() || host.addresses.contains(&ip)
    }

    /// Returns the source address for packets to another address.
    fn source_for(&self, destination: IpAddr) -> IpAddr {
        if destination.is_loopback() || destination.is_unspecified() {
            return match destination {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
                ip => ip,
            };
        }
        let own = &self.world.hosts[self.host].addresses;
        let same = own
            .iter()
            .find(|own| own.is_ipv4() == destination.is_ipv4());
        same.copied().unwrap_or(own[0])
    }

    /// Takes a port for a socket: the requested port, or a free port if 0 was requested.
    pub(super) fn take_port(
        &mut self,
        id: Id,
        wanted: SocketAddr,
        udp: bool,
    ) -> Result<SocketAddr, Error> {
        if !self.is_own(wanted.ip()) {
            return Err(error(libc::EADDRNOTAVAIL));
        }
        let port = match wanted.port() {
            0 => self.free_port(udp)?,
            port => port,
        };
        let ports = if udp {
            &mut self.inet.udp_ports
        } else {
            &mut self.inet.tcp_ports
        };
        let bound = ports.entry(port).or_default();
        let descriptors = &self.descriptors;
        if bound.iter().any(|&(ip, other)| {
            conflicts(ip, wanted.ip())
                && !(shares_port(descriptors, id) && shares_port(descriptors, other))
        }) {
            return Err(error(libc::EADDRINUSE));
        }
        bound.push((wanted.ip(), id));
        Ok(SocketAddr::new(wanted.ip(), port))
    }

    fn free_port(&mut self, udp: bool) -> Result<u16, Error> {
        for _ in 0..EPHEMERAL_PORTS {
            let port = FIRST_EPHEMERAL + self.inet.next_port;
            self.inet.next_port = (self.inet.next_port + 1) % EPHEMERAL_PORTS;
            let ports = if udp {
                &self.inet.udp_ports
            } else {
                &self.inet.tcp_ports
            };
            if !ports.contains_key(&port) {
                return Ok(port);
            }
        }
        Err(error(libc::EADDRNOTAVAIL))
    }

    /// Sends a packet to a host, which may be this host.
    pub(super) fn send_packet(&mut self, packet: Packet) {
        if self.is_own(packet.destination.ip()) {
            self.inet.sent += 1;
            let key = (self.now + LOOPBACK, self.inet.sent);
            self.inet.loopback.insert(key, packet);
        } else {
            self.transmit(&packet);
        }
    }

    fn send_segments(&mut self, local: SocketAddr, peer: SocketAddr, segments: Vec<Segment>) {
        for segment in segments {
            self.send_packet(Packet {
                source: local,
                destination: peer,
                payload: Payload::Tcp(segment),
            });
        }
    }

    /// Handles an arriving packet.
    pub(super) fn receive(&mut self, packet: Packet) {
        match &packet.payload {
            Payload::Tcp(segment) => self.on_segment(&packet, segment),
            Payload::Udp(data) => self.on_datagram(&packet, data),
            Payload::Unreachable => self.on_unreachable(&packet),
        }
    }

    // ---- TCP ----------------------------------------------------------------------------------------

    pub(super) fn connection(&mut self, id: Id) -> Option<&mut Connection> {
        match &mut self.descriptors.get_mut(id)?.kind {
            Kind::Tcp(connection) => Some(connection),
            _ => None,
        }
    }

    /// Lets `act` use a connection, sends the resulting packets, and wakes waiting threads if the returned change
    /// requires it.
    pub(super) fn drive<T>(
        &mut self,
        id: Id,
        act: impl FnOnce(&mut Connection, u64, &mut Vec<Segment>) -> (T, Change),
    ) -> Option<T> {
        let now = self.now;
        let connection = self.connection(id)?;
        let mut segments = vec![];
        let (result, change) = act(connection, now, &mut segments);
        let (local, peer) = (connection.local, connection.peer);
        let (due, listener) = (connection.due(), connection.listener);
        let is_over = connection.is_over();
        self.send_segments(local, peer, segments);
        if change.accepted
            && let Some(listener) = listener
        {
            self.accepted(listener, id);
        }
        if change.ready {
            self.notify(id);
        }
        if is_over && !self.descriptors.is_open(id) {
            self.inet.connections.remove(&(local, peer));
            self.set_timer(NEVER, id);
            self.descriptors.remove(id);
        } else {
            self.set_timer(due, id);
        }
        Some(result)
    }

    /// Begins to connect. The socket becomes a connection.
    pub(super) fn connect_tcp(&mut self, id: Id, peer: SocketAddr) -> Result<(), Error> {
        let Some(Object {
            kind: Kind::New(socket),
            ..
        }) = self.descriptors.get(id)
        else {
            return Err(error(libc::EISCONN));
        };
        let bound = socket.local;
        let source = self.source_for(peer.ip());
        let peer = match peer.ip().is_unspecified() {
            true => SocketAddr::new(source, peer.port()),
            false => peer,
        };
        if !self.is_own(peer.ip()) && self.world.host_of(peer.ip()).is_none() {
            return Err(error(libc::ENETUNREACH));
        }
        let local = match bound {
            Some(local) if local.ip().is_unspecified() => SocketAddr::new(source, local.port()),
            Some(local) => local,
            None => {
                let key = |port| (SocketAddr::new(source, port), peer);
                let mut port = self.free_port(false)?;
                let first = port;
                while self.inet.connections.contains_key(&key(port)) {
                    port = self.free_port(false)?;
                    if port == first {
                        return Err(error(libc::EADDRNOTAVAIL));
                    }
                }
                SocketAddr::new(source, port)
            }
        };
        if self.inet.connections.contains_key(&(local, peer)) {
            return Err(error(libc::EADDRNOTAVAIL));
        }
        self.inet.release_tcp(bound, id);
        self.inet.connections.insert((local, peer), id);
        let connection = Connection::new(local, peer, State::Connecting, self.now);
        if let Some(object) = self.descriptors.get_mut(id) {
            object.kind = Kind::Tcp(Box::new(connection));
        }
        self.apply_keep_alive(id);
        self.drive(id, |connection, now, out| {
            (connection.transmit(now, out), Change::default())
        });
        Ok(())
    }

    fn on_segment(&mut self, packet: &Packet, segment: &Segment) {
        let key = (packet.destination, packet.source);
        if let Some(&id) = self.inet.connections.get(&key) {
            self.drive(id, |connection, now, out| {
                ((), connection.on_segment(segment, now, out))
            });
            return;
        }
        let opens = segment.has(Segment::SYN) && !segment.has(Segment::ACK);
        let listener = self.listener_at(packet);
        match (opens, listener) {
            (true, Some(listener)) => {
                let mut connection = Connection::new(
                    packet.destination,
                    packet.source,
                    State::Accepting,
                    self.now,
                );
                connection.listener = Some(listener);
                let id = self
                    .descriptors
                    .add(Object::new(Kind::Tcp(Box::new(connection))));
                self.inet.connections.insert(key, id);
                self.drive(id, |connection, now, out| {
                    (connection.transmit(now, out), Change::default())
                });
            }
            _ => {
                if let Some(refusal) = packet.refusal() {
                    self.send_packet(refusal);
                }
            }
        }
    }

    fn listener_at(&self, packet: &Packet) -> Option<Id> {
        let local = packet.destination;
        let bound = self.inet.tcp_ports.get(&local.port())?;
        let at = |exact: bool| {
            let matching = bound.iter().filter(|&&(ip, id)| {
                (if exact {
                    ip == local.ip()
                } else {
                    ip.is_unspecified() && (ip.is_ipv6() || local.is_ipv4())
                }) && matches!(
                    self.descriptors.get(id),
                    Some(Object {
                        kind: Kind::Listener(_),
                        ..
                    })
                )
            });
            choose(matching.map(|&(_, id)| id), packet.source)
        };
        at(true).or_else(|| at(false))
    }

    /// Handles an established connection, which waits to be accepted if the backlog has capacity.
    fn accepted(&mut self, listener: Id, connection: Id) {
        let queued = match self
            .descriptors
            .get_mut(listener)
            .map(|object| &mut object.kind)
        {
            Some(Kind::Listener(listener)) if listener.queue.len() < listener.backlog.max(1) => {
                listener.queue.push_back(connection);
                true
            }
            _ => false,
        };
        if queued {
            self.notify(listener);
        } else {
            self.close_socket(connection, true);
        }
    }

    /// Closes a listener to which nothing refers any more; waiting connections are reset.
    pub(super) fn close_listener(&mut self, id: Id, listener: Listener) {
        self.inet.release_tcp(Some(listener.local), id);
        for connection in listener.queue {
            self.close_socket(connection, true);
        }
    }

    /// Closes a connection to whose socket nothing refers any more.
    pub(super) fn close_connection(&mut self, id: Id) {
        let linger = self.descriptors.get(id).and_then(|object| {
            object
                .options
                .get(&(libc::SOL_SOCKET, libc::SO_LINGER))
                .copied()
        });
        self.close_socket(id, linger == Some(0));
    }

    fn close_socket(&mut self, id: Id, abort: bool) {
        self.drive(id, |connection, now, out| {
            (connection.close(abort, now, out), Change::default())
        });
    }

    pub(super) fn on_connection_timer(&mut self, id: Id) {
        self.drive(id, |connection, now, out| {
            ((), connection.on_timer(now, out))
        });
    }

    // ---- UDP ----------------------------------------------------------------------------------------

    pub(super) fn datagrams(&mut self, id: Id) -> Option<&mut Datagrams> {
        match &mut self.descriptors.get_mut(id)?.kind {
            Kind::Udp(datagrams) => Some(datagrams),
            _ => None,
        }
    }

    /// Returns the local address of a UDP socket, which is bound to a free port if it has none.
    pub(super) fn bound_udp(&mut self, id: Id) -> Result<SocketAddr, Error> {
        let family = self
            .descriptors
            .get(id)
            .map_or(libc::AF_INET, |object| object.family);
        let datagrams = self.datagrams(id).ok_or(error(libc::EBADF))?;
        if let Some(local) = datagrams.local {
            return Ok(local);
        }
        let local = self.take_port(id, unspecified(family), true)?;
        if let Some(datagrams) = self.datagrams(id) {
            datagrams.local = Some(local);
        }
        Ok(local)
    }

    /// Connects a UDP socket.
    pub(super) fn connect_udp(&mut self, id: Id, peer: SocketAddr) -> Result<(), Error> {
        let local = self.bound_udp(id)?;
        let source = self.source_for(peer.ip());
        let (new, old) = (SocketAddr::new(source, local.port()), local);
        if local.ip().is_unspecified() {
            self.inet.release_udp(Some(old), id);
            self.take_port(id, new, true)?;
        }
        if let Some(datagrams) = self.datagrams(id) {
            datagrams.peer = Some(peer);
            if old.ip().is_unspecified() {
                datagrams.local = Some(new);
            }
        }
        Ok(())
    }

    /// Sends a datagram to `to`, or to the socket's peer if `to` is `None`, and returns the number of bytes sent.
    pub(super) fn send_datagram(
        &mut self,
        id: Id,
        to: Option<SocketAddr>,
        data: Vec<u8>,
    ) -> Result<isize, Error> {
        let local = self.bound_udp(id)?;
        let datagrams = self.datagrams(id).ok_or(error(libc::EBADF))?;
        if datagrams.error != 0 {
            return Err(error(std::mem::take(&mut datagrams.error)));
        }
        let to = to.or(datagrams.peer).ok_or(error(libc::EDESTADDRREQ))?;
        if data.len() > 65_507 {
            return Err(error(libc::EMSGSIZE));
        }
        let source = match local.ip().is_unspecified() {
            true => self.source_for(to.ip()),
            false => local.ip(),
        };
        if !self.is_own(to.ip()) && self.world.host_of(to.ip()).is_none() {
            return Err(error(libc::ENETUNREACH));
        }
        let count = data.len() as isize;
        self.send_packet(Packet {
            source: SocketAddr::new(source, local.port()),
            destination: to,
            payload: Payload::Udp(data),
        });
        Ok(count)
    }

    fn udp_at(&self, packet: &Packet) -> Option<Id> {
        let local = packet.destination;
        let bound = self.inet.udp_ports.get(&local.port())?;
        let at = |wanted: &dyn Fn(IpAddr) -> bool| {
            let matching = bound.iter().filter(|entry| wanted(entry.0));
            choose(matching.map(|&(_, id)| id), packet.source)
        };
        at(&|ip| ip == local.ip()).or_else(|| at(&|ip| ip.is_unspecified()))
    }

    fn on_datagram(&mut self, packet: &Packet, data: &[u8]) {
        let socket = self.udp_at(packet);
        let Some(datagrams) = socket.and_then(|id| self.datagrams(id)) else {
            if let Some(refusal) = packet.refusal() {
                self.send_packet(refusal);
            }
            return;
        };
        if datagrams.peer.is_some_and(|peer| peer != packet.source)
            || datagrams.queued + data.len() > DATAGRAM_BUFFER
        {
            return;
        }
        datagrams.queued += data.len();
        datagrams.queue.push_back((packet.source, data.to_vec()));
        if let Some(id) = socket {
            self.notify(id);
        }
    }

    /// Handles a datagram of a connected socket that could not be delivered.
    fn on_unreachable(&mut self, packet: &Packet) {
        let Some(id) = self.udp_at(packet) else {
            return;
        };
        if let Some(datagrams) = self.datagrams(id)
            && datagrams.peer == Some(packet.source)
        {
            datagrams.error = libc::ECONNREFUSED;
            self.notify(id);
        }
    }
}

/// Returns the unspecified address of a family.
pub(super) fn unspecified(family: i32) -> SocketAddr {
    match family {
        libc::AF_INET6 => SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 0),
        _ => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
    }
}
