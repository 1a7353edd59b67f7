//! The end of a program, and refused calls.
#![allow(unsafe_code, reason = "sends signals to the host's own process")]

use super::identity::PID;
use super::user::error;
use super::{Kernel, NEVER, Step, with};
use crate::channel::Ending;
use crate::raw::{Args, args, raw};

impl Kernel {
    /// Simulates `exit_group`: closes the sockets, as the kernel does, and stops all threads.
    pub(super) fn exit(&mut self, status: usize) -> Step {
        self.end(Ending::Exited(status as i32 & 0xff));
        self.stop_program();
        Step::Exit
    }

    /// Stops the program. The host's kernel continues to run, so that connections end as on a real machine.
    pub(crate) fn stop_program(&mut self) {
        self.scheduler.stopped = true;
        self.close_all();
    }

    /// Kills the program on behalf of the simulation.
    pub(super) fn kill(&mut self) {
        self.stop_program();
    }

    /// Reports a deadlock if no thread of the program can ever run again.
    ///
    /// A packet can wake a thread that waits for a descriptor. So a deadlock means that every thread waits for a futex
    /// or joins another thread.
    pub(super) fn check_deadlock(&mut self, next: u64) {
        let is_held = self.scheduler.stopped || self.scheduler.is_paused;
        if next != NEVER || is_held || !self.scheduler.is_deadlocked() {
            return;
        }
        let text = format!(
            "corsair: deadlock, no thread of this host can ever run again:\n{}",
            self.scheduler.describe()
        );
        self.log(2, text.as_bytes());
        self.end(Ending::Deadlocked);
        self.stop_program();
    }

    /// Simulates `kill`, `tkill` and `tgkill`. They may target only the program itself, because a program aborts in
    /// this way.
    pub(super) fn send_signal(&mut self, target: usize, signal: usize) -> Step {
        let target = target as i32;
        // The C library uses the real ids of threads, which it has stored at their start.
        // SAFETY: the call takes no pointers.
        let own = unsafe { raw(libc::SYS_getpid, args([])) };
        let is_own_thread = (PID..PID + (1 << 16)).contains(&target);
        if !is_own_thread && target != 0 && target as isize != own && signal != 0 {
            return Step::Done(error(libc::ESRCH));
        }
        if signal == 0 {
            return Step::Done(0);
        }
        if signal as i32 == libc::SIGSTOP {
            self.scheduler.is_paused = true;
            return Step::Yield(0);
        }
        if (1..=64).contains(&signal) && self.queue_signal(signal as i32) {
            return Step::Done(0);
        }
        Step::Raise {
            signal: signal as i32,
            result: 0,
        }
    }
}

/// Stops this process until a debugger or `kill -CONT` resumes it. Virtual time does not advance during the stop.
pub(super) fn stop(host: &str, now: u64) {
    // SAFETY: the text is valid for reads; the other calls take no pointers.
    unsafe {
        let pid = raw(libc::SYS_getpid, args([]));
        let seconds = now as f64 / 1e9;
        let text = format!(
            "corsair: {host} has stopped at {seconds} s; attach with gdb -p {pid}, or continue with kill -CONT {pid}\n"
        );
        raw(
            libc::SYS_write,
            args([2, text.as_ptr() as usize, text.len()]),
        );
        raw(libc::SYS_kill, args([pid as usize, libc::SIGSTOP as usize]));
    }
}

/// Ends a program that made a call which is not simulated. Reports the call, the thread and its frames, and stops the
/// host.
pub(super) fn refuse(number: i64, args: &Args) -> ! {
    let name = crate::calls::name(number);
    // Captured before the kernel is borrowed, because looking up symbols makes calls.
    let frames = std::backtrace::Backtrace::force_capture().to_string();
    with(|kernel| {
        let host = &kernel.world.hosts[kernel.host].name;
        let [a, b, c, ..] = args;
        let text = format!(
            "corsair: host {host} called {name}({a:#x}, {b:#x}, {c:#x}), which is not simulated\n{frames}\n"
        );
        kernel.log(2, text.as_bytes());
        kernel.end(Ending::Unsupported);
        kernel.stop_program();
    });
    super::threads::leave_forever()
}
