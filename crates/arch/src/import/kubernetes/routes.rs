//! Routes to workloads: Services, Ingresses, and routes of the Gateway API.

use super::super::item::Item;
use super::super::quantity::duration;
use super::super::system::{Backends, Route, System, Target};
use super::way_in;
use crate::definition::{CallPolicy, Retries};

pub(super) fn service(document: Item, system: &mut System) -> Result<(), String> {
    let name = document.text("metadata.name");
    let name = name.ok_or("metadata.name is missing; give the Service a name")?;
    let labels = document.texts("spec.selector");
    let matters = |kind: &str| ["ExternalName", "LoadBalancer", "NodePort"].contains(&kind);
    let kind = document.text_if("spec.type", matters).unwrap_or_default();
    if kind == "ExternalName" {
        let other = document.text("spec.externalName");
        let other =
            other.ok_or("spec.externalName is missing; name the host that the Service means")?;
        system.host(&name, Backends::Alias(other));
        return Ok(());
    }
    if labels.is_empty() {
        system.outside.insert(name.to_lowercase());
        let name = super::shortened(&name);
        system.left_out.push(format!(
            "Service '{name}' has no selector: what answers there is not simulated, unless a workload has this name"
        ));
    } else {
        let selector = system.selector(labels);
        system.host(&name, Backends::Selected(selector));
    }
    if !kind.is_empty() {
        let mut way = way_in(name, &format!("Service spec.type {kind}"));
        // Test clusters also publish databases as node ports.
        way.is_port = kind == "NodePort";
        system.way_in(way);
    }
    Ok(())
}

pub(super) fn ingress(document: Item, system: &mut System) -> Result<(), String> {
    let mut hosts = Vec::new();
    for rule in document.list("spec.rules") {
        for path in rule.list("http.paths") {
            hosts.extend(path.text("backend.service.name"));
            hosts.extend(path.text("backend.serviceName"));
        }
    }
    hosts.extend(document.text("spec.defaultBackend.service.name"));
    hosts.extend(document.text("spec.backend.serviceName"));
    for host in hosts {
        system.way_in(way_in(host, "Ingress"));
    }
    Ok(())
}

/// Reads an HTTPRoute: on a Gateway it is an entry point, on a Service it sets the policy for
/// calls.
pub(super) fn route(document: Item, system: &mut System) -> Result<(), String> {
    let mut hosts = Vec::new();
    let mut is_in = false;
    for parent in document.list("spec.parentRefs") {
        match parent.text("kind").as_deref() {
            Some("Service") => hosts.extend(parent.text("name")),
            _ => is_in = true,
        }
    }
    let rules = document.list("spec.rules");
    if is_in {
        for rule in &rules {
            for backend in rule.list("backendRefs") {
                if let Some(host) = backend.text("name") {
                    system.way_in(way_in(host, "HTTPRoute of a Gateway"));
                }
            }
        }
    }
    // The rule without conditions applies to all requests that match no other rule.
    let plain = rules.iter().find(|rule| rule.at("matches").is_none());
    let Some(rule) = plain.or(rules.first()).copied() else {
        return Ok(());
    };
    for host in hosts {
        let made = of_rule(rule, host)?;
        system.route(made);
    }
    Ok(())
}

fn of_rule(rule: Item, host: String) -> Result<Route, String> {
    let mut route = Route {
        host,
        place: "HTTPRoute",
        ..Route::default()
    };
    let backends = rule.list("backendRefs");
    let only = backends.len() == 1;
    for backend in backends {
        let weight = match only {
            true => 1.0,
            false => backend.number("weight")?.unwrap_or(1.0),
        };
        if let Some(host) = backend.text("name") {
            route.targets.push(Target {
                host,
                subset: None,
                weight,
            });
        }
    }
    for filter in rule.list("filters") {
        if let Some(host) = filter.text("requestMirror.backendRef.name") {
            let percent = filter.number("requestMirror.percent")?.unwrap_or(100.0);
            route.mirrors.push(Target {
                host,
                subset: None,
                weight: (percent / 100.0).clamp(0.0, 1.0),
            });
        }
    }
    let time = |path| rule.parsed(path, "a duration such as 2s", duration);
    let whole = time("timeouts.request")?.filter(|time| !time.0.is_zero());
    let attempt = time("timeouts.backendRequest")?.filter(|time| !time.0.is_zero());
    let most = rule.count("retry.attempts")?.filter(|most| *most > 0);
    let mut policy = CallPolicy {
        timeout: attempt,
        ..CallPolicy::default()
    };
    match most {
        Some(most) => {
            policy.retries = Some(Retries {
                most: most.min(10),
                backoff: time("retry.backoff")?,
                factor: None,
                limit: None,
                jitter: None,
                budget: None,
            });
            policy.deadline = whole;
        }
        None => policy.timeout = attempt.into_iter().chain(whole).min(),
    }
    route.policy = policy;
    Ok(route)
}
