//! Compares corsair with other runtimes: `cargo bench --manifest-path benches/versus/Cargo.toml`.
//!
//! Each run is a separate process that runs one load once, so its peak memory belongs to a single contender. In each
//! round every contender runs once, so that other load on the machine affects all of them alike. The table has medians.
//! Every result is checked ([`Run::check`]). All contenders use the system's allocator.
//!
//! [`Run::check`]: versus::Run::check

mod arguments;
mod contenders;
mod referee;
mod table;

use arguments::{Arguments, Task};
use std::process::ExitCode;

fn main() -> ExitCode {
    let done =
        Arguments::parse(std::env::args().skip(1)).and_then(|arguments| match arguments.task {
            Task::Compare(plan) => referee::compare(&plan),
            Task::Run(contender, load) => referee::run_here(contender, load),
            Task::List => table::list().map_err(|error| format!("cannot print: {error}")),
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus: {error}");
            ExitCode::from(2)
        }
    }
}
