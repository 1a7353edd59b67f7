//! A run over several processes has the digest, the report and the tally of one process.

use super::{result, run};
use corsair::fsm::{self, Fsm};
use corsair::{Config, Executor, Latency, Time};
use std::time::Duration;

fn seeded(seed: u64) -> Config {
    Config {
        seed,
        ..Config::default()
    }
}

fn pirates(population: u32, talk: Duration) -> Fsm {
    Fsm {
        population,
        talk,
        chat: Some(Duration::from_millis(20)),
        ..Fsm::default()
    }
}

// Guarantee: cluster-1.
#[test]
fn pirates_do_the_same_on_any_number_of_processes_and_workers() {
    // More than one page of actors for each of eight workers.
    let scenario = pirates(3000, Duration::from_millis(200));
    for seed in 0..2 {
        let config = seeded(seed);
        let alone = fsm::run(Executor::Virtual, &config, scenario.clone());
        let (alone, tally) = alone.unwrap();
        for processes in [1, 2, 3, 4] {
            for workers in [1, 2] {
                let (report, counted, exchanged) = run(&config, &scenario, processes, workers);
                let report = report.unwrap();
                assert_eq!(
                    report.digest, alone.digest,
                    "{processes} × {workers}, seed {seed}"
                );
                assert_eq!(result(&report), result(&alone));
                assert_eq!((report.workers, counted), (processes * workers, tally));
                assert_eq!(exchanged.sent > 0, processes > 1, "{exchanged:?}");
                assert!(exchanged.exchanges >= report.windows);
            }
        }
    }
}

// Guarantee: cluster-1.
#[test]
fn what_is_due_far_ahead_and_windows_of_any_width_change_nothing() {
    // Latencies of more than 63 windows.
    let latency = Latency::between(Duration::from_micros(10), Duration::from_millis(5)).unwrap();
    let config = Config {
        latency,
        ..seeded(7)
    };
    let scenario = pirates(1200, Duration::from_millis(40));
    let (alone, _) = fsm::run(Executor::Virtual, &config, scenario.clone()).unwrap();
    let (report, ..) = run(&config, &scenario, 3, 1);
    assert_eq!(result(&report.unwrap()), result(&alone));
    let narrow = Config {
        latency: Latency::constant(Duration::from_millis(2)),
        lookahead: Some(Duration::from_micros(100)),
        ..seeded(8)
    };
    let wide = Config {
        lookahead: None,
        ..narrow.clone()
    };
    let (alone, _) = fsm::run(Executor::Virtual, &wide, scenario.clone()).unwrap();
    let (report, ..) = run(&narrow, &scenario, 2, 2);
    assert_eq!(report.unwrap().digest, alone.digest);
}

// Guarantee: cluster-1.
#[test]
fn windows_of_megabytes_arrive_complete() {
    // 4,096 pirates say goodbye at once, half of them in the second process, which also creates the FSM's messages to
    // them.
    let scenario = Fsm {
        population: 40_000,
        talk: Duration::ZERO,
        ..Fsm::default()
    };
    let config = Config {
        latency: Latency::constant(Duration::from_secs(1)),
        ..seeded(3)
    };
    let (alone, tally) = fsm::run(Executor::Virtual, &config, scenario.clone()).unwrap();
    let (report, counted, exchange) = run(&config, &scenario, 2, 1);
    assert_eq!(result(&report.unwrap()), result(&alone));
    assert_eq!(counted, tally);
    assert!(exchange.received > 2 << 20, "{exchange:?}");
    assert!(exchange.sent < exchange.received / 2, "{exchange:?}");
}

// Guarantee: cluster-1.
#[test]
fn a_run_that_fails_fails_with_the_same_sentence() {
    let config = Config {
        end: Some(Time::ZERO.after(Duration::from_millis(50))),
        ..seeded(1)
    };
    let scenario = pirates(1000, Duration::from_secs(1));
    let alone = fsm::run(Executor::Virtual, &config, scenario.clone())
        .unwrap_err()
        .to_string();
    assert!(alone.contains("past") || alone.contains("end"), "{alone}");
    let (report, ..) = run(&config, &scenario, 2, 1);
    assert_eq!(report.unwrap_err().to_string(), alone);
}
