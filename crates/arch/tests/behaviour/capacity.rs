//! The load that an architecture sustains agrees with theory for any seed.

use crate::scene::{plan, topology};
use corsair::Config;
use corsair_arch::{Capacity, Plan, Scale, Search, Slo, Topology, capacity, read};
use std::path::Path;
use std::time::Duration;

fn find(topology: &Topology, plan: &Plan, search: &Search, seed: u64) -> Capacity {
    let config = Config {
        seed,
        ..Config::default()
    };
    capacity(&config, topology, plan, search, |_| ()).unwrap()
}

fn one_server() -> Topology {
    topology(
        r#"{"name": "db", "package": "store", "count": 1, "regions": 1, "concurrency": 1,
         "service_time": {"exponential": "8ms"}},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}"#,
        Scale::default(),
    )
}

// Guarantee: arch-4.
#[test]
fn the_capacity_of_one_server_is_that_of_theory_from_any_seed() {
    // D/M/1 with a mean work of 8 ms: the time in the server is exponential, and its 99th percentile is 100 ms at 100.2
    // requests per second. The two trips add a millisecond each.
    let search = Search {
        slos: Slo::usual(Duration::from_millis(102), 0.01),
        from: 50.0,
        to: 400.0,
        ..Search::default()
    };
    for seed in 0..3 {
        let found = find(&one_server(), &plan(), &search, seed);
        let load = found.load.unwrap();
        assert!((97.0..=103.5).contains(&load), "seed {seed}: {found:?}");
        let (least, most) = found.between;
        assert!((95.0..101.0).contains(&least.unwrap()), "{found:?}");
        assert!((99.5..106.0).contains(&most.unwrap()), "{found:?}");
    }
}

#[test]
fn runs_that_are_too_short_to_tell_are_made_longer() {
    let hasty = Plan {
        duration: Duration::from_millis(1),
        ..plan()
    };
    let search = Search {
        from: 50.0,
        to: 1_000.0,
        precision: 0.1,
        ..Search::default()
    };
    let found = find(&one_server(), &hasty, &search, 0);
    assert!((90.0..=110.0).contains(&found.load.unwrap()), "{found:?}");
}

#[test]
fn the_victim_of_the_chaos_monkey_takes_nothing_from_the_capacity() {
    let checked = read("netflixoss", Path::new("nowhere")).unwrap();
    let topology = Topology::new(&checked, Scale::default()).unwrap();
    let search = Search {
        from: 20.0,
        to: 40.0,
        ..Search::default()
    };
    for seed in 0..3 {
        let found = find(&topology, &plan(), &search, seed);
        assert!(found.beyond, "seed {seed}: {found:?}");
        assert!(found.points.iter().all(|point| point.errors == 0.0));
    }
}

#[test]
fn throughput_counts_values_as_the_load_does() {
    let search = Search {
        from: 50.0,
        to: 50.0,
        ..Search::default()
    };
    let found = find(&one_server(), &plan(), &search, 0);
    let throughput = found.points[0].throughput;
    assert!((49.0..=51.0).contains(&throughput), "{throughput}");
}

#[test]
fn the_answer_is_the_same_on_any_number_of_threads() {
    let search = Search {
        slos: Slo::usual(Duration::from_millis(60), 0.01),
        from: 50.0,
        to: 100.0,
        precision: 0.1,
    };
    let found = [1, 2, 4].map(|workers| {
        let config = Config {
            workers: std::num::NonZeroUsize::new(workers).unwrap(),
            ..Config::default()
        };
        capacity(&config, &one_server(), &plan(), &search, |_| ()).unwrap()
    });
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}

fn shop(concurrency: &str) -> Topology {
    let text = format!(
        r#"{{"arch": "x", "load": {{"www": {{"rate": 100, "arrivals": "poisson",
            "requests": {{"cart.list": 9, "cart.buy": 1}}}}}}, "services": [
        {{"name": "cart", "package": "service", "count": 1, "regions": 1 {concurrency}, "endpoints": [
            {{"name": "list", "steps": [{{"work": {{"exponential": "4ms"}}}}]}},
            {{"name": "buy", "steps": [{{"work": "30ms"}}]}}]}},
        {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["cart"]}}]}}"#
    );
    let checked = corsair_arch::read_text(&text, "x.json").unwrap();
    Topology::new(&checked, Scale::default()).unwrap()
}

fn under(slos: &[&str], from: f64) -> Search {
    Search {
        slos: slos.iter().map(|slo| slo.parse().unwrap()).collect(),
        from,
        ..Search::default()
    }
}

// Guarantee: arch-17.
#[test]
fn what_nothing_limits_is_tried_once() {
    let found = find(&shop(""), &plan(), &Search::default(), 0);
    assert!(
        !found.limited && found.load.is_none() && found.points.len() == 1,
        "{found:?}"
    );
    assert_eq!(shop("").unlimited(), ["cart"]);
    assert!(shop(r#", "concurrency": 2"#).unlimited().is_empty());
}

// Guarantee: arch-17.
#[test]
fn a_capacity_below_the_first_load_is_found_and_one_that_there_is_not_ends_early() {
    let search = |from| under(&["p99 < 102ms"], from);
    let found = find(&one_server(), &plan(), &search(4_000.0), 0);
    let load = found.load.unwrap();
    assert!((97.0..=103.5).contains(&load), "{found:?}");
    // The two trips take a millisecond each and the work 8 ms at any load, so the objective is never met.
    let none = find(&one_server(), &plan(), &under(&["mean < 5ms"], 100.0), 0);
    assert!(none.load.is_none() && none.points.len() < 10, "{none:?}");
}

// Guarantee: arch-17.
#[test]
fn objectives_of_kinds_means_and_errors_each_limit_the_load() {
    let slots = r#", "concurrency": 2, "queue": {"size": 3}"#;
    let load = |slos: &[&str]| {
        find(&shop(slots), &plan(), &under(slos, 10.0), 0)
            .load
            .unwrap()
    };
    let loose = ["cart.list p95 < 1s", "errors < 50%"];
    let (by_kind, by_errors) = (
        load(&["list p95 < 20ms", "errors < 50%"]),
        load(&["cart.list p95 < 1s", "errors < 1%"]),
    );
    let by_nothing = load(&loose);
    for (limited, name) in [(by_kind, "kind"), (by_errors, "errors")] {
        assert!(
            limited < 0.8 * by_nothing,
            "{name}: {limited} of {by_nothing}"
        );
    }
    // Refused requests end early, so the mean limits the load only if no requests are refused.
    let unbounded = shop(r#", "concurrency": 2"#);
    let by_mean = |slo: &str| {
        let found = find(&unbounded, &plan(), &under(&[slo], 10.0), 0);
        found.load.unwrap()
    };
    let (strict, lax) = (by_mean("list mean < 10ms"), by_mean("list mean < 60ms"));
    assert!(strict < 0.95 * lax, "{strict} of {lax}");
    let error = capacity(
        &Config::default(),
        &shop(slots),
        &plan(),
        &under(&["lst p95 < 1s"], 1.0),
        |_| (),
    );
    let said = error.unwrap_err().to_string();
    assert!(
        said.starts_with("the load has no kind of request 'lst'"),
        "{said}"
    );
}
