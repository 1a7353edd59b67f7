//! Unix sockets with names: streams and datagrams within a host.

use super::objects::unix::{Name, NewUnix, Stream, UnixDatagrams, UnixListener, unnamed};
use super::objects::{Kind, Object};
use super::sockets::limit_at;
use super::user::{self, Buffers, Error, error};
use super::{Attempt, Id, Kernel, On, Step, Wait};
use crate::filesystem::{Ino, Node};
use std::collections::VecDeque;

/// The maximum number of datagrams that wait to be read (`net.unix.max_dgram_qlen`).
const MOST_DATAGRAMS: usize = 10;
/// The maximum size of a datagram in bytes.
const LONGEST_DATAGRAM: usize = 200 << 10;
const LONGEST_NAME: usize = 108;

/// Returns the part of an address after the family, and whether it is a path.
fn parse(address: usize, length: usize) -> Result<(Vec<u8>, bool), Error> {
    if !(2..=LONGEST_NAME + 2).contains(&length) {
        return Err(error(libc::EINVAL));
    }
    if i32::from(user::read::<u16>(address)?) != libc::AF_UNIX {
        return Err(error(libc::EINVAL));
    }
    let bytes = user::bytes(address + 2, length - 2);
    match bytes.first() {
        None => Err(error(libc::EINVAL)),
        Some(0) => Ok((bytes.to_vec(), false)),
        Some(_) => {
            let end = bytes.iter().position(|&byte| byte == 0);
            Ok((bytes[..end.unwrap_or(bytes.len())].to_vec(), true))
        }
    }
}

impl Kernel {
    /// Returns the socket with the name in this address.
    fn unix_socket_at(&mut self, address: usize, length: usize) -> Result<Id, Error> {
        let (bytes, is_path) = parse(address, length)?;
        let name = match is_path {
            false => Name::Abstract(bytes),
            true => Name::Path(self.socket_inode(&bytes)?),
        };
        let found = self.unix.0.get(&name).copied();
        found.ok_or(error(libc::ECONNREFUSED))
    }

    fn socket_inode(&mut self, path: &[u8]) -> Result<Ino, Error> {
        let ino = self.find_target(path)?;
        match self.files.inode(ino).map(|inode| &inode.node) {
            Some(Node::Socket) => Ok(ino),
            _ => Err(error(libc::ECONNREFUSED)),
        }
    }

