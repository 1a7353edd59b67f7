//! `corsair sweep`: runs over a grid of fields of a definition, a line for each.
//!
//! Lines are written in the order of the grid, however many runs are made at once; so a sweep that
//! was stopped goes on after the last whole line of its file. A job array makes a [`shard`] each, and
//! [`merge`] puts these together.

mod grid;
pub mod merge;
mod shard;
mod values;

use crate::console::Console;
use crate::interrupt;
use crate::variants::{self, RunArgs};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair_arch::{DefinitionText, in_parallel, measure};
use grid::{Described, Grid, OutputFormat};
use indicatif::{ProgressBar, ProgressStyle};
use shard::{LONGEST_FIRST_LINE, Shard};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use values::values_of;

/// Larger grids are refused.
const MOST_RUNS: usize = 1_000_000;

/// The flags of `corsair sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The architecture: a name or a file
    #[arg(long, short, value_name = "NAME")]
    arch: String,
    /// A field and its values: services.web.count=1,2,4 or =1..8 or =10..100..10; several times for
    /// a grid
    #[arg(long = "set", value_name = "FIELD=VALUES", required = true)]
    set: Vec<String>,
    /// From how many seeds each is run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: usize,
    #[command(flatten)]
    run: RunArgs,
    /// The file; what it has already is not run again
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// What the file's lines are; by its ending if left out
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    /// Make only every N-th run, from the I-th on; `corsair sweep merge` puts the files of all N together
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

/// Makes the runs that are missing.
///
/// # Errors
/// What is wrong with the flags, the definition or the file.
pub fn run(args: &SweepArgs) -> Result<()> {
    let text = args.run.find(&args.arch)?;
    let grid = Grid::new(described(args, &text)?).map_err(|what| anyhow!(what))?;
    let head = grid.head(args.shard);
    if args.shard.is_some() && head.len() > LONGEST_FIRST_LINE {
        bail!("--shard: the values of --set are too long to stand in every shard's file");
    }
    // Whatever is wrong with a point of the grid is told before the first run.
    for point in 0..grid.points() {
        args.run.topology(&text, &grid.settings(point), None)?;
    }
    let (config, plan) = (args.run.config(), args.run.plan()?);
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let total = shard.runs(grid.runs());
    let mut file = open(&args.out)?;
    let begin = |run| grid.begin(shard.run(run));
    let done = resume(&mut file, &args.out, &head, total, begin)?;
    interrupt::on_ctrl_c(config.cut.clone());
    let console = Console::new(true);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left")?;
    let bar = ProgressBar::new(total as u64).with_style(style);
    bar.set_position(done as u64);
    console.set_bar(Some(bar.clone()));
    let workers = config.workers.get();
    let mut next = done;
    let mut is_cut = false;
    while next < total && !is_cut {
        let count = (4 * workers).min(total - next);
        let results = in_parallel(workers, count, |number| {
            let (point, seed) = grid.run(shard.run(next + number));
            let settings = grid.settings(point);
            let topology = args.run.topology(&text, &settings, None)?;
            let measured = measure(&config, &topology, &plan, seed);
            bar.inc(1);
            measured.map_err(|error| anyhow!("{error}"))
        });
        let mut lines = String::new();
        for (number, result) in (next..).zip(results) {
            let Some(measured) = result? else {
                is_cut = true;
                break;
            };
            grid.line(shard.run(number), &measured, &mut lines);
            next = number + 1;
        }
        let written = file.write_all(lines.as_bytes()).and_then(|()| file.flush());
        written.with_context(|| format!("cannot write {}", args.out.display()))?;
    }
    bar.finish_and_clear();
    console.set_bar(None);
    let path = args.out.display();
    let of_shard = match args.shard {
        Some(shard) => format!(" of shard {shard}"),
        None => String::new(),
    };
    if is_cut {
        console.line(format_args!(
            "corsair: stopped after {next} of {total} runs{of_shard}; the same command goes on with {path}"
        ));
    } else {
        console.line(format_args!(
            "corsair: {total} runs{of_shard} in {path}, {done} of them before"
        ));
    }
    Ok(())
}

/// The sweep that the flags ask for.
fn described(args: &SweepArgs, text: &DefinitionText) -> Result<Described> {
    let mut fields: Vec<(String, Vec<String>)> = Vec::new();
    for set in &args.set {
        let (path, values) = variants::split(set).map_err(|what| anyhow!("--set: {what}"))?;
        if fields.iter().any(|(known, _)| known == path) {
            bail!("--set: {path} is set twice; give all of its values at once");
        }
        let values = values_of(values).map_err(|what| anyhow!("--set: {path}: {what}"))?;
        fields.push((path.to_owned(), values));
    }
    Ok(Described {
        definition: mark(&format!("{} {}", text.text(), args.run.described())),
        fields,
        seeds: args.seeds,
        first_seed: args.run.seed,
        format: args.format.unwrap_or_else(|| OutputFormat::of(&args.out)),
    })
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let opened = options.open(path);
    opened.with_context(|| format!("--out: cannot open {}", path.display()))
}

/// How many of `total` runs a file has already, of which the lines begin like this. It is cut after the
/// last whole line of these, or begun.
fn resume(
    file: &mut File,
    path: &Path,
    head: &str,
    total: usize,
    begin: impl Fn(usize) -> String,
) -> Result<usize> {
    let mut text = String::new();
    let read = file.read_to_string(&mut text);
    read.with_context(|| format!("--out: cannot read {}", path.display()))?;
    let other = || {
        anyhow!(
            "--out: {} is not of this sweep, or of another shard of it; name another file, or delete it",
            path.display()
        )
    };
    let mut end = 0;
    let mut runs = 0;
    let begun = text.strip_prefix(head);
    if begun.is_none() && !head.starts_with(text.as_str()) {
        return Err(other());
    }
    if let Some(lines) = begun {
        end = head.len();
        for line in lines
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            if runs >= total || !line.starts_with(&begin(runs)) {
                return Err(other());
            }
            end += line.len();
            runs += 1;
        }
    }
    let ready = (|| {
        file.set_len(end as u64)?;
        file.seek(SeekFrom::End(0))?;
        if end == 0 {
            file.write_all(head.as_bytes())?;
        }
        Ok(())
    })();
    ready.map_err(|error: std::io::Error| anyhow!("cannot write {}: {error}", path.display()))?;
    Ok(runs)
}

/// Eight digits that are others for other texts (FNV-1a).
fn mark(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
}
