//! The same actors on real executors, and runs that are cancelled.

use corsair::{Config, Executor, Outcome, Report};
use corsair_arch::{
    Distribution, Geography, Plan, Scale, SimulateError, Topology, Totals, read, simulate,
};
use std::path::Path;
use std::time::Duration;

// Guarantee: arch-10.
#[test]
fn an_architecture_runs_on_every_executor() {
    for executor in [Executor::Tokio, Executor::Pool, Executor::Threads] {
        let run = |millis| {
            let checked = read("lamp", Path::new("nowhere")).unwrap();
            let topology = Topology::new(&checked, Scale::default()).unwrap();
            // Requests are not counted until the instances have found each other.
            let plan = Plan {
                duration: Duration::from_millis(millis),
                warm_up: Duration::from_millis(millis / 2),
                poll: Duration::from_millis(50),
                ..Plan::default()
            };
            simulate(executor, &Config::default(), topology, &plan).unwrap()
        };
        let is_served = |(_, totals): &(Report, Totals)| {
            let entry = &totals.entries["www"];
            entry.times.len() > 3 && entry.errors == 0
        };
        // On a busy machine the run is repeated with more time.
        let mut ran = run(400);
        for millis in [2_000, 10_000] {
            if !is_served(&ran) {
                ran = run(millis);
            }
        }
        assert!(is_served(&ran), "{executor:?}: {ran:?}");
        let (report, totals) = ran;
        assert_eq!(totals.goodbyes, 23, "{executor:?}");
        // Without virtual latency the delays contain the complete travel time: four hops of 200 µs.
        let shortest = totals.entries["www"].times.least().unwrap();
        assert!(shortest > 800_000, "{executor:?}: {shortest}");
        assert_eq!(report.digest, None);
    }
}

#[test]
fn ways_that_reach_beyond_all_time_are_refused() {
    let run = |seconds| {
        let checked = read("lamp", Path::new("nowhere")).unwrap();
        let mut topology = Topology::new(&checked, Scale::default()).unwrap();
        let travel = Duration::from_secs(seconds);
        topology.geography = Geography::same_everywhere(&Distribution::uniform(travel, travel));
        assert!(corsair_arch::connections(&topology) > 0);
        simulate(
            Executor::Virtual,
            &Config::default(),
            topology,
            &Plan::default(),
        )
    };
    for seconds in [9_000_000, 10_000_000_000] {
        let refused = run(seconds).unwrap_err();
        assert!(matches!(refused, SimulateError::Latency(_)), "{refused}");
    }
    let (_, totals) = run(3_600).unwrap();
    assert!(totals.requests() > 0);
}

#[test]
fn few_instances_are_run_by_one_worker_if_nobody_says_how_many() {
    let workers = |percent| {
        let checked = read("netflixoss", Path::new("nowhere")).unwrap();
        let regions = 1;
        let topology = Topology::new(&checked, Scale { regions, percent }).unwrap();
        corsair_arch::default_workers(&topology).get()
    };
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!([100, 1_000, 3_000].map(workers), [1; 3]);
    assert_eq!(workers(200_000), cores.min(30));
}

// Guarantee: arch-10.
#[test]
fn a_cancelled_run_tells_what_it_has_done_until_then() {
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
        let cancelled_after = |time| {
            let config = Config::default();
            let cancel = config.cancel.clone();
            let cutting = std::thread::spawn(move || {
                std::thread::sleep(time);
                cancel.cancel();
            });
            let ran = simulate(executor, &config, topology.clone(), &plan).unwrap();
            cutting.join().unwrap();
            ran
        };
        // On a busy machine few requests are answered within 300 ms.
        let mut time = Duration::from_millis(300);
        let (report, totals) = loop {
            let ran = cancelled_after(time);
            if ran.1.requests() > 20 || time > Duration::from_secs(20) {
                break ran;
            }
            time *= 4;
        };
        assert_eq!(report.outcome, Outcome::Cancelled, "{executor:?}");
        assert!(totals.requests() > 20, "{executor:?}: {totals:?}");
        assert!(totals.slowest().is_some(), "{executor:?}");
        assert_eq!(totals.goodbyes, 0, "{executor:?}");
    }
}
