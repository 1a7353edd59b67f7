//! The measurements, as JSON files next to the pictures.

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
    /// The parameter in the benchmark's name: a number of actors or of workers.
    pub parameter: u64,
    /// Nanoseconds per element: per message, or per fork.
    pub nanoseconds: f64,
}

/// The speed-up of the pirates on a number of cores.
#[derive(Debug, Deserialize, Serialize)]
pub struct Gain {
    pub pirates: u64,
    pub lookahead_micros: u64,
    pub cores: u32,
    /// The speed-up over one core.
    pub speed_up: f64,
}

/// The speed-ups of runs on several machines.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Machines {
    /// The speed-ups that `corsair plan` predicts for machines of [`CORES`] cores each.
    pub expected: Vec<Gain>,
    /// The speed-ups that were measured with several processes on this machine.
    pub measured: Vec<Gain>,
}

/// The number of cores of a machine, passed to `corsair plan`.
const CORES: u32 = 10;
const MILLION: u64 = 1_000_000;
/// The number of pirates and the lookahead in milliseconds of each curve.
const PLANS: [(u64, u64); 6] = [
    (MILLION, 1_000),
    (MILLION, 10_000),
    (100 * MILLION, 1_000),
    (100 * MILLION, 10_000),
    (1_000 * MILLION, 1_000),
    (1_000 * MILLION, 10_000),
];

/// The groups that are drawn.
const GROUPS: [&str; 2] = ["chat", "fork_join/sum"];

/// Returns the rows of the comparison with other runtimes; `None` if it was not measured.
///
/// # Errors
/// If the file cannot be read.
pub fn versus(folder: &Path) -> Result<Option<Vec<Versus>>, Box<dyn Error>> {
    read(&folder.join("versus.json"))
}

/// Returns the rows of the comparison of PHOLD with ROSS; `None` if they were not measured.
///
/// # Errors
/// If the file cannot be read.
pub fn phold(folder: &Path) -> Result<Option<Vec<crate::phold::Row>>, Box<dyn Error>> {
    read(&folder.join("phold.json"))
}

/// Returns the medians of criterion's benchmarks; `None` if they were not measured.
///
/// # Errors
/// If the file cannot be read.
pub fn criterion(folder: &Path) -> Result<Option<Vec<Benchmark>>, Box<dyn Error>> {
    read(&folder.join("criterion.json"))
}

/// Returns the speed-ups on several machines; `None` if they were not measured.
///
/// # Errors
/// If the file cannot be read.
pub fn machines(folder: &Path) -> Result<Option<Machines>, Box<dyn Error>> {
    read(&folder.join("machines.json"))
}

/// Runs `corsair plan` and two processes on this machine, and writes the speed-ups into `folder`.
///
/// # Errors
/// If a run fails, or the file cannot be written.
pub fn measure_machines(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut machines = Machines::default();
    for (pirates, lookahead_micros) in PLANS {
        let gain = |cores, speed_up| Gain {
            pirates,
            lookahead_micros,
            cores,
            speed_up,
        };
        let population = pirates.to_string();
        let latency = format!("{lookahead_micros}us..{}us", 2 * lookahead_micros);
        let model = ["-p", &population, "--latency", &latency];
        let workers = CORES.to_string();
        let mut plan = vec![
            "plan",
            "-a",
            "fsm",
            "--hosts",
            "1024",
            "--workers",
            &workers,
        ];
        // A typical round trip of a cluster's switch, and a talk so long that chats outweigh introductions.
        plan.extend(["--round-trip", "20us", "-d", "600"]);
        let plan = corsair(plan.iter().chain(&model))?;
        // `corsair plan` compares with one machine. The model assumes that one machine speeds up with its number of
        // cores.
        for expected in plan["expected"].as_array().into_iter().flatten() {
            let number = |name: &str| expected[name].as_f64().unwrap_or(0.0);
            let hosts = number("hosts") as u32;
            let speed_up = number("speed_up") * f64::from(CORES);
            machines.expected.push(gain(hosts * CORES, speed_up));
        }
        if pirates > MILLION {
            // Larger populations do not fit into the memory of every machine.
            continue;
        }
        let run = ["-a", "fsm", "--workers", "1"];
        let seconds = |more: &[&str]| -> Result<f64, Box<dyn Error>> {
            let report = corsair(run.iter().chain(&model).chain(more))?;
            let wall = report["wall_seconds"].as_f64();
            Ok(wall.ok_or("the report has no time")?)
        };
        let (one, two) = (seconds(&[])?, seconds(&["--processes", "2"])?);
        machines.measured.push(gain(2, one / two));
    }
    let text = serde_json::to_string_pretty(&machines)? + "\n";
    Ok(fs::write(folder.join("machines.json"), text)?)
}

/// Runs the command and returns its JSON output.
fn corsair<'a>(
    args: impl Iterator<Item = &'a &'a str>,
) -> Result<serde_json::Value, Box<dyn Error>> {
    let mut command = Command::new("cargo");
    command.args([
        "run",
        "--release",
        "--bin",
        "corsair",
        "--features",
        "mpi",
        "--",
    ]);
    command.args(args).args(["--format", "json"]);
    let output = command
        .current_dir(workspace())
        .stderr(std::process::Stdio::inherit())
        .output()?;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(format!("{command:?}: {}", output.status).into()),
    }
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>, Box<dyn Error>> {
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

/// Runs the benchmarks and writes their measurements into `folder`.
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

/// Writes the last measurements of `cargo bench` into `folder`.
///
/// # Errors
/// If `chat` or `fork_join` has not been run, or if a file cannot be read or written.
pub fn collect(folder: &Path) -> Result<(), Box<dyn Error>> {
    let workspace = workspace();
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.join("target"), |target| workspace.join(target));
    let mut rows = Vec::new();
    for group in GROUPS {
        // Criterion replaces characters that file names must not contain.
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

/// Criterion's description of a benchmark.
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

/// Reads all of criterion's benchmarks in a directory and its subdirectories.
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
