//! Data access, stores and rings: a value can be read again, wherever it was put.

use crate::scene::{plan, run, run_services, topology};
use corsair_arch::{LoadText, Plan, Scale, Topology, read_text, step};
use std::time::Duration;

const WWW: &str =
    r#"{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["data"]}"#;

/// Returns data access with these storages, each with one instance.
fn layers(storages: &[(&str, &str, &str)]) -> String {
    let names: Vec<String> = storages
        .iter()
        .map(|(name, ..)| format!("{name:?}"))
        .collect();
    let mut services: Vec<String> = storages
        .iter()
        .map(|(name, package, fields)| {
            format!(
                r#"{{"name": "{name}", "package": "{package}", "count": 1, "regions": 1{fields}}}"#
            )
        })
        .collect();
    services.push(format!(
        r#"{{"name": "data", "package": "staash", "count": 1, "regions": 1, "dependencies": [{}]}}"#,
        names.join(", ")
    ));
    services.push(WWW.to_owned());
    services.join(", ")
}

// Guarantee: arch-6.
#[test]
fn data_access_asks_the_next_storage_where_one_fails() {
    let broken = r#", "error_rate": 1"#;
    let services = layers(&[
        ("cache", "cache", broken),
        ("disk", "volume", broken),
        ("ring", "priamCassandra", broken),
        ("db", "store", ""),
    ]);
    let ran = run_services(&services, &plan());
    let entry = ran.entry();
    assert!(entry.requests > 100);
    assert_eq!(entry.errors, 0);
    // Every request and every value reached all four kinds of storage.
    let all = entry.requests + entry.puts;
    for service in ["cache", "disk", "ring", "db"] {
        let done = ran.service(service);
        assert_eq!(done.requests + done.one_way, all, "{service}");
    }
}

// Guarantee: arch-6.
#[test]
fn data_access_asks_on_only_where_there_is_no_value() {
    let services = layers(&[("cache", "cache", ""), ("db", "store", "")]);
    let ran = run_services(&services, &plan());
    let entry = ran.entry();
    assert_eq!(
        ran.service("db").requests,
        entry.missing,
        "only what the cache did not have"
    );
    assert!(entry.missing > 0 && entry.missing < entry.requests / 5);
}

#[test]
fn where_all_storages_fail_the_request_fails() {
    let broken = r#", "error_rate": 1"#;
    let ran = run_services(
        &layers(&[("cache", "cache", broken), ("db", "store", broken)]),
        &plan(),
    );
    assert_eq!(ran.entry().errors, ran.entry().requests);
}

#[test]
fn a_volume_gives_back_what_its_user_has_put() {
    let ran = run_services(&layers(&[("disk", "volume", "")]), &plan());
    let entry = ran.entry();
    assert!(entry.missing < entry.requests / 10, "{entry:?}");
}

#[test]
fn stores_that_depend_on_each_other_have_each_others_values() {
    let stores = |dependencies: &str| {
        let store = format!(
            r#"{{"name": "db", "package": "store", "count": 6, "regions": 1, "dependencies": [{dependencies}]}}"#
        );
        let data = r#"{"name": "data", "package": "staash", "count": 1, "regions": 1, "dependencies": ["db"]}"#;
        run_services(&format!("{store}, {data}, {WWW}"), &plan())
    };
    let (alone, joined) = (stores(""), stores("\"db\""));
    assert!(alone.entry().missing > alone.entry().requests / 4);
    assert!(joined.entry().missing < joined.entry().requests / 10);
    // Each value is copied to the five other stores. The three registries replicate the arrival and the departure of
    // eight instances to each other. The registry of an instance's zone sends two messages for the instance. All three
    // registries send messages for the instance without a zone: six in total.
    let messages = 2 * (7 * 2 + 3 * 2);
    assert_eq!(
        joined.messages("Replicate"),
        5 * joined.entry().puts + messages
    );
}

// Guarantee: arch-7.
#[test]
fn every_node_of_a_ring_finds_every_value() {
    let ring = r#"{"name": "ring", "package": "riak", "count": 12, "regions": 1, "dependencies": ["ring"]}"#;
    let data = r#"{"name": "data", "package": "staash", "count": 3, "regions": 1, "dependencies": ["ring"]}"#;
    let ran = run_services(&format!("{ring}, {data}, {WWW}"), &plan());
    let entry = ran.entry();
    assert_eq!(entry.errors, 0);
    assert!(entry.missing < entry.requests / 10, "{entry:?}");
    // A zone has four nodes, so three of four requests are forwarded to the owner.
    let asked = ran.messages("GetRequest");
    let per_request = asked as f64 / entry.requests as f64;
    // Two messages to reach the ring, and 0.75 more on average; look-ups are additional.
    assert!(per_request > 2.7, "{per_request}");
}

