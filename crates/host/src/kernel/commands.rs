//! The commands of the simulation, which a host serves while no thread of its program is ready.

use super::{nested, with};
use crate::channel::Command;
use crate::packet::Reader;
use crate::settings::Settings;

/// Ends the step and serves commands of the simulation until a thread is ready. Returns this thread. The caller is the
/// thread that has the baton and finds no thread ready: a thread of the program (this saves a switch), or the first
/// thread of the process.
pub(super) fn next_thread() -> usize {
    loop {
        if let Some(thread) = with(|kernel| kernel.choose()) {
            return thread;
        }
        let channel = with(|kernel| {
            let next = kernel.next();
            kernel.check_deadlock(next);
            let switches = kernel.scheduler.switches;
            let channel = kernel.channel.other_side();
            channel.done(
                kernel.drift.virtual_at(next),
                kernel.calls,
                switches,
                kernel.trace,
            );
            channel
        });
        serve(channel.wait());
    }
}

/// Serves a command.
pub(super) fn serve((command, time, input): (Command, u64, Vec<u8>)) {
    with(|kernel| {
        kernel.time = kernel.time.max(time);
        kernel.now = kernel.drift.local(kernel.time);
        nested::set_time(kernel.now);
        kernel.stop_for_debugger();
        match command {
            Command::Kill => kernel.kill(),
            Command::Signal => {
                let signal = Reader(&input).u32();
                kernel.deliver_signal(signal.unwrap_or(0) as i32);
            }
            Command::Settings => {
                if let Some(settings) = Settings::from_bytes(&input) {
                    kernel.change_settings(settings);
                }
            }
            Command::Step => {
                if let Some(packet) = Reader(&input).packet() {
                    kernel.receive(packet);
                }
            }
        }
    });
}
