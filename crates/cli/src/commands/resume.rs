//! `corsair resume DIR`: resumes a saved run, unchanged or as a branch.

use crate::checkpoint;
use crate::commands::variants;
use crate::console::Console;
use crate::flags::values::Values;
use crate::options::{Checkpoints, Options, WorkloadOptions, checkpoints};
use crate::{cluster, config_file, simulation, text};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair::Time;
use corsair_arch::Setting;
use corsair_observe::checkpoint::{Checkpoint, Manifest, RunId, branch_directory};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `corsair resume`.
#[derive(Args, Clone, Debug)]
pub struct ResumeArgs {
    /// Directory given as --checkpoint-dir, or one of the checkpoints in it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Number of worker threads [default: the default of a new run]
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Stop at this point of virtual time and print the results so far
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Make a branch that draws its random numbers from another seed
    #[arg(long, value_name = "N")]
    seed_from_here: Option<String>,
    /// Make a branch with this field of the definition changed, as for `corsair sweep`, or with load=N% of the load; may
    /// be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = variants::setting)]
    set: Vec<Setting>,
    /// Save the run periodically [default: as in the saved run]
    #[arg(long, value_name = "TIME|SIZE")]
    checkpoint_every: Option<String>,
    /// Save the run at these points of virtual time [default: as in the saved run]
    #[arg(long, value_name = "TIME,…")]
    checkpoint_at: Option<String>,
    /// Directory of the checkpoints [default: as in the saved run; for a branch, a separate directory beside the
    /// checkpoint]
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,
    /// Directory of the output files [default: as in the saved run; for a branch, a separate directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue on N processes of this machine, which mpirun starts (--features mpi)
    #[arg(long, value_name = "N")]
    processes: Option<String>,
    /// Continue as one of the processes that mpirun, SLURM or Kubernetes has started (--features mpi)
    #[arg(long)]
    mpi: bool,
    /// Maximum wait for other processes at the end of a window [default: 300s]
    #[arg(long, value_name = "TIME")]
    window_within: Option<String>,
    /// Output: text, or one JSON object [default: as in the saved run]
    #[arg(long, value_name = "text|json")]
    format: Option<String>,
}

/// Resumes a saved run.
///
/// # Errors
/// If there is no checkpoint, a value is wrong, or the run fails.
pub fn run(args: &ResumeArgs, given_args: &[OsString]) -> Result<ExitCode> {
    let checkpoint = checkpoint::read(&args.directory)?;
    let whole = |text: &str| text::whole(text, 0, u64::MAX);
    let reseed = read("--seed-from-here", args.seed_from_here.as_deref(), whole)?;
    let branch = branch_of(&checkpoint, reseed, &args.set);
    let mut values = Values::default();
    given(args, &mut values, &checkpoint.directory)?;
    add_flags(&checkpoint, &mut values)?;
    if let Some(run) = branch {
        move_outputs(args, &mut values, &branch_directory(&checkpoint, run));
    }
    let manifest = checkpoint.directory.join("manifest.json");
    let mut options = Options::read(&values)?;
    if let (WorkloadOptions::Pirates(_), [first, ..]) = (&options.what, &args.set[..]) {
        bail!(
            "--set {}: pirates have no fields to set; give --seed-from-here instead",
            first.path
        );
    }
    let saved = checkpoints::read(&values, &options)?;
    let saved = saved.ok_or_else(|| {
        anyhow!(
            "{} does not name the directory of its checkpoints; name one with --checkpoint-dir",
            manifest.display()
        )
    })?;
    let until = read("--until", args.until.as_deref(), text::duration)?;
    let until = until.map(|until| Time::ZERO.after(until));
    let now = Time::from_nanos(checkpoint.manifest.time);
    if let Some(until) = until.filter(|&until| until < now) {
        bail!(
            "--until {until}: the run was saved later, at {now}, and does not go back; give a later time"
        );
    }
    let mut checkpoints = Checkpoints {
        from: Some(Arc::new(checkpoint)),
        branch,
        until,
        reseed,
        set: args.set.clone(),
        ..saved
    };
    if checkpoints.has_changed_fields() {
        let asked = [
            (args.checkpoint_every.is_some(), "--checkpoint-every"),
            (args.checkpoint_at.is_some(), "--checkpoint-at"),
        ];
        if let Some((_, flag)) = asked.iter().find(|(asked, _)| *asked) {
            bail!(
                "{flag} and --set do not go together: a checkpoint cannot contain changed fields; leave one of them out"
            );
        }
        (checkpoints.every, checkpoints.at) = (None, Vec::new());
    }
    options.checkpoints = Some(checkpoints);
    if let Some(code) = cluster::run(&values, &options, given_args)? {
        return Ok(code);
    }
    let code = simulation::run(&options, &values.described())?;
    if branch.is_some() && options.out.exists() {
        Console::new(!options.json).line(format_args!(
            "corsair: the files of this branch are below {}",
            options.out.display()
        ));
    }
    Ok(code)
}