// Guarantee: arch-7.
#[test]
fn joined_rings_replicate_between_regions_and_separate_ones_do_not() {
    let missing = |number: u32| {
        let (checked, scale) = step(number, Scale::default()).unwrap();
        let ran = run(Topology::new(&checked, scale).unwrap(), &plan());
        assert_eq!(ran.entry().errors, 0, "step {number}");
        ran.entry().missing as f64 / ran.entry().requests as f64
    };
    let (separate, joined) = (missing(7), missing(8));
    assert!(separate > 2.0 * joined, "{separate} {joined}");
}

#[test]
fn services_call_their_own_zone_and_their_own_region() {
    let services = r#"{"name": "db", "package": "store", "count": 3, "regions": 1},
        {"name": "app", "package": "karyon", "count": 3, "regions": 1, "dependencies": ["db"]},
        {"name": "elb", "package": "elb", "count": 0, "regions": 1, "dependencies": ["app"]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["elb"]}"#;
    let scale = Scale {
        regions: 2,
        percent: 100,
    };
    let (_, _, graph) = crate::scene::run_with_graph(topology(services, scale), &plan());
    let place = |name: &str| {
        name.split('.')
            .skip(1)
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (source, target) in &graph.edges {
        let (from, to) = (place(source), place(target));
        if source.contains("app") {
            assert_eq!(from, to, "{source} {target}");
        }
        if source.contains("elb") {
            assert_eq!(from[0], to[0], "{source} {target}");
        }
    }
    assert_eq!(graph.edges.len(), 6 + 6 + 2);
}

// Guarantee: arch-7.
#[test]
fn values_follow_the_instances_that_an_autoscaler_adds_and_removes() {
    let load = r#"{"rate": [{"at": "0s", "rate": 60}, {"at": "4s", "rate": 500}, {"at": "14s", "rate": 60}],
        "requests": {"read": 4, "write": 1}}"#;
    for package in ["store", "riak"] {
        let services = format!(
            r#"{{"name": "db", "package": "{package}", "count": 3, "regions": 1, "dependencies": ["db"],
            "concurrency": 1, "service_time": "4ms",
            "autoscaler": {{"target": 0.4, "least": 3, "most": 12, "every": "1s", "delay": "1s", "calm": "2s"}}}},
            {{"name": "data", "package": "staash", "count": 3, "regions": 1, "dependencies": ["db"]}},
            {WWW}"#
        );
        let mut topology = topology(&services, Scale::default());
        LoadText::read(load).unwrap().apply(&mut topology).unwrap();
        let long = Plan {
            duration: Duration::from_secs(24),
            drain: Duration::from_secs(5),
            ..plan()
        };
        let ran = run(topology, &long);
        let (db, entry) = (ran.service("db"), ran.entry());
        assert!(db.started >= 3 && db.stopped >= 3, "{package}: {db:?}");
        assert_eq!((entry.errors, entry.unanswered()), (0, 0), "{package}");
        // Some values are read while a new instance still stores the values that it received. Without the transfer half
        // of all values would be missing.
        let missing = entry.missing as f64 / entry.requests as f64;
        assert!(missing < 0.06, "{package}: {missing} of {}", entry.requests);
    }
}

#[test]
fn stores_that_keep_no_copies_cannot_be_removed() {
    let services = r#"{"name": "db", "package": "store", "count": 3, "regions": 1, "concurrency": 1,
        "autoscaler": {"target": 0.4, "most": 12}}, {"name": "www", "package": "denominator",
        "regions": 0, "dependencies": ["db"]}"#;
    let text = format!(r#"{{"arch": "x", "services": [{services}]}}"#);
    let said = read_text(&text, "x").unwrap_err().to_string();
    assert!(
        said.ends_with("the data of a removed store would be lost; add 'db' to its own dependencies, so that other instances have copies"),
        "{said}"
    );
    assert!(read_text(&text.replace("\"store\"", "\"cache\""), "x").is_ok());
}
