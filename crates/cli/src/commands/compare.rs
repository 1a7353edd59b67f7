//! `corsair compare`: compares two architectures that run with the same seeds.

use crate::commands::variants::{self, RunArgs};
use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::progress::{Bar, Measure};
use crate::style::{self, Cell, Meaning};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair_arch::summary::ComparedRow;
use corsair_arch::{Compared, Estimate, Setting, compare, picture};
use corsair_observe::Replacement;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// The flags of `corsair compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// First architecture: a name or a file
    a: String,
    /// Second architecture [default: the first one]
    b: Option<String>,
    /// Set a field of the second architecture, for example services.web.count=4; may be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = variants::setting)]
    set: Vec<Setting>,
    /// Load of the second architecture [default: the load of the first]
    #[arg(long, value_name = "LOAD")]
    load_b: Option<String>,
    /// Number of seeds; each seed runs both architectures
    #[arg(long, value_name = "N", default_value_t = 10)]
    seeds: usize,
    #[command(flatten)]
    run: RunArgs,
    /// Write a chart of the difference to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Output: text, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Compares two architectures and prints the differences.
///
/// # Errors
/// If the flags or the definitions are invalid, or if the picture cannot be written.
pub fn run(args: &CompareArgs) -> Result<()> {
    if !(2..=10_000).contains(&args.seeds) {
        bail!("--seeds: {} is out of range; give 2 to 10000", args.seeds);
    }
    if args.b.is_none() && args.set.is_empty() && args.load_b.is_none() {
        bail!("there is nothing to compare; name a second architecture, or give --set or --load-b");
    }
    let second = args.b.as_ref().unwrap_or(&args.a);
    let (a, b) = (args.run.find(&args.a)?, args.run.find(second)?);
    let a = args.run.topology(&a, &[], None, true)?;
    let b = args
        .run
        .topology(&b, &args.set, args.load_b.as_deref(), true)?;
    let svg = args.svg.as_deref().map(Replacement::begin).transpose();
    let svg = svg.context("--svg")?;
    let (config, plan) = (args.run.config(), args.run.plan()?);
    interrupt::on_ctrl_c(config.cancel.clone());
    let console = Arc::new(Console::new(true));
    let bar = Bar::begin(&console, Measure::Clock);
    let compared = compare(&config, [&a, &b], &plan, args.seeds)?;
    drop(bar);
    let Some(compared) = compared else {
        bail!("stopped before all runs were made");
    };
    if let Some(mut file) = svg {
        let drawn = picture::compared(&compared).map_err(|error| anyhow!("--svg: {error}"))?;
        let written = file.writer().write_all(drawn.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context("--svg")?;
    }
    match args.format {
        Format::Text => {
            console.line(cells("", ["a", "b", "b - a"].map(str::to_owned)));
            compared.iter().for_each(|row| console.line(line(row)));
            console.line(format_args!(
                "corsair: 95 % intervals from {} seeds; * where b differs from a",
                args.seeds
            ));
        }
        Format::Json => {
            let rows: Vec<ComparedRow> = compared.iter().map(ComparedRow::new).collect();
            console.print(|out| {
                serde_json::to_writer(&mut *out, &rows).map_err(io::Error::from)?;
                writeln!(out)
            });
        }
    }
    Ok(())
}

/// Formats a number in a suitable unit, with its interval if it has one.
pub fn shown(name: &str, of: Estimate) -> String {
    if of.is_empty() {
        return "no requests".to_owned();
    }
    let (factor, digits, unit) = match name {
        "errors" => (1e2, 3, " %"),
        name if name.ends_with("_seconds") => (1e3, 3, " ms"),
        _ => (1.0, 1, ""),
    };
    let mean = of.mean * factor;
    match of.within {
        Some(within) => format!("{mean:.digits$} ± {:.digits$}{unit}", within * factor),
        None => format!("{mean:.digits$}{unit}"),
    }
}

/// Returns a row of the table; a narrow terminal shows only the difference.
fn cells(name: &str, [a, b, difference]: [String; 3]) -> String {
    let cells = [
        Cell::left(name, 11, 0),
        Cell::right(a, 20, 2),
        Cell::right(b, 20, 1),
        Cell::right(difference, 20, 0),
    ];
    style::row(&cells, style::width().map(|width| width - 2))
}

fn line(of: &Compared) -> String {
    let [a, b] = of.of.map(|estimate| shown(of.name, estimate));
    let name = of.name.trim_end_matches("_seconds");
    let row = cells(name, [a, b, shown(of.name, of.difference)]);
    match of.difference.is_clear() {
        true => style::paint(&format!("{row} *"), Meaning::Notable),
        false => row,
    }
}
