//! The objects of all kinds to which descriptors refer, and the descriptors of a program.

pub(super) mod epoll;
pub(super) mod events;
pub(super) mod files;
pub(super) mod inet;
pub(super) mod pipes;
pub(super) mod unix;

use super::user::{Error, error};
use crate::tcp::{Connection, Id, NEVER};
use epoll::Epoll;
use events::{Counter, Signals, Timer};
use files::{Image, OpenDirectory, OpenFile};
use inet::{Datagrams, Listener, NewSocket};
use pipes::PipeEnd;
use std::collections::BTreeMap;
use unix::{NewUnix, Stream, UnixDatagrams, UnixListener};

/// The maximum number of descriptors of a program.
pub(super) const MOST_DESCRIPTORS: usize = 1 << 20;

/// The object of a descriptor.
#[derive(Debug)]
pub(crate) enum Kind {
    /// `/dev/null`, and standard input.
    Null,
    /// `/dev/zero`.
    Zero,
    /// `/dev/urandom` and `/dev/random`.
    Entropy,
    /// Standard output (1) or error (2): the log of the host.
    Log(u8),
    /// A file of the host's disk.
    File(OpenFile),
    /// A directory of the host's disk.
    Directory(OpenDirectory),
    /// A file or a directory of the real system that the program may read.
    Image(Image),
    /// An `eventfd`.
    Counter(Counter),
    /// A `timerfd`.
    Timer(Timer),
    /// A `signalfd`.
    Signals(Signals),
    /// An `epoll` instance.
    Epoll(Epoll),
    /// An end of a pipe.
    Pipe(PipeEnd),
    /// An end of a connection of Unix sockets.
    Stream(Stream),
    /// A TCP socket before `connect` and `listen`.
    New(NewSocket),
    /// A TCP socket that accepts connections.
    Listener(Listener),
    /// A TCP connection.
    Tcp(Box<Connection>),
    /// A UDP socket.
    Udp(Datagrams),
    /// A Unix stream socket before `connect` and `listen`.
    NewUnix(NewUnix),
    /// A Unix socket that accepts connections.
    UnixListener(UnixListener),
    /// A Unix datagram socket.
    UnixDatagrams(UnixDatagrams),
}

/// An object, to which several descriptors can refer.
#[derive(Debug)]
pub(crate) struct Object {
    pub kind: Kind,
    pub nonblocking: bool,
    /// `AF_INET`, `AF_INET6`, `AF_UNIX`, or 0 if the object is not a socket.
    pub family: i32,
    /// The limits of `SO_RCVTIMEO` and `SO_SNDTIMEO` in nanoseconds; 0 means no limit.
    pub receive_limit: u64,
    pub send_limit: u64,
    /// Integer options that the program has set on a socket, by level and name.
    pub options: BTreeMap<(i32, i32), i32>,
    references: u32,
    /// The time of the next check of the object; [`NEVER`] if there is none.
    pub timer: u64,
    /// The epoll objects that watch this object, each with the descriptor that it watches.
    pub watchers: Vec<(Id, i32)>,
}

impl Object {
    /// Creates an object to which nothing refers yet.
    pub(crate) fn new(kind: Kind) -> Object {
        Object {
            kind,
            nonblocking: false,
            family: 0,
            receive_limit: 0,
            send_limit: 0,
            options: BTreeMap::new(),
            references: 0,
            timer: NEVER,
            watchers: vec![],
        }
    }

    /// Creates a socket of this family, with the flags of `socket`.
    pub(crate) fn socket(kind: Kind, family: i32, flags: i32) -> Object {
        Object {
            family,
            nonblocking: flags & libc::SOCK_NONBLOCK != 0,
            ..Object::new(kind)
        }
    }
}

/// The descriptors of a program.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The object and the flag `FD_CLOEXEC` of each descriptor.
    table: Vec<Option<(Id, bool)>>,
    objects: BTreeMap<Id, Object>,
    last: Id,
}

