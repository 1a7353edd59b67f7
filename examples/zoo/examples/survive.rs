//! Searches for violations in the fixed programs of the zoo: `survive MINUTES [NAMES…]`. The time is divided among
//! them. The exit code is 1 if a property is violated; the shrunk failure is printed.

use clap::Parser;
use corsair_hunt::{Hunt, explain, hunt, shrink};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
struct Arguments {
    /// The time of all searches together, in minutes.
    #[arg(default_value = "0.001", value_parser = time)]
    minutes: Duration,
    /// The programs; all, if none is given.
    #[arg(value_parser = corsair_zoo::names())]
    names: Vec<String>,
}

fn time(minutes: &str) -> Result<Duration, String> {
    let minutes: f64 = minutes.parse().unwrap_or(f64::NAN);
    Duration::try_from_secs_f64(60.0 * minutes).map_err(|_| "expected a number of minutes".into())
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let Arguments { minutes, names } = Arguments::parse();
    let mut chosen = corsair_zoo::all_and_further(false);
    chosen.retain(|subject| names.is_empty() || names.iter().any(|name| name == subject.name()));
    let time = minutes / chosen.len() as u32;
    let mut out = std::io::stdout().lock();
    let mut code = ExitCode::SUCCESS;
    for (seed, subject) in (4_000..).zip(&chosen) {
        let settings = Hunt {
            seed,
            runs: u64::MAX,
            time,
            ..Hunt::default()
        };
        let hunted = hunt(&**subject, &settings)?;
        writeln!(out, "{}: {} runs", subject.name(), hunted.runs)?;
        if let Some(failure) = &hunted.failure {
            let shrunk = shrink(&**subject, failure)?;
            writeln!(out, "{}", explain(&**subject, &shrunk.failure)?.text())?;
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}
