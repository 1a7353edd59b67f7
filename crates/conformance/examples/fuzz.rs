//! Runs random scenarios in several ways and compares all of their results.
//!
//! ```sh
//! cargo run -p corsair-conformance --example fuzz                 # five seconds
//! cargo run -p corsair-conformance --example fuzz -- 3600 10000   # an hour, from case 10000 on
//! cargo run -p corsair-conformance --example fuzz -- forever
//! ```
//!
//! It stops at the first difference, prints the number of the case, and exits with code 1.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "prints its progress and differences"
)]

#[path = "../tests/suite/virtual_time/fuzz/case.rs"]
mod case;

use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let time = arguments.next().unwrap_or_else(|| "5".to_owned());
    let limit = match (time.as_str(), time.parse()) {
        ("forever", _) => None,
        (_, Ok(seconds)) => Some(Duration::from_secs(seconds)),
        _ => return refuse(&format!("'{time}' is not a time; give seconds, or forever")),
    };
    let first = arguments.next().unwrap_or_else(|| "0".to_owned());
    let Ok(mut number) = first.parse::<u64>() else {
        return refuse(&format!(
            "'{first}' is not the number of a case; give the number of the first case"
        ));
    };
    // Panics of actors are part of many cases.
    std::panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let mut cases = 0u64;
    while limit.is_none_or(|limit| began.elapsed() < limit) {
        for number in [number, number ^ case::PLAIN] {
            if let Err(difference) = case::check(number) {
                eprintln!("{difference}");
                return ExitCode::FAILURE;
            }
        }
        number = number.wrapping_add(1);
        cases += 1;
        if cases.is_multiple_of(1000) {
            println!("{cases} cases, the last one {}", number.wrapping_sub(1));
        }
    }
    println!("{cases} cases, no difference");
    ExitCode::SUCCESS
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("fuzz: {why}");
    ExitCode::from(2)
}
