//! Sockets: creating, binding, connecting, accepting, and options.

use super::inet::unspecified;
use super::objects::inet::{Datagrams, Listener, NewSocket};
use super::objects::unix::{NewUnix, UnixDatagrams, unnamed};
use super::objects::{Kind, Object};
use super::user::{self, Error, error};
use super::{Attempt, Id, Kernel, NEVER, On, Step, Wait};
use crate::tcp::{Change, KeepAlive, State};
use std::collections::VecDeque;

const SECOND: u64 = 1_000_000_000;

impl Kernel {
    /// Simulates `socket`.
    pub(super) fn socket(&mut self, family: usize, kind: usize, protocol: usize) -> Step {
        let (family, flags) = (family as i32, kind as i32);
        let kind = match (family, flags & 0xf, protocol as i32) {
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => {
                Kind::New(NewSocket::default())
            }
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => {
                Kind::Udp(Datagrams::default())
            }
            (libc::AF_UNIX, libc::SOCK_STREAM, 0) => Kind::NewUnix(NewUnix::default()),
            (libc::AF_UNIX, libc::SOCK_DGRAM, 0) => Kind::UnixDatagrams(UnixDatagrams::default()),
            _ => return Step::Unsupported,
        };
        let opened = self.open(Object::socket(kind, family, flags), flags);
        Step::Done(opened.unwrap_or_else(|error| error))
    }

    /// Simulates `socketpair`.
    pub(super) fn socketpair(&mut self, family: usize, kind: usize, out: usize) -> Step {
        let flags = kind as i32;
        let made = match (family as i32, flags & 0xf) {
            (libc::AF_UNIX, libc::SOCK_STREAM) => self.socket_pair(flags, out),
            (libc::AF_UNIX, libc::SOCK_DGRAM) => self.datagram_pair(flags, out),
            _ => return Step::Unsupported,
        };
        Step::Done(made.unwrap_or_else(|error| error))
    }

    /// Simulates `bind`.
    pub(super) fn bind(
        &mut self,
        fd: usize,
        address: usize,
        length: usize,
    ) -> Result<isize, Error> {
        if self.descriptors.object(fd)?.1.family == libc::AF_UNIX {
            return self.bind_unix(fd, address, length);
        }
        let wanted = user::socket_address(address, length)?;
        let (id, object) = self.descriptors.object(fd)?;
        let udp = match &object.kind {
            Kind::New(NewSocket { local: None }) => false,
            Kind::Udp(Datagrams { local: None, .. }) => true,
            _ => return Err(error(libc::EINVAL)),
        };
        let local = self.take_port(id, wanted, udp)?;
        match self.descriptors.get_mut(id).map(|object| &mut object.kind) {
            Some(Kind::New(socket)) => socket.local = Some(local),
            Some(Kind::Udp(datagrams)) => datagrams.local = Some(local),
            _ => {}
        }
        Ok(0)
    }

