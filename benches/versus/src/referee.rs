//! Runs contenders in separate processes, and checks and measures them.

use crate::arguments::Plan;
use crate::contenders::Contender;
use crate::table::{self, Row};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use versus::{Load, Run};

/// The time limit of a run.
const LIMIT: Duration = Duration::from_secs(60);

/// The result of one process.
struct Sample {
    /// The result that the process has reported.
    run: Run,
    /// The time from before the start of the process until after its end.
    whole: Duration,
}

/// Runs the plan and prints a table for each population.
///
/// # Errors
/// The first contender that cannot be run, or the first run that fails or has a wrong result.
pub fn compare(plan: &Plan) -> Result<(), String> {
    let contenders = ready(plan);
    if contenders.is_empty() {
        return Err("none of the chosen contenders can run here".to_owned());
    }
    let mut tables = Vec::new();
    for &pirates in &plan.populations {
        let rows = measure(&contenders, plan, pirates)?;
        table::print(pirates, &rows).map_err(|error| format!("cannot print: {error}"))?;
        tables.push((pirates, rows));
    }
    plan.save
        .as_ref()
        .map_or(Ok(()), |path| table::save(path, &tables))
}

/// Returns the contenders that can run on this machine, and prints for each other contender why it cannot.
fn ready(plan: &Plan) -> Vec<&'static dyn Contender> {
    let mut ready = plan.contenders.clone();
    ready.retain(|contender| match contender.prepare() {
        Ok(()) => true,
        Err(missing) => {
            eprintln!("versus: left out: {}: {missing}", contender.name());
            false
        }
    });
    ready
}

/// Measures all rounds with this population.
fn measure(
    contenders: &[&'static dyn Contender],
    plan: &Plan,
    pirates: u32,
) -> Result<Vec<Row>, String> {
    let load = Load {
        pirates,
        seed: plan.seed,
    };
    let fewest = Load {
        pirates: Load::FEWEST,
        ..load
    };
    let mut samples: Vec<Vec<Sample>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 1..=plan.rounds {
        eprintln!(
            "versus: {pirates} pirates, round {round} of {}",
            plan.rounds
        );
        for (contender, samples) in contenders.iter().zip(&mut samples) {
            samples.push(run_there(*contender, load)?);
        }
    }
    contenders
        .iter()
        .zip(&samples)
        .map(|(contender, samples)| {
            let empty = run_there(*contender, fewest)?.run.peak_memory;
            Ok(row(contender.name(), load, samples, empty))
        })
        .collect()
}

/// Returns the medians of a contender's samples. `empty` is the peak memory with almost no pirates.
fn row(contender: &'static str, load: Load, samples: &[Sample], empty: u64) -> Row {
    let delivered = f64::from(load.pirates) * 5.0;
    let of = |number: fn(&Sample) -> f64| median(samples.iter().map(number).collect());
    let peak = of(|sample| sample.run.peak_memory as f64);
    Row {
        contender,
        rate: delivered / of(|sample| sample.run.delivery.as_secs_f64()).max(1e-9),
        whole: Duration::from_secs_f64(of(|sample| sample.whole.as_secs_f64())),
        bytes: (peak - empty as f64).max(0.0) / f64::from(load.pirates),
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs the load in a separate process.
fn run_there(contender: &dyn Contender, load: Load) -> Result<Sample, String> {
    let failed =
        |what: String| format!("{} with {} pirates: {what}", contender.name(), load.pirates);
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command
        .args(["--run", contender.name()])
        .args([load.pirates.to_string(), load.seed.to_string()])
        .stderr(Stdio::inherit());
    let began = Instant::now();
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let whole = began.elapsed();
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let run = Run::parse(&String::from_utf8_lossy(&output.stdout))
        .and_then(|run| run.check(load).map(|()| run))
        .map_err(|error| failed(error.to_string()))?;
    Ok(Sample { run, whole })
}

/// Runs the load in this process and prints the result.
///
/// # Errors
/// The reason why the load could not be run.
pub fn run_here(contender: &dyn Contender, load: Load) -> Result<(), String> {
    std::thread::spawn(|| {
        std::thread::sleep(LIMIT);
        eprintln!("versus: not done after {LIMIT:?}");
        std::process::exit(2);
    });
    let mut run = contender.run(load)?;
    if run.peak_memory == 0 {
        run.peak_memory = corsair::peak_memory().unwrap_or(0);
    }
    writeln!(io::stdout(), "{run}").map_err(|error| format!("cannot print: {error}"))
}
