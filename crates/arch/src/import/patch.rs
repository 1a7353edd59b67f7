//! Converts a definition back to manifests: patches with the definition's replicas, processors, retries, time-outs,
//! pools and ejection. Importing the manifests with their patches gives the definition's values.

use super::build::ENDPOINT;
use crate::definition::{Balance, CallPolicy, Definition, Retries, ServiceDefinition};
use crate::duration_text::TimeSpan;
use crate::package::Package;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Patches of manifests, and the settings that manifests cannot express.
#[derive(Clone, Debug, Default)]
pub struct ManifestPatch {
    /// The documents: partial Deployments, VirtualServices and DestinationRules.
    pub documents: Vec<Value>,
    /// Sentences about settings for which manifests have no field.
    pub left_out: Vec<String>,
}

impl ManifestPatch {
    /// Returns the documents as a Kubernetes `List` in JSON, which is also valid YAML.
    pub fn to_text(&self) -> String {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.documents});
        serde_json::to_string_pretty(&list).unwrap_or_default() + "\n"
    }
}

/// Creates the patches that set a definition's values in manifests.
pub fn manifest_patch(definition: &Definition) -> ManifestPatch {
    let mut patch = ManifestPatch::default();
    let is_workload = |service: &&ServiceDefinition| {
        service.package == Package::Service.name() && service.regions > 0
    };
    for service in definition.services.iter().filter(is_workload) {
        patch.workload(service);
    }
    // A host has one policy for all of its callers.
    let mut by_host: BTreeMap<&str, (&str, &CallPolicy)> = BTreeMap::new();
    for service in definition.services.iter().filter(is_workload) {
        for (called, policy) in &service.calls {
            let known = by_host.entry(called).or_insert((&service.name, policy));
            if known.1 != policy {
                patch.left_out.push(format!(
                    "'{}' calls '{called}' otherwise than '{}' does; manifests have one policy for all callers, and get that of '{}'",
                    service.name, known.0, known.0
                ));
            }
        }
    }
    for (host, (_, policy)) in by_host {
        if host == "*" {
            patch
                .left_out
                .push("the policy for all services ('*') has no host".to_owned());
        } else {
            patch.route(host, policy);
            patch.destination(host, policy);
        }
    }
    patch
}

