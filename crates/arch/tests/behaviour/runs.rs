//! Complete runs of architectures give the same bytes for any number of workers.

use corsair::{Config, Executor, Report};
use corsair_arch::{
    BUILT_IN, CheckedDefinition, KINDS, Plan, Scale, Topology, Totals, read, simulate, step,
};
use corsair_observe::{Clock, FlowFormat, GraphFormat, Observer, Settings};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// The output of a run: its report, its totals, and the content of every file by its name.
type Left = (Report, Totals, BTreeMap<String, Vec<u8>>);

fn run(topology: Topology, workers: usize) -> Left {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    };
    let clock = Clock::Virtual(config.progress.clone());
    let mut settings = Settings::new(topology.arch.clone(), clock);
    settings.kinds = KINDS;
    settings.operations = topology.operations();
    settings.out = directory.path().to_owned();
    settings.graphs = vec![GraphFormat::Json, GraphFormat::GraphMl, GraphFormat::Gexf];
    settings.flows = vec![FlowFormat::ZipkinV1, FlowFormat::ZipkinV2, FlowFormat::Otlp];
    settings.times = true;
    let observer = Observer::start(settings).unwrap();
    let plan = Plan {
        duration: Duration::from_secs(1),
        interval: Some(Duration::from_millis(50)),
        recorder: observer.recorder(),
        ..Plan::default()
    };
    let (report, totals) = simulate(Executor::Virtual, &config, topology, &plan).unwrap();
    let observed = observer.finish().unwrap();
    // Every span has both ends, except spans of messages that killed instances received, that links or callers have
    // dropped, or that are still in progress at the end.
    let has_scripts = totals.services.values().any(|service| service.timeouts > 0);
    if has_scripts {
        let open: u64 = totals.services.values().map(|s| s.unanswered).sum();
        let known = totals.dropped + open + report.dead();
        assert!(
            observed.incomplete <= known,
            "{} of {known}",
            observed.incomplete
        );
    } else {
        assert_eq!(observed.incomplete, totals.dropped);
    }
    let files = observed.files.iter().map(|file| {
        let name = file.path.strip_prefix(directory.path()).unwrap();
        let bytes = std::fs::read(&file.path).unwrap();
        (name.display().to_string(), bytes)
    });
    let files = files.collect();
    (report, totals, files)
}

fn same_on_any_number_of_workers(name: &str, topology: &Topology) {
    let (first, totals, files) = run(topology.clone(), 1);
    assert!(totals.requests() > 50, "{name}: {totals:?}");
    for entry in totals.entries.values() {
        assert_eq!(entry.unanswered(), 0, "{name}: {entry:?}");
    }
    assert_eq!(first.dead(), 0, "{name}: {:?}", first.dead_letters);
    assert!(files.len() >= 6, "{name}: {:?}", files.keys());
    let plan = Plan {
        duration: Duration::from_secs(1),
        interval: Some(Duration::from_millis(50)),
        ..Plan::default()
    };
    let unobserved = simulate(
        Executor::Virtual,
        &Config::default(),
        topology.clone(),
        &plan,
    );
    let (report, same) = unobserved.unwrap();
    assert_eq!(report.digest, first.digest, "{name} without a recorder");
    assert_eq!(format!("{same:?}"), format!("{totals:?}"), "{name}");
    for workers in [2, 4] {
        let (again, same, others) = run(topology.clone(), workers);
        assert_eq!(again.digest, first.digest, "{name} on {workers} workers");
        assert_eq!(format!("{same:?}"), format!("{totals:?}"), "{name}");
        for (file, bytes) in &files {
            assert!(
                others.get(file) == Some(bytes),
                "{name}: {file} on {workers} workers"
            );
        }
    }
}

/// Checks all built-in definitions side by side.
fn for_every_built_in(check: impl Fn(&str, &CheckedDefinition) + Sync) {
    std::thread::scope(|scope| {
        for (name, _) in BUILT_IN {
            let check = &check;
            scope.spawn(move || check(name, &read(name, Path::new("nowhere")).unwrap()));
        }
    });
}