impl Descriptors {
    /// Creates standard input, output and error.
    pub(crate) fn new() -> Descriptors {
        let mut descriptors = Descriptors {
            table: vec![],
            objects: BTreeMap::new(),
            last: 0,
        };
        for kind in [Kind::Null, Kind::Log(1), Kind::Log(2)] {
            let id = descriptors.add(Object::new(kind));
            let _ = descriptors.open(id, false, 0);
        }
        descriptors
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, object: Object) -> Id {
        self.last += 1;
        self.objects.insert(self.last, object);
        self.last
    }

    /// Creates a descriptor of an object, with the lowest free number that is at least `least`.
    pub(crate) fn open(&mut self, id: Id, cloexec: bool, least: usize) -> Result<i32, Error> {
        let free = (least..self.table.len()).find(|&number| self.table[number].is_none());
        let number = free.unwrap_or(self.table.len().max(least));
        if number >= MOST_DESCRIPTORS {
            return Err(error(libc::EMFILE));
        }
        self.put(number, id, cloexec);
        Ok(number as i32)
    }

    pub(super) fn put(&mut self, number: usize, id: Id, cloexec: bool) {
        if self.table.len() <= number {
            self.table.resize(number + 1, None);
        }
        self.table[number] = Some((id, cloexec));
        if let Some(object) = self.objects.get_mut(&id) {
            object.references += 1;
        }
    }

    pub(super) fn entry(&mut self, fd: usize) -> Result<&mut (Id, bool), Error> {
        let entry = self
            .table
            .get_mut(fd as i32 as usize)
            .and_then(Option::as_mut);
        entry.ok_or(error(libc::EBADF))
    }

    /// Returns the object that a descriptor refers to.
    pub(crate) fn id(&mut self, fd: usize) -> Result<Id, Error> {
        self.entry(fd).map(|entry| entry.0)
    }

    /// Returns the object with this id, unless it is gone.
    pub(crate) fn get(&self, id: Id) -> Option<&Object> {
        self.objects.get(&id)
    }

    /// Returns the object with this id, unless it is gone.
    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut Object> {
        self.objects.get_mut(&id)
    }

    /// Returns the object of a descriptor, with its id.
    pub(crate) fn object(&mut self, fd: usize) -> Result<(Id, &mut Object), Error> {
        let id = self.id(fd)?;
        let object = self.objects.get_mut(&id).ok_or(error(libc::EBADF))?;
        Ok((id, object))
    }

    /// Frees a descriptor. Returns its object if this was the last reference to the object.
    pub(super) fn release(&mut self, fd: usize) -> Result<Option<Id>, Error> {
        let (id, _) = *self.entry(fd)?;
        self.table[fd as i32 as usize] = None;
        let Some(object) = self.objects.get_mut(&id) else {
            return Ok(None);
        };
        object.references -= 1;
        Ok((object.references == 0).then_some(id))
    }

    /// True if a descriptor refers to the object.
    pub(crate) fn is_open(&self, id: Id) -> bool {
        self.objects
            .get(&id)
            .is_some_and(|object| object.references > 0)
    }

    /// Returns the ids of all objects.
    pub(crate) fn ids(&self) -> Vec<Id> {
        self.objects.keys().copied().collect()
    }

    /// Returns the first object for which `matches` is true.
    pub(crate) fn find_kind(&self, matches: impl Fn(&Kind) -> bool) -> Option<Id> {
        let mut objects = self.objects.iter();
        objects
            .find(|(_, object)| matches(&object.kind))
            .map(|(&id, _)| id)
    }

    /// Drops an object.
    pub(crate) fn remove(&mut self, id: Id) -> Option<Object> {
        self.objects.remove(&id)
    }

    /// Returns all open descriptors.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        (0..self.table.len())
            .filter(|&number| self.table[number].is_some())
            .collect()
    }
}
