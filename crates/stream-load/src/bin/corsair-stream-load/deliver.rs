//! `corsair-stream-load deliver`: times the work of the published benchmark.

use crate::{print, runtime};
use clap::ValueEnum;
use corsair_stream::flags::EngineArgs;
use corsair_stream_load::Workload;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

/// The flags of `corsair-stream-load deliver`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeliverArgs {
    /// Number of tasks that run at once
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "10,100,1000"
    )]
    tasks: Vec<NonZeroUsize>,
    /// Number of lines in a write; the recording `packets` has 4848
    #[arg(long, value_name = "N", default_value = "5000")]
    lines: NonZeroUsize,
    /// Work of the tasks
    #[arg(long, value_enum, default_value_t = Work::All)]
    work: Work,
    /// Number of rounds, of which the median is printed
    #[arg(long, value_name = "N", default_value = "5")]
    rounds: NonZeroUsize,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Work {
    All,
    /// Pass all points
    From,
    /// Pass no point
    None,
    /// A window and a count
    Count,
    /// Three conditions and an alert
    Alert,
    /// Pass points with the shape of the original recording
    Packets,
}

const M1: &str = "stream | from().measurement('m1')";
const COUNT: &str = "stream | from().measurement('m1') | window(100s, every 100s) | count(value)";
const ALERT: &str = "stream | from().measurement('m1') | alert().info(value > 10).warn(value > 20).crit(value > 30)";
const PACKETS: &str = "stream | from().measurement('packets')";

/// Times the work, and prints a table.
pub(crate) fn run(args: &DeliverArgs) -> anyhow::Result<()> {
    let lines = args.lines.get();
    let mut table = String::from("work        tasks      ms a write   ns a delivery\n");
    let runtime = runtime()?;
    for (work, name) in [
        (Work::From, "from"),
        (Work::None, "none"),
        (Work::Count, "count"),
        (Work::Alert, "alert"),
        (Work::Packets, "packets"),
    ] {
        if args.work != Work::All && args.work != work {
            continue;
        }
        for tasks in &args.tasks {
            let tasks = tasks.get();
            let workload = match work {
                Work::None => Workload::new(tasks, M1, "m2", lines),
                Work::Count => Workload::new(tasks, COUNT, "m1", lines),
                Work::Alert => Workload::new(tasks, ALERT, "m1", lines),
                Work::Packets => Workload::packets(tasks, PACKETS),
                Work::From | Work::All => Workload::new(tasks, M1, "m1", lines),
            };
            let mut times = Vec::new();
            for _ in 0..args.rounds.get() {
                times.push(runtime.block_on(workload.run(args.engine.options()))?);
            }
            row(&mut table, name, &workload, &mut times);
        }
    }
    print(&table);
    Ok(())
}

fn row(table: &mut String, name: &str, workload: &Workload, times: &mut [Duration]) {
    times.sort();
    let median = times[times.len() / 2];
    let tasks = workload.tasks;
    let deliveries = workload.delivered * tasks as u64;
    let each = match deliveries {
        0 => "-".into(),
        _ => format!("{:.2}", median.as_nanos() as f64 / deliveries as f64),
    };
    let ms = median.as_secs_f64() * 1e3;
    let _ = writeln!(table, "{name:<10} {tasks:>6} {ms:>15.3} {each:>15}");
}