/// Returns the identity of the branch that these arguments request; `None` if the run resumes unchanged.
fn branch_of(from: &Checkpoint, reseed: Option<u64>, set: &[Setting]) -> Option<RunId> {
    if reseed.is_none() && set.is_empty() {
        return None;
    }
    let mut changes = reseed.map_or(String::new(), |seed| format!("seed={seed}\n"));
    for setting in set {
        changes += &format!("{}={}\n", setting.path, setting.typed());
    }
    let Manifest { run, time, .. } = from.manifest;
    Some(run.branch(time, changes.as_bytes()))
}

/// Moves the output of a branch to a separate directory, so that the files of the run stay unchanged.
/// `--checkpoint-dir` and `--out` override it.
fn move_outputs(args: &ResumeArgs, values: &mut Values, own: &Path) {
    if args.checkpoint_dir.is_none() {
        values.give("checkpoint-dir", own.display().to_string());
    }
    if args.out.is_none() {
        values.give("out", own.display().to_string());
    }
    let out = PathBuf::from(values.text("out"));
    for name in ["per-actor", "timeline"] {
        if let Some(files) = values.given(name) {
            let moved = files.split(',').map(|file| {
                let name = Path::new(file).file_name().unwrap_or_default();
                out.join(name).display().to_string()
            });
            let moved: Vec<String> = moved.collect();
            values.give(name, moved.join(","));
        }
    }
}

/// Adds the flags of a saved run to the flags of the command line.
///
/// # Errors
/// If this program does not have such a flag.
pub fn add_flags(checkpoint: &Checkpoint, values: &mut Values) -> Result<()> {
    let flags = checkpoint.manifest.details.get("flags");
    let flags = flags.and_then(Value::as_object).into_iter().flatten();
    // The number of workers depends on this machine.
    let flags = flags.filter(|(name, _)| *name != "workers" && *name != "cpus");
    let flags = flags.map(|(name, value)| (name.clone(), value.clone()));
    let manifest = checkpoint.directory.join("manifest.json");
    config_file::add(values, flags.collect(), &manifest, "corsair resume")
}

/// Sets the flags of the command line.
fn given(args: &ResumeArgs, values: &mut Values, directory: &Path) -> Result<()> {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let given = [
        ("workers", args.workers.clone()),
        ("checkpoint-every", args.checkpoint_every.clone()),
        ("checkpoint-at", args.checkpoint_at.clone()),
        ("checkpoint-dir", path(&args.checkpoint_dir)),
        ("out", path(&args.out)),
        ("format", args.format.clone()),
        ("processes", args.processes.clone()),
        ("mpi", args.mpi.then(|| "true".to_owned())),
        ("window-within", args.window_within.clone()),
    ];
    for (name, text) in given {
        if let Some(text) = text {
            values.give(name, text);
        }
    }
    let named = directory
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    if args.checkpoint_dir.is_none()
        && let Some(parent) = named
    {
        // The directory may have been moved since the run was saved, so the current path is used.
        values.give("checkpoint-dir", parent.display().to_string());
    }
    Ok(())
}

fn read<T>(
    flag: &'static str,
    text: Option<&str>,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>> {
    let read = text.map(read).transpose();
    read.map_err(|wrong| anyhow!("{wrong}")).context(flag)
}
