//! `epoll`: level- and edge-triggered, and one-shot.
//!
//! A change of an object marks its entry. The readiness of marked entries is checked when events are collected, as in
//! Linux. The check always unmarks an edge-triggered entry. It unmarks a level-triggered entry only if the entry is not
//! ready.

use super::objects::epoll::{ALWAYS, Entry, Epoll};
use super::objects::{Kind, Object};
use super::user::{self, Error, error};
use super::{Attempt, Id, Kernel, NEVER, On, Step, Wait};

const EDGE: u32 = libc::EPOLLET as u32;
const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;

impl Kernel {
    fn epoll(&mut self, id: Id) -> Result<&mut Epoll, Error> {
        match self.descriptors.get_mut(id).map(|object| &mut object.kind) {
            Some(Kind::Epoll(epoll)) => Ok(epoll),
            _ => Err(error(libc::EINVAL)),
        }
    }

    /// Simulates `epoll_create1`.
    pub(super) fn epoll_create(&mut self, flags: usize) -> Result<isize, Error> {
        let object = Object::new(Kind::Epoll(Epoll::default()));
        self.open(object, flags as i32 & libc::O_CLOEXEC)
    }

    /// Simulates `epoll_ctl`.
    pub(super) fn epoll_ctl(
        &mut self,
        epoll_fd: usize,
        operation: usize,
        fd: usize,
        event: usize,
    ) -> Result<isize, Error> {
        let (watcher, id) = (self.descriptors.id(epoll_fd)?, self.descriptors.id(fd)?);
        let fd = fd as i32;
        if matches!(
            self.descriptors.get(id).map(|object| &object.kind),
            Some(
                Kind::Null
                    | Kind::Zero
                    | Kind::Entropy
                    | Kind::Image(_)
                    | Kind::Log(_)
                    | Kind::File(_)
                    | Kind::Directory(_)
            )
        ) {
            return Err(error(libc::EPERM));
        }
        let exists = self.epoll(watcher)?.entries.contains_key(&fd);
        match operation as i32 {
            libc::EPOLL_CTL_DEL if exists => {
                let epoll = self.epoll(watcher)?;
                epoll.entries.remove(&fd);
                epoll.unmark(fd);
                if let Some(object) = self.descriptors.get_mut(id) {
                    object.watchers.retain(|&entry| entry != (watcher, fd));
                }
                return Ok(0);
            }
            libc::EPOLL_CTL_ADD if exists => return Err(error(libc::EEXIST)),
            libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL if !exists => {
                return Err(error(libc::ENOENT));
            }
            libc::EPOLL_CTL_ADD => {
                if let Some(object) = self.descriptors.get_mut(id) {
                    object.watchers.push((watcher, fd));
                }
            }
            libc::EPOLL_CTL_MOD => {}
            _ => return Err(error(libc::EINVAL)),
        }
        let event: libc::epoll_event = user::read(event)?;
        let entry = Entry {
            id,
            events: event.events,
            data: event.u64,
            is_marked: false,
            is_disarmed: false,
        };
        let epoll = self.epoll(watcher)?;
        epoll.unmark(fd);
        epoll.entries.insert(fd, entry);
        epoll.mark(fd);
        if self.readiness(id) & (event.events | ALWAYS) != 0 {
            self.notify(watcher);
        }
        Ok(0)
    }

    /// Returns the events of marked entries that are ready, at most `most`.
    fn collect(&mut self, watcher: Id, most: usize) -> Result<Vec<(u32, u64)>, Error> {
        let mut events = vec![];
        let mut still_marked = vec![];
        while events.len() < most {
            let epoll = self.epoll(watcher)?;
            let Some(fd) = epoll.marks.pop_front() else {
                break;
            };
            let Some(entry) = epoll.entries.get_mut(&fd) else {
                continue;
            };
            entry.is_marked = false;
            let (id, wanted, data) = (entry.id, entry.events, entry.data);
            let ready = self.readiness(id) & (wanted | ALWAYS) & !(EDGE | ONE_SHOT);
            if ready == 0 {
                continue;
            }
            events.push((ready, data));
            if wanted & ONE_SHOT != 0 {
                if let Some(entry) = self.epoll(watcher)?.entries.get_mut(&fd) {
                    entry.is_disarmed = true;
                }
            } else if wanted & EDGE == 0 {
                still_marked.push(fd);
            }
        }
        let epoll = self.epoll(watcher)?;
        for fd in still_marked {
            epoll.mark(fd);
        }
        Ok(events)
    }

    /// Simulates `epoll_wait`, with a time limit in nanoseconds.
    pub(super) fn epoll_wait(
        &mut self,
        fd: usize,
        out: usize,
        most: usize,
        limit: Option<u64>,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        let watcher = self.descriptors.id(fd)?;
        if most == 0 || most > i32::MAX as usize {
            return Err(error(libc::EINVAL));
        }
        let events = self.collect(watcher, most)?;
        for (index, &(events, data)) in events.iter().enumerate() {
            let event = libc::epoll_event { events, u64: data };
            user::write(out + index * size_of::<libc::epoll_event>(), event)?;
        }
        let now = self.now;
        let until = attempt.until(|| limit.map_or(NEVER, |limit| now.saturating_add(limit)));
        if !events.is_empty() || attempt.timed_out {
            return Ok(Step::Done(events.len() as isize));
        }
        if until <= now {
            return Ok(self.without_waiting(0, attempt));
        }
        Ok(Step::Wait(Wait {
            on: On::Objects(vec![watcher]),
            until,
        }))
    }
}
