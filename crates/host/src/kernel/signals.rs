//! Signals that the simulation or the program itself sends to the program.
//!
//! Handlers are installed in the real process. To deliver a signal, the first thread of the program is woken and raises
//! the signal. So the handler runs on a simulated thread that has the baton.

use super::handlers::{Disposition, disposition};
use super::objects::events::Signals;
use super::objects::{Kind, Object};
use super::user::{self, Error, error};
use super::{Id, Kernel};
use crate::channel::Ending;
use std::collections::VecDeque;

impl Kernel {
    /// Simulates `signalfd4`.
    pub(super) fn signalfd(
        &mut self,
        fd: usize,
        mask: usize,
        flags: usize,
    ) -> Result<isize, Error> {
        let mask = user::read::<u64>(mask)?;
        if fd as i32 == -1 {
            let kind = Kind::Signals(Signals {
                mask,
                queue: VecDeque::new(),
            });
            return self.open(Object::new(kind), flags as i32);
        }
        match &mut self.descriptors.object(fd)?.1.kind {
            Kind::Signals(signals) => signals.mask = mask,
            _ => return Err(error(libc::EINVAL)),
        }
        Ok(fd as isize)
    }

    /// Queues a signal for a descriptor that reads it. Returns false if there is no such descriptor.
    pub(super) fn queue_signal(&mut self, signal: i32) -> bool {
        let bit = 1u64 << (signal - 1);
        let reader = self.descriptors.find_kind(|kind| match kind {
            Kind::Signals(signals) => signals.mask & bit != 0,
            _ => false,
        });
        let Some(id) = reader else { return false };
        self.push_signal(id, signal);
        self.notify(id);
        true
    }

    fn push_signal(&mut self, id: Id, signal: i32) {
        if let Some(Kind::Signals(signals)) =
            self.descriptors.get_mut(id).map(|object| &mut object.kind)
            && !signals.queue.contains(&signal)
        {
            signals.queue.push_back(signal);
        }
    }

    /// Delivers a signal from the simulation, while no thread runs.
    pub(super) fn deliver_signal(&mut self, signal: i32) {
        if !(1..=64).contains(&signal) {
            return;
        }
        match signal {
            libc::SIGSTOP => {
                self.scheduler.is_paused = true;
                return;
            }
            libc::SIGCONT => {
                self.scheduler.is_paused = false;
                for pending in std::mem::take(&mut self.scheduler.pending) {
                    self.deliver_signal(pending);
                }
            }
            libc::SIGKILL => {}
            _ if self.scheduler.is_paused => {
                self.scheduler.pending.push(signal);
                return;
            }
            _ => {}
        }
        if self.queue_signal(signal) {
            return;
        }
        match disposition(signal) {
            Disposition::Ignored => {}
            Disposition::Handled => self.scheduler.interrupt(signal),
            Disposition::Default
                if [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal) =>
            {
                self.scheduler.is_paused = true;
            }
            Disposition::Default => {
                let harmless = [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT];
                if !harmless.contains(&signal) {
                    self.end(Ending::Killed);
                    self.stop_program();
                }
            }
        }
    }
}
