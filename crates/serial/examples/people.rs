//! Writes generated people as one JSON array, for programs in other languages than Rust.
//!
//! ```text
//! cargo run --release -p corsair-serial --example people -- 1000 7 > people.json
//! ```

use corsair_serial::{Json, Serial, Strategy};
use corsair_testing::people;
use std::io;
use std::process::ExitCode;

const USAGE: &str = "usage: people [COUNT [SEED]], whole numbers; without them 1000 and 7";

fn main() -> ExitCode {
    match write(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("people: {message}");
            ExitCode::from(2)
        }
    }
}

fn write(arguments: Vec<String>) -> Result<(), String> {
    if arguments.len() > 2 {
        return Err(USAGE.into());
    }
    let number = |index: usize, default: u64| match arguments.get(index) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("'{text}' is not a number of people, or no seed; {USAGE}")),
        None => Ok(default),
    };
    let count = usize::try_from(number(0, 1000)?).map_err(|error| error.to_string())?;
    let people = people::generate(count, number(1, 7)?);
    let batch = Serial
        .marshal(&Json, &people)
        .map_err(|error| error.to_string())?;
    batch
        .write_json_array(io::stdout().lock())
        .map_err(|error| format!("cannot write to standard output: {error}"))
}
