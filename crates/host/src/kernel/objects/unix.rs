//! The data of Unix sockets: streams and datagrams within a host.

use crate::filesystem::Ino;
use crate::tcp::Id;
use std::collections::{BTreeMap, VecDeque};

/// The maximum number of bytes that an end buffers.
const CAPACITY: usize = 64 << 10;

/// The key by which a socket is found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// The inode of the socket's path.
    Path(Ino),
    /// A name without a path.
    Abstract(Vec<u8>),
}

/// Sockets by name.
#[derive(Debug, Default)]
pub(crate) struct Names(pub BTreeMap<Name, Id>);

/// The address of a socket, as bytes of a `sockaddr_un`.
pub(crate) type Address = Vec<u8>;

/// Returns the address of a socket without a name.
pub(crate) fn unnamed() -> Address {
    (libc::AF_UNIX as u16).to_ne_bytes().to_vec()
}

/// A stream socket before `connect` and `listen`.
#[derive(Debug, Default)]
pub(crate) struct NewUnix {
    pub name: Option<(Name, Address)>,
}

impl NewUnix {
    pub(crate) fn address(&self) -> Address {
        self.name
            .as_ref()
            .map_or_else(unnamed, |name| name.1.clone())
    }
}

/// A socket that accepts connections.
#[derive(Debug)]
pub(crate) struct UnixListener {
    pub name: Name,
    pub address: Address,
    pub backlog: usize,
    /// Connections that have not been accepted.
    pub queue: VecDeque<Id>,
}

/// A datagram socket.
#[derive(Debug, Default)]
pub(crate) struct UnixDatagrams {
    pub name: Option<(Name, Address)>,
    pub peer: Option<Id>,
    pub queue: VecDeque<(Address, Vec<u8>)>,
    /// True after `shutdown` for reading.
    pub is_deaf: bool,
    /// True after `shutdown` for writing.
    pub is_mute: bool,
}

impl UnixDatagrams {
    /// Ends reading, writing or both.
    pub(crate) fn shut(&mut self, reading: bool, writing: bool) {
        self.is_deaf |= reading;
        self.is_mute |= writing;
    }

    /// True if a read returns at once.
    pub(crate) fn is_readable(&self) -> bool {
        !self.queue.is_empty() || self.is_deaf
    }

    /// Takes the next datagram. Returns an empty one if the socket was shut down for reading and no datagram is left.
    pub(crate) fn take(&mut self, peek: bool) -> Option<(Address, Vec<u8>)> {
        let next = match peek {
            true => self.queue.front().cloned(),
            false => self.queue.pop_front(),
        };
        next.or_else(|| self.is_deaf.then(|| (unnamed(), vec![])))
    }

    pub(crate) fn readiness(&self) -> u32 {
        let mut ready = libc::EPOLLOUT;
        if self.is_readable() {
            ready |= libc::EPOLLIN;
        }
        if self.is_deaf {
            ready |= libc::EPOLLRDHUP;
        }
        if self.is_deaf && self.is_mute {
            ready |= libc::EPOLLHUP;
        }
        ready as u32
    }

    pub(crate) fn address(&self) -> Address {
        self.name
            .as_ref()
            .map_or_else(unnamed, |name| name.1.clone())
    }
}

/// An end of a connection of Unix sockets.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The other end.
    pub peer: Id,
    /// The received bytes.
    pub received: VecDeque<u8>,
    /// True if this end has been shut down for writing.
    pub is_shut: bool,
    /// True if the other end has been closed or shut down for writing.
    pub peer_closed: bool,
    /// True if the other end has been closed or shut down for reading.
    pub peer_deaf: bool,
    /// The error that the next read reports after the buffered bytes; 0 means none.
    pub error: i32,
    /// The addresses of this end and the other one, for sockets with names.
    pub names: Option<[Address; 2]>,
}

impl Stream {
    /// Creates an end of a connection of Unix sockets.
    pub(crate) fn socket(peer: Id, own: Address, other: Address) -> Stream {
        Stream {
            peer,
            names: Some([own, other]),
            ..Stream::default()
        }
    }

    /// Returns the number of bytes that can be read.
    pub(crate) fn readable(&self) -> usize {
        self.received.len()
    }

    /// Returns the number of bytes that fit into the buffer.
    pub(crate) fn capacity(&self) -> usize {
        CAPACITY - self.received.len()
    }

    pub(crate) fn readiness(&self, peer_capacity: usize) -> u32 {
        let mut ready = 0;
        if !self.received.is_empty() || self.peer_closed {
            ready |= libc::EPOLLIN;
        }
        // A write to a closed end fails at once, so the end counts as ready.
        if peer_capacity > 0 || self.peer_deaf || self.is_shut {
            ready |= libc::EPOLLOUT;
        }
        if self.peer_closed {
            let is_over = self.is_shut || self.peer_deaf;
            ready |= if is_over { libc::EPOLLHUP } else { 0 };
            ready |= libc::EPOLLRDHUP;
        }
        ready |= if self.error != 0 { libc::EPOLLERR } else { 0 };
        ready as u32
    }
}
