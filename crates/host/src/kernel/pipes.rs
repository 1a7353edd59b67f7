//! Pipes, with and without names: bytes pass from any number of writers to any number of readers of one host.
//!
//! As in Linux, a pipe buffers a limited number of pages, and a write of at most one page is never split.

use super::descriptors::{Kind, Object};
use super::user::{self, Error, error};
use super::{Attempt, Id, Kernel, NEVER, On, Step, Wait};
use crate::filesystem::Ino;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const PAGE: usize = 4096;
/// The number of pages that a new pipe buffers.
const PAGES: usize = 16;
/// The maximum number of pages that `F_SETPIPE_SZ` sets without privileges.
const MOST_PAGES: usize = 256;

/// The key of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PipeKey {
    /// The number of a pipe without a name.
    Unnamed(u64),
    /// The inode of a named pipe.
    Named(Ino),
}

/// A descriptor's end of a pipe. The end of a named pipe can be opened for both directions.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    pipe: PipeKey,
    can_read: bool,
    can_write: bool,
    /// The number of ends of the other direction that had been opened before this one, if all of them were closed;
    /// otherwise 0. While the number stays the same, this end has not had a partner.
    others_before: u64,
}

impl PipeEnd {
    /// Returns the flags that `F_GETFL` reports, without `O_NONBLOCK`.
    pub(super) fn flags(&self) -> i32 {
        let mode = match (self.can_read, self.can_write) {
            (true, true) => libc::O_RDWR,
            (false, true) => libc::O_WRONLY,
            _ => libc::O_RDONLY,
        };
        mode | self.ino().map_or(0, |_| super::files::LARGE_FILE)
    }

    /// Returns the inode of a named pipe.
    pub(super) fn ino(&self) -> Option<Ino> {
        match self.pipe {
            PipeKey::Named(ino) => Some(ino),
            PipeKey::Unnamed(_) => None,
        }
    }
}

/// A page of buffered bytes.
#[derive(Debug, Default)]
struct Page {
    bytes: Vec<u8>,
    /// The number of bytes that have been read.
    read: usize,
}

/// The ends of one direction.
#[derive(Debug, Default)]
struct Ends {
    open: BTreeSet<Id>,
    /// The number of ends that have ever been opened.
    opened: u64,
}

impl Ends {
    fn add(&mut self, id: Id) {
        self.open.insert(id);
        self.opened += 1;
    }
}

/// A pipe to which at least one descriptor refers.
#[derive(Debug)]
struct Pipe {
    pages: VecDeque<Page>,
    most_pages: usize,
    readers: Ends,
    writers: Ends,
}

impl Pipe {
    fn new() -> Pipe {
        Pipe {
            pages: VecDeque::new(),
            most_pages: PAGES,
            readers: Ends::default(),
            writers: Ends::default(),
        }
    }

    fn is_full(&self) -> bool {
        self.pages.len() >= self.most_pages
    }

    fn len(&self) -> usize {
        let pages = self.pages.iter();
        pages.map(|page| page.bytes.len() - page.read).sum()
    }

    /// Takes at most `most` bytes.
    fn take(&mut self, most: usize) -> Vec<u8> {
        let mut taken = vec![];
        while let Some(page) = self.pages.front_mut()
            && taken.len() < most
        {
            let end = page.bytes.len().min(page.read + most - taken.len());
            taken.extend_from_slice(&page.bytes[page.read..end]);
            page.read = end;
            if page.read == page.bytes.len() {
                self.pages.pop_front();
            }
        }
        taken
    }

    /// Appends as many bytes as fit, and returns their number. Bytes beyond whole pages are merged into the last page if
    /// all of them fit there.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let (merged, mut rest) = bytes.split_at(bytes.len() % PAGE);
        match self.pages.back_mut() {
            Some(last) if last.bytes.len() + merged.len() <= PAGE => {
                last.bytes.extend_from_slice(merged);
            }
            _ => rest = bytes,
        }
        while !rest.is_empty() && !self.is_full() {
            let (page, after) = rest.split_at(rest.len().min(PAGE));
            self.pages.push_back(Page {
                bytes: page.to_vec(),
                read: 0,
            });
            rest = after;
        }
        bytes.len() - rest.len()
    }

    fn readiness(&self, end: &PipeEnd) -> u32 {
        let mut ready = 0;
        if end.can_read {
            ready |= if self.pages.is_empty() {
                0
            } else {
                libc::EPOLLIN
            };
            let is_over = self.writers.open.is_empty() && self.writers.opened != end.others_before;
            ready |= if is_over { libc::EPOLLHUP } else { 0 };
        }
        if end.can_write {
            ready |= if self.is_full() { 0 } else { libc::EPOLLOUT };
            let is_lost = self.readers.open.is_empty();
            ready |= if is_lost { libc::EPOLLERR } else { 0 };
        }
        ready as u32
    }
}

