//! File locks: `flock` locks and record locks. A record lock belongs to an open file (`F_OFD_SETLK`) or to the host's
//! only process (`F_SETLK`).

use super::objects::Kind;
use super::objects::files::Record;
use super::user::{self, Error, error};
use super::{Attempt, Id, Kernel, NEVER, On, Step, Wait};
use crate::filesystem::Ino;

/// The holder of record locks of `F_SETLK`: the process.
const PROCESS: Id = 0;

impl Kernel {
    /// Simulates `flock`.
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
                self.unlock(ino, id);
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

    /// Returns the record that a structure of `fcntl` describes.
    fn record(
        &mut self,
        fd: usize,
        lock: &libc::flock,
        of_process: bool,
    ) -> Result<(Ino, Record), Error> {
        let (id, object) = self.descriptors.object(fd)?;
        let Kind::File(file) = &object.kind else {
            return Err(error(libc::EINVAL));
        };
        let is_allowed = match i32::from(lock.l_type) {
            libc::F_RDLCK => file.can_read(),
            libc::F_WRLCK => file.can_write(),
            _ => true,
        };
        if !is_allowed {
            return Err(error(libc::EBADF));
        }
        let (ino, position) = (file.ino, file.position as i64);
        let size = self.files.inode(ino).map_or(0, |inode| inode.size()) as i64;
        let base = match i32::from(lock.l_whence) {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => position,
            libc::SEEK_END => size,
            _ => return Err(error(libc::EINVAL)),
        };
        let start = base.saturating_add(lock.l_start);
        let (start, end) = match lock.l_len {
            0 => (start, i64::MAX),
            length if length < 0 => (start + length, start),
            length => (start, start.saturating_add(length)),
        };
        if start < 0 || lock.l_pid != 0 && !of_process {
            return Err(error(libc::EINVAL));
        }
        let exclusive = i32::from(lock.l_type) == libc::F_WRLCK;
        let record = Record {
            holder: if of_process { PROCESS } else { id },
            start,
            end,
            exclusive,
        };
        Ok((ino, record))
    }

    /// Simulates `F_SETLK` and `F_OFD_SETLK`, including the variants that wait and the variants that query.
    pub(super) fn record_lock(
        &mut self,
        fd: usize,
        command: i32,
        argument: usize,
        attempt: &Attempt,
    ) -> Result<Step, Error> {
        let mut lock: libc::flock = user::read(argument)?;
        let of_process = matches!(command, libc::F_SETLK | libc::F_SETLKW | libc::F_GETLK);
        let (ino, record) = self.record(fd, &lock, of_process)?;
        let records = &mut self.locks.0.entry(ino).or_default().records;
        let conflict = records.iter().copied().find(|other| {
            other.holder != record.holder
                && other.overlaps(&record)
                && (other.exclusive || record.exclusive)
        });
        let unlocks = i32::from(lock.l_type) == libc::F_UNLCK;
        match conflict {
            _ if matches!(command, libc::F_GETLK | libc::F_OFD_GETLK) => {
                lock.l_type = libc::F_UNLCK as i16;
                if let Some(other) = conflict {
                    let kind = if other.exclusive {
                        libc::F_WRLCK
                    } else {
                        libc::F_RDLCK
                    };
                    (lock.l_type, lock.l_whence) = (kind as i16, libc::SEEK_SET as i16);
                    lock.l_start = other.start;
                    lock.l_len = if other.end == i64::MAX {
                        0
                    } else {
                        other.end - other.start
                    };
                    lock.l_pid = match other.holder {
                        PROCESS => super::identity::PID,
                        _ => -1,
                    };
                }
                user::write(argument, lock)?;
                return Ok(Step::Done(0));
            }
            Some(other) if !unlocks && matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW) => {
                return Ok(Step::Wait(Wait {
                    on: On::Objects(vec![other.holder]),
                    until: NEVER,
                }));
            }
            Some(_) if !unlocks => {
                return Ok(self.without_waiting(error(libc::EAGAIN), attempt));
            }
            _ => {}
        }
        // The new record replaces the part of the range that the holder has locked before.
        let own = |other: &Record| other.holder == record.holder && other.overlaps(&record);
        let replaced: Vec<Record> = records.extract_if(.., |other| own(other)).collect();
        for other in replaced {
            let parts = [(other.start, record.start), (record.end, other.end)];
            let left = parts.into_iter().filter(|(start, end)| start < end);
            records.extend(left.map(|(start, end)| Record {
                start,
                end,
                ..other
            }));
        }
        if !unlocks {
            records.push(record);
        }
        self.notify(record.holder);
        Ok(Step::Done(0))
    }

    /// Releases the `flock` lock of an open file.
    fn unlock(&mut self, ino: Ino, id: Id) {
        if let Some(lock) = self.locks.0.get_mut(&ino) {
            lock.holders.remove(&id);
            self.notify(id);
        }
    }

    /// Releases the locks of a closed file: its own locks, and the process's record locks on this file.
    pub(super) fn release_locks(&mut self, ino: Ino, id: Id) {
        self.unlock(ino, id);
        if let Some(lock) = self.locks.0.get_mut(&ino) {
            lock.records
                .retain(|record| record.holder != id && record.holder != PROCESS);
            if lock.holders.is_empty() && lock.records.is_empty() {
                self.locks.0.remove(&ino);
            }
        }
    }
}