fn document(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Formats a time in the notation of Kubernetes and Istio.
fn time(time: TimeSpan) -> String {
    let nanos = time.0.as_nanos();
    match (nanos % 1_000_000, nanos % 1_000) {
        (0, _) => format!("{}ms", nanos / 1_000_000),
        (_, 0) => format!("{}us", nanos / 1_000),
        _ => format!("{nanos}ns"),
    }
}

impl ManifestPatch {
    fn workload(&mut self, service: &ServiceDefinition) {
        let name = &service.name;
        let mut spec = json!({"replicas": service.count});
        if let Some(processors) = service.processors {
            let container = match service.process.is_empty() {
                true => name,
                false => &service.process,
            };
            let cpu = format!("{}m", (processors * 1000.0).round());
            let limits = json!({"name": container, "resources": {"limits": {"cpu": cpu}}});
            spec["template"] = json!({"spec": {"containers": [limits]}});
        }
        self.documents
            .push(document("apps/v1", "Deployment", name, spec));
        let mut say = |is_there: bool, what: &str| {
            if is_there {
                self.left_out
                    .push(format!("{what} of '{name}' has no field in manifests"));
            }
        };
        say(service.concurrency.is_some(), "concurrency");
        say(service.queue.is_some(), "the queue");
        say(service.rate_limit.is_some(), "the rate limit");
        say(
            service.autoscaler.is_some(),
            "the autoscaler is unchanged; edit the HorizontalPodAutoscaler",
        );
        let is_own = service.endpoints.iter().any(|one| one.name != ENDPOINT);
        say(is_own, "the script of the endpoints");
    }

    /// Adds the retries and time-outs of calls to a host.
    fn route(&mut self, host: &str, policy: &CallPolicy) {
        let mut http = Map::new();
        match policy.retries {
            Some(retries) => {
                let mut of = Map::from_iter([("attempts".to_owned(), json!(retries.most))]);
                if let Some(timeout) = policy.timeout {
                    of.insert("perTryTimeout".to_owned(), time(timeout).into());
                }
                if let Some(backoff) = retries.backoff {
                    of.insert("backoff".to_owned(), time(backoff).into());
                }
                http.insert("retries".to_owned(), of.into());
                if let Some(deadline) = policy.deadline {
                    http.insert("timeout".to_owned(), time(deadline).into());
                }
                self.only_default(host, &retries);
            }
            None => {
                let whole = policy.timeout.into_iter().chain(policy.deadline);
                let whole = whole.min_by_key(|time| time.0);
                http.extend(whole.map(|whole| ("timeout".to_owned(), time(whole).into())));
            }
        }
        if http.is_empty() {
            return;
        }
        let spec = json!({"hosts": [host], "http": [http]});
        let version = "networking.istio.io/v1";
        self.documents
            .push(document(version, "VirtualService", host, spec));
    }

    /// Reports the retry settings that Istio has no field for: its wait is random, and doubles up to ten times the
    /// initial wait.
    fn only_default(&mut self, host: &str, retries: &Retries) {
        let backoff = retries
            .backoff
            .map_or(Duration::from_millis(25), |time| time.0);
        let is_usual = retries.factor.is_none_or(|factor| factor == 2.0)
            && retries.limit.is_none_or(|limit| limit.0 == backoff * 10)
            && retries.jitter.is_none_or(|jitter| jitter == 1.0)
            && retries.budget.is_none()
            && retries.backoff.is_some();
        if !is_usual {
            self.left_out.push(format!(
                "retries of calls of '{host}' get the waits of Istio: doubled up to ten times the first, at random, without a budget"
            ));
        }
    }

    /// Adds connection pools, outlier ejection and load balancing.
    fn destination(&mut self, host: &str, policy: &CallPolicy) {
        let mut traffic = Map::new();
        let mut pool = Map::new();
        let mut http = Map::new();
        if let Some(connections) = policy.connections {
            pool.insert(
                "tcp".to_owned(),
                json!({"maxConnections": connections.most}),
            );
            let waiting = connections.waiting;
            http.extend(waiting.map(|most| ("http1MaxPendingRequests".to_owned(), json!(most))));
        }
        http.extend(
            policy
                .bulkhead
                .map(|most| ("http2MaxRequests".to_owned(), json!(most))),
        );
        if !http.is_empty() {
            pool.insert("http".to_owned(), http.into());
        }
        if !pool.is_empty() {
            traffic.insert("connectionPool".to_owned(), pool.into());
        }
        if let Some(ejection) = policy.ejection {
            let mut of = json!({
                "consecutive5xxErrors": ejection.failures,
                "baseEjectionTime": time(ejection.lasting)
            });
            if let Some(most) = ejection.most {
                of["maxEjectionPercent"] = json!((most * 100.0).round());
            }
            traffic.insert("outlierDetection".to_owned(), of);
        }
        let simple = match policy.balance {
            Some(Balance::Random) => Some("RANDOM"),
            Some(Balance::RoundRobin) => Some("ROUND_ROBIN"),
            Some(Balance::TwoChoices | Balance::LeastRequests) => Some("LEAST_REQUEST"),
            Some(Balance::Hash | Balance::Zone) | None => None,
        };
        if let Some(simple) = simple {
            traffic.insert("loadBalancer".to_owned(), json!({"simple": simple}));
        }
        if !traffic.is_empty() {
            let spec = json!({"host": host, "trafficPolicy": traffic});
            let version = "networking.istio.io/v1";
            self.documents
                .push(document(version, "DestinationRule", host, spec));
        }
        let has_other =
            policy.hedge.is_some() || policy.breaker.is_some() || policy.rate_limit.is_some();
        if has_other {
            self.left_out.push(format!(
                "hedges, breakers and rate limits of calls of '{host}' have no field in manifests"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ImportOptions, Imported, import};
    use super::*;

    fn workload(name: &str, cpu: &str, calls: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": 2,
            "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "x:1", "env": [{"name": "NEXT_HOST", "value": calls}],
            "resources": {"limits": {"cpu": cpu}}}]}}}})
    }

    fn imported(files: &[&Value]) -> Imported {
        let directory = tempfile::tempdir().unwrap();
        let mut paths = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let path = directory.path().join(format!("{number}.json"));
            std::fs::write(&path, file.to_string()).unwrap();
            paths.push(path);
        }
        import(&paths, &ImportOptions::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn list(items: Vec<Value>) -> Value {
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    // Guarantee: arch-24.
    #[test]
    fn a_definition_comes_back_from_the_manifests_with_its_patch() {
        let route = document(
            "networking.istio.io/v1",
            "VirtualService",
            "db",
            json!({"hosts": ["db"], "http": [{"route": [{"destination": {"host": "db"}}],
                "retries": {"attempts": 2, "perTryTimeout": "500ms"}}]}),
        );
        let manifests = list(vec![
            workload("web", "500m", "cart:80"),
            workload("cart", "1", "db:80"),
            workload("db", "2", ""),
            route,
        ]);
        let mut wanted = imported(&[&manifests]).definition;
        for service in &mut wanted.services {
            match service.name.as_str() {
                "web" => {
                    service.count = 5;
                    let policy = CallPolicy {
                        timeout: Some("1500ms".parse().unwrap()),
                        balance: Some(Balance::RoundRobin),
                        ..CallPolicy::default()
                    };
                    service.calls.insert("cart".to_owned(), policy);
                }
                "cart" => {
                    service.processors = Some(0.75);
                    let policy = service.calls.get_mut("db").unwrap();
                    policy.deadline = Some("2s".parse().unwrap());
                    policy.timeout = Some("250us".parse().unwrap());
                    policy.retries.as_mut().unwrap().most = 4;
                    policy.bulkhead = Some(7);
                }
                _ => {}
            }
        }
        let patch = manifest_patch(&wanted);
        assert_eq!(patch.left_out, Vec::<String>::new());
        let patch: Value = serde_json::from_str(&patch.to_text()).unwrap();
        let found = imported(&[&manifests, &patch]).definition;
        assert_eq!(found, wanted);
        // Importing the result again changes nothing.
        let again: Value = serde_json::from_str(&manifest_patch(&found).to_text()).unwrap();
        assert_eq!(imported(&[&manifests, &patch, &again]).definition, wanted);
    }

    #[test]
    fn what_manifests_have_no_field_for_is_named() {
        let text = r#"{"arch": "x", "services": [
            {"name": "a", "package": "service", "regions": 1, "count": 1, "concurrency": 4,
             "calls": {"b": {"timeout": "1s", "retries": {"most": 1}, "hedge": {"after": "1s"}}, "*": {"bulkhead": 3}},
             "endpoints": [{"name": "get", "steps": [{"call": "b"}]}]},
            {"name": "c", "package": "service", "regions": 1, "count": 1, "calls": {"b": {"timeout": "2s"}},
             "endpoints": [{"name": "request", "steps": [{"call": "b"}]}]},
            {"name": "b", "package": "service", "regions": 1, "count": 1}]}"#;
        let left_out = manifest_patch(&serde_json::from_str(text).unwrap())
            .left_out
            .join("\n");
        for part in [
            "concurrency of 'a'",
            "script of the endpoints",
            "hedges",
            "waits of Istio",
            "('*')",
            "'c' calls 'b' otherwise",
        ] {
            assert!(left_out.contains(part), "{part} is missing:\n{left_out}");
        }
    }
}
