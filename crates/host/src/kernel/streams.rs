//! Connections of Unix sockets, which pass bytes from one end to the other within a host.

use super::descriptors::{Kind, Object};
use super::unix::Address;
use super::user::{self, Error, error};
use super::{Id, Kernel};
use std::collections::VecDeque;

/// The maximum number of bytes that an end buffers.
const CAPACITY: usize = 64 << 10;

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

impl Kernel {
    fn stream(&mut self, id: Id) -> Option<&mut Stream> {
        match &mut self.descriptors.get_mut(id)?.kind {
            Kind::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// Returns the number of bytes that the other end can take.
    pub(super) fn peer_capacity(&self, stream: &Stream) -> usize {
        match self.descriptors.get(stream.peer).map(|object| &object.kind) {
            Some(Kind::Stream(peer)) => peer.capacity(),
            _ => 0,
        }
    }

    /// Simulates `socketpair` for stream sockets.
    pub(super) fn socket_pair(&mut self, flags: i32, out: usize) -> Result<isize, Error> {
        let end = || Object::socket(Kind::Stream(Stream::default()), libc::AF_UNIX, flags);
        let one = self.open(end(), flags)? as usize;
        let other = match self.open(end(), flags) {
            Ok(fd) => fd as usize,
            Err(error) => {
                let _ = self.close(one);
                return Err(error);
            }
        };
        let ids = [self.descriptors.id(one)?, self.descriptors.id(other)?];
        for (id, peer) in [(ids[0], ids[1]), (ids[1], ids[0])] {
            if let Some(stream) = self.stream(id) {
                stream.peer = peer;
            }
        }
        user::write(out, [one as i32, other as i32])?;
        Ok(0)
    }

    /// Closes an end to which nothing refers any more. The other end of a socket is reset if data was not read, or if
    /// the connection was never accepted.
    pub(super) fn close_stream(&mut self, end: &Stream, was_accepted: bool) {
        let peer = end.peer;
        let is_reset = !end.received.is_empty() || !was_accepted;
        if let Some(stream) = self.stream(peer) {
            if is_reset {
                stream.error = libc::ECONNRESET;
            }
            stream.peer_closed = true;
            stream.peer_deaf = true;
        }
        self.notify(peer);
    }

    /// Simulates `shutdown` of one end.
    pub(super) fn shut_stream(&mut self, id: Id, reading: bool, writing: bool) {
        let Some(stream) = self.stream(id) else {
            return;
        };
        let peer = stream.peer;
        if reading {
            stream.peer_closed = true;
        }
        if writing {
            stream.is_shut = true;
        }
        if let Some(other) = self.stream(peer) {
            other.peer_closed |= writing;
            other.peer_deaf |= reading;
        }
        self.notify(id);
        self.notify(peer);
    }

    /// Reads from an end; `None` if the read has to wait.
    pub(super) fn read_stream(
        &mut self,
        id: Id,
        most: usize,
        peek: bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let stream = self.stream(id).ok_or(error(libc::EBADF))?;
        if stream.received.is_empty() && stream.error != 0 {
            return Err(error(std::mem::take(&mut stream.error)));
        }
        if stream.received.is_empty() {
            return Ok((stream.peer_closed || most == 0).then(Vec::new));
        }
        let count = most.min(stream.received.len());
        let bytes = stream.received.range(..count).copied().collect();
        if !peek {
            stream.received.drain(..count);
            let peer = stream.peer;
            self.notify(peer);
        }
        Ok(Some(bytes))
    }

    /// Writes to an end, and returns the number of bytes that fit; `None` if the write has to wait.
    pub(super) fn write_stream(&mut self, id: Id, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let stream = self.stream(id).ok_or(error(libc::EBADF))?;
        if stream.peer_deaf || stream.is_shut {
            return Err(error(libc::EPIPE));
        }
        let peer = stream.peer;
        let Some(other) = self.stream(peer) else {
            return Err(error(libc::EPIPE));
        };
        let count = bytes.len().min(other.capacity());
        if count == 0 && !bytes.is_empty() {
            return Ok(None);
        }
        other.received.extend(&bytes[..count]);
        self.notify(peer);
        Ok(Some(count))
    }
}
