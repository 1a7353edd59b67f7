//! Faults: an instance is killed, paused, slowed or cut off, and recovers.

use super::host::Host;
use super::{Node, TO_FAULT};
use crate::faults::Effect;
use crate::message::Msg;
use corsair::{Context, Token};
use std::time::Duration;

impl Node {
    /// Begins or ends a fault: `timer` is twice its number, plus one for its end.
    pub(super) fn fault<C: Context<Msg>>(&mut self, timer: u32, cx: &mut C) {
        let (number, ends) = (timer / 2, timer % 2 == 1);
        let host = &mut self.host;
        let Some(&fault) = host.model.faults(host.index).get(number as usize) else {
            return;
        };
        if !ends && host.model.revoked.contains(&(host.index, number)) {
            return;
        }
        match (fault.effect, ends) {
            (Effect::Kill, false) => self.kill(cx),
            (Effect::Kill, true) => host.revive(cx),
            (Effect::Pause, false) => host.pause(cx),
            (Effect::Pause, true) => self.unpause(cx),
            (Effect::Slow(factor), false) => host.health.slow_down(number, factor),
            (Effect::Slow(_), true) => host.health.speed_up(number),
            (Effect::Partition, false) => host.health.cut_off += 1,
            (Effect::Partition, true) => {
                host.health.cut_off = host.health.cut_off.saturating_sub(1)
            }
            (Effect::Leave, false) => host.stay_away(cx),
            (Effect::Leave, true) => host.come_back(cx),
        }
        if let (Some(lasting), false) = (fault.lasting, ends) {
            let end = Token::new(TO_FAULT + timer + 1);
            cx.timer(Duration::from_nanos(lasting), end);
        }
    }

    /// Ends a pause. Work resumes unless another pause is in effect.
    fn unpause<C: Context<Msg>>(&mut self, cx: &mut C) {
        let health = &mut self.host.health;
        // A command may already have ended the pause.
        if health.is_paused() {
            health.paused = health.paused.saturating_sub(1);
            if !health.is_paused() {
                self.resume_work(cx);
            }
        }
    }

    /// Resumes the work, and handles the messages that arrived during the pause.
    pub(super) fn resume_work<C: Context<Msg>>(&mut self, cx: &mut C) {
        let host = &mut self.host;
        let now = cx.now().as_nanos();
        host.in_progress.resume(now, |left, token| {
            cx.timer(Duration::from_nanos(left), token);
        });
        for held in self.host.health.take_held() {
            self.handle_held(held, cx);
        }
        self.wake(cx);
    }

    /// Kills the instance: it leaves the registries, and its unfinished work is lost. The pending requests of an entry
    /// point are kept, because they belong to external clients, which still wait.
    pub(super) fn kill<C: Context<Msg>>(&mut self, cx: &mut C) {
        let health = &mut self.host.health;
        let (was_listed, was_down) = (health.is_listed(), health.is_down());
        health.killed += 1;
        if !was_down {
            self.gone_down(was_listed, cx);
        }
    }

    /// Applies the consequences of a kill to an instance that was up.
    pub(super) fn gone_down<C: Context<Msg>>(&mut self, was_listed: bool, cx: &mut C) {
        let host = &mut self.host;
        if was_listed {
            host.unregister(true, cx);
        }
        if !host.is_entry_point() {
            host.drop_everything(self.role.drop_tasks(), cx);
        }
    }
}

impl Host {
    /// Revives a killed instance, unless another fault keeps it down.
    fn revive<C: Context<Msg>>(&mut self, cx: &mut C) {
        // A command may have revived the instance before.
        if self.health.is_down() {
            self.health.killed = self.health.killed.saturating_sub(1);
            self.register_again(cx);
        }
    }

    /// Leaves the registries. Requests that still arrive are handled.
    pub(super) fn stay_away<C: Context<Msg>>(&mut self, cx: &mut C) {
        let was_listed = self.health.is_listed();
        self.health.away += 1;
        if was_listed {
            self.unregister(false, cx);
        }
    }

    /// Removes one reason for being out of the registries, and registers the instance again if no other reason is
    /// left.
    pub(super) fn come_back<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.health.away -= 1;
        self.register_again(cx);
    }

    pub(super) fn register_again<C: Context<Msg>>(&mut self, cx: &mut C) {
        if !self.health.is_listed() {
            return;
        }
        for place in 0..self.registries.len() {
            let (registry, node) = (self.registries[place], self.index);
            self.notify_surely(registry, Msg::Register { node }, cx);
        }
    }

    fn pause<C: Context<Msg>>(&mut self, cx: &mut C) {
        if !self.health.is_paused() {
            self.in_progress.pause(cx.now().as_nanos());
        }
        self.health.paused += 1;
    }
}
