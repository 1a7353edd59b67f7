//! Descriptors, and the objects that they refer to.

use super::devices::Image;
use super::epoll::Epoll;
use super::events::{Counter, Timer};
use super::files::{OpenDirectory, OpenFile};
use super::inet::{Datagrams, Listener, NewSocket};
use super::pipes::PipeEnd;
use super::signals::Signals;
use super::streams::Stream;
use super::unix::{NewUnix, UnixDatagrams, UnixListener};
use super::user::{Error, error};
use super::{Id, Kernel, NEVER, On, Step};
use crate::tcp::Connection;
use std::collections::BTreeMap;

/// The maximum number of descriptors of a program.
const MOST: usize = 1 << 20;

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
        if number >= MOST {
            return Err(error(libc::EMFILE));
        }
        self.put(number, id, cloexec);
        Ok(number as i32)
    }

    fn put(&mut self, number: usize, id: Id, cloexec: bool) {
        if self.table.len() <= number {
            self.table.resize(number + 1, None);
        }
        self.table[number] = Some((id, cloexec));
        if let Some(object) = self.objects.get_mut(&id) {
            object.references += 1;
        }
    }

    fn entry(&mut self, fd: usize) -> Result<&mut (Id, bool), Error> {
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
    fn release(&mut self, fd: usize) -> Result<Option<Id>, Error> {
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

impl Kernel {
    /// Adds an object with a descriptor. The flags are those of `open`, `socket` and similar calls, in which
    /// `O_CLOEXEC` and `O_NONBLOCK` have the same values.
    pub(super) fn open(&mut self, mut object: Object, flags: i32) -> Result<isize, Error> {
        object.nonblocking |= flags & libc::O_NONBLOCK != 0;
        let id = self.descriptors.add(object);
        let fd = self.descriptors.open(id, flags & libc::O_CLOEXEC != 0, 0);
        if fd.is_err() {
            self.descriptors.remove(id);
        }
        fd.map(|fd| fd as isize)
    }

    /// Wakes the threads that wait for an object, and the epoll objects that watch it.
    pub(super) fn notify(&mut self, id: Id) {
        self.scheduler.wake(
            usize::MAX,
            |on| matches!(on, On::Objects(ids) if ids.contains(&id)),
        );
        let Some(object) = self.descriptors.get(id) else {
            return;
        };
        for (epoll, fd) in object.watchers.clone() {
            if let Some(Object {
                kind: Kind::Epoll(epoll),
                ..
            }) = self.descriptors.get_mut(epoll)
            {
                epoll.mark(fd);
            }
            self.notify(epoll);
        }
    }

    /// Simulates `close`.
    pub(super) fn close(&mut self, fd: usize) -> Result<isize, Error> {
        if let Some(id) = self.descriptors.release(fd)? {
            self.close_object(id);
        }
        Ok(0)
    }

    /// Closes an object to which nothing refers any more.
    pub(super) fn close_object(&mut self, id: Id) {
        let watchers = match self.descriptors.get_mut(id) {
            Some(object) => std::mem::take(&mut object.watchers),
            None => return,
        };
        for (epoll, fd) in watchers {
            if let Some(Object {
                kind: Kind::Epoll(epoll),
                ..
            }) = self.descriptors.get_mut(epoll)
            {
                epoll.forget(fd, id);
            }
        }
        if matches!(
            self.descriptors.get(id),
            Some(Object {
                kind: Kind::Tcp(_),
                ..
            })
        ) {
            self.close_connection(id);
            return;
        }
        self.set_timer(NEVER, id);
        let Some(object) = self.descriptors.remove(id) else {
            return;
        };
        match object.kind {
            Kind::Listener(listener) => self.close_listener(id, listener),
            Kind::New(socket) => self.inet.release_tcp(socket.local, id),
            Kind::Udp(datagrams) => self.inet.release_udp(datagrams.local, id),
            Kind::Pipe(end) => self.close_pipe(id, &end),
            Kind::Stream(stream) => self.close_stream(&stream, true),
            Kind::NewUnix(socket) => self.close_new_unix(socket),
            Kind::UnixListener(listener) => self.close_unix_listener(listener),
            Kind::UnixDatagrams(socket) => self.close_unix_datagrams(socket),
            Kind::Image(image) => super::devices::close_image(image.fd),
            Kind::File(file) => {
                self.release_locks(file.ino, id);
                self.files.close_inode(file.ino);
            }
            Kind::Directory(directory) => self.files.close_inode(directory.ino),
            Kind::Epoll(epoll) => {
                for watched in epoll.objects() {
                    if let Some(object) = self.descriptors.get_mut(watched) {
                        object.watchers.retain(|&(watcher, _)| watcher != id);
                    }
                }
            }
            _ => {}
        }
    }

    /// Closes all descriptors, as the kernel does when a program ends.
    pub(super) fn close_all(&mut self) {
        for fd in self.descriptors.numbers() {
            let _ = self.close(fd);
        }
    }

    /// Simulates `dup`, and, with a target, `dup2` and `dup3`.
    pub(super) fn duplicate(
        &mut self,
        fd: usize,
        target: Option<usize>,
        cloexec: bool,
    ) -> Result<isize, Error> {
        let id = self.descriptors.id(fd)?;
        let Some(target) = target else {
            return self.descriptors.open(id, cloexec, 0).map(|fd| fd as isize);
        };
        if target >= MOST {
            return Err(error(libc::EBADF));
        }
        if target == fd {
            return Ok(target as isize);
        }
        let _ = self.close(target);
        self.descriptors.put(target, id, cloexec);
        Ok(target as isize)
    }

    /// Simulates `fcntl`.
    pub(super) fn fcntl(&mut self, fd: usize, command: i32, argument: usize) -> Step {
        let flags = match self.descriptors.object(fd) {
            Err(error) => return Step::Done(error),
            Ok((_, object)) => match command {
                libc::F_GETFL => {
                    let nonblocking = if object.nonblocking {
                        libc::O_NONBLOCK
                    } else {
                        0
                    };
                    let flags = match &object.kind {
                        Kind::File(file) => file.flags & !libc::O_NONBLOCK,
                        Kind::Directory(_) => libc::O_DIRECTORY,
                        Kind::Pipe(end) => end.flags(),
                        _ => libc::O_RDWR,
                    };
                    Ok((flags | nonblocking) as isize)
                }
                libc::F_SETFL => {
                    object.nonblocking = argument as i32 & libc::O_NONBLOCK != 0;
                    if let Kind::File(file) = &mut object.kind {
                        let append = argument as i32 & libc::O_APPEND;
                        file.flags = file.flags & !libc::O_APPEND | append;
                    }
                    Ok(0)
                }
                libc::F_GETPIPE_SZ | libc::F_SETPIPE_SZ => match &object.kind {
                    Kind::Pipe(end) => {
                        let size = (command == libc::F_SETPIPE_SZ).then_some(argument);
                        self.pipes.capacity(end, size)
                    }
                    _ => Err(error(libc::EBADF)),
                },
                libc::F_GETFD => self.descriptors.entry(fd).map(|entry| entry.1 as isize),
                libc::F_SETFD => self.descriptors.entry(fd).map(|entry| {
                    entry.1 = argument as i32 & libc::FD_CLOEXEC != 0;
                    0
                }),
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => self.descriptors.id(fd).and_then(|id| {
                    let cloexec = command == libc::F_DUPFD_CLOEXEC;
                    self.descriptors
                        .open(id, cloexec, argument)
                        .map(|fd| fd as isize)
                }),
                _ => return Step::Unsupported,
            },
        };
        Step::Done(flags.unwrap_or_else(|error| error))
    }

    /// Simulates `ioctl`.
    pub(super) fn ioctl(&mut self, fd: usize, request: u64, argument: usize) -> Step {
        let (_, object) = match self.descriptors.object(fd) {
            Ok(found) => found,
            Err(error) => return Step::Done(error),
        };
        let result = match request {
            libc::FIONBIO => super::user::read::<i32>(argument).map(|on| {
                object.nonblocking = on != 0;
                0
            }),
            libc::FIONREAD => {
                let waiting = match &object.kind {
                    Kind::Tcp(connection) => connection.readable(),
                    Kind::Pipe(end) => self.pipes.readable(end),
                    Kind::Stream(stream) => stream.readable(),
                    Kind::Udp(datagrams) => datagrams.first_len(),
                    _ => return Step::Done(error(libc::ENOTTY)),
                };
                super::user::write(argument, waiting as i32).map(|()| 0)
            }
            libc::FIOCLEX => Ok(0),
            // No descriptor is a terminal.
            _ => Err(error(libc::ENOTTY)),
        };
        Step::Done(result.unwrap_or_else(|error| error))
    }

    /// Returns the readiness of an object, as bits of epoll.
    pub(super) fn readiness(&self, id: Id) -> u32 {
        let Some(object) = self.descriptors.get(id) else {
            return 0;
        };
        let (input, output) = (libc::EPOLLIN as u32, libc::EPOLLOUT as u32);
        match &object.kind {
            Kind::Null | Kind::Zero | Kind::Entropy | Kind::Log(_) | Kind::Image(_) => {
                input | output
            }
            Kind::File(_) | Kind::Directory(_) => input | output,
            Kind::Counter(counter) => counter.readiness(),
            Kind::Timer(timer) => timer.readiness(),
            Kind::Signals(signals) => signals.readiness(),
            Kind::Epoll(epoll) => match epoll
                .marked()
                .any(|(wanted, id)| self.readiness(id) & wanted != 0)
            {
                true => input,
                false => 0,
            },
            Kind::Pipe(end) => self.pipes.readiness(end),
            Kind::Stream(stream) => stream.readiness(self.peer_capacity(stream)),
            Kind::New(_) | Kind::NewUnix(_) => output | libc::EPOLLHUP as u32,
            Kind::UnixListener(listener) if listener.queue.is_empty() => 0,
            Kind::UnixListener(_) => input,
            Kind::UnixDatagrams(socket) => socket.readiness(),
            Kind::Listener(listener) => listener.readiness(),
            Kind::Tcp(connection) => connection.readiness(),
            Kind::Udp(datagrams) => datagrams.readiness(),
        }
    }

    /// Handles the due timer of an object.
    pub(super) fn on_timer(&mut self, id: Id) {
        let now = self.now;
        match self.descriptors.get_mut(id).map(|object| &mut object.kind) {
            Some(Kind::Timer(timer)) => {
                let next = timer.expire(now);
                self.set_timer(next.unwrap_or(NEVER), id);
                self.notify(id);
            }
            Some(Kind::Tcp(_)) => self.on_connection_timer(id),
            _ => {}
        }
    }
}
