//! What goes wrong with an instance, and what it does meanwhile.

use super::{Job, Node, TO_FAULT};
use crate::definition::FaultKind;
use crate::message::{Answer, Msg};
use corsair::{Context, Token};
use std::time::Duration;

/// What arrived while an instance was paused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    /// A job, and how long it travelled.
    Job(Job, u32),
    /// The answer to the request with this number, and how long it travelled.
    Answer(u32, u32, Answer),
}

/// How an instance is. Faults of one kind may overlap; each ends by itself.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// How many faults have killed it, the chaos monkey among them.
    killed: u32,
    paused: u32,
    cut_off: u32,
    /// By how much times are multiplied, for each fault that slows it.
    factors: Vec<(u32, f64)>,
    /// What arrived while it was paused.
    held: Vec<Held>,
}

impl Health {
    pub(super) fn is_down(&self) -> bool {
        self.killed > 0
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused > 0
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off > 0
    }

    /// A time of work as it is now.
    #[inline]
    pub(super) fn slowed(&self, nanos: u64) -> u64 {
        if self.factors.is_empty() {
            return nanos;
        }
        let factor: f64 = self.factors.iter().map(|(_, factor)| factor).product();
        (nanos as f64 * factor) as u64
    }

    /// Keeps what has arrived for later.
    pub(super) fn hold(&mut self, held: Held) {
        self.held.push(held);
    }
}

impl Node {
    /// A fault begins or ends: twice its number, and one more for its end.
    pub(super) fn fault<C: Context<Msg>>(&mut self, timer: u32, cx: &mut C) {
        let (number, ends) = (timer / 2, timer % 2 == 1);
        let Some(&fault) = self.model.faults(self.index).get(number as usize) else {
            return;
        };
        match (fault.kind, ends) {
            (FaultKind::Kill, false) => self.go_down(true, cx),
            (FaultKind::Kill, true) => self.come_back(cx),
            (FaultKind::Pause, false) => self.health.paused += 1,
            (FaultKind::Pause, true) => {
                self.health.paused -= 1;
                self.wake(cx);
            }
            (FaultKind::Slow, false) => self.health.factors.push((number, fault.factor)),
            (FaultKind::Slow, true) => self.health.factors.retain(|(n, _)| *n != number),
            (FaultKind::Partition, false) => self.health.cut_off += 1,
            (FaultKind::Partition, true) => self.health.cut_off -= 1,
        }
        if let (Some(lasting), false) = (fault.lasting, ends) {
            cx.timer(
                Duration::from_nanos(lasting),
                Token::new(TO_FAULT + timer + 1),
            );
        }
    }

    /// The instance is gone: it leaves the registries, and what it had to do is lost.
    pub(super) fn go_down<C: Context<Msg>>(&mut self, killed: bool, cx: &mut C) {
        self.health.killed += 1;
        if self.health.killed > 1 {
            return;
        }
        self.unregister(killed, cx);
        for job in std::mem::take(&mut self.queue) {
            self.turns_away(&job, cx);
        }
        for held in std::mem::take(&mut self.health.held) {
            if let Held::Job(job, _) = held {
                self.turns_away(&job, cx);
            }
        }
    }

    /// The instance is there again.
    fn come_back<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.health.killed -= 1;
        if self.health.killed > 0 {
            return;
        }
        for place in 0..self.registries.len() {
            let (registry, node) = (self.registries[place], self.index);
            self.tell(registry, Msg::Register { node }, cx);
        }
    }

    /// The pause is over, unless there is another: what has arrived is handled now.
    fn wake<C: Context<Msg>>(&mut self, cx: &mut C) {
        if self.health.is_paused() {
            return;
        }
        for held in std::mem::take(&mut self.health.held) {
            match held {
                Held::Job(job, travel) => {
                    cx.continue_trace(job.trace, job.span);
                    self.arrive(job, travel, cx);
                }
                Held::Answer(id, travel, answer) => self.answered(id, travel, answer, cx),
            }
        }
    }
}
