//! Checks of faults, autoscalers and health checks.

use super::super::locate::Step;
use super::super::{Definition, Fault, FaultKind, ServiceDefinition};
use super::{MAX_COUNT, Problem, Wrong};
use crate::duration_text::TimeSpan;
use crate::nearest::did_you_mean;
use crate::package::Package;
use corsair_observe::Places;
use std::collections::HashMap;

pub(super) fn check_faults(service: &ServiceDefinition) -> Result<(), Problem> {
    service
        .faults
        .iter()
        .try_for_each(|fault| check_fault(fault, &service.name))
}

fn check_fault(fault: &Fault, service: &str) -> Result<(), Problem> {
    let name = || service.to_owned();
    let wrong = |what: String| {
        let what = format!("a fault {what}");
        Err(Problem::Service {
            service: name(),
            what,
        })
    };
    if let Some(share) = fault.share.filter(|&s| !(s > 0.0 && s <= 1.0)) {
        return Err(Problem::Share {
            service: name(),
            share,
        });
    }
    if fault.lasting.is_some_and(|lasting| lasting.0.is_zero()) {
        return Err(Problem::NoTime { service: name() });
    }
    if let Some(factor) = fault.factor {
        if fault.kind != FaultKind::Slow {
            return Err(Problem::NotSlow { service: name() });
        }
        if !(factor >= 1.0 && factor.is_finite()) {
            return Err(Problem::Factor {
                service: name(),
                factor,
            });
        }
    }
    if fault.kind == FaultKind::Restart {
        if fault.lasting.is_none() {
            return wrong(
                "restarts instances for 0s; give \"for\", the downtime of each instance".to_owned(),
            );
        }
    } else if fault.gap.is_some() || fault.drain.is_some() {
        return wrong("has a gap or a drain, but only restart has one; remove it".to_owned());
    }
    check_schedule(fault.every, fault.lasting, fault.probability).or_else(wrong)
}

/// Checks that a repeated fault ends before its next occurrence, and that its probability is valid.
fn check_schedule(
    every: Option<TimeSpan>,
    lasting: Option<TimeSpan>,
    probability: Option<f64>,
) -> Result<(), String> {
    if let Some(every) = every {
        let Some(lasting) = lasting else {
            return Err(format!(
                "repeats every {every} and never ends; give \"for\""
            ));
        };
        if every <= lasting {
            return Err(format!(
                "repeats every {every} and lasts {lasting}; let it end before it repeats"
            ));
        }
    }
    match probability {
        Some(part) if !(0.0..=1.0).contains(&part) => {
            Err(format!("has a probability of {part}; give 0 to 1"))
        }
        _ => Ok(()),
    }
}

