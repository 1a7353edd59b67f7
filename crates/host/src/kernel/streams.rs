//! Connections of Unix sockets, which pass bytes from one end to the other within a host.

use super::objects::unix::Stream;
use super::objects::{Kind, Object};
use super::user::{self, Error, error};
use super::{Id, Kernel};

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
