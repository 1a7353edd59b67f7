//! Tests of the progress of a run, which can be observed from outside.

use corsair::fsm::{self, Fsm};
use corsair::{Config, Executor, Time};
use std::time::Duration;

#[test]
fn a_run_in_virtual_time_tells_how_far_it_has_come() {
    let talk = Duration::from_secs(1);
    let config = Config::default();
    let progress = config.progress.clone();
    assert_eq!(progress.time(), Time::ZERO);
    let scenario = Fsm {
        population: 10,
        talk,
        ..Fsm::default()
    };
    let (report, _) = fsm::run(Executor::Virtual, &config, scenario).unwrap();
    assert!(
        progress.time() >= Time::ZERO.after(talk),
        "{}",
        progress.time()
    );
    assert!(
        progress.time() <= report.time,
        "{} of {}",
        progress.time(),
        report.time
    );
}
