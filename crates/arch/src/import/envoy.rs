//! Static configurations of Envoy: a proxy, the clusters that it calls, and its policies for them.

use super::Format;
use super::istio::{balance, ejection, policy, pool};
use super::item::{Item, Mark};
use super::quantity::duration;
use super::system::{Backends, Destination, Link, Route, System, Target, WayIn, definition_name};
use crate::definition::{CallPolicy, RetryBudget};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) struct Envoy;

/// The path to the routes in the filters of a listener.
const ROUTES: &str = "typed_config.route_config.virtual_hosts";

impl Format for Envoy {
    fn name(&self) -> &'static str {
        "envoy"
    }

    fn knows(&self, document: &Value) -> bool {
        document
            .get("static_resources")
            .is_some_and(Value::is_object)
    }

    fn title(&self, document: &Value) -> (String, String) {
        let cluster = document.pointer("/node/cluster").and_then(Value::as_str);
        (
            "configuration".to_owned(),
            cluster.unwrap_or_default().to_owned(),
        )
    }

    fn read(&self, document: Item, file: &Path, system: &mut System) -> Result<(), String> {
        let stem = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let name = document.text("node.cluster").or(stem);
        let name = definition_name(&name.unwrap_or_else(|| "envoy".to_owned()));
        let mut clusters = BTreeMap::new();
        for cluster in document.list("static_resources.clusters") {
            let (key, host, policy, budget) = read_cluster(cluster)?;
            let caller = Some(name.clone());
            system.destination(Destination {
                caller,
                host: host.clone(),
                policy,
                ..Destination::default()
            });
            clusters.insert(key, (host, budget));
        }
        let mut seen = BTreeSet::new();
        let mut routed = BTreeSet::new();
        let workload = system.workload(&name);
        if workload.image.is_empty() {
            workload.image = "envoy".to_owned();
        }
        for route in routes(document) {
            let made = of_route(route, &name, &clusters)?;
            // Several paths may lead to one host; the first says how it is called.
            let targets = made.targets.iter().chain(&made.mirrors);
            routed.extend(targets.map(|target| target.host.clone()));
            for target in &made.targets {
                let host = target.host.clone();
                let place = "route of envoy";
                system.workload(&name).links.push(Link { host, place });
            }
            if seen.insert(made.host.clone()) {
                system.route(made);
            }
        }
        for (cluster, (host, _)) in &clusters {
            if !routed.contains(host) {
                let cluster = super::shortened(cluster);
                let said = format!("cluster '{cluster}' of '{name}' is the target of no route");
                system.left_out.push(said);
            }
        }
        system.host(&name, Backends::Named(name.clone()));
        system.way_in(WayIn {
            host: name,
            because: "configuration of Envoy".to_owned(),
            is_port: true,
        });
        Ok(())
    }
}

