//! `corsair sweep`: runs a definition for each point of a grid of field values, and writes a line for each run. Each
//! job of a job array can run a shard, and [`merge`] combines the shards.

mod merge;

use crate::commands::variants::{self, RunArgs};
use crate::console::Console;
use crate::interrupt;
use anyhow::{Result, anyhow};
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use corsair_arch::sweep::{OutputFormat, Shard, Sweep, SweepError, SweepFile, typed_field};
use indicatif::{ProgressBar, ProgressStyle};
use merge::MergeArgs;
use std::path::PathBuf;

/// The format of a sweep's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Csv,
    Json,
}

/// The flags of `corsair sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Architecture: a name or a file
    #[arg(long, short, value_name = "NAME")]
    arch: String,
    /// A field and its values: services.web.count=1,2,4 or =1..8 or =10..100..10; repeat it for a grid
    #[arg(long = "set", value_name = "FIELD=VALUES", required = true)]
    set: Vec<String>,
    /// Number of seeds with which each point is run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: usize,
    #[command(flatten)]
    run: RunArgs,
    /// Output file; runs that are already in the file are not repeated
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Format of the output file [default: by its extension]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Run only every N-th point, beginning with the I-th; `corsair sweep merge` merges the files of all N shards
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

/// The parser of `corsair sweep` and `corsair sweep merge`.
pub fn augment(command: Command) -> Command {
    let merge = Command::new("merge");
    let merge = MergeArgs::augment_args(merge).about("Merge the shards of a sweep");
    SweepArgs::augment_args(command)
        .disable_help_subcommand(true)
        .args_conflicts_with_subcommands(true)
        .subcommand_negates_reqs(true)
        .subcommand(merge)
}

/// Runs a sweep, or merges its shards.
///
/// # Errors
/// See [`run`] and [`merge::run`].
pub fn run_or_merge(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some((_, matches)) => merge::run(&MergeArgs::from_arg_matches(matches)?),
        None => run(&SweepArgs::from_arg_matches(matches)?),
    }
}

/// Executes the missing runs.
///
/// # Errors
/// If the flags, the definition or the file are invalid.
fn run(args: &SweepArgs) -> Result<()> {
    let sweep = sweep(args)?;
    // All points of the grid are checked before the first run.
    sweep.check().map_err(flagged)?;
    let config = args.run.config();
    let (mut file, mut made) = SweepFile::open(&sweep, &args.out).map_err(flagged)?;
    let (before, total) = (made.len(), sweep.len());
    interrupt::on_ctrl_c(config.cancel.clone());
    let console = Console::new(true);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left")?;
    let bar = ProgressBar::new(total as u64).with_style(style);
    bar.set_position(before as u64);
    console.set_bar(Some(bar.clone()));
    let progress = |done: usize| bar.set_position(done as u64);
    let is_whole = sweep.make(&config, Some(&mut file), &mut made, progress);
    bar.finish_and_clear();
    console.set_bar(None);
    let path = args.out.display();
    let of_shard = match args.shard {
        Some(shard) => format!(" of shard {shard}"),
        None => String::new(),
    };
    if is_whole.map_err(flagged)? {
        console.line(format_args!(
            "corsair: {total} runs{of_shard} in {path}, {before} of them already there"
        ));
    } else {
        let done = made.len();
        console.line(format_args!(
            "corsair: stopped after {done} of {total} runs{of_shard}; repeat the command to continue {path}"
        ));
    }
    Ok(())
}

/// Returns the sweep that the flags request.
fn sweep(args: &SweepArgs) -> Result<Sweep> {
    let text = args.run.find(&args.arch)?;
    let field = |set: &String| {
        let (path, values) = variants::split(set).map_err(|what| anyhow!("--set: {what}"))?;
        typed_field(path, values).map_err(flagged)
    };
    let fields = args.set.iter().map(field).collect::<Result<_>>()?;
    let format = match args.format {
        Some(Format::Csv) => OutputFormat::Csv,
        Some(Format::Json) => OutputFormat::Json,
        None => OutputFormat::of(&args.out),
    };
    let (setup, seed) = (args.run.setup(true), args.run.seed);
    let sweep = Sweep::new(text, setup, fields, args.seeds, seed, format).map_err(flagged)?;
    match args.shard {
        Some(shard) => sweep.shard(shard).map_err(flagged),
        None => Ok(sweep),
    }
}

/// Returns an error with the flag that caused it.
fn flagged(error: SweepError) -> anyhow::Error {
    match error {
        SweepError::Setup(setup) => variants::flagged(setup),
        SweepError::Twice(_) | SweepError::Values { .. } => anyhow!(error).context("--set"),
        SweepError::FirstLine => anyhow!(error).context("--shard"),
        SweepError::OtherFile(_)
        | SweepError::File {
            verb: "open" | "read",
            ..
        } => anyhow!("{error}").context("--out"),
        other => anyhow!("{}", other.to_string().trim_end()),
    }
}
