//! `corsair diff RUN_A RUN_B`: finds the first difference between two recorded runs.

use anyhow::Result;
use clap::Args;
use corsair_observe::diff::{Comparison, diff};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit code if the runs differ, which is also the exit code of `diff` and `cmp`.
const DIFFER: u8 = 1;

/// The arguments of `corsair diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// An output file or the output directory of one run
    #[arg(value_name = "RUN_A")]
    a: PathBuf,
    /// An output file or the output directory of another run
    #[arg(value_name = "RUN_B")]
    b: PathBuf,
}

/// Compares two runs, prints the result, and returns it as the exit code.
///
/// # Errors
/// If a file cannot be read or compared.
pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let comparison = diff(&args.a, &args.b)?;
    crate::console::Console::new(true)
        .print(|mut out| std::io::Write::write_all(&mut out, text(&comparison).as_bytes()));
    Ok(match comparison.is_same() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(DIFFER),
    })
}

/// Returns the lines that the command prints.
fn text(comparison: &Comparison) -> String {
    let Comparison {
        files,
        same,
        first,
        only_a,
        only_b,
    } = comparison;
    let plural = if *files == 1 { "" } else { "s" };
    let mut text = match first {
        None => format!("The runs are the same in {files} file{plural}, {same} events.\n"),
        Some(first) => format!("The runs differ first in {first}\n"),
    };
    for (which, files) in [("first", only_a), ("second", only_b)] {
        for file in files {
            let _ = writeln!(text, "Only the {which} run has {}", file.display());
        }
    }
    text
}