/// All pipes of a host.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    open: BTreeMap<PipeKey, Pipe>,
    /// The number of pipes without a name that have been created.
    created: u64,
}

impl Pipes {
    /// Returns the readiness of an end, as bits of epoll.
    pub(super) fn readiness(&self, end: &PipeEnd) -> u32 {
        self.open
            .get(&end.pipe)
            .map_or(0, |pipe| pipe.readiness(end))
    }

    /// Returns the number of bytes that can be read.
    pub(super) fn readable(&self, end: &PipeEnd) -> usize {
        self.open.get(&end.pipe).map_or(0, Pipe::len)
    }

    /// `F_GETPIPE_SZ`, and `F_SETPIPE_SZ` with a size. Returns the capacity in bytes.
    pub(super) fn capacity(&mut self, end: &PipeEnd, size: Option<usize>) -> Result<isize, Error> {
        let pipe = self.open.get_mut(&end.pipe).ok_or(error(libc::EBADF))?;
        if let Some(size) = size {
            let pages = size.div_ceil(PAGE).max(1).next_power_of_two();
            if pages > MOST_PAGES {
                return Err(error(libc::EPERM));
            }
            if pages < pipe.pages.len() {
                return Err(error(libc::EBUSY));
            }
            pipe.most_pages = pages;
        }
        Ok((pipe.most_pages * PAGE) as isize)
    }
}

impl Kernel {
    fn pipe_end(&self, id: Id) -> Result<&PipeEnd, Error> {
        match self.descriptors.get(id).map(|object| &object.kind) {
            Some(Kind::Pipe(end)) => Ok(end),
            _ => Err(error(libc::EBADF)),
        }
    }

    fn notify_all(&mut self, ids: BTreeSet<Id>) {
        for id in ids {
            self.notify(id);
        }
    }

    /// Creates an end, to which no descriptor refers yet. The ends of the other direction are notified.
    fn add_end(&mut self, pipe: PipeKey, mode: i32, nonblocking: bool) -> Id {
        let (can_read, can_write) = (mode != libc::O_WRONLY, mode != libc::O_RDONLY);
        let ends = self.pipes.open.entry(pipe).or_insert_with(Pipe::new);
        let others = if can_read {
            &ends.writers
        } else {
            &ends.readers
        };
        let others_before = if others.open.is_empty() {
            others.opened
        } else {
            0
        };
        let mut object = Object::new(Kind::Pipe(PipeEnd {
            pipe,
            can_read,
            can_write,
            others_before,
        }));
        object.nonblocking = nonblocking;
        let id = self.descriptors.add(object);
        let mut notified = BTreeSet::new();
        if can_read {
            notified.extend(&ends.writers.open);
            ends.readers.add(id);
        }
        if can_write {
            notified.extend(&ends.readers.open);
            ends.writers.add(id);
        }
        self.notify_all(notified);
        id
    }

    /// Simulates `pipe2`.
    pub(super) fn pipe(&mut self, out: usize, flags: usize) -> Result<isize, Error> {
        let flags = flags as i32;
        self.pipes.created += 1;
        let key = PipeKey::Unnamed(self.pipes.created);
        let nonblocking = flags & libc::O_NONBLOCK != 0;
        let ends =
            [libc::O_RDONLY, libc::O_WRONLY].map(|mode| self.add_end(key, mode, nonblocking));
        let mut numbers = [0; 2];
        for (number, id) in numbers.iter_mut().zip(ends) {
            match self.descriptors.open(id, flags & libc::O_CLOEXEC != 0, 0) {
                Ok(fd) => *number = fd,
                Err(failure) => {
                    ends.into_iter().for_each(|id| self.close_object(id));
                    return Err(failure);
                }
            }
        }
        user::write(out, numbers)?;
        Ok(0)
    }

