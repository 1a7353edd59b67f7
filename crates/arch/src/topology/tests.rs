//! Compares names, places and numbers of instances with spigo's files.

use super::*;
use crate::{PlacesDefinition, Scale, read, read_text};
use std::path::Path;

fn built_in(name: &str, scale: Scale) -> Result<Topology, ScaleError> {
    Topology::new(&read(name, Path::new("nowhere")).unwrap(), scale)
}

fn at(regions: u32, percent: u32) -> Scale {
    Scale { regions, percent }
}

/// Returns the index of the instance with this full name.
fn find(topology: &Topology, name: &str) -> u32 {
    (0..topology.len())
        .find(|&instance| topology.full_name(instance) == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

// Guarantee: arch-2.
#[test]
fn names_are_those_of_spigos_graphs_and_flows() {
    let topology = built_in("netflixoss", Scale::default()).unwrap();
    assert_eq!(topology.len(), 65);
    for (full, short) in [
        (
            "netflixoss.us-east-1.zoneC..homepage14...homepage.karyon",
            "netflixoss.us-east-1.zoneC.homepage14",
        ),
        (
            "netflixoss.us-east-1.zoneB..cassSubscriber01...cassSubscriber.priamCassandra",
            "netflixoss.us-east-1.zoneB.cassSubscriber01",
        ),
        (
            "netflixoss.us-east-1.*..www-elb00...www-elb.elb",
            "netflixoss.us-east-1.*.www-elb00",
        ),
        (
            "netflixoss.*.*..www00...www.denominator",
            "netflixoss.*.*.www00",
        ),
    ] {
        assert_eq!(topology.short_name(find(&topology, full)), short);
    }
    let homepage = find(
        &topology,
        "netflixoss.us-east-1.zoneC..homepage14...homepage.karyon",
    );
    assert_eq!(
        topology.collapsed_name(homepage),
        "netflixoss.us-east-1.zoneC.homepage.karyon"
    );
    assert_eq!(
        topology.registry_name(1),
        "netflixoss.us-east-1.zoneB..eureka01...eureka.eureka"
    );
}

#[test]
fn names_have_no_part_of_containers_as_in_spigo() {
    let text = r#"{"arch": "x", "services": [{"name": "db", "package": "store", "count": 1,
        "regions": 1, "machine": "ecs:1", "container": "redis:3.2", "process": "a b"}]}"#;
    let checked = read_text(text, "x").unwrap();
    let topology = Topology::new(&checked, Scale::default()).unwrap();
    assert_eq!(topology.full_name(0), "x.us-east-1.zoneA..db00...db.store");
    let container = topology.services[0].container.as_ref().unwrap();
    assert_eq!(
        (&*container.machine, &*container.image),
        ("ecs:1", "redis:3.2")
    );
    assert_eq!(topology.short_name(0), "x.us-east-1.zoneA.db00");
}

#[test]
fn regions_repeat_the_architecture_with_numbers_that_go_on() {
    let topology = built_in("netflixoss", at(2, 100)).unwrap();
    assert_eq!(topology.len(), 1 + 2 * 64);
    assert_eq!(topology.registries(), 6);
    let second = "netflixoss.us-west-2.zoneB..homepage25...homepage.karyon";
    let second = topology.instances[find(&topology, second) as usize];
    assert_eq!((second.at.region, second.number), (Some(1), Some(25)));
}

#[test]
fn instances_know_the_registries_of_their_zone_region_or_all() {
    let topology = built_in("netflixoss", at(2, 100)).unwrap();
    let known = |name: &str| -> Vec<u32> {
        let instance = find(&topology, name);
        topology.registries_of(instance).collect()
    };
    assert_eq!(
        known("netflixoss.us-west-2.zoneB..homepage25...homepage.karyon"),
        [4]
    );
    assert_eq!(
        known("netflixoss.us-east-1.*..www-elb00...www-elb.elb"),
        [0, 1, 2]
    );
    let all = [0, 1, 2, 3, 4, 5];
    assert_eq!(known("netflixoss.*.*..www00...www.denominator"), all);
    assert_eq!(
        known("netflixoss.us-east-1.zoneA..cassSubscriber00...cassSubscriber.priamCassandra"),
        all
    );
}

#[test]
fn a_ring_is_that_of_one_zone() {
    let topology = built_in("cassandra", at(1, 200)).unwrap();
    let rings = topology.rings(0);
    assert_eq!(rings.len(), 3);
    let zone_b = Zone {
        region: Some(0),
        zone: Some(1),
    };
    assert_eq!(rings[&zone_b], [1, 4, 7, 10]);
}

