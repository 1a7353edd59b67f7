//! `corsair why`: shows where slow requests spend their time, and which single change helps most.

use crate::commands::variants::RunArgs;
use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::progress::{Bar, Measure as Progress};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use corsair_arch::summary::WhySummary;
use corsair_arch::{Estimate, LoadText, Measure, Why, WhyRules, why};
use std::io;
use std::sync::Arc;

/// The flags of `corsair why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// Architecture: a name or a file
    arch: String,
    /// The percentile that is too long, or the mean, of all requests or of a kind: p99, mean, 'cart.list p95'
    #[arg(long, value_name = "PERCENTILE", default_value = "p99")]
    of: Measure,
    /// Number of seeds with which the definition is run
    #[arg(long, value_name = "N", default_value_t = 8)]
    seeds: usize,
    /// Maximum number of single changes to try
    #[arg(long, value_name = "N", default_value_t = 16)]
    changes: usize,
    #[command(flatten)]
    run: RunArgs,
    /// Output: text, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Parts and changes beyond this number are not printed.
const MOST_LINES: usize = 10;

/// Explains a percentile and prints the explanation.
///
/// # Errors
/// If a flag or the definition is invalid.
pub fn run(args: &WhyArgs) -> Result<()> {
    let text = args.run.find(&args.arch)?;
    let load = args.run.load.as_deref().map(LoadText::read).transpose();
    let load = load.map_err(|error| anyhow!("--load: {error}"))?;
    let rules = WhyRules {
        seeds: args.seeds,
        remedies: args.changes,
        scale: args.run.setup(true).scale,
        ..WhyRules::new(args.of.clone())
    };
    let (config, plan) = (args.run.config(), args.run.plan()?);
    interrupt::on_ctrl_c(config.cancel.clone());
    let console = Arc::new(Console::new(args.format == Format::Text));
    let bar = Bar::begin(&console, Progress::Clock);
    let found = why(&config, &text, load.as_ref(), &plan, &rules);
    drop(bar);
    let Some(found) = found.map_err(|error| anyhow!("{error}"))? else {
        bail!("stopped before all runs were made");
    };
    match args.format {
        Format::Text => lines(args, &found, &console),
        Format::Json => console.print(|out| {
            let summary = WhySummary::new(&args.of, &found);
            serde_json::to_writer(&mut *out, &summary).map_err(io::Error::from)?;
            writeln!(out)
        }),
    }
    Ok(())
}

fn millis(of: Estimate) -> String {
    let within = of.within.map(|within| format!(" ± {:.2}", within * 1e3));
    format!("{:.2}{} ms", of.mean * 1e3, within.unwrap_or_default())
}

fn lines(args: &WhyArgs, found: &Why, console: &Console) {
    console.line(format_args!(
        "corsair: {} is {}; {} requests take at least as long, {:.2} ms on average, and spend it on",
        args.of,
        millis(found.value),
        found.requests,
        found.mean * 1e3
    ));
    for part in found.contributions.iter().take(MOST_LINES) {
        let called = part.called.as_deref().unwrap_or_default();
        let what = format!("{} {called}", part.part.words());
        console.line(format_args!(
            "  {:>5.1} %  {:<20} {:<28} {}",
            part.share * 100.0,
            part.service,
            what.trim_end(),
            millis(part.seconds)
        ));
    }
    if !found.remedies.is_empty() {
        console.line(format_args!("  single changes, the most helpful first"));
    }
    for remedy in found.remedies.iter().take(MOST_LINES) {
        let mark = match remedy.difference.is_clear() {
            true if remedy.errors.mean > 0.0 && remedy.errors.is_clear() => {
                ", but more requests fail"
            }
            true => " *",
            false => "",
        };
        console.line(format_args!(
            "    {:<52} {}: {}{mark}",
            remedy.what,
            args.of,
            millis(remedy.difference)
        ));
    }
    match found.best() {
        Some(best) => console.line(format_args!(
            "corsair: {} helps most: {} becomes {}",
            best.what,
            args.of,
            millis(best.value)
        )),
        None => console.line(format_args!(
            "corsair: no single change that was tried helps for certain"
        )),
    }
    if found.left_out > 0 {
        console.line(format_args!(
            "corsair: {} requests are not explained: they have more than 4,096 calls and pieces of work, or there are too many of them",
            found.left_out
        ));
    }
}