/// Checks the faults of places and links.
pub(super) fn check_places(
    definition: &Definition,
    places: &Places,
    names: &HashMap<&str, usize>,
    packages: &[Package],
) -> Result<(), Wrong<'static>> {
    let place = |region: Option<&str>, zone: Option<&str>| {
        let known = [
            (region, "region", places.regions()),
            (zone, "zone", places.zones()),
        ];
        let mut wrong = known.into_iter().filter_map(|(given, what, names)| {
            let given = given.filter(|&given| names.iter().all(|name| name != given))?;
            let meant = match did_you_mean(given, names.iter().map(String::as_str)) {
                meant if meant.is_empty() => format!("; expected one of {}", names.join(", ")),
                meant => meant,
            };
            Some(format!(
                "is in '{}', which is not a {what}{meant}",
                given.escape_debug()
            ))
        });
        wrong.next().map_or(Ok(()), Err)
    };
    let service = |given: &str| match names.get(given) {
        None => {
            let meant = did_you_mean(given, names.keys().copied());
            Err(format!(
                "is for '{}', which is not a service{meant}",
                given.escape_debug()
            ))
        }
        Some(_) => Ok(()),
    };
    let at = |key: &'static str, number: usize| vec![Step::Key(key), Step::Index(number)];
    for (number, fault) in definition.faults.iter().enumerate() {
        let wrong = |what: String| {
            let what = format!("fault {} {what}", number + 1);
            (Problem::Place { what }, at("faults", number))
        };
        place(fault.region.as_deref(), fault.zone.as_deref()).map_err(wrong)?;
        for name in &fault.services {
            service(name).map_err(wrong)?;
            if fault.kind == FaultKind::Restart
                && packages[names[name.as_str()]] == Package::Denominator
            {
                return Err(wrong(format!(
                    "restarts '{name}', which is outside the architecture; leave it out"
                )));
            }
        }
        let here = format!("number {} of \"faults\"", number + 1);
        check_fault(&fault.fault(), &here).map_err(|problem| (problem, at("faults", number)))?;
    }
    for (number, link) in definition.links.iter().enumerate() {
        let wrong = |what: String| {
            let what = format!("link {} {what}", number + 1);
            (Problem::Place { what }, at("links", number))
        };
        for side in [&link.from, &link.to].into_iter().flatten() {
            place(side.region.as_deref(), side.zone.as_deref()).map_err(wrong)?;
            let called = side.service.as_deref().filter(|&name| name != "eureka");
            called.map_or(Ok(()), service).map_err(wrong)?;
        }
        if link.lasting.is_some_and(|lasting| lasting.0.is_zero()) {
            return Err(wrong(
                "has a duration of 0s; give \"for\" a longer time".to_owned(),
            ));
        }
        for (part, what) in [(link.loss, "loss"), (link.duplicate, "duplicate")] {
            if let Some(part) = part.filter(|part| !(0.0..=1.0).contains(part)) {
                return Err(wrong(format!("has a {what} of {part}; give 0 to 1")));
            }
        }
        if link.loss.is_none() && link.delay.is_none() && link.duplicate.is_none() {
            return Err(wrong(
                "does nothing; give it loss, delay or duplicate".to_owned(),
            ));
        }
        check_schedule(link.every, link.lasting, link.probability).map_err(wrong)?;
    }
    Ok(())
}

/// Checks that the autoscaler can add and remove instances of the service, and that the health check can ask them.
pub(super) fn check_controller(
    service: &ServiceDefinition,
    package: Package,
) -> Result<(), (&'static str, String)> {
    if let Some(scaler) = &service.autoscaler {
        let wrong = |what: String| Err(("autoscaler", what));
        if !package.takes_requests() {
            return wrong(format!(
                "instances of a {package} cannot be added and removed; remove it"
            ));
        }
        let keeps_copies = service.dependencies().contains(&service.name);
        if package.is_storage() && package != Package::Cache && !keeps_copies {
            return wrong(format!(
                "the data of a removed {package} would be lost; add '{}' to its own dependencies, so that other instances have copies",
                service.name
            ));
        }
        if service.concurrency.is_none() && service.processors.is_none() {
            return wrong(
                "utilisation is measured in slots or processors; give concurrency or processors"
                    .to_owned(),
            );
        }
        if !(scaler.target > 0.0 && scaler.target <= 1.0) {
            let target = scaler.target;
            return wrong(format!(
                "a target of {target} is not possible; give a number above 0, up to 1"
            ));
        }
        let least = scaler.least.unwrap_or(1);
        if !(1 <= least
            && least <= service.count
            && service.count <= scaler.most
            && scaler.most <= MAX_COUNT)
        {
            return wrong(format!(
                "a minimum of {least}, a count of {} and a maximum of {} instances are not possible; give numbers of 1 or more, in ascending order",
                service.count, scaler.most
            ));
        }
        if scaler
            .every
            .is_some_and(|every| every < TimeSpan(std::time::Duration::from_millis(1)))
        {
            return wrong("an interval below 1ms is not possible; give a longer one".to_owned());
        }
    }
    if let Some(check) = &service.health_check {
        let wrong = |what: String| Err(("health_check", what));
        if !package.takes_requests() {
            return wrong(format!(
                "a {package} takes no requests; remove health_check"
            ));
        }
        if check.every < TimeSpan(std::time::Duration::from_millis(1)) {
            return wrong("an interval below 1ms is not possible; give a longer one".to_owned());
        }
        for (number, what) in [(check.failures, "failures"), (check.successes, "successes")] {
            if let Some(number) = number.filter(|number| !(1..=1_000_000).contains(number)) {
                return wrong(format!("{number} {what} are not possible; give 1 or more"));
            }
        }
    }
    Ok(())
}
