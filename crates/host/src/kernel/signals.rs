//! Signals that the simulation or the program itself sends to the program.
//!
//! Handlers are installed in the real process. To deliver a signal, the first thread of the program is woken and raises
//! the signal. So the handler runs on a simulated thread that has the baton.
#![allow(unsafe_code, reason = "asks for handlers, and raises signals")]

use super::descriptors::{Kind, Object};
use super::process;
use super::user::{self, Error, error};
use super::{Id, Kernel, tsc};
use crate::channel::Ending;
use crate::raw::{args, raw};
use std::collections::VecDeque;

/// A descriptor from which signals are read.
#[derive(Debug)]
pub(crate) struct Signals {
    mask: u64,
    queue: VecDeque<i32>,
}

impl Signals {
    /// Returns the result of a read; `None` if the read has to wait.
    pub(super) fn take(&mut self) -> Option<[u8; 128]> {
        let mut info = [0; 128];
        info[..4].copy_from_slice(&self.queue.pop_front()?.to_ne_bytes());
        Some(info)
    }

    pub(super) fn readiness(&self) -> u32 {
        match self.queue.is_empty() {
            true => 0,
            false => libc::EPOLLIN as u32,
        }
    }
}

/// The program's reaction to a signal.
enum Disposition {
    Default,
    Ignored,
    Handled,
}

/// Returns the program's handler of a signal, `SIG_DFL` or `SIG_IGN`.
fn handler(signal: i32) -> usize {
    if signal == libc::SIGSEGV {
        return tsc::handler();
    }
    // The first word of the kernel's structure is the handler.
    let mut action = [0usize; 4];
    let arguments = args([signal as usize, 0, action.as_mut_ptr() as usize, 8]);
    // SAFETY: the structure has four words, and the mask in it has eight bytes.
    match unsafe { raw(libc::SYS_rt_sigaction, arguments) } {
        0 => action[0],
        _ => libc::SIG_DFL,
    }
}

fn disposition(signal: i32) -> Disposition {
    match handler(signal) {
        libc::SIG_IGN => Disposition::Ignored,
        libc::SIG_DFL => Disposition::Default,
        _ => Disposition::Handled,
    }
}

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

/// Runs the handlers of signals on the calling thread, which has the baton.
pub(super) fn raise(signals: &[i32]) {
    for &signal in signals {
        process::raise(signal);
    }
}