/// Returns the routes of all listeners.
fn routes(document: Item<'_>) -> Vec<Item<'_>> {
    let mut routes = Vec::new();
    for listener in document.list("static_resources.listeners") {
        for chain in listener.list("filter_chains") {
            for filter in chain.list("filters") {
                for host in filter.list(ROUTES) {
                    let own = host.list("routes").into_iter();
                    routes.extend(own.filter_map(|route| route.at("route")));
                }
            }
        }
    }
    routes
}

/// The name of a cluster, its host, the policy for calls to it, and its budget of retries.
type Cluster = (String, String, CallPolicy, Option<Budget>);

/// A budget of retries, and the values that have an effect if a route has retries.
struct Budget {
    retries: RetryBudget,
    marks: Vec<Mark>,
}

fn read_cluster(cluster: Item) -> Result<Cluster, String> {
    let name = cluster.text("name");
    let name = name.ok_or("a cluster has no name; give each of static_resources.clusters one")?;
    let mut host = name.clone();
    for endpoints in cluster.list("load_assignment.endpoints") {
        for endpoint in endpoints.list("lb_endpoints") {
            if let Some(address) = endpoint.text("endpoint.address.socket_address.address") {
                host = address;
            }
        }
    }
    let mut policy = CallPolicy {
        balance: balance(cluster, "lb_policy"),
        ..CallPolicy::default()
    };
    let mut budget = None;
    if let Some(threshold) = cluster.list("circuit_breakers.thresholds").first() {
        policy.connections = pool(*threshold, "max_connections", "max_pending_requests")?;
        policy.bulkhead = threshold.count("max_requests")?.filter(|most| *most > 0);
        if threshold.at("retry_budget").is_some() {
            let percent = threshold.marked_number("retry_budget.budget_percent.value")?;
            let burst = threshold.marked_number("retry_budget.min_retry_concurrency")?;
            let (share, burst_most) = (
                percent.map_or(20.0, |of| of.0),
                burst.map_or(3.0, |of| of.0),
            );
            budget = Some(Budget {
                retries: RetryBudget {
                    share: (share / 100.0).clamp(0.0, 1.0),
                    burst: Some(burst_most.clamp(0.0, 1e6)),
                },
                marks: [percent, burst]
                    .into_iter()
                    .flatten()
                    .map(|of| of.1)
                    .collect(),
            });
        }
    }
    if let Some(outliers) = cluster.at("outlier_detection") {
        let failures = outliers.count("consecutive_5xx")?.unwrap_or(5);
        let lasting = outliers.parsed("base_ejection_time", "a duration such as 30s", duration)?;
        policy.ejection = ejection(failures, lasting, outliers.number("max_ejection_percent")?);
    }
    Ok((name, host, policy, budget))
}

fn of_route(
    route: Item,
    caller: &str,
    clusters: &BTreeMap<String, (String, Option<Budget>)>,
) -> Result<Route, String> {
    let host = |cluster: String| {
        clusters
            .get(&cluster)
            .map_or(cluster, |(host, _)| host.clone())
    };
    let target = |cluster: String, weight: f64| Target {
        host: host(cluster),
        subset: None,
        weight,
    };
    let mut targets: Vec<Target> = Vec::new();
    let mut budget = None;
    if let Some(cluster) = route.text("cluster") {
        budget = clusters
            .get(&cluster)
            .and_then(|(_, budget)| budget.as_ref());
        targets.push(target(cluster, 1.0));
    }
    for one in route.list("weighted_clusters.clusters") {
        let weight = one.number("weight")?.unwrap_or(0.0);
        targets.extend(one.text("name").map(|cluster| target(cluster, weight)));
    }
    let mirrors = route.list("request_mirror_policies").into_iter();
    let mirrors = mirrors.filter_map(|mirror| Some(target(mirror.text("cluster")?, 1.0)));
    let time = |path| route.parsed(path, "a duration such as 2s", duration);
    let whole = time("timeout")?.filter(|time| !time.0.is_zero());
    let attempt = time("retry_policy.per_try_timeout")?.filter(|time| !time.0.is_zero());
    let most = match route.at("retry_policy") {
        Some(retries) => retries.count("num_retries")?.unwrap_or(1),
        None => 0,
    };
    let (backoff, limit) = match most {
        0 => (None, None),
        _ => (
            time("retry_policy.retry_back_off.base_interval")?,
            time("retry_policy.retry_back_off.max_interval")?,
        ),
    };
    let mut policy = policy(whole, attempt, most, backoff, limit);
    if let Some(retries) = &mut policy.retries
        && let Some(budget) = budget
    {
        budget.marks.iter().for_each(|mark| route.note_mark(*mark));
        retries.budget = Some(budget.retries);
    }
    Ok(Route {
        caller: Some(caller.to_owned()),
        host: targets
            .first()
            .map(|target| target.host.clone())
            .unwrap_or_default(),
        mirrors: mirrors.collect(),
        targets,
        policy,
        place: "route of envoy",
    })
}
