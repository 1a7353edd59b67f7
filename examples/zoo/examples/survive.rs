//! Searches for violations in the fixed programs of the zoo: `survive MINUTES [NAMES…]`. The time is divided among
//! them. The exit code is 1 if a property is violated; the shrunk failure is printed.

use corsair_hunt::{Hunt, explain, hunt, shrink};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let minutes: f64 = arguments.first().map_or(Ok(0.001), |text| text.parse())?;
    let names = arguments.get(1..).unwrap_or_default();
    let mut chosen = corsair_zoo::all(false);
    chosen.extend(corsair_zoo::further(false));
    chosen.retain(|subject| names.is_empty() || names.iter().any(|name| name == subject.name()));
    let time = Duration::try_from_secs_f64(minutes * 60.0 / chosen.len().max(1) as f64)?;
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
