//! Pipes, with and without names: bytes pass from any number of writers to any number of readers of one host.
//!
//! As in Linux, a pipe buffers a limited number of pages, and a write of at most one page is never split.

use super::objects::pipes::{Pipe, PipeEnd, PipeKey};
use super::objects::{Kind, Object};
use super::user::{self, Error, error};
use super::{Attempt, Id, Kernel, NEVER, On, Step, Wait};
use crate::filesystem::Ino;
use std::collections::BTreeSet;

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