    /// Simulates `bind` of a Unix socket.
    pub(super) fn bind_unix(
        &mut self,
        fd: usize,
        at: usize,
        length: usize,
    ) -> Result<isize, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let named = match &object.kind {
            Kind::NewUnix(socket) => socket.name.is_some(),
            Kind::UnixDatagrams(socket) => socket.name.is_some(),
            _ => true,
        };
        if named {
            return Err(error(libc::EINVAL));
        }
        let (bytes, is_path) = parse(at, length)?;
        let mut address = unnamed();
        address.extend(&bytes);
        let name = match is_path {
            false => Name::Abstract(bytes),
            true => {
                address.push(0);
                let here = libc::AT_FDCWD as usize;
                let made = self.make_node(here, &bytes, libc::DT_SOCK, 0o777, b"");
                Name::Path(made.map_err(|failure| match failure {
                    failure if failure == error(libc::EEXIST) => error(libc::EADDRINUSE),
                    failure => failure,
                })?)
            }
        };
        if self.unix.0.contains_key(&name) {
            return Err(error(libc::EADDRINUSE));
        }
        if let Name::Path(ino) = name {
            // A reference keeps the inode's number from being reused while the socket exists.
            self.files.open_inode(ino);
        }
        self.unix.0.insert(name.clone(), id);
        match self.descriptors.get_mut(id).map(|object| &mut object.kind) {
            Some(Kind::NewUnix(socket)) => socket.name = Some((name, address)),
            Some(Kind::UnixDatagrams(socket)) => socket.name = Some((name, address)),
            _ => {}
        }
        Ok(0)
    }

    /// Simulates `listen` for a Unix socket.
    pub(super) fn listen_unix(&mut self, id: Id, backlog: usize) -> Result<isize, Error> {
        let backlog = (backlog as u32 as usize).min(4096);
        let Some(object) = self.descriptors.get_mut(id) else {
            return Err(error(libc::EBADF));
        };
        match &mut object.kind {
            Kind::UnixListener(listener) => listener.backlog = backlog,
            Kind::NewUnix(socket) => {
                let (name, address) = socket.name.take().ok_or(error(libc::EINVAL))?;
                object.kind = Kind::UnixListener(UnixListener {
                    name,
                    address,
                    backlog,
                    queue: VecDeque::new(),
                });
            }
            _ => return Err(error(libc::EOPNOTSUPP)),
        }
        Ok(0)
    }

    /// Simulates `connect` for a Unix socket.
    pub(super) fn connect_unix(
        &mut self,
        id: Id,
        at: usize,
        length: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let target = self.unix_socket_at(at, length)?;
        let now = self.now;
        let object = self.descriptors.get(id).ok_or(error(libc::EBADF))?;
        let (nonblocking, limit) = (object.nonblocking, object.send_limit);
        let own = match &object.kind {
            Kind::NewUnix(socket) => socket.address(),
            Kind::UnixDatagrams(_) => {
                let kind = self.descriptors.get(target).map(|object| &object.kind);
                if !matches!(kind, Some(Kind::UnixDatagrams(_))) {
                    return Err(error(libc::EPROTOTYPE));
                }
                if let Some(Kind::UnixDatagrams(socket)) =
                    self.descriptors.get_mut(id).map(|object| &mut object.kind)
                {
                    socket.peer = Some(target);
                }
                return Ok(Step::Done(0));
            }
            Kind::Stream(_) => return Err(error(libc::EISCONN)),
            _ => return Err(error(libc::EINVAL)),
        };
        let listener = match self.descriptors.get(target).map(|object| &object.kind) {
            Some(Kind::UnixListener(listener)) => listener,
            Some(Kind::UnixDatagrams(_)) => return Err(error(libc::EPROTOTYPE)),
            _ => return Err(error(libc::ECONNREFUSED)),
        };
        if listener.queue.len() > listener.backlog {
            if nonblocking || attempt.timed_out {
                return Err(error(libc::EAGAIN));
            }
            let until = attempt.until(|| limit_at(now, limit));
            return Ok(Step::Wait(Wait {
                on: On::Objects(vec![target]),
                until,
            }));
        }
        let address = listener.address.clone();
        let server = self.descriptors.add(Object::socket(
            Kind::Stream(Stream::socket(id, address.clone(), own.clone())),
            libc::AF_UNIX,
            0,
        ));
        if let Some(object) = self.descriptors.get_mut(id) {
            let before = std::mem::replace(
                &mut object.kind,
                Kind::Stream(Stream::socket(server, own, address)),
            );
            if let Kind::NewUnix(socket) = before {
                self.forget_name(socket.name.map(|name| name.0));
            }
        }
        if let Some(Kind::UnixListener(listener)) = self
            .descriptors
            .get_mut(target)
            .map(|object| &mut object.kind)
        {
            listener.queue.push_back(server);
        }
        self.notify(target);
        self.notify(id);
        Ok(Step::Done(0))
    }

    fn forget_name(&mut self, name: Option<Name>) {
        if let Some(name) = name {
            self.unix.0.remove(&name);
            if let Name::Path(ino) = name {
                self.files.close_inode(ino);
            }
        }
    }

    /// Closes a socket that was not connected.
    pub(super) fn close_new_unix(&mut self, socket: NewUnix) {
        self.forget_name(socket.name.map(|name| name.0));
    }

    /// Closes a listener and its waiting connections.
    pub(super) fn close_unix_listener(&mut self, listener: UnixListener) {
        self.forget_name(Some(listener.name));
        for id in listener.queue {
            if let Some(Object {
                kind: Kind::Stream(stream),
                ..
            }) = self.descriptors.remove(id)
            {
                self.close_stream(&stream, false);
            }
        }
    }

    /// Closes a datagram socket.
    pub(super) fn close_unix_datagrams(&mut self, socket: UnixDatagrams) {
        self.forget_name(socket.name.map(|name| name.0));
        if let Some(peer) = socket.peer {
            self.notify(peer);
        }
    }

    fn unix_datagrams(&mut self, id: Id) -> Option<&mut UnixDatagrams> {
        match &mut self.descriptors.get_mut(id)?.kind {
            Kind::UnixDatagrams(socket) => Some(socket),
            _ => None,
        }
    }

    /// Sends a datagram; `None` if the call has to wait.
    pub(super) fn send_unix_datagram(
        &mut self,
        id: Id,
        to: Option<(usize, usize)>,
        buffers: &Buffers,
    ) -> Result<Option<isize>, Error> {
        let target = match to {
            Some((address, length)) => self.unix_socket_at(address, length)?,
            None => {
                let peer = self.unix_datagrams(id).and_then(|socket| socket.peer);
                peer.ok_or(error(libc::ENOTCONN))?
            }
        };
        if buffers.len() > LONGEST_DATAGRAM {
            return Err(error(libc::EMSGSIZE));
        }
        if self.unix_datagrams(id).is_some_and(|socket| socket.is_mute) {
            return Err(error(libc::EPIPE));
        }
        let from = self
            .unix_datagrams(id)
            .map_or_else(unnamed, |socket| socket.address());
        let data = buffers.gather(LONGEST_DATAGRAM);
        let Some(receiver) = self.unix_datagrams(target) else {
            return Err(error(libc::ECONNREFUSED));
        };
        if receiver.peer.is_some_and(|peer| peer != id) {
            return Err(error(libc::EPERM));
        }
        if receiver.is_deaf {
            return Err(error(libc::EPIPE));
        }
        if receiver.queue.len() > MOST_DATAGRAMS {
            return Ok(None);
        }
        let count = data.len() as isize;
        receiver.queue.push_back((from, data));
        self.notify(target);
        Ok(Some(count))
    }

    /// Simulates `socketpair` for datagram sockets.
    pub(super) fn datagram_pair(&mut self, flags: i32, out: usize) -> Result<isize, Error> {
        let mut made = [(0, 0); 2];
        for entry in &mut made {
            let kind = Kind::UnixDatagrams(UnixDatagrams::default());
            let fd = self.open(Object::socket(kind, libc::AF_UNIX, flags), flags)?;
            *entry = (fd as i32, self.descriptors.id(fd as usize)?);
        }
        for (own, other) in [(0, 1), (1, 0)] {
            if let Some(socket) = self.unix_datagrams(made[own].1) {
                socket.peer = Some(made[other].1);
            }
        }
        user::write(out, made.map(|entry| entry.0))?;
        Ok(0)
    }
}