    /// Simulates `listen`.
    pub(super) fn listen(&mut self, fd: usize, backlog: usize) -> Result<isize, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let family = object.family;
        if family == libc::AF_UNIX {
            return self.listen_unix(id, backlog);
        }
        let bound = match &mut object.kind {
            Kind::Listener(listener) => {
                listener.backlog = backlog;
                return Ok(0);
            }
            Kind::New(socket) => socket.local,
            _ => return Err(error(libc::EINVAL)),
        };
        let local = match bound {
            Some(local) => local,
            None => self.take_port(id, unspecified(family), false)?,
        };
        if let Some(object) = self.descriptors.get_mut(id) {
            object.kind = Kind::Listener(Listener {
                local,
                backlog: (backlog as u32 as usize).min(4096),
                queue: VecDeque::new(),
            });
        }
        Ok(0)
    }

    /// Simulates `accept4`.
    pub(super) fn accept(
        &mut self,
        fd: usize,
        address: usize,
        length: usize,
        flags: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let now = self.now;
        let (id, object) = self.descriptors.object(fd)?;
        let (family, nonblocking, limit) =
            (object.family, object.nonblocking, object.receive_limit);
        let queue = match &mut object.kind {
            Kind::Listener(listener) => &mut listener.queue,
            Kind::UnixListener(listener) => &mut listener.queue,
            _ => return Err(error(libc::EINVAL)),
        };
        let Some(accepted) = queue.pop_front() else {
            let until = attempt.until(|| limit_at(now, limit));
            return self.wait_for(id, nonblocking, until, attempt);
        };
        let peer = match self.descriptors.get(accepted).map(|object| &object.kind) {
            Some(Kind::Tcp(connection)) => Some(user::address_bytes(family, connection.peer)),
            Some(Kind::Stream(stream)) => stream.names.as_ref().map(|names| names[1].clone()),
            _ => None,
        };
        if family == libc::AF_UNIX {
            self.notify(id);
        }
        if let Some(object) = self.descriptors.get_mut(accepted) {
            object.family = family;
            object.nonblocking = flags as i32 & libc::SOCK_NONBLOCK != 0;
        }
        let new = self
            .descriptors
            .open(accepted, flags as i32 & libc::SOCK_CLOEXEC != 0, 0)?;
        if let Some(peer) = peer {
            user::write_address(&peer, address, length)?;
        }
        Ok(Step::Done(new as isize))
    }

    /// Returns the step of a call that must wait until an object changes.
    pub(super) fn wait_for(
        &mut self,
        id: Id,
        nonblocking: bool,
        until: u64,
        attempt: &Attempt,
    ) -> Result<Step, Error> {
        if nonblocking {
            return Ok(self.without_waiting(error(libc::EAGAIN), attempt));
        }
        if attempt.timed_out {
            return Err(error(libc::EAGAIN));
        }
        Ok(Step::Wait(Wait {
            on: On::Objects(vec![id]),
            until,
        }))
    }

    /// Simulates `connect`.
    pub(super) fn connect(
        &mut self,
        fd: usize,
        address: usize,
        length: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        if object.family == libc::AF_UNIX {
            return self.connect_unix(id, address, length, attempt);
        }
        let peer = user::socket_address(address, length)?;
        let now = self.now;
        let (id, object) = self.descriptors.object(fd)?;
        let (nonblocking, limit) = (object.nonblocking, object.send_limit);
        match &mut object.kind {
            Kind::Udp(_) => {
                self.connect_udp(id, peer)?;
                return Ok(Step::Done(0));
            }
            Kind::New(_) => {
                self.connect_tcp(id, peer)?;
                if nonblocking {
                    return Err(error(libc::EINPROGRESS));
                }
            }
            Kind::Tcp(connection) => match connection.state {
                State::Established if attempt.woken => return Ok(Step::Done(0)),
                State::Established => return Err(error(libc::EISCONN)),
                State::Closed => {
                    let failure = std::mem::take(&mut connection.error);
                    return Err(error(if failure == 0 {
                        libc::ECONNABORTED
                    } else {
                        failure
                    }));
                }
                _ if nonblocking => return Err(error(libc::EALREADY)),
                _ => {}
            },
            Kind::Listener(_) => return Err(error(libc::EISCONN)),
            _ => return Err(error(libc::ENOTSOCK)),
        }
        if attempt.timed_out {
            return Err(error(libc::EINPROGRESS));
        }
        let until = attempt.until(|| limit_at(now, limit));
        Ok(Step::Wait(Wait {
            on: On::Objects(vec![id]),
            until,
        }))
    }

    /// Simulates `shutdown`.
    pub(super) fn shutdown(&mut self, fd: usize, how: usize) -> Result<isize, Error> {
        let (reading, writing) = match how as i32 {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => return Err(error(libc::EINVAL)),
        };
        let (id, object) = self.descriptors.object(fd)?;
        match &mut object.kind {
            Kind::Stream(_) => self.shut_stream(id, reading, writing),
            Kind::UnixDatagrams(socket) => {
                socket.shut(reading, writing);
                self.notify(id);
            }
            Kind::Tcp(connection) if connection.state == State::Established => {
                self.drive(id, |connection, now, out| {
                    if reading {
                        connection.shut_reading();
                    }
                    if writing {
                        connection.shut_writing(now, out);
                    }
                    (
                        (),
                        Change {
                            ready: true,
                            accepted: false,
                        },
                    )
                });
            }
            Kind::Tcp(_)
            | Kind::New(_)
            | Kind::Listener(_)
            | Kind::Udp(_)
            | Kind::NewUnix(_)
            | Kind::UnixListener(_) => {
                return Err(error(libc::ENOTCONN));
            }
            _ => return Err(error(libc::ENOTSOCK)),
        }
        Ok(0)
    }

    /// Simulates `getsockname` and `getpeername`.
    pub(super) fn socket_name(
        &mut self,
        fd: usize,
        address: usize,
        length: usize,
        of_peer: bool,
    ) -> Result<isize, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let family = object.family;
        let (local, peer) = match &object.kind {
            Kind::New(socket) => (socket.local, None),
            Kind::Listener(listener) => (Some(listener.local), None),
            Kind::Tcp(connection) => {
                let is_connected = connection.state == State::Established;
                (
                    Some(connection.local),
                    is_connected.then_some(connection.peer),
                )
            }
            Kind::Udp(datagrams) => (datagrams.local, datagrams.peer),
            _ if family == libc::AF_UNIX => {
                let shown = self.unix_name(id, of_peer)?;
                user::write_address(&shown, address, length)?;
                return Ok(0);
            }
            _ => return Err(error(libc::ENOTSOCK)),
        };
        let shown = match of_peer {
            true => peer.ok_or(error(libc::ENOTCONN))?,
            false => local.unwrap_or(unspecified(family)),
        };
        user::write_address(&user::address_bytes(family, shown), address, length)?;
        Ok(0)
    }

    /// Returns the address of a Unix socket, or of its peer.
    fn unix_name(&self, id: Id, of_peer: bool) -> Result<Vec<u8>, Error> {
        match self.descriptors.get(id).map(|object| &object.kind) {
            Some(Kind::Stream(stream)) => {
                let names = stream.names.as_ref();
                Ok(names.map_or_else(unnamed, |names| names[usize::from(of_peer)].clone()))
            }
            Some(Kind::UnixDatagrams(socket)) if of_peer => match socket.peer {
                Some(peer) => self.unix_name(peer, false),
                None => Err(error(libc::ENOTCONN)),
            },
            _ if of_peer => Err(error(libc::ENOTCONN)),
            Some(Kind::NewUnix(socket)) => Ok(socket.address()),
            Some(Kind::UnixListener(listener)) => Ok(listener.address.clone()),
            Some(Kind::UnixDatagrams(socket)) => Ok(socket.address()),
            _ => Ok(unnamed()),
        }
    }

    /// Simulates `setsockopt`. Options without an effect in a simulation are stored; unknown options are refused.
    pub(super) fn setsockopt(
        &mut self,
        fd: usize,
        level: usize,
        name: usize,
        value: usize,
        length: usize,
    ) -> Step {
        let (level, name) = (level as i32, name as i32);
        let (id, object) = match self.descriptors.object(fd) {
            Ok(found) => found,
            Err(error) => return Step::Done(error),
        };
        if object.family == 0 {
            return Step::Done(error(libc::ENOTSOCK));
        }
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) => {
                let Ok(limit) = user::read::<libc::timeval>(value) else {
                    return Step::Done(error(libc::EFAULT));
                };
                let nanos = limit.tv_sec as u64 * SECOND + limit.tv_usec as u64 * 1_000;
                match name {
                    libc::SO_RCVTIMEO => object.receive_limit = nanos,
                    _ => object.send_limit = nanos,
                }
                return Step::Done(0);
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let Ok(linger) = user::read::<libc::linger>(value) else {
                    return Step::Done(error(libc::EFAULT));
                };
                let seconds = if linger.l_onoff == 0 {
                    -1
                } else {
                    linger.l_linger
                };
                object.options.insert((level, name), seconds);
                return Step::Done(0);
            }
            (
                libc::SOL_SOCKET,
                libc::SO_REUSEADDR
                | libc::SO_REUSEPORT
                | libc::SO_KEEPALIVE
                | libc::SO_BROADCAST
                | libc::SO_RCVBUF
                | libc::SO_SNDBUF,
            )
            | (
                libc::IPPROTO_TCP,
                libc::TCP_NODELAY
                | libc::TCP_KEEPIDLE
                | libc::TCP_KEEPINTVL
                | libc::TCP_KEEPCNT
                | libc::TCP_USER_TIMEOUT
                | libc::TCP_QUICKACK,
            )
            | (
                libc::IPPROTO_IP,
                libc::IP_TTL
                | libc::IP_TOS
                | libc::IP_RECVERR
                | libc::IP_MULTICAST_LOOP
                | libc::IP_MULTICAST_TTL,
            )
            | (
                libc::IPPROTO_IPV6,
                libc::IPV6_V6ONLY
                | libc::IPV6_UNICAST_HOPS
                | libc::IPV6_RECVERR
                | libc::IPV6_TCLASS
                | libc::IPV6_MULTICAST_LOOP
                | libc::IPV6_MULTICAST_HOPS,
            ) => {}
            _ => return Step::Unsupported,
        }
        let number = match length {
            4.. => user::read::<i32>(value),
            _ => Err(error(libc::EINVAL)),
        };
        match number {
            Err(error) => return Step::Done(error),
            Ok(number) => object.options.insert((level, name), number),
        };
        self.apply_keep_alive(id);
        Step::Done(0)
    }

    /// Applies the keep-alive and time-out settings of a socket to its connection.
    pub(super) fn apply_keep_alive(&mut self, id: Id) {
        let Some(object) = self.descriptors.get_mut(id) else {
            return;
        };
        let get = |level, name, default| {
            object
                .options
                .get(&(level, name))
                .copied()
                .unwrap_or(default)
        };
        let is_on = get(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 0) != 0;
        let settings = KeepAlive {
            idle: get(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 7200) as u64 * SECOND,
            interval: get(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 75) as u64 * SECOND,
            count: get(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 9) as u32,
        };
        let user_timeout = get(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 0) as u64 * 1_000_000;
        self.drive(id, |connection, _, _| {
            connection.user_timeout = user_timeout;
            connection.keep_alive = is_on.then_some(settings);
            ((), Change::default())
        });
    }

    /// Simulates `getsockopt`.
    pub(super) fn getsockopt(
        &mut self,
        fd: usize,
        level: usize,
        name: usize,
        value: usize,
        length: usize,
    ) -> Step {
        let (level, name) = (level as i32, name as i32);
        let (_, object) = match self.descriptors.object(fd) {
            Ok(found) => found,
            Err(error) => return Step::Done(error),
        };
        if object.family == 0 {
            return Step::Done(error(libc::ENOTSOCK));
        }
        let stored = object.options.get(&(level, name)).copied();
        let number = match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => match &mut object.kind {
                Kind::Tcp(connection) => std::mem::take(&mut connection.error),
                Kind::Udp(datagrams) => std::mem::take(&mut datagrams.error),
                Kind::Stream(stream) => std::mem::take(&mut stream.error),
                _ => 0,
            },
            (libc::SOL_SOCKET, libc::SO_PEERCRED) => {
                let user = super::identity::USER;
                let credentials = [super::identity::PID as u32, user, user];
                let written = user::write(value, credentials)
                    .and_then(|()| user::write(length, 12 as libc::socklen_t));
                return Step::Done(written.map_or_else(|error| error, |()| 0));
            }
            (libc::SOL_SOCKET, libc::SO_TYPE) => match object.kind {
                Kind::Udp(_) | Kind::UnixDatagrams(_) => libc::SOCK_DGRAM,
                _ => libc::SOCK_STREAM,
            },
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => object.family,
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => match object.kind {
                Kind::Udp(_) => libc::IPPROTO_UDP,
                _ if object.family == libc::AF_UNIX => 0,
                _ => libc::IPPROTO_TCP,
            },
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                matches!(object.kind, Kind::Listener(_) | Kind::UnixListener(_)).into()
            }
            (libc::SOL_SOCKET, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) => {
                let nanos = match name {
                    libc::SO_RCVTIMEO => object.receive_limit,
                    _ => object.send_limit,
                };
                let limit = libc::timeval {
                    tv_sec: (nanos / SECOND) as i64,
                    tv_usec: (nanos % SECOND / 1_000) as i64,
                };
                return Step::Done(user::write(value, limit).map_or_else(|error| error, |()| 0));
            }
            (libc::SOL_SOCKET, libc::SO_LINGER) => {
                let seconds = stored.unwrap_or(-1);
                let linger = libc::linger {
                    l_onoff: (seconds >= 0).into(),
                    l_linger: seconds.max(0),
                };
                return Step::Done(user::write(value, linger).map_or_else(|error| error, |()| 0));
            }
            (libc::SOL_SOCKET, libc::SO_RCVBUF | libc::SO_SNDBUF) => {
                stored.map_or(262_144, |size| size * 2)
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => {
                stored.unwrap_or(64)
            }
            (
                libc::SOL_SOCKET,
                libc::SO_REUSEADDR | libc::SO_REUSEPORT | libc::SO_KEEPALIVE | libc::SO_BROADCAST,
            )
            | (libc::IPPROTO_TCP, libc::TCP_NODELAY | libc::TCP_USER_TIMEOUT)
            | (libc::IPPROTO_IP, libc::IP_TOS)
            | (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY | libc::IPV6_TCLASS) => stored.unwrap_or(0),
            (libc::IPPROTO_TCP, libc::TCP_QUICKACK)
            | (libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP | libc::IP_MULTICAST_TTL)
            | (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP | libc::IPV6_MULTICAST_HOPS) => {
                stored.unwrap_or(1)
            }
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => stored.unwrap_or(7200),
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => stored.unwrap_or(75),
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => stored.unwrap_or(9),
            _ => return Step::Unsupported,
        };
        let written = user::read::<libc::socklen_t>(length).and_then(|capacity| {
            let bytes = number.to_ne_bytes();
            let count = bytes.len().min(capacity as usize);
            user::bytes_mut(value, count).copy_from_slice(&bytes[..count]);
            user::write(length, count as libc::socklen_t)
        });
        Step::Done(written.map_or_else(|error| error, |()| 0))
    }
}

/// Returns the time at which a limit of a socket is reached; 0 means no limit.
pub(super) fn limit_at(now: u64, limit: u64) -> u64 {
    if limit == 0 {
        NEVER
    } else {
        now.saturating_add(limit)
    }
}
