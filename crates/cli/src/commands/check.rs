//! `corsair check FILE --model MODEL`: checks whether a recorded history is consistent.

use crate::console::Console;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use clap::builder::PossibleValuesParser;
use corsair_arch::input_file::read_bytes;
use corsair_check::models::{
    self, Bag, Counter, FromRecords, KeyValue, Lock, Queue, Register, Set,
};
use corsair_check::{
    Bound, Limits, Operation, Record, Report, Value, Verdict, deliveries, read, smallest_violation,
    timeline,
};
use corsair_observe::Replacement;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The exit code if the history violates the model.
const VIOLATED: u8 = 1;
/// The exit code if the check reached a bound before it had a verdict.
const UNKNOWN: u8 = 3;
/// Longest history that is read.
const MOST_BYTES: u64 = 2 << 30;
/// The largest number of listed faulty deliveries of one kind.
const MOST_LISTED: usize = 10;

/// The arguments of `corsair check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// A history: Jepsen's EDN or history.txt, JSON, or a log of jepsen.util
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Model of the history: register, kv, queue, bag, set, lock, counter or deliveries
    #[arg(long, value_name = "MODEL", value_parser = PossibleValuesParser::new(MODELS), hide_possible_values = true)]
    model: String,
    /// Draw the smallest violating history as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Longest time for the search
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::text::duration)]
    time: Duration,
    /// Maximum memory of the search, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..))]
    memory: u32,
    /// Threads; 0 means one for each core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    threads: u16,
}

const MODELS: [&str; 8] = [
    Register::NAME,
    KeyValue::NAME,
    Queue::NAME,
    Bag::NAME,
    Set::NAME,
    Lock::NAME,
    Counter::NAME,
    "deliveries",
];

/// Checks a history, prints the verdict, and returns it as the exit code: 0 for a consistent history, 1 for a
/// violation, 3 if a bound was reached first.
///
/// # Errors
/// If the history cannot be read or the drawing cannot be written.
pub fn run(args: &CheckArgs) -> Result<ExitCode> {
    let bytes = read_bytes(&args.file, MOST_BYTES)
        .map_err(|error| anyhow!("cannot read {}: {error}", args.file.display()))?;
    let records = read::parse(&bytes).with_context(|| args.file.display().to_string())?;
    drop(bytes);
    match args.model.as_str() {
        Register::NAME => linearizable::<Register>(args, records),
        KeyValue::NAME => linearizable::<KeyValue>(args, records),
        Queue::NAME => linearizable::<Queue>(args, records),
        Bag::NAME => linearizable::<Bag>(args, records),
        Set::NAME => linearizable::<Set>(args, records),
        Lock::NAME => linearizable::<Lock>(args, records),
        Counter::NAME => linearizable::<Counter>(args, records),
        _ => delivered(args, &records),
    }
}

fn linearizable<M: FromRecords + Default>(
    args: &CheckArgs,
    records: Vec<Record>,
) -> Result<ExitCode> {
    let model = M::default();
    let history =
        models::operations::<M>(&records).with_context(|| args.file.display().to_string())?;
    drop(records);
    let limits = Limits {
        time: args.time,
        memory: args.memory as usize * (1 << 20),
        threads: args.threads.into(),
    };
    let report = corsair_check::check(&model, &history, &limits);
    let mut text = format!(
        "{} operations of {} objects, {} configurations\n",
        history.len(),
        report.progress.objects,
        report.progress.configurations
    );
    let code = match &report.verdict {
        Verdict::Linearizable => {
            text.push_str("linearizable\n");
            ExitCode::SUCCESS
        }
        Verdict::Violation(violation) => {
            let least = smallest_violation(&model, &history, violation, &limits);
            let key = violation.key.as_ref().map(|key| model.describe_key(key));
            let key = key.filter(|key| report.progress.objects > 1 || key != "nil");
            show(
                &model,
                &least,
                key.as_deref(),
                &limits,
                args.svg.as_deref(),
                &mut text,
            )?;
            ExitCode::from(VIOLATED)
        }
        Verdict::Unknown(bound) => {
            text.push_str(&unknown(*bound, &report));
            ExitCode::from(UNKNOWN)
        }
    };
    print(&text);
    Ok(code)
}

/// Appends the smallest violating history to the output, and draws it if a drawing is requested.
fn show<M: FromRecords>(
    model: &M,
    least: &[Operation<M::Input, Value>],
    key: Option<&str>,
    limits: &Limits,
    svg: Option<&Path>,
    text: &mut String,
) -> Result<()> {
    let title = match key {
        Some(key) => format!("not linearizable as a {}, key {key}", M::NAME),
        None => format!("not linearizable as a {}", M::NAME),
    };
    let explanation = timeline::explain(model, least, limits);
    let shown = timeline::text(model, least, &explanation);
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{title}; {} operations show it:\n\n{shown}",
        least.len()
    );
    if let Some(path) = svg {
        let mut file = Replacement::begin(path).context("--svg")?;
        let drawing = timeline::svg(model, least, &explanation, &title);
        let description = format!("{} operations by process, over time.", least.len());
        let drawing = corsair::picture::finish(&drawing, &title, &description);
        io::Write::write_all(&mut file, drawing.as_bytes()).map_err(|error| file.failed(error))?;
        file.finish()?;
        let _ = writeln!(text, "drawn in {}", path.display());
    }
    Ok(())
}

fn unknown<K>(bound: Bound, report: &Report<K>) -> String {
    let bound = match bound {
        Bound::Time => "the time ran out (--time)",
        Bound::Memory => "the memory was not enough (--memory)",
        Bound::Operations => "an object has more than 33554432 operations",
    };
    let progress = report.progress;
    format!(
        "unknown: {bound}; {} of {} objects are linearizable, and the others undecided\n",
        progress.finished, progress.objects
    )
}

fn delivered(args: &CheckArgs, records: &[Record]) -> Result<ExitCode> {
    let found = deliveries::check(records, deliveries::Guarantees::default())
        .with_context(|| args.file.display().to_string())?;
    let mut text = format!("{} sent, {} received\n", found.sent, found.received);
    let reordered: Vec<usize> = found.reordered.iter().map(|(index, _)| *index).collect();
    for (what, indices) in [
        ("lost", &found.lost),
        ("received again", &found.duplicates),
        ("received, but not sent before", &found.invented),
        ("received after a later one", &reordered),
    ] {
        if indices.is_empty() {
            continue;
        }
        let lines = indices
            .iter()
            .take(MOST_LISTED)
            .map(|index| records[*index].line.to_string());
        let lines: Vec<String> = lines.collect();
        let more = if indices.len() > MOST_LISTED {
            ", …"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{} {what}: line {}{more}",
            indices.len(),
            lines.join(", ")
        );
    }
    if found.is_correct() {
        text.push_str("every message was received once and in order\n");
    }
    print(&text);
    Ok(match found.is_correct() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(VIOLATED),
    })
}

fn print(text: &str) {
    Console::new(true).print(|out| io::Write::write_all(out, text.as_bytes()));
}
