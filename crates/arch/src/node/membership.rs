//! Whom an instance knows, and who knows it: registries, the services it depends on, the scenario.

use super::{Node, TO_FAULT, TO_POLL};
use crate::message::Msg;
use corsair::{Context, Flow, Token};
use std::sync::PoisonError;
use std::time::Duration;

impl Node {
    /// Takes what was told of other instances, and what the scenario wants.
    pub(super) fn control<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) -> Flow {
        match message {
            Msg::Hello => self.greet(cx),
            Msg::Inform { registry } => {
                self.registries.push(registry);
                self.tell(registry, Msg::Register { node: self.index }, cx);
            }
            Msg::Depend { service } => {
                self.dependencies.push(service);
                self.look_up(service, cx);
            }
            Msg::NameDrop { node } => self.meet(node, cx),
            Msg::Forget { node } => self.forget(node, cx),
            Msg::Chat { period } => self.chat_every(period, cx),
            Msg::GoldCoin(gold) => self.take_gold(gold),
            Msg::Kill => self.go_down(true, cx),
            Msg::Goodbye => {
                self.leave(cx);
                return Flow::Stop;
            }
            // The rest is for registries and the log.
            _ => {}
        }
        Flow::Continue
    }

    /// The scenario has spoken: from now on there are timers.
    fn greet<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.root = cx.envelope().from;
        cx.timer(Duration::from_nanos(self.model.poll), TO_POLL);
        let faults = self.model.faults(self.index);
        for (number, fault) in (0..).zip(faults) {
            let due = (self.model.load_at + fault.at).saturating_sub(cx.now().as_nanos());
            cx.timer(Duration::from_nanos(due), Token::new(TO_FAULT + 2 * number));
        }
    }

    /// Asks the registries for a service.
    pub(super) fn look_up<C: Context<Msg>>(&mut self, service: u32, cx: &mut C) {
        let mut asked = None;
        for place in 0..self.registries.len() {
            let registry = self.registries[place];
            // Those of a region know the same: one of them is enough.
            let region = self.model.place(registry).region;
            if asked != Some(region) {
                asked = Some(region);
                self.tell(registry, Msg::LookUp { service }, cx);
            }
        }
    }

    /// There is somebody to call.
    fn meet<C: Context<Msg>>(&mut self, node: u32, cx: &mut C) {
        // A graph is given by the scenario; what registries say must not add to it.
        let given = cx.envelope().from == self.root;
        if let Some(allowed) = &mut self.allowed {
            if given {
                allowed.push(node);
                let service = self.model.instance(node).service;
                if !self.dependencies.contains(&service) {
                    self.dependencies.push(service);
                }
            } else if !allowed.contains(&node) {
                return;
            }
        }
        if node != self.index && self.role.add(&self.model, node) {
            let (source, target) = (self.index, node);
            self.log(Msg::Edge { source, target }, cx);
        }
    }

    /// Somebody is gone.
    fn forget<C: Context<Msg>>(&mut self, node: u32, cx: &mut C) {
        if self.role.remove(&self.model, node) {
            let (source, target) = (self.index, node);
            self.log(Msg::ForgetEdge { source, target }, cx);
        }
    }

    /// Tells one of the registries something for the log.
    fn log<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) {
        if let Some(&registry) = self.registries.first() {
            self.tell(registry, message, cx);
        }
    }

    /// The run is over.
    fn leave<C: Context<Msg>>(&mut self, cx: &mut C) {
        if !self.health.is_down() {
            self.unregister(false, cx);
        }
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.goodbyes += 1;
        drop(totals);
        cx.send(self.root, Msg::Goodbye);
    }

    pub(super) fn unregister<C: Context<Msg>>(&mut self, killed: bool, cx: &mut C) {
        for place in 0..self.registries.len() {
            let (registry, node) = (self.registries[place], self.index);
            self.tell(registry, Msg::Delete { node, killed }, cx);
        }
    }
}