// Guarantee: arch-3.
#[test]
fn every_built_in_leaves_the_same_bytes_on_any_number_of_workers() {
    for_every_built_in(|name, checked| {
        for regions in [1, 2] {
            let scale = Scale {
                regions,
                percent: 100,
            };
            let topology = Topology::new(checked, scale).unwrap();
            same_on_any_number_of_workers(name, &topology);
        }
    });
}

// Guarantee: arch-3.
#[test]
fn every_built_in_on_several_shards_leaves_the_same_bytes() {
    for_every_built_in(|name, checked| {
        let at = |percent| {
            let regions = 1;
            Topology::new(checked, Scale { regions, percent }).unwrap()
        };
        // Actors are assigned to workers in pages of 256 addresses, so at least three pages are needed.
        let topology = (1..).map(|times| at(500 * times));
        let topology = topology.into_iter().find(|topology| topology.len() > 520);
        same_on_any_number_of_workers(name, &topology.unwrap());
    });
}

/// A definition that uses every field, except fields that name other files.
const EVERYTHING: &str = include_str!("everything_arch.json");

/// Collects the keys of all objects in a value.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// Collects the names of all fields in a schema.
fn fields(schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        found.extend(properties.keys().cloned());
    }
    match schema {
        Value::Object(object) => object.values().for_each(|part| fields(part, found)),
        Value::Array(list) => list.iter().for_each(|part| fields(part, found)),
        _ => {}
    }
}

// Guarantee: arch-3.
#[test]
fn the_definition_with_everything_leaves_no_field_of_the_schema_out() {
    let read = |text| serde_json::from_str::<Value>(text).unwrap();
    let (mut known, mut used) = (BTreeSet::new(), BTreeSet::new());
    fields(&read(corsair_arch::schema()), &mut known);
    keys(&read(EVERYTHING), &mut used);
    let unused: Vec<_> = known.difference(&used).collect();
    assert_eq!(unused, ["csv", "replay"]);
}

// Guarantee: arch-3.
#[test]
fn scripts_and_policies_leave_the_same_bytes_on_any_number_of_workers() {
    let checked = corsair_arch::read_text(EVERYTHING, "everything_arch.json").unwrap();
    let scale = Scale {
        regions: 2,
        percent: 800,
    };
    let topology = Topology::new(&checked, scale).unwrap();
    assert!(topology.len() > 520, "{}", topology.len());
    let (first, totals, files) = run(topology.clone(), 1);
    let all = totals.services.values();
    let sum = |of: fn(&corsair_arch::ServiceTotals) -> u64| all.clone().map(of).sum::<u64>();
    // Each policy takes effect at least once.
    for (what, count) in [
        ("refused", sum(|service| service.refused)),
        ("rejected", sum(|service| service.rejected)),
        ("timeouts", sum(|service| service.timeouts)),
        ("retries", sum(|service| service.retries)),
        ("hedges", sum(|service| service.hedges)),
        ("fallbacks", sum(|service| service.fallbacks)),
        ("opened", sum(|service| service.opened)),
        ("started", sum(|service| service.started)),
        ("ejected", sum(|service| service.ejected)),
        ("sent", sum(|service| service.one_way)),
    ] {
        assert!(count > 0, "no instance has {what}");
    }
    for workers in [2, 4] {
        let (again, same, others) = run(topology.clone(), workers);
        assert_eq!(again.digest, first.digest, "{workers} workers");
        assert_eq!(format!("{same:?}"), format!("{totals:?}"));
        assert!(files == others, "{workers} workers");
    }
}

#[test]
fn every_step_of_the_migration_answers_its_requests() {
    for number in 0..=9 {
        let (checked, scale) = step(number, Scale::default()).unwrap();
        let topology = Topology::new(&checked, scale).unwrap();
        let (report, totals, _) = run(topology, 1);
        assert!(totals.requests() > 50, "step {number}");
        assert_eq!(totals.errors(), 0, "step {number}");
        // Answers to the last requests of registries do not arrive too late, either.
        assert_eq!(report.dead(), 0, "step {number}: {:?}", report.dead_letters);
    }
}
