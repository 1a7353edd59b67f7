//! Manifests of Istio, which set the routes and policies of calls.

use super::item::Item;
use super::kubernetes::way_in;
use super::quantity::duration;
use super::system::{Destination, Route, Subset, System, Target};
use super::{Format, kubernetes};
use crate::definition::{Balance, CallPolicy, Connections, Ejection, Retries};
use crate::duration_text::TimeSpan;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub(super) struct Istio;

/// Envoy's wait before the first retry, and its longest wait.
const BACKOFF: Duration = Duration::from_millis(25);
/// The maximum number of simulated retries.
const MOST_RETRIES: i64 = 10;

impl Format for Istio {
    fn name(&self) -> &'static str {
        "istio"
    }

    fn knows(&self, document: &Value) -> bool {
        let version = document.get("apiVersion").and_then(Value::as_str);
        version.is_some_and(|version| {
            let group = version.split('/').next().unwrap_or_default();
            group.ends_with(".istio.io")
        }) && document.get("kind").is_some_and(Value::is_string)
    }

    fn title(&self, document: &Value) -> (String, String) {
        kubernetes::title(document)
    }

    fn read(&self, document: Item, _file: &Path, system: &mut System) -> Result<(), String> {
        match document.text("kind").as_deref() {
            Some("VirtualService") => virtual_service(document, system),
            Some("DestinationRule") => destination_rule(document, system),
            // The fields of the document are reported as unused.
            _ => Ok(()),
        }
    }
}

fn virtual_service(document: Item, system: &mut System) -> Result<(), String> {
    let gateways = document.list("spec.gateways").into_iter();
    let gateways: Vec<String> = gateways.filter_map(Item::scalar).collect();
    let is_in = gateways.iter().any(|gateway| gateway != "mesh");
    let is_mesh = gateways.is_empty() || gateways.iter().any(|gateway| gateway == "mesh");
    let routes = document.list("spec.http");
    if is_in {
        for route in &routes {
            for target in route.list("route") {
                if let Some(host) = target.text("destination.host") {
                    system.way_in(way_in(host, "VirtualService of a Gateway"));
                }
            }
        }
    }
    // The route without conditions applies to all requests that match no other route.
    let plain = routes.iter().find(|route| route.at("match").is_none());
    if let Some(route) = plain.or(routes.first()).copied()
        && is_mesh
    {
        for host in document.list("spec.hosts") {
            if let Some(name) = host.peek().filter(|name| name != "*") {
                host.note();
                system.route(of_route(route, name)?);
            }
        }
    }
    Ok(())
}

fn of_route(route: Item, host: String) -> Result<Route, String> {
    let mut made = Route {
        host,
        place: "VirtualService",
        ..Route::default()
    };
    let targets = route.list("route");
    let only = targets.len() == 1;
    for target in targets {
        let weight = match only {
            true => 100.0,
            false => target.number("weight")?.unwrap_or(0.0),
        };
        made.targets
            .extend(self::target(target, "destination", weight));
    }
    let share = |of: Item, path| -> Result<f64, String> {
        let percent = of.number(path)?.unwrap_or(100.0);
        Ok((percent / 100.0).clamp(0.0, 1.0))
    };
    if route.at("mirror").is_some() {
        let weight = share(route, "mirrorPercentage.value")?;
        made.mirrors.extend(target(route, "mirror", weight));
    }
    for mirror in route.list("mirrors") {
        made.mirrors.extend(target(
            mirror,
            "destination",
            share(mirror, "percentage.value")?,
        ));
    }
    let time = |path| route.parsed(path, "a duration such as 2s", duration);
    let whole = time("timeout")?.filter(|time| !time.0.is_zero());
    let attempt = time("retries.perTryTimeout")?.filter(|time| !time.0.is_zero());
    let most = route.count("retries.attempts")?.unwrap_or(0);
    let backoff = match most {
        0 => None,
        _ => time("retries.backoff")?,
    };
    made.policy = policy(whole, attempt, most, backoff, None);
    Ok(made)
}

/// Returns the policy of a route. Without retries, the time limit of the route is the time-out of its only attempt.
pub(super) fn policy(
    whole: Option<TimeSpan>,
    attempt: Option<TimeSpan>,
    most: i64,
    backoff: Option<TimeSpan>,
    limit: Option<TimeSpan>,
) -> CallPolicy {
    if most == 0 {
        return CallPolicy {
            timeout: whole.into_iter().chain(attempt).min(),
            ..CallPolicy::default()
        };
    }
    let backoff = backoff.unwrap_or(TimeSpan(BACKOFF));
    let retries = Retries {
        most: most.min(MOST_RETRIES),
        backoff: Some(backoff),
        factor: None,
        limit: Some(limit.unwrap_or(TimeSpan(backoff.0 * 10))),
        jitter: Some(1.0),
        budget: None,
    };
    CallPolicy {
        deadline: whole.map(|whole| whole.min(TimeSpan(Duration::from_secs(3600)))),
        timeout: attempt,
        retries: Some(retries),
        ..CallPolicy::default()
    }
}

