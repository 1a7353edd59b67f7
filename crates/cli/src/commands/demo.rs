//! `corsair demo`: shows a two-minute demonstration, in the browser or as a table.

use crate::console::Console;
use crate::interrupt;
use crate::session::PageArgs;
use crate::style::{self, Cell, Meaning};
use crate::text::GoDuration;
use anyhow::{Result, anyhow};
use clap::Args;
use corsair::{Config, Time};
use corsair_arch::{BUILT_IN, Plan, Scale, Topology, read_text};
use corsair_view::{GroupSample, Mark, Services, World};
use serde_json::Value;
use std::time::Duration;

/// The arguments of `corsair demo`.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Print the measurements of each stage, without a page
    #[arg(long, conflicts_with_all = ["ui", "open"])]
    text: bool,
    #[command(flatten)]
    page: PageArgs,
}

/// The length of the demonstration.
const LENGTH: Duration = Duration::from_secs(120);
/// The interval at which the longest queue is measured.
const LOOK: Duration = Duration::from_millis(250);

/// Shows the demonstration in the browser, or prints it.
///
/// # Errors
/// If the page cannot be served.
pub fn run(args: &DemoArgs) -> Result<()> {
    let (_, definition) = BUILT_IN
        .iter()
        .find(|(name, _)| *name == "demo")
        .ok_or_else(|| anyhow!("there is no definition of the demo"))?;
    let config = Config::default();
    interrupt::on_ctrl_c(config.cancel.clone());
    if args.text {
        return table(definition, &config);
    }
    watched(definition, &config, args)
}

/// Returns the stages of a definition from its key `x-stages`.
fn stages(definition: &str) -> Result<Vec<Mark>> {
    let all: Value = serde_json::from_str(definition)?;
    let stages = all["x-stages"].as_array().into_iter().flatten();
    let text = |stage: &Value, key: &str| stage[key].as_str().unwrap_or_default().to_owned();
    let stages = stages.map(|stage| Mark {
        at: stage["at"].as_f64().unwrap_or(0.0),
        name: text(stage, "name"),
        text: text(stage, "text"),
    });
    Ok(stages.collect())
}

fn world(definition: &str, config: &Config) -> Result<Services> {
    let topology = Topology::new(&read_text(definition, "built-in demo")?, Scale::default())?;
    let plan = Plan {
        duration: LENGTH,
        ..Plan::default()
    };
    let world = Services::new(config, topology, &plan)?;
    Ok(world.with_stages(stages(definition)?))
}

#[cfg(feature = "ui")]
fn watched(definition: &'static str, config: &Config, args: &DemoArgs) -> Result<()> {
    let flags = serde_json::json!({ "arch": "demo", "duration": LENGTH.as_secs().to_string() });
    let flags = flags.as_object().cloned().unwrap_or_default();
    let again = config.clone();
    let make = move |_: &corsair_view::ExtraCapacity| {
        world(definition, &again).map_err(|error| format!("{error:#}"))
    };
    let world = world(definition, config)?;
    let session = corsair_view::Session::new(world, flags, Some(Box::new(make)));
    args.page.show(session, &config.cancel, |url| {
        Console::new(true).line(format_args!(
            "corsair: the demo is shown at {url} (press Play there; Ctrl-C ends it)"
        ));
    })
}

#[cfg(not(feature = "ui"))]
fn watched(definition: &str, config: &Config, args: &DemoArgs) -> Result<()> {
    table(definition, config)?;
    Console::new(true).line(format_args!(
        "corsair: `cargo run --features ui -- demo{}` shows it in the browser",
        args.page.typed()
    ));
    Ok(())
}

/// Returns a row of the table of stages.
fn row([start, stage, rate, errors, p50, p99, queue]: [&str; 7]) -> String {
    let cells = [
        Cell::right(start, 5, 0),
        Cell::left(stage, 10, 0),
        Cell::right(rate, 10, 1),
        Cell::right(errors, 6, 0),
        Cell::right(p50, 7, 2),
        Cell::right(p99, 7, 0),
        Cell::right(queue, 13, 3),
    ];
    style::row(&cells, style::width())
}

/// Prints the measurements of each stage.
fn table(definition: &str, config: &Config) -> Result<()> {
    let console = Console::new(true);
    let mut world = world(definition, config)?;
    world.watch(true);
    let stages: Vec<Mark> = world.scene().marks;
    let stages: Vec<Mark> = stages
        .into_iter()
        .filter(|mark| !mark.text.is_empty())
        .collect();
    let head = [
        "start",
        "stage",
        "requests/s",
        "errors",
        "p50",
        "p99",
        "longest queue",
    ];
    console.line(row(head));
    for (number, stage) in stages.iter().enumerate() {
        let ends = stages
            .get(number + 1)
            .map_or(LENGTH.as_secs_f64(), |next| next.at);
        let mut all = GroupSample::default();
        while world.now().elapsed().as_secs_f64() < ends && !world.is_over() {
            if config.cancel.is_cancelled() {
                return Err(anyhow!("stopped before the end of the demo"));
            }
            let end = Time::ZERO.after(Duration::from_secs_f64(ends));
            world.run_until(world.now().after(LOOK).min(end));
            let Some(sample) = world.sample().groups.into_iter().next() else {
                continue;
            };
            all.requests += sample.requests;
            all.errors += sample.errors;
            all.times.merge(&sample.times);
            all.queue = all.queue.max(sample.queue);
        }
        let seconds = (ends - stage.at).max(1e-9);
        let percentile = |part| all.times.quantile(part).unwrap_or(0);
        let [p50, p99] =
            [0.5, 0.99].map(|part| GoDuration::rounded(Duration::from_nanos(percentile(part))));
        let failed = 100.0 * all.errors as f64 / all.requests.max(1) as f64;
        let row = row([
            &format!("{:.0} s", stage.at),
            &stage.name,
            &format!("{:.0}", all.requests as f64 / seconds),
            &format!("{failed:.0} %"),
            &p50.to_string(),
            &p99.to_string(),
            &all.queue.to_string(),
        ]);
        console.line(match failed >= 0.5 {
            true => style::paint(&row, Meaning::Bad),
            false => row,
        });
        for line in style::wrapped(&stage.text, 8) {
            console.line(line);
        }
    }
    Ok(())
}
