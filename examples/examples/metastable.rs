//! A metastable failure: after a load spike of two seconds, retries keep the system down. With a
//! budget for retries the same system recovers.
//!
//! A database can handle 400 requests per second and receives 280. During the spike, calls time out and are repeated.
//! Up to four attempts for each of 280 requests per second are more than the database can handle, so calls continue to
//! time out after the spike. A retry budget of a tenth limits the load to 308 attempts per second.
//!
//! ```text
//! cargo run -p corsair-examples --example metastable
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{Config, Executor};
use corsair_arch::{DefinitionText, Plan, Scale, Setting, Topology, simulate};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// Returns the share of requests that fail in each interval of four seconds, with changed settings.
fn failing(settings: &[Setting]) -> Result<Vec<f64>, Box<dyn Error>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/metastable_arch.json");
    let checked = DefinitionText::find(file, Path::new(""))?.with(settings)?;
    let topology = Topology::new(&checked, Scale::default())?;
    let plan = Plan {
        duration: Duration::from_secs(40),
        interval: Some(Duration::from_secs(4)),
        ..Plan::default()
    };
    let www = topology.services.len() as u32 - 1;
    let (_, totals) = simulate(Executor::Virtual, &Config::default(), topology, &plan)?;
    let timeline = totals.timeline.ok_or("no timeline was kept")?;
    let slices = timeline.of_service(www);
    let part = |slice: &corsair_arch::Slice| slice.errors as f64 / slice.requests as f64;
    Ok(slices.iter().map(part).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let without = failing(&[])?;
    let with = failing(&[Setting {
        path: "services.api.calls.db.retries.budget".to_owned(),
        value: Setting::value(r#"{"share": 0.1}"#),
    }])?;
    println!("seconds   failing, with a spike from 10 to 12");
    for (slice, (without, with)) in (0..).zip(without.iter().zip(&with)) {
        let bar = |part: f64| "#".repeat((part * 25.0).round() as usize);
        println!(
            "{:>2}..{:<2}    {:>4.0} % {:<26} with a budget {:>4.0} % {}",
            slice * 4,
            slice * 4 + 4,
            without * 100.0,
            bar(*without),
            with * 100.0,
            bar(*with),
        );
    }
    let last = without.len() - 1;
    assert!(without[last] > 0.9, "it has recovered by itself");
    assert!(with[last] < 0.01, "it is still down");
    Ok(())
}