fn target(item: Item, path: &str, weight: f64) -> Option<Target> {
    let target = item.at(path)?;
    Some(Target {
        host: target.text("host")?,
        subset: target.text("subset"),
        weight,
    })
}

fn destination_rule(document: Item, system: &mut System) -> Result<(), String> {
    let host = document.text("spec.host");
    let host = host.ok_or("spec.host is missing; name the host that is called")?;
    let mut destination = Destination {
        host,
        ..Destination::default()
    };
    for subset in document.list("spec.subsets") {
        let Some(name) = subset.at("name") else {
            continue;
        };
        let mut made = Subset {
            labels: BTreeMap::new(),
            marks: vec![name.mark()],
        };
        for (key, value, mark) in subset.marked_texts("labels") {
            made.labels.insert(key, value);
            made.marks.push(mark);
        }
        let name = name.peek().unwrap_or_default();
        destination.subsets.insert(name, made);
    }
    if let Some(traffic) = document.at("spec.trafficPolicy") {
        destination.policy = traffic_policy(traffic)?;
    }
    system.destination(destination);
    Ok(())
}

fn traffic_policy(traffic: Item) -> Result<CallPolicy, String> {
    let balance = if traffic.is_true("loadBalancer.localityLbSetting.enabled") {
        Some(Balance::Zone)
    } else if let Some(hash) = traffic
        .at("loadBalancer.consistentHash")
        .filter(|hash| !hash.is_void())
    {
        hash.read_whole();
        Some(Balance::Hash)
    } else {
        balance(traffic, "loadBalancer.simple")
    };
    let requests = traffic.count("connectionPool.http.http2MaxRequests")?;
    Ok(CallPolicy {
        balance,
        connections: pool(
            traffic,
            "connectionPool.tcp.maxConnections",
            "connectionPool.http.http1MaxPendingRequests",
        )?,
        bulkhead: requests.filter(|most| *most > 0),
        ejection: outliers(traffic)?,
        ..CallPolicy::default()
    })
}

/// Returns a pool of connections; `None` if there is no limit, because then no request waits for a connection.
pub(super) fn pool(item: Item, most: &str, waiting: &str) -> Result<Option<Connections>, String> {
    let Some(most) = item.count(most)?.filter(|most| *most > 0) else {
        return Ok(None);
    };
    Ok(Some(Connections {
        most,
        waiting: item.count(waiting)?.filter(|waiting| *waiting > 0),
        connect: None,
    }))
}

/// Returns the balancing policy that Envoy's name at a path means.
pub(super) fn balance(item: Item, path: &str) -> Option<Balance> {
    let known = |name: &str| match name {
        "ROUND_ROBIN" => Some(Balance::RoundRobin),
        "LEAST_REQUEST" | "LEAST_CONN" => Some(Balance::TwoChoices),
        "RANDOM" => Some(Balance::Random),
        "RING_HASH" | "MAGLEV" => Some(Balance::Hash),
        _ => None,
    };
    let name = item.text_if(path, |name| known(name).is_some())?;
    known(&name)
}

fn outliers(traffic: Item) -> Result<Option<Ejection>, String> {
    let Some(outliers) = traffic.at("outlierDetection") else {
        return Ok(None);
    };
    let mut failures = None;
    for path in [
        "consecutive5xxErrors",
        "consecutiveGatewayErrors",
        "consecutiveErrors",
    ] {
        if failures.is_none() {
            failures = outliers.count(path)?;
        }
    }
    let failures = failures.unwrap_or(5);
    let lasting = outliers.parsed("baseEjectionTime", "a duration such as 30s", duration)?;
    let percent = outliers.number("maxEjectionPercent")?;
    Ok(ejection(failures, lasting, percent))
}

/// Returns an ejection policy, with Envoy's defaults for missing fields.
pub(super) fn ejection(
    failures: i64,
    lasting: Option<TimeSpan>,
    percent: Option<f64>,
) -> Option<Ejection> {
    (failures > 0).then(|| Ejection {
        failures,
        lasting: lasting
            .filter(|time| !time.0.is_zero())
            .unwrap_or(TimeSpan(Duration::from_secs(30))),
        most: Some((percent.unwrap_or(10.0) / 100.0).clamp(0.0, 1.0)),
    })
}
