//! The instances that a command affects, and the orders or messages that they receive.

use super::Services;
use crate::command::{Action, Command};
use crate::world::{World, unknown};
use corsair::Time;
use corsair_arch::live::Sending;
use corsair_arch::{Command as Order, Package, Topology, Zone};

/// The largest accepted percentage; a higher one is probably a typing error.
const MOST_PERCENT: u32 = 100_000;

/// An order or a message for one instance.
enum NodeCommand {
    Order(Order),
    Sent(Sending),
}

impl Services {
    /// Returns the names of the instances, in the order of the instances.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.scene.nodes.iter().map(|node| node.name.as_str())
    }

    /// Returns the instance with this name.
    pub(super) fn instance(&self, name: &str) -> Result<u32, String> {
        let known = self.labels.get(name).copied();
        known.ok_or_else(|| unknown("instance", name, self.names()))
    }

    /// Returns the instances that `who` names: one instance, all instances of a service, its instances in one zone
    /// (`login@us-east-1.zoneA`), or all instances in a region or zone.
    fn targets(&self, who: &str) -> Result<Vec<u32>, String> {
        if let Some(&instance) = self.labels.get(who) {
            return Ok(vec![instance]);
        }
        let topology = self.live.topology();
        if let Some(service) = topology.services.iter().find(|service| service.name == who) {
            return Ok(service.instances.clone().collect());
        }
        if let Some((service, zone)) = who.split_once('@') {
            let found = (0..topology.len()).filter(|&instance| {
                let at = topology.instances[instance as usize].at;
                topology.service_of(instance).name == service && place(topology, at) == zone
            });
            let found: Vec<u32> = found.collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let is_there = |&instance: &u32| {
            let at = topology.instances[instance as usize].at;
            let in_zone = at.zone.is_some() && place(topology, at) == who;
            at.region.is_some() && at.region_name(&topology.places) == who || in_zone
        };
        let there: Vec<u32> = (0..topology.len()).filter(is_there).collect();
        if !there.is_empty() {
            return Ok(there);
        }
        let services = topology.services.iter();
        let services = services.map(|service| service.name.as_str());
        let known = self.names().chain(services);
        Err(unknown("instance, service, region or zone", who, known))
    }

    /// Returns the instances that a command affects, each with its order or message.
    fn resolve(&self, what: &Action) -> Result<Vec<(u32, NodeCommand)>, String> {
        let all = |who: &str, order: Order| {
            let targets = self.targets(who)?;
            Ok(targets
                .into_iter()
                .map(|i| (i, NodeCommand::Order(order)))
                .collect())
        };
        match what {
            Action::Kill { who } => all(who, Order::Kill),
            Action::Revive { who } => all(who, Order::Revive),
            Action::Pause { who } => all(who, Order::Pause),
            Action::Resume { who } => all(who, Order::Resume),
            Action::Partition { who } => all(who, Order::Partition),
            Action::Rejoin { who } => all(who, Order::Rejoin),
            Action::Slow { who, percent } => {
                if !(1..=MOST_PERCENT).contains(percent) {
                    return Err(format!(
                        "cannot slow down to {percent} %; give 1 to {MOST_PERCENT}, where 100 is normal"
                    ));
                }
                all(who, Order::Slow(*percent))
            }
            Action::Scale { service, count } => self.scale(service, *count),
            Action::Load { percent, who } => self.load(*percent, who.as_deref()),
            Action::Send { who, message } => {
                let sending = self.sending(message)?;
                let targets = self.targets(who)?;
                Ok(targets
                    .into_iter()
                    .map(|i| (i, NodeCommand::Sent(sending)))
                    .collect())
            }
        }
    }

    fn scale(&self, name: &str, count: u32) -> Result<Vec<(u32, NodeCommand)>, String> {
        let services = &self.live.topology().services;
        let Some(service) = services.iter().find(|service| service.name == name) else {
            let known = services.iter().map(|service| service.name.as_str());
            return Err(unknown("service", name, known));
        };
        let most = service.instances.len() as u32;
        if count > most {
            return Err(format!(
                "a scale of {count} is too large: this run has capacity for {most} instances of {name}; give at most {most}"
            ));
        }
        let instances = service.instances.clone();
        let told = (0..)
            .zip(instances)
            .map(|(number, instance)| (instance, NodeCommand::Order(Order::Serve(number < count))));
        Ok(told.collect())
    }

    fn load(&self, percent: u32, who: Option<&str>) -> Result<Vec<(u32, NodeCommand)>, String> {
        if percent > MOST_PERCENT {
            return Err(format!(
                "a load of {percent} % is not possible; give 0 to {MOST_PERCENT}, where 100 is the definition"
            ));
        }
        let topology = self.live.topology();
        let is_entry = |i: u32| topology.service_of(i).package == Package::Denominator;
        let targets = match who {
            Some(who) => {
                let targets = self.targets(who)?;
                if let Some(other) = targets.iter().find(|&&i| !is_entry(i)) {
                    let label = topology.label(*other);
                    return Err(format!(
                        "{label} is not an entry point; choose an entry point to set its load"
                    ));
                }
                targets
            }
            None => (0..topology.len()).filter(|&i| is_entry(i)).collect(),
        };
        if targets.is_empty() {
            return Err("this architecture has no entry point with a load".to_owned());
        }
        let told = targets.into_iter();
        Ok(told
            .map(|i| (i, NodeCommand::Order(Order::Load(percent))))
            .collect())
    }

    fn sending(&self, message: &str) -> Result<Sending, String> {
        let mut words = message.split_whitespace();
        let (kind, about) = (words.next().unwrap_or_default(), words.next());
        let number = || {
            about.and_then(|text| text.parse().ok()).ok_or_else(|| {
                format!("'{message}' lacks a number below 4294967296; write {kind} 7")
            })
        };
        let node = || match about {
            Some(name) => self.instance(name),
            None => Err(format!("'{message}' has no instance; write {kind} NAME")),
        };
        if words.next().is_some() {
            return Err(format!("'{message}' has more than two words"));
        }
        match kind {
            "request" => match about {
                Some(endpoint) => Ok(Sending::Request(Some(self.live.endpoint(endpoint)?))),
                None => Ok(Sending::Request(None)),
            },
            "put" => Ok(Sending::Put(number()?)),
            "gold" => Ok(Sending::Gold(number()?)),
            "namedrop" => Ok(Sending::NameDrop(node()?)),
            "forget" => Ok(Sending::Forget(node()?)),
            _ => Err(format!(
                "'{message}' is not a message; there are request, request ENDPOINT, put N, gold N, namedrop NAME, forget NAME"
            )),
        }
    }

    /// Returns the names of the instances that a command would change. If a service grows, these are its existing
    /// instances.
    pub(super) fn preview(&self, what: &Action) -> Result<Vec<String>, String> {
        let told = match self.lacks_room(what) {
            Some((service, _)) => self.targets(&service)?,
            None => (self.resolve(what)?.into_iter())
                .filter(|(_, told)| !matches!(told, NodeCommand::Order(Order::Serve(false))))
                .map(|(instance, _)| instance)
                .collect(),
        };
        let topology = self.live.topology();
        Ok(told
            .into_iter()
            .map(|instance| topology.label(instance))
            .collect())
    }

    /// Schedules a command at its virtual time.
    pub(super) fn tell(&mut self, command: &Command) -> Result<(), String> {
        let told = self.resolve(&command.what)?;
        let at = Time::from_nanos(command.at);
        for (instance, told) in told {
            // Either all orders are accepted, or the first one is refused, so a command never takes effect in part.
            let done = match told {
                NodeCommand::Order(order) => self.live.command(at, instance, order),
                NodeCommand::Sent(what) => self.live.send(at, instance, what).map(drop),
            };
            done.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Returns the name of a zone.
pub(super) fn place(topology: &Topology, at: Zone) -> String {
    let (region, zone) = (
        at.region_name(&topology.places),
        at.zone_name(&topology.places),
    );
    format!("{region}.{zone}")
}