#[test]
fn scales_that_leave_nothing_or_too_much_are_refused_by_name() {
    let said = |name, regions, percent| {
        built_in(name, at(regions, percent))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        said("lamp", 1, 40),
        "40 % of the 2 instances of service 'rds-mysql' is less than one instance; give at least 50 %"
    );
    assert_eq!(
        said("lamp", 1, 0),
        "0 % of the 2 instances of service 'rds-mysql' is less than one instance; give at least 50 %"
    );
    assert_eq!(
        said("lamp", 7, 100),
        "7 regions are not possible; give 1 to 6"
    );
    assert_eq!(
        said("lamp", 0, 100),
        "0 regions are not possible; give 1 to 6"
    );
    assert_eq!(
        said("netflixoss", 6, 4_000_000_000),
        "15120000006 instances are too many; at most 4000000 are simulated"
    );
    let text = r#"{"arch": "x", "services": [{"name": "db", "package": "store", "regions": 4}]}"#;
    let checked = read_text(text, "x").unwrap();
    assert_eq!(
        Topology::new(&checked, at(2, 100)).unwrap_err().to_string(),
        "service 'db' would be in 8 regions, 4 for each of 2; the maximum is 6"
    );
}

#[test]
fn the_shortest_latency_is_that_of_a_zone_or_of_a_service_of_its_own() {
    let topology = built_in("lamp", Scale::default()).unwrap();
    assert_eq!(topology.least_latency(1), 200_000);
    assert_eq!(topology.least_latency(1_000_000), 1_000_000);
    let text =
        r#"{"arch": "x", "services": [{"name": "db", "package": "store", "latency": "50us"}]}"#;
    let checked = read_text(text, "x").unwrap();
    let topology = Topology::new(&checked, Scale::default()).unwrap();
    assert_eq!(topology.least_latency(1), 50_000);
}

#[test]
fn an_architecture_may_be_called_anything_and_names_have_no_dots_of_it() {
    let text = r#"{"arch": "shop.yml", "services": [{"name": "db", "package": "store"}]}"#;
    let topology = Topology::new(&read_text(text, "x").unwrap(), Scale::default()).unwrap();
    assert_eq!(topology.short_name(0), "shop_yml.*.*.db00");
}

// Guarantee: arch-2.
#[test]
fn regions_and_zones_have_the_names_that_a_definition_gives_them() {
    let text = r#"{"arch": "x", "places": {"regions": ["here", "there"], "zones": ["a", "b"]},
        "network": {"regions": {"here..there": "7ms"}},
        "faults": [{"zone": "b", "region": "there", "kind": "kill", "at": "1s"}],
        "services": [{"name": "db", "package": "store", "count": 3, "regions": 1}]}"#;
    let checked = read_text(text, "x").unwrap();
    let topology = Topology::new(&checked, at(2, 100)).unwrap();
    let names: Vec<String> = (0..topology.len())
        .map(|i| topology.short_name(i))
        .collect();
    let expected = ["here.a.db00", "here.b.db01", "here.a.db02"]
        .into_iter()
        .chain(["there.b.db03", "there.a.db04", "there.b.db05"]);
    let expected: Vec<String> = expected.map(|name| format!("x.{name}")).collect();
    assert_eq!(names, expected);
    assert_eq!(topology.registries(), 4);
    assert_eq!(
        topology.registry_name(3),
        "x.there.b..eureka03...eureka.eureka"
    );
    let [from, to] = [0, 3].map(|i: usize| topology.instances[i].at);
    assert_eq!(topology.geography.between(from, to).least(), 7_000_000);
    let killed = topology
        .instances
        .iter()
        .filter(|&&i| topology.faults[0].0.has(i));
    assert_eq!(killed.count(), 2);
    assert_eq!(
        Topology::new(&checked, at(3, 100)).unwrap_err().to_string(),
        "3 regions are not possible; give 1 to 2"
    );
    let other = PlacesDefinition {
        regions: vec!["x1".into(), "x2".into()],
        ..Default::default()
    };
    assert_eq!(
        checked.with_places(&other).unwrap_err().to_string(),
        "'here..there' is not a pair of regions; write one as x1..x2"
    );
}

