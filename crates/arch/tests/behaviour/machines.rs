//! Machines whose processors several services share: random definitions, and the laws that their runs obey.

use crate::scene::{Ran, plan, run};
use corsair_arch::{LoadText, Plan, Scale, Topology, read_text};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns a configuration with the same cases in each run, because the tolerances of measurements are probabilities.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(5),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Returns a name that a definition may use in several places, and rarely an invalid one.
fn name() -> impl Strategy<Value = String> {
    const NAMES: [&str; 11] = [
        "a", "b", "box", "rack", "a", "b", "box", "", "x.y", "eureka", "é",
    ];
    prop::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn processors() -> impl Strategy<Value = Value> {
    let odd = [
        json!(0),
        json!(-1),
        json!(1e300),
        json!(1e-300),
        json!(null),
        json!("2"),
    ];
    prop_oneof![
        4 => (1..8u32).prop_map(|n| json!(f64::from(n) / 2.0)),
        1 => prop::sample::select(odd.to_vec()),
    ]
}

fn steps() -> impl Strategy<Value = Value> {
    let step = prop_oneof![
        3 => prop::sample::select(&["0s", "1ms", "7ms"][..]).prop_map(|time| json!({"work": time})),
        1 => Just(json!({"work": {"exponential": "2ms"}, "probability": 0.5})),
        1 => name().prop_map(|name| json!({"call": name, "fallback": [{"work": "1ms"}]})),
        1 => name().prop_map(|name| json!({"send": format!("{name}.get"), "probability": 0.01})),
        1 => Just(json!({"parallel": [[{"work": "1ms"}], [{"work": "2ms"}]], "wait": 1})),
        1 => Just(json!({"cache": {"hit_rate": 0.5}, "miss": [{"work": "3ms"}]})),
    ];
    prop::collection::vec(step, 0..3).prop_map(Value::Array)
}

/// Returns the kinds of faults that may be given to a service or to a machine.
fn faults() -> impl Strategy<Value = Value> {
    const KINDS: [&str; 6] = ["pause", "kill", "slow", "restart", "none", "fast"];
    prop::sample::select(&KINDS[..]).prop_map(|kind| match kind {
        "none" => json!([]),
        "fast" => json!([{"kind": "slow", "at": "20ms", "factor": 0.5}]),
        "slow" => json!([{"kind": "slow", "at": "20ms", "for": "20ms", "factor": 3}]),
        kind => json!([{"kind": kind, "at": "20ms", "for": "20ms"}]),
    })
}

fn service() -> impl Strategy<Value = Value> {
    let package = prop_oneof![9 => Just("service"), 1 => Just("store"), 1 => Just("monolith")];
    let fields = (
        (
            name(),
            name(),
            package,
            0..4i64,
            prop_oneof![9 => Just(1), 1 => 0..4i64],
        ),
        (
            steps(),
            any::<bool>(),
            prop::option::weighted(0.1, processors()),
        ),
        (
            prop::option::weighted(0.2, faults()),
            prop::option::weighted(0.3, 1..4i64),
            any::<bool>(),
        ),
    );
    fields.prop_map(|(names, work, more)| {
        let (name, machine, package, count, regions) = names;
        let mut made = json!({"name": name, "package": package, "count": count, "regions": regions, "machine": machine});
        if package == "service" {
            made["endpoints"] = json!([{"name": "get", "steps": work.0}]);
        }
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                made[key] = value;
            }
        };
        set("service_time", work.1.then(|| json!({"exponential": "1ms"})));
        set("processors", work.2);
        set("faults", more.0);
        set("concurrency", more.1.map(|n| json!(n)));
        set("calls", more.2.then(|| json!({"*": {"timeout": "20ms", "retries": {"most": 1}}})));
        made
    })
}

