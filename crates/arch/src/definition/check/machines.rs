//! Machines: the work of the services on a machine becomes calls of a service with the processors of the machine.

use super::super::locate::Step;
use super::super::{
    Definition, EndpointDefinition, FaultKind, MachineDefinition, ServiceDefinition,
    StepDefinition, Targets,
};
use super::{Problem, Wrong, are_possible, at, check_time_slice, is_name};
use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use std::time::Duration;

/// Replaces the machines of a definition by services.
pub(super) fn expand(mut definition: Definition) -> Result<Definition, Wrong<'static>> {
    for (name, machine) in std::mem::take(&mut definition.machines) {
        if !is_name(&name) {
            return Err((Problem::Name(name), vec![Step::Key("machines")]));
        }
        let wrong = |what: String| {
            let what = format!("machine '{name}' {what}");
            Err((Problem::Place { what }, vec![Step::Key("machines")]))
        };
        if definition.services.iter().any(|one| one.name == name) {
            return wrong("has the name of a service; rename one of them".to_owned());
        }
        if !are_possible(machine.processors) {
            let count = machine.processors;
            return wrong(format!(
                "has {count:?} processors; give more than 0, up to a million"
            ));
        }
        if let Err(what) = check_time_slice(machine.time_slice) {
            return wrong(format!("has {what}"));
        }
        let mut made = service_of(&name, machine);
        let mut on_it = (definition.services.iter_mut().enumerate())
            .filter(|(_, service)| service.machine == name)
            .peekable();
        let Some((_, first)) = on_it.peek() else {
            return wrong(
                "has no services; name it as the machine of one, or remove it".to_owned(),
            );
        };
        (made.regions, made.count) = (first.regions, first.regions.min(1));
        for (index, service) in on_it {
            if let Some((key, what)) = refuse(service, made.regions) {
                let (service, what) = (service.name.clone(), what.replace("{}", &name));
                return Err(at(index, key, Problem::Service { service, what }));
            }
            move_work(service, &mut made);
        }
        definition.services.push(made);
    }
    Ok(definition)
}

/// Returns the service that does the work of a machine.
fn service_of(name: &str, machine: MachineDefinition) -> ServiceDefinition {
    let mut made = ServiceDefinition::new(name, "service");
    made.processors = Some(machine.processors);
    made.time_slice = machine.time_slice;
    made.faults = machine.faults;
    // The machine is where its services are, so the travel time is the shortest possible one.
    made.latency = Some(Distribution::Constant(TimeSpan(Duration::ZERO)));
    made
}

/// Returns the field of a service that a machine does not permit, and the reason.
fn refuse(service: &ServiceDefinition, regions: i64) -> Option<(&'static str, &'static str)> {
    let is_slowed = service.faults.iter().any(|one| one.kind == FaultKind::Slow);
    if service.package != "service" {
        let what = "runs on machine '{}', but only the package service can; remove machine";
        return Some(("machine", what));
    }
    if service.processors.is_some() {
        let what = "shares the processors of machine '{}'; remove processors";
        return Some(("processors", what));
    }
    if is_slowed {
        let what = "shares the processors of machine '{}'; make the machine slow instead";
        return Some(("faults", what));
    }
    (service.regions != regions).then_some((
        "regions",
        "runs on machine '{}' like a service in another number of regions; give both the same number",
    ))
}

/// Makes each piece of work of a service a call of an endpoint of its machine.
fn move_work(service: &mut ServiceDefinition, machine: &mut ServiceDefinition) {
    if let Some(work) = service.service_time.take() {
        for endpoint in &mut service.endpoints {
            endpoint.steps.insert(0, works(work.clone()));
        }
    }
    // Names of endpoints have at most 100 bytes, also with a number.
    let owner = &service.name[..service.name.floor_char_boundary(90)];
    for endpoint in &mut service.endpoints {
        move_steps(&mut endpoint.steps, owner, machine);
    }
    if service.calls.contains_key("*") {
        service.calls.entry(machine.name.clone()).or_default();
    }
}

fn move_steps(steps: &mut [StepDefinition], owner: &str, machine: &mut ServiceDefinition) {
    for step in steps {
        if let Some(work) = step.work.take() {
            let name = format!("{owner}-{}", machine.endpoints.len() + 1);
            step.call = Some(Targets::One(format!("{}.{name}", machine.name)));
            machine.endpoints.push(EndpointDefinition {
                name,
                priority: None,
                latency: None,
                steps: vec![works(work)],
            });
        }
        let lists = step.parallel.iter_mut().flatten().chain(&mut step.fallback);
        for list in lists.chain([&mut step.miss]) {
            move_steps(list, owner, machine);
        }
    }
}

/// Returns a step that works.
fn works(work: Distribution) -> StepDefinition {
    StepDefinition {
        work: Some(work),
        ..StepDefinition::default()
    }
}
