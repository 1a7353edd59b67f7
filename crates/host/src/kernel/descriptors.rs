//! Calls on descriptors of any kind: closing, duplicating, waking waiting threads, and readiness.

use super::objects::{Kind, MOST_DESCRIPTORS, Object};
use super::user::{Error, error};
use super::{Id, Kernel, NEVER, On, Step};

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
        if target >= MOST_DESCRIPTORS {
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
