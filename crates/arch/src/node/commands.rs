//! Commands to an instance, given from outside during the run.

use super::{Node, TO_SHARE};
use crate::message::{Command, Msg};
use crate::node::role::Role;
use corsair::Context;
use std::time::Duration;

impl Node {
    /// Applies a command. Commands that end a state, such as revive and resume, also end the state if a fault caused
    /// it.
    pub(super) fn obey<C: Context<Msg>>(&mut self, command: Command, cx: &mut C) {
        let health = &mut self.host.health;
        let (was_listed, was_down) = (health.is_listed(), health.is_down());
        match command {
            Command::Kill => {
                health.ordered.killed = true;
                if !was_down {
                    self.gone_down(was_listed, cx);
                }
            }
            Command::Revive if was_down => {
                (health.killed, health.ordered.killed) = (0, false);
                self.host.register_again(cx);
            }
            Command::Pause => {
                if !health.is_paused() {
                    self.host.in_progress.pause(cx.now().as_nanos());
                }
                self.host.health.ordered.paused = true;
            }
            Command::Resume if health.is_paused() => {
                (health.paused, health.ordered.paused) = (0, false);
                self.resume_work(cx);
            }
            Command::Slow(percent) => health.ordered.slow_percent = percent,
            Command::Partition => health.ordered.cut_off = true,
            Command::Rejoin => (health.cut_off, health.ordered.cut_off) = (0, false),
            Command::Load(percent) => {
                if let Role::EntryPoint(entry) = &mut self.role {
                    entry.set_percent(percent);
                }
            }
            Command::Serve(there) => self.host.serve(there, cx),
            Command::Revise => self.revise(cx),
            Command::Revive | Command::Resume => {}
        }
    }

    /// Applies rules that have changed.
    fn revise<C: Context<Msg>>(&mut self, cx: &mut C) {
        if let Some(after) = self.host.revise(cx.now().as_nanos()) {
            cx.timer(Duration::from_nanos(after), TO_SHARE);
        }
        self.wake(cx);
    }
}
