//! Names of instances: nine parts joined by dots. Graphs show a short form.
//!
//! `arch.region.zone.machine.instance.container.process.service.package`

use super::{Instance, Service, Topology};
use crate::geography::Zone;
use std::borrow::Cow;
use std::fmt::Write;

impl Topology {
    /// Returns the name of an instance in its architecture: `homepage14`.
    pub fn label(&self, instance: u32) -> String {
        let Instance {
            service, number, ..
        } = self.instances[instance as usize];
        let service = &self.services[service as usize].name;
        match number {
            Some(number) => format!("{service}{number:02}"),
            None => service.clone(),
        }
    }

    /// Returns all nine parts: `netflixoss.us-east-1.zoneC..homepage14...homepage.karyon`.
    pub fn full_name(&self, instance: u32) -> String {
        let service = self.service_of(instance);
        let (machine, container) = &service.named_container;
        let mut name = self.place(instance);
        let _ = write!(
            name,
            ".{}.{}.{}..{}.{}",
            part(machine),
            self.label(instance),
            part(container),
            service.name,
            service.package
        );
        name
    }

    /// Returns the name in graphs: `netflixoss.us-east-1.zoneC.homepage14`.
    pub fn short_name(&self, instance: u32) -> String {
        format!("{}.{}", self.place(instance), self.label(instance))
    }

    /// Returns the name that all instances of a service in a zone share: `netflixoss.us-east-1.zoneC.homepage.karyon`.
    pub fn collapsed_name(&self, instance: u32) -> String {
        let Service { name, package, .. } = self.service_of(instance);
        format!("{}.{name}.{package}", self.place(instance))
    }

    /// Returns the full name of a registry: `netflixoss.us-east-1.zoneA..eureka00...eureka.eureka`.
    pub fn registry_name(&self, registry: u32) -> String {
        let place = self.part_of(self.registry_at(registry));
        format!("{place}..eureka{registry:02}...eureka.eureka")
    }

    /// Returns the names of all actors of a run in the order of their addresses, as graphs and logs show them: the
    /// scenario, the instances, the registries, edda (the log of nodes and edges), and the controllers of services.
    pub fn actor_names(&self) -> impl Iterator<Item = String> {
        let scenario = std::iter::once_with(|| self.only_name(SCENARIO));
        let instances = (0..self.len()).map(|instance| self.short_name(instance));
        let registries = (0..self.registries()).map(|registry| self.short_registry_name(registry));
        let edda = std::iter::once_with(|| self.only_name(EDDA));
        let controllers = self
            .looked_after()
            .map(|service| self.controller_name(service));
        let controllers: Vec<String> = controllers.collect();
        let all = scenario.chain(instances).chain(registries).chain(edda);
        all.chain(controllers)
    }

    /// Returns the name of the controller of a service: `netflixoss.*.*.web-controller`.
    pub(crate) fn controller_name(&self, service: u32) -> String {
        self.only_name(&format!(
            "{}-controller",
            self.services[service as usize].name
        ))
    }

    /// Returns the name of a registry in logs: `netflixoss.us-east-1.zoneA.eureka00`.
    pub(crate) fn short_registry_name(&self, registry: u32) -> String {
        let place = self.part_of(self.registry_at(registry));
        format!("{place}.eureka{registry:02}")
    }

    /// Returns the name of a single actor in logs: `netflixoss.*.*.edda`.
    pub(crate) fn only_name(&self, label: &str) -> String {
        format!("{}.{label}", self.part_of(Zone::EVERYWHERE))
    }

    fn place(&self, instance: u32) -> String {
        self.part_of(self.instances[instance as usize].at)
    }

    /// Returns the parts of a name for a place.
    fn part_of(&self, at: Zone) -> String {
        let (region, zone) = (at.region_name(&self.places), at.zone_name(&self.places));
        format!("{}.{region}.{zone}", self.arch)
    }
}

/// The name of the root actor.
pub(crate) const SCENARIO: &str = "scenario";

/// The name of the log of nodes and edges.
pub(crate) const EDDA: &str = "edda";

/// Returns an architecture's name without characters that would start another part or a path.
pub fn first_part(arch: &str) -> String {
    let bad = |c: char| matches!(c, '.' | '/' | '*') || c.is_whitespace() || c.is_control();
    arch.replace(bad, "_")
}

/// Returns a part of a name. Dots and spaces are replaced, because a dot would begin another part, and a space another
/// name.
fn part(text: &str) -> Cow<'_, str> {
    let joins = |c: char| c == '.' || c.is_whitespace() || c.is_control();
    if text.contains(joins) {
        text.replace(joins, "_").into()
    } else {
        text.into()
    }
}
