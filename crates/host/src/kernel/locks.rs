//! Locks of files. A host runs one process, so that record locks never conflict; those of `flock` belong to open files
//! and do.

use super::descriptors::{Kind, Object};
use super::user::{self, Error, error};
use super::{Attempt, Id, Kernel, NEVER, On, Step, Wait};
use crate::filesystem::Ino;
use std::collections::{BTreeMap, BTreeSet};

/// Locks by inode.
#[derive(Debug, Default)]
pub(crate) struct Locks(BTreeMap<Ino, Lock>);

#[derive(Debug, Default)]
struct Lock {
    exclusive: bool,
    /// The open files that hold it.
    holders: BTreeSet<Id>,
}

impl Object {
    /// `F_SETLK`, `F_SETLKW` and `F_GETLK`.
    pub(super) fn record_lock(&self, command: i32, argument: usize) -> Result<isize, Error> {
        let Kind::File(file) = &self.kind else {
            return Err(error(libc::EINVAL));
        };
        let mut lock: libc::flock = user::read(argument)?;
        let kind = i32::from(lock.l_type);
        if command == libc::F_GETLK {
            lock.l_type = libc::F_UNLCK as i16;
            user::write(argument, lock)?;
        } else if kind == libc::F_RDLCK && !file.can_read()
            || kind == libc::F_WRLCK && !file.can_write()
        {
            return Err(error(libc::EBADF));
        }
        Ok(0)
    }
}

impl Kernel {
    /// `flock`.
    pub(super) fn flock(
        &mut self,
        fd: usize,
        operation: usize,
        attempt: &Attempt,
    ) -> Result<Step, Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let Kind::File(file) = &object.kind else {
            return Err(error(libc::EBADF));
        };
        let ino = file.ino;
        let operation = operation as i32;
        let exclusive = match operation & !libc::LOCK_NB {
            libc::LOCK_UN => {
                self.release_lock(ino, id);
                return Ok(Step::Done(0));
            }
            libc::LOCK_SH => false,
            libc::LOCK_EX => true,
            _ => return Err(error(libc::EINVAL)),
        };
        let lock = self.locks.0.entry(ino).or_default();
        let others: Vec<Id> = lock
            .holders
            .iter()
            .copied()
            .filter(|&holder| holder != id)
            .collect();
        if others.is_empty() || !exclusive && !lock.exclusive {
            lock.exclusive = exclusive;
            lock.holders.insert(id);
            return Ok(Step::Done(0));
        }
        if operation & libc::LOCK_NB != 0 {
            return Ok(self.without_waiting(error(libc::EWOULDBLOCK), attempt));
        }
        Ok(Step::Wait(Wait {
            on: On::Objects(others),
            until: NEVER,
        }))
    }

    /// An open file holds its lock no more.
    pub(super) fn release_lock(&mut self, ino: Ino, id: Id) {
        let Some(lock) = self.locks.0.get_mut(&ino) else {
            return;
        };
        if lock.holders.remove(&id) {
            if lock.holders.is_empty() {
                self.locks.0.remove(&ino);
            }
            self.notify(id);
        }
    }
}
