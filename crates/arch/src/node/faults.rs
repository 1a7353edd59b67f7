//! Faults: an instance is killed, paused, slowed or cut off, and recovers.

use super::host::Host;
use super::{Node, TO_FAULT};
use crate::definition::FaultKind;
use crate::message::Msg;
use corsair::{Context, Token};
use std::time::Duration;

impl Node {
    /// A fault begins or ends: `timer` is twice its number, and one more for its end.
    pub(super) fn fault<C: Context<Msg>>(&mut self, timer: u32, cx: &mut C) {
        let (number, ends) = (timer / 2, timer % 2 == 1);
        let host = &mut self.host;
        let Some(&fault) = host.model.faults(host.index).get(number as usize) else {
            return;
        };
        match (fault.kind, ends) {
            (FaultKind::Kill, false) => self.kill(cx),
            (FaultKind::Kill, true) => host.revive(cx),
            (FaultKind::Pause, false) => host.pause(cx),
            (FaultKind::Pause, true) => self.unpause(cx),
            (FaultKind::Slow, false) => host.health.slow_down(number, fault.factor),
            (FaultKind::Slow, true) => host.health.speed_up(number),
            (FaultKind::Partition, false) => host.health.cut_off += 1,
            (FaultKind::Partition, true) => host.health.cut_off -= 1,
        }
        if let (Some(lasting), false) = (fault.lasting, ends) {
            let end = Token::new(TO_FAULT + timer + 1);
            cx.timer(Duration::from_nanos(lasting), end);
        }
    }

    /// Ends a pause. Unless there is another, work goes on and what has arrived is handled.
    fn unpause<C: Context<Msg>>(&mut self, cx: &mut C) {
        let host = &mut self.host;
        host.health.paused -= 1;
        if host.health.is_paused() {
            return;
        }
        let now = cx.now().as_nanos();
        host.in_progress.resume(now, |left, token| {
            cx.timer(Duration::from_nanos(left), token);
        });
        for held in self.host.health.take_held() {
            self.handle_held(held, cx);
        }
        self.wake(cx);
    }

    /// Kills the instance: it leaves the registries, and what it was doing is lost. The requests
    /// of an entry point are those of clients outside, who go on waiting.
    pub(super) fn kill<C: Context<Msg>>(&mut self, cx: &mut C) {
        let host = &mut self.host;
        host.health.killed += 1;
        if host.health.killed > 1 {
            return;
        }
        host.unregister(true, cx);
        if !host.is_entry_point() {
            host.drop_everything(self.role.drop_tasks(), cx);
        }
    }
}

impl Host {
    /// Brings a killed instance back, unless another fault keeps it down.
    fn revive<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.health.killed -= 1;
        if self.health.killed > 0 {
            return;
        }
        for place in 0..self.registries.len() {
            let (registry, node) = (self.registries[place], self.index);
            self.notify(registry, Msg::Register { node }, cx);
        }
    }

    fn pause<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.health.paused += 1;
        if self.health.paused == 1 {
            self.in_progress.pause(cx.now().as_nanos());
        }
    }
}
