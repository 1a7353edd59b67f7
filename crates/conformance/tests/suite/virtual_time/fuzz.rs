//! Runs random scenarios in several ways, some of them with pauses, and compares results, reports and the events of
//! actors. Afterwards no message may be left in memory. `cargo run -p corsair-conformance --example fuzz` runs further
//! cases.

mod case;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

// Guarantee: core-58, core-66.
#[test]
fn random_scenarios_are_the_same_for_any_workers_and_lookahead() {
    let cases = if cfg!(miri) { 3 } else { 50 };
    for number in (0..cases).flat_map(|number| [number, number + case::PLAIN]) {
        if let Err(difference) = case::check(number) {
            panic!("{difference}");
        }
    }
}

/// Cases that once revealed a fault; the first one did not end.
#[test]
fn cases_that_were_wrong_once_are_right() {
    const PATIENCE: Duration = Duration::from_secs(120);
    for number in [21_686, 126_926, 127_765, case::PLAIN + 7_276] {
        let (done, result) = mpsc::channel();
        thread::spawn(move || done.send(case::check(number)));
        match result.recv_timeout(PATIENCE) {
            Ok(Ok(())) => {}
            Ok(Err(difference)) => panic!("{difference}"),
            Err(_) => panic!("case {number} does not end"),
        }
    }
}