/// Checksums of fixed topologies change only with `ENCODING_VERSION`.
#[test]
fn checksums_of_fixed_topologies_stay_as_they_are() {
    let scripted = r#"{"arch": "golden", "version": "arch-0.0", "services": [
        {"name": "cache", "package": "service", "count": 2, "service_time": {"exponential": "1ms"}},
        {"name": "api", "package": "service", "count": 3, "concurrency": 4,
         "latency": {"uniform": ["1ms", "2ms"]}, "endpoints": [{"name": "get", "steps": [
            {"work": {"lognormal": {"median": "2ms", "sigma": 0.5}}}, {"call": "cache"}]}],
         "calls": {"cache": {"timeout": "10ms", "retries": {"most": 2, "backoff": "1ms"}}}},
        {"name": "www", "package": "denominator", "count": 0, "regions": 0, "dependencies": ["api"]}],
        "load": {"www": {"rate": 100}},
        "links": [{"from": {"zone": "zoneA"}, "at": "1s", "loss": 0.5}]}"#;
    let scripted = read_text(scripted, "golden.json").unwrap();
    let scripted = Topology::new(&scripted, Scale::default()).unwrap();
    let built_in = built_in("netflixoss", at(2, 100)).unwrap();
    let checksums = [&scripted, &built_in].map(Topology::checksum);
    assert_eq!(checksums, [0x46f0_6360, 0x098a_dcbb], "{checksums:#x?}");
    let renamed = Topology {
        arch: "other".to_owned(),
        ..scripted.clone()
    };
    assert_ne!(renamed.checksum(), scripted.checksum());
}

/// Returns the remarks about an instance whose endpoint get calls mid, which calls leaf, all of the service a; b calls mid.
fn remarks(fields: &str, get: &str, count: u32) -> Vec<String> {
    let text = format!(
        r#"{{"arch": "x", "services": [{{"name": "a", "package": "service", "count": {count}, "regions": 1, {fields}
        "endpoints": [{{"name": "get", "steps": [{get}]}},
        {{"name": "mid", "steps": [{{"parallel": [[{{"call": "a.leaf"}}], [{{"work": "1ms"}}]]}}]}},
        {{"name": "leaf", "steps": []}}]}},
        {{"name": "b", "package": "service", "count": 1, "regions": 1,
        "endpoints": [{{"name": "get", "steps": [{{"call": "a.mid"}}]}}]}}]}}"#
    );
    let topology = Topology::new(&read_text(&text, "x").unwrap(), Scale::default()).unwrap();
    topology
        .remarks(std::time::Duration::from_secs(1))
        .collect()
}

#[test]
fn requests_that_certainly_wait_for_their_own_slots_or_connections_are_reported() {
    let mid = r#"{"call": "a.mid"}"#;
    let by_b = r#"{"call": "b.get"}"#;
    for (fields, get, said) in [
        (
            r#""concurrency": 1,"#,
            by_b,
            "it needs 3 slots at once, and the only instance of 'a' allows 1; increase concurrency",
        ),
        (
            r#""concurrency": 2,"#,
            mid,
            "it needs 3 slots at once, and the only instance of 'a' allows 2; increase concurrency",
        ),
        (
            r#""calls": {"a": {"connections": {"most": 1}}},"#,
            mid,
            "it needs 2 calls to 'a' at once, and the only instance of 'a' allows 1; increase connections",
        ),
        (
            r#""calls": {"a": {"bulkhead": 1, "connections": {"most": 2}}},"#,
            mid,
            "it needs 2 calls to 'a' at once, and the only instance of 'a' allows 1; increase bulkhead",
        ),
    ] {
        let expected = format!(
            "no request of 'a.get' can succeed: with the calls that it waits for, {said}, or add instances"
        );
        assert_eq!(remarks(fields, get, 1), [expected], "{fields}");
        // With another instance the calls may succeed.
        assert_eq!(remarks(fields, get, 2), [""; 0], "{fields}");
    }
    for (fields, get) in [
        (r#""concurrency": 3,"#, mid),
        (r#""calls": {"a": {"connections": {"most": 2}}},"#, mid),
        (r#""calls": {"a": {"connections": {"most": 1}}},"#, by_b),
        (
            r#""concurrency": 2,"#,
            r#"{"call": "a.mid", "probability": 0.5}"#,
        ),
        (
            r#""concurrency": 2,"#,
            r#"{"call": "a.mid", "fallback": []}"#,
        ),
        (r#""concurrency": 2,"#, r#"{"send": "a.mid"}"#),
        (
            r#""concurrency": 2,"#,
            r#"{"parallel": [[{"call": "a.mid"}], []], "wait": 1}"#,
        ),
        (
            r#""concurrency": 2, "autoscaler": {"target": 0.5, "most": 3},"#,
            mid,
        ),
    ] {
        assert_eq!(remarks(fields, get, 1), [""; 0], "{fields} {get}");
    }
}
