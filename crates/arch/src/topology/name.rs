//! Names: nine parts joined by dots, of which graphs show some.
//!
//! `arch.region.zone.machine.instance.container.process.service.package`

use super::{Instance, Service, Topology};
use std::borrow::Cow;
use std::fmt::Write;

impl Topology {
    /// The name of an instance among those of its architecture: `homepage14`.
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

    /// All nine parts: `netflixoss.us-east-1.zoneC..homepage14...homepage.karyon`.
    pub fn full_name(&self, instance: u32) -> String {
        let service = self.service_of(instance);
        let mut name = self.place(instance);
        let _ = write!(
            name,
            ".{}.{}.{}.{}.{}.{}",
            part(&service.machine),
            self.label(instance),
            part(&service.container),
            part(&service.process),
            service.name,
            service.package
        );
        name
    }

    /// What graphs show: `netflixoss.us-east-1.zoneC.homepage14`, and for a container also its
    /// machine, image and package.
    pub fn short_name(&self, instance: u32) -> String {
        let service = self.service_of(instance);
        let mut name = self.place(instance);
        let label = self.label(instance);
        let _ = if service.container.is_empty() {
            write!(name, ".{label}")
        } else {
            let (machine, container) = (part(&service.machine), part(&service.container));
            write!(name, ".{machine}.{label}.{container}.{}", service.package)
        };
        name
    }

    /// The name that all instances of a service in a zone share:
    /// `netflixoss.us-east-1.zoneC.homepage.karyon`.
    pub fn collapsed_name(&self, instance: u32) -> String {
        let Service { name, package, .. } = self.service_of(instance);
        format!("{}.{name}.{package}", self.place(instance))
    }

    /// The name of a registry: `netflixoss.us-east-1.zoneA..eureka00...eureka.eureka`.
    pub fn registry_name(&self, registry: u32) -> String {
        let at = self.registry_at(registry);
        format!(
            "{}.{}.{}..eureka{registry:02}...eureka.eureka",
            self.arch,
            at.region_name(),
            at.zone_name()
        )
    }

    fn place(&self, instance: u32) -> String {
        let at = self.instances[instance as usize].at;
        format!("{}.{}.{}", self.arch, at.region_name(), at.zone_name())
    }
}

/// What an architecture is called in names: without what would begin another part, or a path.
pub fn first_part(arch: &str) -> String {
    let bad = |c: char| matches!(c, '.' | '/' | '*') || c.is_whitespace() || c.is_control();
    arch.replace(bad, "_")
}

/// A part of a name: dots would begin another one, and spaces another name.
fn part(text: &str) -> Cow<'_, str> {
    let joins = |c: char| c == '.' || c.is_whitespace();
    if text.contains(joins) {
        text.replace(joins, "_").into()
    } else {
        text.into()
    }
}
