//! The same actors by the clock.

use corsair::{Config, Executor};
use corsair_arch::{Plan, Scale, Topology, read, simulate};
use std::path::Path;
use std::time::Duration;

#[test]
fn an_architecture_runs_on_every_executor() {
    for executor in [Executor::Tokio, Executor::Pool, Executor::Threads] {
        let checked = read("lamp", Path::new("nowhere")).unwrap();
        let topology = Topology::new(&checked, Scale::default()).unwrap();
        let plan = Plan {
            duration: Duration::from_millis(300),
            ..Plan::default()
        };
        let (report, totals) = simulate(executor, &Config::default(), topology, &plan).unwrap();
        let entry = &totals.entries["www"];
        assert!(entry.requests > 3, "{executor:?}: {entry:?}");
        assert_eq!(entry.errors, 0, "{executor:?}");
        assert_eq!(totals.goodbyes, 23, "{executor:?}");
        // There is no virtual latency, so the whole way is in the delays: four hops of 200 µs.
        assert!(entry.times.min() > 800_000, "{executor:?}: {entry:?}");
        assert_eq!(report.digest, None);
    }
}
