//! `corsair compare`: two architectures side by side, from the same seeds.

use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::variants::{self, RunArgs};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair_arch::{Compared, Estimate, Setting, compare};
use corsair_observe::Replacement;
use plotters::prelude::*;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// The flags of `corsair compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The first architecture: a name or a file
    a: String,
    /// The second; the first again if left out
    b: Option<String>,
    /// A field of the second that is set, such as services.web.count=4; may be given several times
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = variants::setting)]
    set: Vec<Setting>,
    /// What comes in at the second, if not the same as at the first
    #[arg(long, value_name = "LOAD")]
    load_b: Option<String>,
    /// From how many seeds both are run
    #[arg(long, value_name = "N", default_value_t = 10)]
    seeds: usize,
    #[command(flatten)]
    run: RunArgs,
    /// Draw the difference to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Lines, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// One number of both, as JSON; times are in seconds.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    a: f64,
    a_within: Option<f64>,
    b: f64,
    b_within: Option<f64>,
    difference: f64,
    difference_within: Option<f64>,
    /// Whether the interval of the difference leaves zero out.
    is_clear: bool,
}

/// Compares two architectures and tells the differences.
///
/// # Errors
/// What is wrong with the flags or the definitions, or that the picture cannot be written.
pub fn run(args: &CompareArgs) -> Result<()> {
    if !(2..=10_000).contains(&args.seeds) {
        bail!("--seeds: {} are no sample; give 2 to 10000", args.seeds);
    }
    if args.b.is_none() && args.set.is_empty() && args.load_b.is_none() {
        bail!("both are the same; name a second architecture, or give --set or --load-b");
    }
    let second = args.b.as_ref().unwrap_or(&args.a);
    let (a, b) = (args.run.find(&args.a)?, args.run.find(second)?);
    let a = args.run.topology(&a, &[], None)?;
    let b = args.run.topology(&b, &args.set, args.load_b.as_deref())?;
    let svg = args.svg.as_deref().map(Replacement::begin).transpose();
    let svg = svg.context("--svg")?;
    let (config, plan) = (args.run.config(), args.run.plan()?);
    interrupt::on_ctrl_c(config.cut.clone());
    let compared = compare(&config, [&a, &b], &plan, args.seeds)?;
    let Some(compared) = compared else {
        bail!("stopped before all runs were made");
    };
    if let Some(mut file) = svg {
        let drawn = draw(&compared).map_err(|error| anyhow!("--svg: {error}"))?;
        let written = file.writer().write_all(drawn.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context("--svg")?;
    }
    let console = Console::new(true);
    match args.format {
        Format::Text => {
            console.line(format_args!(
                "{:<11} {:>22} {:>22} {:>22}",
                "", "a", "b", "b - a"
            ));
            compared.iter().for_each(|row| console.line(line(row)));
            console.line(format_args!(
                "corsair: 95 % intervals from {} seeds; * where b differs from a",
                args.seeds
            ));
        }
        Format::Json => {
            let rows: Vec<Row> = compared.iter().map(row).collect();
            console.print(|out| {
                serde_json::to_writer(&mut *out, &rows).map_err(io::Error::from)?;
                writeln!(out)
            });
        }
    }
    Ok(())
}

fn row(of: &Compared) -> Row {
    let [a, b] = of.of;
    Row {
        name: of.name,
        a: a.mean,
        a_within: a.within,
        b: b.mean,
        b_within: b.within,
        difference: of.difference.mean,
        difference_within: of.difference.within,
        is_clear: of.difference.is_clear(),
    }
}

/// A number with its interval, in the unit that people read it in.
fn shown(name: &str, of: Estimate) -> String {
    let within = of.within.unwrap_or(0.0);
    if name.ends_with("_seconds") {
        format!("{:.3} ± {:.3} ms", of.mean * 1e3, within * 1e3)
    } else if name == "errors" {
        format!("{:.3} ± {:.3} %", of.mean * 1e2, within * 1e2)
    } else {
        format!("{:.1} ± {within:.1}", of.mean)
    }
}

fn line(of: &Compared) -> String {
    let [a, b] = of.of.map(|estimate| shown(of.name, estimate));
    let name = of.name.trim_end_matches("_seconds");
    let mark = if of.difference.is_clear() { " *" } else { "" };
    let difference = shown(of.name, of.difference);
    format!("{name:<11} {a:>22} {b:>22} {difference:>22}{mark}")
}

/// By how many per cent of the first the second differs, with intervals.
fn draw(compared: &[Compared]) -> Result<String, Box<dyn std::error::Error>> {
    let relative: Vec<(&str, f64, f64)> = compared
        .iter()
        .filter(|row| row.of[0].mean.abs() > 0.0)
        .map(|row| {
            let part = 100.0 / row.of[0].mean;
            let within = row.difference.within.unwrap_or(0.0);
            let name = row.name.trim_end_matches("_seconds");
            (name, row.difference.mean * part, within * part)
        })
        .collect();
    let most = relative.iter().map(|(_, mean, within)| mean.abs() + within);
    let most = most.fold(1.0, f64::max) * 1.15;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (800, 400)).into_drawing_area();
        area.fill(&WHITE)?;
        let rows = relative.len().max(1) as f64;
        let mut chart = ChartBuilder::on(&area)
            .caption("b against a, per cent of a", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(20)
            .build_cartesian_2d(-most..most, 0.0..rows)?;
        let mesh = &mut chart.configure_mesh();
        mesh.disable_y_mesh()
            .y_labels(0)
            .x_desc("per cent")
            .draw()?;
        for (number, &(name, mean, within)) in relative.iter().rev().enumerate() {
            let y = number as f64 + 0.4;
            let colour = if mean.abs() > within { RED } else { BLUE };
            let across = [(mean - within, y), (mean + within, y)];
            chart.draw_series(LineSeries::new(across, colour.stroke_width(2)))?;
            chart.draw_series([Circle::new((mean, y), 4, colour.filled())])?;
            let text = Text::new(name.to_owned(), (-most, y + 0.3), ("sans-serif", 14));
            chart.draw_series([text])?;
        }
        chart.draw_series(LineSeries::new([(0.0, 0.0), (0.0, rows)], BLACK))?;
        area.present()?;
    }
    Ok(svg)
}