    /// Opens a named pipe, whose inode has a reference for the new end. Waits for an end of the other direction, unless
    /// `O_NONBLOCK` or both directions are requested.
    pub(super) fn open_pipe(
        &mut self,
        ino: Ino,
        flags: i32,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let (pipe, mode) = (PipeKey::Named(ino), flags & libc::O_ACCMODE);
        let nonblocking = flags & libc::O_NONBLOCK != 0;
        let has_readers = self.pipes.open.get(&pipe);
        let has_readers = has_readers.is_some_and(|pipe| !pipe.readers.open.is_empty());
        if nonblocking && mode == libc::O_WRONLY && !has_readers {
            self.files.close_inode(ino);
            return Err(error(libc::ENXIO));
        }
        let id = self.add_end(pipe, mode, nonblocking);
        attempt.opened = Some(id);
        self.finish_open(id, flags)
    }

    /// Gives a new end of a named pipe its descriptor, once the end has a partner.
    pub(super) fn finish_open(&mut self, id: Id, flags: i32) -> Result<Step, Error> {
        let end = self.pipe_end(id)?;
        let has_partner = self.pipes.open.get(&end.pipe).is_some_and(|pipe| {
            let others = if end.can_read {
                &pipe.writers
            } else {
                &pipe.readers
            };
            others.opened != end.others_before
        });
        if !has_partner && flags & libc::O_NONBLOCK == 0 {
            return Ok(Step::Wait(Wait {
                on: On::Objects(vec![id]),
                until: NEVER,
            }));
        }
        let fd = self.descriptors.open(id, flags & libc::O_CLOEXEC != 0, 0);
        if fd.is_err() {
            self.close_object(id);
        }
        fd.map(|fd| Step::Done(fd as isize))
    }

    /// Removes an end, to which no descriptor refers any more. The bytes of a pipe without ends are lost.
    pub(super) fn close_pipe(&mut self, id: Id, end: &PipeEnd) {
        let Some(pipe) = self.pipes.open.get_mut(&end.pipe) else {
            return;
        };
        let mut notified = BTreeSet::new();
        if pipe.writers.open.remove(&id) && pipe.writers.open.is_empty() {
            notified.extend(&pipe.readers.open);
        }
        if pipe.readers.open.remove(&id) && pipe.readers.open.is_empty() {
            notified.extend(&pipe.writers.open);
        }
        if pipe.readers.open.is_empty() && pipe.writers.open.is_empty() {
            self.pipes.open.remove(&end.pipe);
        }
        if let Some(ino) = end.ino() {
            self.files.close_inode(ino);
        }
        self.notify_all(notified);
    }

    /// Reads from a pipe; `None` if the read has to wait.
    pub(super) fn read_pipe(&mut self, id: Id, most: usize) -> Result<Option<Vec<u8>>, Error> {
        let end = self.pipe_end(id)?;
        let (key, can_read) = (end.pipe, end.can_read);
        let pipe = self.pipes.open.get_mut(&key).filter(|_| can_read);
        let pipe = pipe.ok_or(error(libc::EBADF))?;
        if pipe.pages.is_empty() {
            return Ok((pipe.writers.open.is_empty() || most == 0).then(Vec::new));
        }
        let was_full = pipe.is_full();
        let taken = pipe.take(most);
        if was_full && !pipe.is_full() {
            let writers = pipe.writers.open.clone();
            self.notify_all(writers);
        }
        Ok(Some(taken))
    }

    /// Writes to a pipe, and returns the number of bytes that fit; `None` if the write has to wait.
    pub(super) fn write_pipe(&mut self, id: Id, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let end = self.pipe_end(id)?;
        let (key, can_write) = (end.pipe, end.can_write);
        let pipe = self.pipes.open.get_mut(&key).filter(|_| can_write);
        let pipe = pipe.ok_or(error(libc::EBADF))?;
        if bytes.is_empty() {
            return Ok(Some(0));
        }
        if pipe.readers.open.is_empty() {
            return Err(error(libc::EPIPE));
        }
        let count = pipe.append(bytes);
        if count == 0 {
            return Ok(None);
        }
        let readers = pipe.readers.open.clone();
        self.notify_all(readers);
        Ok(Some(count))
    }
}
