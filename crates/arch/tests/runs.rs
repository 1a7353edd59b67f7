//! Architectures run from end to end.

use corsair::{Config, Executor, Report};
use corsair_arch::{BUILT_IN, Plan, Scale, Topology, Totals, read, simulate};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

fn topology(name: &str, scale: Scale) -> Topology {
    Topology::new(&read(name, Path::new("nowhere")).unwrap(), scale).unwrap()
}

fn run(name: &str, scale: Scale, workers: usize, plan: &Plan) -> (Report, Totals) {
    let config = Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    };
    simulate(Executor::Virtual, &config, topology(name, scale), plan).unwrap()
}

fn seconds(duration: u64) -> Plan {
    Plan {
        duration: Duration::from_secs(duration),
        ..Plan::default()
    }
}

#[test]
fn every_built_in_answers_its_requests_the_same_on_any_number_of_workers() {
    for (name, _) in BUILT_IN {
        for regions in [1, 2] {
            let scale = Scale {
                regions,
                percent: 100,
            };
            let (first, totals) = run(name, scale, 1, &seconds(2));
            assert!(totals.requests() > 100, "{name}: {totals:?}");
            for entry in totals.entries.values() {
                assert!(entry.times.len() > 50, "{name}: {entry:?}");
                assert_eq!(entry.unanswered(), 0, "{name}");
            }
            assert_eq!(first.dead(), 0, "{name}: {:?}", first.dead_letters);
            for workers in [1, 2, 4] {
                let (again, same) = run(name, scale, workers, &seconds(2));
                assert_eq!(again.digest, first.digest, "{name} on {workers} workers");
                assert_eq!(format!("{same:?}"), format!("{totals:?}"), "{name}");
            }
        }
    }
}
