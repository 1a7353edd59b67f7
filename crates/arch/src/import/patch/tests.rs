//! Tests that convert manifests to a definition, change it, make a patch, and import the manifests together with the
//! patch.

use super::super::{ImportOptions, Imported, import};
use super::*;
use crate::definition::{
    Balance, Connections, Ejection, HealthCheckDefinition, Hedge, Retries, RetryBudget,
};
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

fn workload(name: &str, calls: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": 2,
        "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "x:1", "env": [{"name": "NEXT_HOST", "value": calls}],
        "resources": {"limits": {"cpu": "500m"}}}]}}}})
}

/// Returns three services, one calling the next, in a format.
fn manifests(format: PatchFormat) -> Value {
    match format {
        PatchFormat::Kubernetes => {
            let mut db = workload("db", "");
            db["kind"] = "StatefulSet".into();
            let items = [workload("web", "cart:80"), workload("cart", "db:80"), db];
            json!({"apiVersion": "v1", "kind": "List", "items": items})
        }
        PatchFormat::Compose => json!({"services": {
            "web": {"image": "x:1", "environment": {"NEXT_HOST": "cart:80"}, "ports": ["80:80"], "cpus": 0.5},
            "cart": {"image": "x:1", "environment": {"NEXT_HOST": "db:80"}, "deploy": {"replicas": 3}},
            "db": {"image": "x:1"}}}),
    }
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

fn text(patch: &ManifestPatch) -> Value {
    serde_json::from_str(&patch.to_text()).unwrap()
}

/// Times that all formats can write, and some that only definitions have.
fn times() -> impl Strategy<Value = TimeSpan> {
    prop_oneof![
        (1..600_000_u64).prop_map(std::time::Duration::from_millis),
        (1..1_000_u64).prop_map(std::time::Duration::from_micros),
        (1..60_u64).prop_map(std::time::Duration::from_secs),
    ]
    .prop_map(TimeSpan)
}

prop_compose! {
    /// Retries with the waits of Istio, in most cases.
    fn retries()(most in 1..12_i64, backoff in times(), odd in 0..8_u8, share in 0.0..1.0_f64) -> Retries {
        Retries {
            most,
            backoff: (odd != 1).then_some(backoff),
            factor: (odd == 2).then_some(3.0),
            limit: (odd != 3).then_some(TimeSpan(backoff.0 * 10)),
            jitter: Some(if odd == 4 { 0.5 } else { 1.0 }),
            budget: (odd == 5).then_some(RetryBudget { share, burst: None }),
        }
    }
}

prop_compose! {
    fn policies()(
        balance in option::of(prop::sample::select(vec![
            Balance::Random, Balance::RoundRobin, Balance::TwoChoices, Balance::Hash, Balance::Zone,
            Balance::LeastRequests,
        ])),
        connections in option::of((1..1000_i64, option::of(1..100_i64), prop::bool::weighted(0.1))),
        bulkhead in option::of(1..1000_i64),
        timeout in option::of(times()),
        deadline in option::of(times()),
        retries in option::of(retries()),
        ejection in option::of((1..20_i64, times(), option::of(0.0..1.0_f64), any::<bool>())),
        hedge in prop::option::weighted(0.1, times()),
    ) -> CallPolicy {
        CallPolicy {
            balance,
            bulkhead,
            timeout,
            deadline,
            retries,
            connections: connections.map(|(most, waiting, connects)| Connections {
                most,
                waiting,
                connect: connects.then_some(TimeSpan(std::time::Duration::from_millis(3))),
            }),
            ejection: ejection.map(|(failures, lasting, most, whole)| Ejection {
                failures,
                lasting,
                most: most.map(|most| if whole { (most * 100.0).round() / 100.0 } else { most }),
            }),
            hedge: hedge.map(|after| Hedge { after, most: None }),
            ..CallPolicy::default()
        }
    }
}

/// The settings of a service that a definition may change.
type Settings = (
    i64,
    Option<f64>,
    Option<HealthCheckDefinition>,
    Option<CallPolicy>,
);

prop_compose! {
    fn settings()(
        count in 1..200_i64,
        processors in prop::option::weighted(0.8, 1..64_000_u32),
        exact in prop::bool::weighted(0.9),
        health in option::of((1..100_000_u64, option::of(1..9_i64), option::of(1..9_i64))),
        policy in option::of(policies()),
    ) -> Settings {
        let processors = processors.map(|milli| f64::from(milli) / if exact { 1e3 } else { 7e3 });
        let health = health.map(|(every, failures, successes)| HealthCheckDefinition {
            every: TimeSpan(std::time::Duration::from_millis(every)),
            failures,
            successes,
        });
        (count, processors, health, policy)
    }
}

/// Changes the settings of the services of an imported definition.
fn change(definition: &mut Definition, settings: &[Settings]) {
    let services = definition.services.iter_mut().filter(|one| one.regions > 0);
    for (service, (count, processors, health, policy)) in services.zip(settings) {
        service.count = *count;
        // A patch sets limits and probes, and does not remove them.
        service.processors = processors.or(service.processors);
        service.health_check = health.or(service.health_check);
        let called: Vec<String> = service.called().into_iter().map(str::to_owned).collect();
        for (called, policy) in called.into_iter().zip(policy) {
            if *policy != CallPolicy::default() {
                service.calls.insert(called, policy.clone());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    // Guarantee: arch-24.
    #[test]
    fn a_definition_comes_back_from_the_manifests_with_its_patch(
        settings in prop::collection::vec(settings(), 3),
        format in prop::sample::select(vec![PatchFormat::Kubernetes, PatchFormat::Compose]),
    ) {
        let manifests = manifests(format);
        let mut wanted = imported(&[&manifests]).definition;
        change(&mut wanted, &settings);
        let patch = manifest_patch(&wanted, format);
        let found = imported(&[&manifests, &text(&patch)]).definition;
        // Either everything comes back, or what does not is named.
        prop_assert_eq!(patch.left_out.is_empty(), found == wanted, "{:?}", patch.left_out);
        for (found, wanted) in found.services.iter().zip(&wanted.services) {
            prop_assert_eq!(found.count, wanted.count);
        }
        // And so it stays.
        let second = manifest_patch(&found, format);
        prop_assert_eq!(&second.left_out, &Vec::<String>::new());
        let again = imported(&[&manifests, &text(&patch), &text(&second)]).definition;
        prop_assert_eq!(again, found);
    }
}

#[test]
fn a_patch_has_the_kind_of_the_manifest_and_the_fields_of_its_format() {
    let mut definition = imported(&[&manifests(PatchFormat::Kubernetes)]).definition;
    let db = definition
        .services
        .iter_mut()
        .find(|one| one.name == "db")
        .unwrap();
    (db.count, db.processors) = (5, Some(0.75));
    let patch = text(&manifest_patch(&definition, PatchFormat::Kubernetes));
    let items = patch["items"].as_array().unwrap();
    let set = items
        .iter()
        .find(|one| one["kind"] == "StatefulSet")
        .unwrap();
    assert_eq!(set["spec"]["replicas"], 5);
    assert_eq!(
        set["spec"]["template"]["spec"]["containers"],
        json!([{"name": "c", "resources": {"limits": {"cpu": "750m"}}}])
    );
    let patch = text(&manifest_patch(&definition, PatchFormat::Compose));
    assert_eq!(
        patch["services"]["db"]["deploy"],
        json!({"replicas": 5, "resources": {"limits": {"cpus": "0.75"}}})
    );
}

#[test]
fn what_manifests_have_no_field_for_is_named() {
    let text = r#"{"arch": "x", "services": [
        {"name": "a", "package": "service", "regions": 2, "count": 1, "concurrency": 4, "error_rate": 0.1,
         "calls": {"b": {"timeout": "1s", "retries": {"most": 1}, "hedge": {"after": "1s"}}, "*": {"bulkhead": 3}},
         "endpoints": [{"name": "get", "steps": [{"call": "b"}]}]},
        {"name": "c", "package": "service", "regions": 1, "count": 1, "calls": {"b": {"timeout": "2s"}},
         "endpoints": [{"name": "request", "steps": [{"call": "b"}]}]},
        {"name": "b", "package": "service", "regions": 1, "count": 1}]}"#;
    let definition: Definition = serde_json::from_str(text).unwrap();
    let left_out = |format| manifest_patch(&definition, format).left_out.join("\n");
    let kubernetes = left_out(PatchFormat::Kubernetes);
    for part in [
        "concurrency of 'a'",
        "error_rate of 'a'",
        "regions of 'a'",
        "script of the endpoints of 'a'",
        "hedge, retries of calls of 'b' by 'a'",
        "bulkhead of calls of '*' by 'a'",
        "timeout, retries of calls of 'b' by 'c'",
    ] {
        assert!(
            kubernetes.contains(part),
            "{part} is missing:\n{kubernetes}"
        );
    }
    let compose = left_out(PatchFormat::Compose);
    let part =
        "hedge, retries, timeout of calls of 'b' by 'a': docker-compose files have no fields";
    assert!(compose.contains(part), "{compose}");
}
