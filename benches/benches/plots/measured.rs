//! What was measured, as files of JSON beside the pictures.

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A row of `benches/versus`.
#[derive(Debug, Deserialize)]
pub struct Versus {
    pub pirates: u32,
    pub contender: String,
    pub messages_per_second: f64,
    pub bytes_per_actor: f64,
}

/// The median of one criterion benchmark.
#[derive(Debug, Deserialize, Serialize)]
pub struct Benchmark {
    pub group: String,
    pub contender: String,
    /// The number behind the contender: actors, or workers.
    pub parameter: u64,
    /// Nanoseconds per element: a message, or a fork.
    pub nanoseconds: f64,
}

/// The groups that are drawn.
const GROUPS: [&str; 2] = ["chat", "fork_join/sum"];

/// The rows of the comparison with other runtimes; none if it was not measured.
///
/// # Errors
/// If the file cannot be read.
pub fn versus(folder: &Path) -> Result<Option<Vec<Versus>>, Box<dyn Error>> {
    read(&folder.join("versus.json"))
}

/// The medians of criterion's benchmarks; none if they were not measured.
///
/// # Errors
/// If the file cannot be read.
pub fn criterion(folder: &Path) -> Result<Option<Vec<Benchmark>>, Box<dyn Error>> {
    read(&folder.join("criterion.json"))
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<Vec<T>>, Box<dyn Error>> {
    if !path.exists() {
        eprintln!("plots: {} is missing; --measure writes it", path.display());
        return Ok(None);
    }
    let at = |error: &dyn Error| format!("{}: {error}; --measure writes it", path.display());
    let text = fs::read_to_string(path).map_err(|error| at(&error))?;
    Ok(Some(
        serde_json::from_str(&text).map_err(|error| at(&error))?,
    ))
}

/// Runs the benchmarks and writes what they measured into `folder`.
///
/// # Errors
/// If a benchmark fails, or a file cannot be read or written.
pub fn measure(folder: &Path) -> Result<(), Box<dyn Error>> {
    let workspace = workspace();
    let versus = [
        "bench",
        "--manifest-path",
        "benches/versus/Cargo.toml",
        "--",
    ];
    let save = folder.join("versus.json");
    let mut command = Command::new("cargo");
    command.args(versus).arg("--save").arg(save);
    succeed(command.current_dir(&workspace))?;
    let benches = [
        "bench",
        "-p",
        "corsair-benches",
        "--bench",
        "chat",
        "--bench",
        "fork_join",
    ];
    succeed(Command::new("cargo").args(benches).current_dir(&workspace))?;
    collect(folder)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Writes what `cargo bench` has measured last into `folder`.
///
/// # Errors
/// If `chat` or `fork_join` has not been run, or a file cannot be read or written.
pub fn collect(folder: &Path) -> Result<(), Box<dyn Error>> {
    let workspace = workspace();
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), |target| workspace.join(target));
    let mut rows = Vec::new();
    for group in GROUPS {
        // Criterion replaces what a file name may not have.
        let directory = target.join("criterion").join(group.replace('/', "_"));
        if !directory.is_dir() {
            return Err(
                format!("{} is missing; run cargo bench first", directory.display()).into(),
            );
        }
        below(&directory, &mut rows)?;
    }
    rows.sort_by(|a: &Benchmark, b| {
        (&a.group, &a.contender, a.parameter).cmp(&(&b.group, &b.contender, b.parameter))
    });
    let text = serde_json::to_string_pretty(&rows)? + "\n";
    Ok(fs::write(folder.join("criterion.json"), text)?)
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {status}").into()),
    }
}

/// What criterion writes about a benchmark.
#[derive(Deserialize)]
struct Identity {
    group_id: String,
    function_id: String,
    value_str: String,
    throughput: Throughput,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Throughput {
    elements: f64,
}

#[derive(Deserialize)]
struct Estimates {
    median: Median,
}

#[derive(Deserialize)]
struct Median {
    point_estimate: f64,
}

/// Reads all benchmarks below a directory of criterion's.
fn below(directory: &Path, rows: &mut Vec<Benchmark>) -> Result<(), Box<dyn Error>> {
    let identity = directory.join("new/benchmark.json");
    if identity.exists() {
        let identity: Identity = serde_json::from_str(&fs::read_to_string(identity)?)?;
        let estimates = fs::read_to_string(directory.join("new/estimates.json"))?;
        let estimates: Estimates = serde_json::from_str(&estimates)?;
        rows.push(Benchmark {
            group: identity.group_id,
            contender: identity.function_id,
            parameter: identity.value_str.parse()?,
            nanoseconds: estimates.median.point_estimate / identity.throughput.elements,
        });
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "report") {
            below(&path, rows)?;
        }
    }
    Ok(())
}
