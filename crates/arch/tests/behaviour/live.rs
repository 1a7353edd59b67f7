//! The same actors by the clock, and runs that are cut.

use corsair::{Config, Executor, Outcome};
use corsair_arch::{Plan, Scale, Topology, read, simulate};
use std::path::Path;
use std::time::Duration;

#[test]
fn an_architecture_runs_on_every_executor() {
    for executor in [Executor::Tokio, Executor::Pool, Executor::Threads] {
        let checked = read("lamp", Path::new("nowhere")).unwrap();
        let topology = Topology::new(&checked, Scale::default()).unwrap();
        // On a busy machine the load may begin before the instances have found each other: the first
        // requests are not counted.
        let plan = Plan {
            duration: Duration::from_millis(700),
            warm_up: Duration::from_millis(500),
            poll: Duration::from_millis(50),
            ..Plan::default()
        };
        let (report, totals) = simulate(executor, &Config::default(), topology, &plan).unwrap();
        let entry = &totals.entries["www"];
        assert!(entry.times.len() > 3, "{executor:?}: {entry:?}");
        assert_eq!(entry.errors, 0, "{executor:?}");
        assert_eq!(totals.goodbyes, 23, "{executor:?}");
        // There is no virtual latency, so the whole way is in the delays: four hops of 200 µs.
        assert!(entry.times.min() > 800_000, "{executor:?}: {entry:?}");
        assert_eq!(report.digest, None);
    }
}

#[test]
fn a_run_that_is_cut_tells_what_it_has_done_until_then() {
    for executor in [
        Executor::Virtual,
        Executor::Tokio,
        Executor::Pool,
        Executor::Threads,
    ] {
        let checked = read("lamp", Path::new("nowhere")).unwrap();
        let topology = Topology::new(&checked, Scale::default()).unwrap();
        let plan = Plan {
            duration: Duration::from_secs(1_000_000),
            chat: Duration::from_millis(2),
            ..Plan::default()
        };
        let config = Config::default();
        let cut = config.cut.clone();
        let cutting = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            cut.cut();
        });
        let (report, totals) = simulate(executor, &config, topology, &plan).unwrap();
        cutting.join().unwrap();
        assert_eq!(report.outcome, Outcome::Cut, "{executor:?}");
        assert!(totals.requests() > 20, "{executor:?}: {totals:?}");
        assert!(totals.slowest().is_some(), "{executor:?}");
        assert_eq!(totals.goodbyes, 0, "{executor:?}");
    }
}
