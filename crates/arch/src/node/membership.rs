//! Registries and dependencies, by which an instance finds the instances that it may call.

use super::host::Host;
use super::{TO_FAULT, TO_POLL};
use crate::message::Msg;
use corsair::{Context, Token};
use std::time::Duration;

impl Host {
    /// Handles the scenario's hello: the instance begins to ask registries, and its faults begin.
    pub(super) fn greet<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.root = cx.envelope().from;
        cx.timer(Duration::from_nanos(self.model.poll), TO_POLL);
        let faults = self.model.faults(self.index);
        for (number, fault) in (0..).zip(faults) {
            let due =
                (self.model.load_at.saturating_add(fault.at)).saturating_sub(cx.now().as_nanos());
            cx.timer(Duration::from_nanos(due), Token::new(TO_FAULT + 2 * number));
        }
    }

    /// Registers with a registry.
    pub(super) fn join<C: Context<Msg>>(&mut self, registry: u32, cx: &mut C) {
        self.registries.push(registry);
        if !self.health.is_listed() {
            return;
        }
        self.notify_surely(registry, Msg::Register { node: self.index }, cx);
    }

    /// Adds a dependency of the instance, and asks the registries for its instances.
    pub(super) fn depend_on<C: Context<Msg>>(&mut self, service: u32, cx: &mut C) {
        self.dependencies.push(service);
        self.look_up(service, cx);
    }

    /// Looks up all dependencies in the registries, and sets the timer for the next look-up. Polling stops when the
    /// load has ended, because the registries may have ended when further look-ups arrive.
    pub(super) fn poll<C: Context<Msg>>(&mut self, cx: &mut C) {
        if cx.now().as_nanos() >= self.model.load_ends {
            return;
        }
        if !self.health.is_down() {
            for place in 0..self.dependencies.len() {
                self.look_up(self.dependencies[place], cx);
            }
        }
        cx.timer(Duration::from_nanos(self.model.poll), TO_POLL);
    }

    /// Asks the registries for a service.
    fn look_up<C: Context<Msg>>(&mut self, service: u32, cx: &mut C) {
        let mut asked = None;
        for place in 0..self.registries.len() {
            let registry = self.registries[place];
            // All registries of a region have the same entries, so one per region is asked.
            let region = self.model.place(registry).region;
            if asked != Some(region) {
                asked = Some(region);
                self.notify(registry, Msg::LookUp { service }, cx);
            }
        }
    }

    /// True if the instance may call another. If a graph defines the connections, the scenario sends that
    /// graph, and registries must not add to it.
    pub(super) fn allows<C: Context<Msg>>(&mut self, node: u32, cx: &C) -> bool {
        let from_graph = cx.envelope().from == self.root;
        if let Some(allowed) = &mut self.allowed {
            if from_graph {
                allowed.push(node);
                let service = self.model.instance(node).service;
                if !self.dependencies.contains(&service) {
                    self.dependencies.push(service);
                }
            } else if !allowed.contains(&node) {
                return false;
            }
        }
        node != self.index || self.model.package(node).may_call_itself()
    }

    /// Sends an entry to the log of nodes and edges, through one of the registries.
    pub(super) fn log<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) {
        if let Some(&registry) = self.registries.first() {
            self.record(registry, message, cx);
        }
    }

    /// Says goodbye at the end of the run.
    pub(super) fn leave<C: Context<Msg>>(&mut self, cx: &mut C) {
        if self.health.is_listed() {
            self.unregister(false, cx);
        }
        self.model.totals.lock().goodbyes += 1;
        cx.send(self.root, Msg::Goodbye);
    }

    pub(super) fn unregister<C: Context<Msg>>(&mut self, killed: bool, cx: &mut C) {
        for place in 0..self.registries.len() {
            let (registry, node) = (self.registries[place], self.index);
            self.notify_surely(registry, Msg::Delete { node, killed }, cx);
        }
    }
}