/// Returns the text of a random definition with machines, valid or not.
fn definition() -> impl Strategy<Value = String> {
    let slices = prop::sample::select(&["20us", "1ms", "1s", "0s", "x"][..]);
    let slice = prop::option::weighted(0.3, slices.prop_map(|slice| json!(slice)));
    let machine = (processors(), slice, prop::option::weighted(0.3, faults()));
    let machines = prop::collection::vec((name(), machine), 0..3);
    let services = prop::collection::vec(service(), 1..4);
    (machines, services, name()).prop_map(|(machines, mut services, entry)| {
        let machines = machines
            .into_iter()
            .map(|(name, (processors, slice, faults))| {
                let mut machine = json!({"processors": processors});
                for (key, value) in [("time_slice", slice), ("faults", faults)] {
                    if let Some(value) = value {
                        machine[key] = value;
                    }
                }
                (name, machine)
            });
        services.push(json!({"name": "www", "package": "denominator", "dependencies": [entry]}));
        let machines: serde_json::Map<String, Value> = machines.collect();
        json!({"arch": "x", "machines": machines, "services": services}).to_string()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    // Guarantee: arch-1.
    #[test]
    fn a_random_definition_with_machines_is_refused_with_its_place_or_runs(text in definition()) {
        match read_text(&text, "x.json") {
            Err(error) => {
                let said = error.to_string();
                prop_assert!(said.starts_with("x.json:") && said.len() < 300, "{}", said);
                prop_assert_eq!(said.lines().count(), 1);
                let place = error.place().unwrap();
                prop_assert!(place.line.is_some(), "{}", said);
            }
            Ok(checked) => {
                let plan = Plan {
                    duration: Duration::from_millis(60),
                    drain: Duration::from_secs(2),
                    ..plan()
                };
                let ran = run(Topology::new(&checked, Scale::default()).unwrap(), &plan);
                prop_assert_eq!(ran.entry().unanswered(), 0, "{}", text);
            }
        }
    }
}

/// Runs services behind www with latencies of 10 µs. Returns the run, and the shares of busy processors of each service with
/// its own processors.
fn measured(machines: &Value, services: &[Value], load: &Value, seconds: u64) -> (Ran, Vec<f64>) {
    let mut services = services.to_vec();
    services.push(
        json!({"name": "www", "package": "denominator", "regions": 0, "dependencies": ["a"]}),
    );
    let text = json!({"arch": "x", "machines": machines, "services": services,
        "network": {"same_zone": "10us", "same_region": "10us", "other_region": "10us"}});
    let checked = read_text(&text.to_string(), "x").unwrap();
    let mut topology = Topology::new(&checked, Scale::default()).unwrap();
    LoadText::read(&load.to_string())
        .unwrap()
        .apply(&mut topology)
        .unwrap();
    let plan = Plan {
        duration: Duration::from_secs(seconds),
        warm_up: Duration::from_secs(seconds / 10),
        drain: Duration::from_secs(5),
        poll: Duration::from_secs(3_600),
        ..plan()
    };
    let ran = run(topology.clone(), &plan);
    let busy = topology.utilisations(&ran.totals, plan.duration - plan.warm_up);
    (ran, busy.into_iter().map(|(_, part)| part).collect())
}

/// Returns a distribution of work with this mean in microseconds.
fn work(mean: u64, is_random: bool) -> Value {
    let mean = format!("{mean}us");
    if is_random {
        json!({"exponential": mean})
    } else {
        json!(mean)
    }
}

fn close(found: f64, expected: f64, part: f64, what: &str) -> Result<(), TestCaseError> {
    prop_assert!(
        (found / expected - 1.0).abs() < part,
        "{}: {}, not {}",
        what,
        found,
        expected
    );
    Ok(())
}

proptest! {
    #![proptest_config(fixed(10))]

    // Guarantee: arch-4.
    #[test]
    fn a_saturated_machine_completes_its_processors_divided_by_the_demand(
        processors in 1..9u64,
        works in prop::collection::vec((500..3_000u64, any::<bool>()), 1..4),
        counts in prop::collection::vec(1..4u64, 3),
        share in prop::sample::select(&[0.25, 0.5, 1.0_f64][..]),
        slice in prop::option::of(1..3u64),
    ) {
        // Each service works, and calls the next with a probability.
        let names = ["a", "b", "c"];
        let mut demand = 0.0;
        let services: Vec<Value> = works.iter().enumerate().map(|(at, &(mean, is_random))| {
            demand += mean as f64 / 1e6 * share.powi(at as i32);
            let mut steps = vec![json!({"work": work(mean, is_random)})];
            if at + 1 < works.len() {
                steps.push(json!({"call": names[at + 1], "probability": share}));
            }
            json!({"name": names[at], "package": "service", "count": counts[at], "regions": 1, "machine": "box",
                "endpoints": [{"name": "get", "steps": steps}]})
        }).collect();
        let processors = processors as f64 / 2.0;
        let mut machines = json!({"box": {"processors": processors}});
        if let Some(slice) = slice {
            machines["box"]["time_slice"] = json!(format!("{slice}ms"));
        }
        // With fewer requests at once than processors, some would be idle.
        let load = json!({"users": 60, "requests": {"common": 1}});
        let expected = processors / demand;
        // A tenth of the run is its warm-up.
        let seconds = (3_000.0 / expected).ceil() as u64 * 10;
        let (ran, busy) = measured(&machines, &services, &load, seconds);
        prop_assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
        let rate = ran.entry().requests as f64 / (seconds as f64 * 0.9);
        close(rate, expected, 0.03, "requests per second")?;
        prop_assert_eq!(busy.len(), 1);
        close(busy[0], 1.0, 0.02, "share of busy processors")?;
    }
}

proptest! {
    #![proptest_config(fixed(8))]

    // Guarantee: arch-4.
    #[test]
    fn a_machine_with_one_service_is_the_service_with_its_own_processors(
        processors in 1..9u64,
        load in prop::sample::select(&[0.3, 0.5, 0.8_f64][..]),
        is_random in any::<bool>(),
    ) {
        let processors = processors as f64 / 2.0;
        // The higher the load, the more requests a precise mean needs.
        let load = if is_random { load.min(0.5) } else { load };
        let rate = load * processors / 2e-3;
        let service = |key: &str, value: Value| {
            let mut made = json!({"name": "a", "package": "service", "count": 1, "regions": 1,
                "endpoints": [{"name": "get", "steps": [{"work": work(2_000, is_random)}]}]});
            made[key] = value;
            made
        };
        let arrivals = json!({"rate": rate, "arrivals": "poisson", "requests": {"common": 1}});
        let run = |machines: Value, service: Value| {
            measured(&machines, &[service], &arrivals, (3_000.0 / rate).ceil() as u64 * 10)
        };
        let (own, own_busy) = run(json!({}), service("processors", json!(processors)));
        let (shared, busy) = run(json!({"box": {"processors": processors}}), service("machine", json!("box")));
        let seconds = |ran: &Ran, part: f64| ran.entry().percentile(part).time.as_secs_f64();
        // With constant work both runs have the same arrivals, so they differ only by the trips.
        let tolerance = if is_random { 0.1 } else { 0.005 };
        for part in [0.1, 0.5, 0.9, 0.99] {
            // Each piece of work travels to the machine and back, 10 µs each.
            let (own, shared) = (seconds(&own, part), seconds(&shared, part) - 20e-6);
            close(shared, own, tolerance, &format!("percentile {part}"))?;
        }
        close(busy[0], own_busy[0], tolerance, "share of busy processors")?;
    }
}
