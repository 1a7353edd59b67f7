//! A metastable failure: a spike of two seconds, retries, and a system that stays down after it.
//! With a budget for retries the same system recovers.
//!
//! A database bears 400 requests a second and gets 280. During the spike, calls time out and are
//! made again: up to four attempts for each of 280 requests are more than it bears, so that all
//! time out for good. A budget of a tenth leaves 308 attempts a second.
//!
//! ```text
//! cargo run -p corsair-examples --example metastable
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{Config, Executor};
use corsair_arch::{Plan, Scale, SimulateError, Topology, read_text, simulate};
use std::error::Error;
use std::time::Duration;

/// The architecture, with these fields added to its retries.
fn definition(budget: &str) -> String {
    format!(
        r#"{{
  "arch": "shop",
  "load": {{ "www": {{ "arrivals": "poisson", "requests": {{ "api.get": 1 }}, "rate": [
    {{ "at": "0s", "rate": 280 }}, {{ "at": "10s", "rate": 900 }}, {{ "at": "12s", "rate": 280 }}] }} }},
  "services": [
    {{ "name": "db", "package": "service", "count": 1, "regions": 1, "concurrency": 4,
       "endpoints": [{{ "name": "query", "steps": [{{ "work": {{ "exponential": "10ms" }} }}] }}] }},
    {{ "name": "api", "package": "service", "count": 1, "regions": 1,
       "calls": {{ "db": {{ "timeout": "100ms",
                        "retries": {{ "most": 3, "backoff": "10ms", "jitter": 1 {budget} }} }} }},
       "endpoints": [{{ "name": "get", "steps": [{{ "call": "db" }}] }}] }},
    {{ "name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"] }}
  ]
}}"#
    )
}

/// Which part of the requests of some seconds fails. Runs from the same seed are the same until
/// they end, so that each shows a later part of one story.
fn failing(topology: &Topology, from: u64, to: u64) -> Result<f64, SimulateError> {
    let plan = Plan {
        duration: Duration::from_secs(to),
        warm_up: Duration::from_secs(from),
        ..Plan::default()
    };
    let (_, totals) = simulate(
        Executor::Virtual,
        &Config::default(),
        topology.clone(),
        &plan,
    )?;
    let www = &totals.entries["www"];
    Ok((www.errors + www.unanswered()) as f64 / www.requests as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let topology = |budget| -> Result<Topology, Box<dyn Error>> {
        let checked = read_text(&definition(budget), "shop")?;
        Ok(Topology::new(&checked, Scale::default())?)
    };
    let without = topology("")?;
    let with = topology(r#", "budget": { "share": 0.1 }"#)?;
    println!("seconds   failing, with a spike from 10 to 12");
    let mut last = (0.0, 0.0);
    for from in (0..40).step_by(4) {
        last = (
            failing(&without, from, from + 4)?,
            failing(&with, from, from + 4)?,
        );
        let bar = |part: f64| "#".repeat((part * 25.0).round() as usize);
        println!(
            "{from:>2}..{:<2}    {:>4.0} % {:<26} with a budget {:>4.0} % {}",
            from + 4,
            last.0 * 100.0,
            bar(last.0),
            last.1 * 100.0,
            bar(last.1),
        );
    }
    assert!(last.0 > 0.9, "it has recovered by itself");
    assert!(last.1 < 0.01, "it is still down");
    Ok(())
}
