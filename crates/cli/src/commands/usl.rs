//! `corsair usl`: fits the universal scalability law to measured throughputs.

mod fit;
mod law;
mod parse;
mod plot;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use corsair_arch::input_file::read_file_text;
use corsair_observe::Replacement;
use law::{Point, Usl};
use parse::{parse, parse_pairs};
use plot::plot;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

/// The arguments of `corsair usl`.
#[derive(Args, Clone, Debug)]
pub struct UslArgs {
    /// File with a load and a throughput on each line: `16 9897.2`, or CSV
    #[arg(
        value_name = "FILE",
        required_unless_present = "points",
        conflicts_with = "points"
    )]
    file: Option<PathBuf>,
    /// Loads and throughputs: 1:955,2:1878,4:3548
    #[arg(long, value_name = "LOAD:THROUGHPUT,…")]
    points: Option<String>,
    /// Write a chart of the points and the fitted law, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the predicted throughput at this load
    #[arg(long, value_name = "LOAD", value_parser = positive)]
    load: Option<f64>,
    /// Print the load that gives this throughput, and its response time
    #[arg(long, value_name = "THROUGHPUT", value_parser = positive)]
    throughput: Option<f64>,
    /// Print the load that gives this response time, in the throughput's unit of time
    #[arg(long, value_name = "TIME", value_parser = positive)]
    response: Option<f64>,
}

/// Fits the law, prints it, and draws it if a chart is requested.
///
/// # Errors
/// If the points cannot be read or fitted, or the drawing cannot be written.
pub fn run(args: &UslArgs) -> Result<()> {
    let points = match (&args.file, &args.points) {
        (Some(path), _) => {
            let text = read_file_text(path).map_err(|error| {
                anyhow!(
                    "cannot read {}: {error}; give a file with a load and a throughput on each line",
                    path.display()
                )
            })?;
            parse(&text).with_context(|| path.display().to_string())?
        }
        (None, points) => parse_pairs(points.as_deref().unwrap_or("")).context("--points")?,
    };
    let usl = Usl::fit(&points)?;
    let mut text = text(&points, &usl);
    text.push_str(&answers(args, &usl));
    if let Some(path) = &args.svg {
        let mut file = Replacement::begin(path).context("--svg")?;
        let title = args.file.as_ref().and_then(|path| path.file_name());
        let title = title.map_or("Universal scalability law".into(), |name| {
            name.to_string_lossy()
        });
        let drawing = plot(&points, &usl, &title).context("--svg")?;
        io::Write::write_all(&mut file, drawing.as_bytes()).map_err(|error| file.failed(error))?;
        file.finish()?;
        let _ = writeln!(text, "drawn in {}", path.display());
    }
    crate::console::Console::new(true)
        .print(|mut out| std::io::Write::write_all(&mut out, text.as_bytes()));
    Ok(())
}

/// Returns the answers to the flags, one per line.
fn answers(args: &UslArgs, usl: &Usl) -> String {
    let mut text = String::new();
    let mut line = |asked: String, load: Option<f64>| {
        let answer = load.map(|load| {
            format!(
                "load {load:.4}, throughput {:.4}, response time {:.6}",
                usl.throughput(load),
                usl.response(load)
            )
        });
        let answer = answer.unwrap_or_else(|| "no load gives that".to_owned());
        // Writing to a string does not fail.
        let _ = writeln!(text, "{asked}: {answer}");
    };
    if let Some(load) = args.load {
        line(format!("at a load of {load}"), Some(load));
    }
    if let Some(throughput) = args.throughput {
        let load = usl.load_of(throughput);
        line(format!("at a throughput of {throughput}"), load);
    }
    if let Some(response) = args.response {
        let load = usl.throughput_at(response).map(|x| x * response);
        line(format!("at a response time of {response}"), load);
    }
    if !text.is_empty() {
        text.insert(0, '\n');
    }
    text
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err(format!("'{text}' is not a number above 0")),
    }
}

/// Returns the lines that the command prints.
fn text(points: &[Point], usl: &Usl) -> String {
    let Usl {
        lambda,
        alpha,
        beta,
        r_squared,
    } = usl;
    let mut text = format!(
        "throughput of one  λ  {lambda:.6}\n\
         contention         α  {alpha:.6}\n\
         coherency          β  {beta:.9}\n\
         explained          R² {r_squared:.6}\n"
    );
    let _ = match (usl.peak(), usl.limit()) {
        (Some(peak), _) => {
            let most = points.iter().map(|point| point.load).fold(0.0, f64::max);
            let beyond = match peak.load > most {
                true => ", beyond what was measured",
                false => "",
            };
            writeln!(
                text,
                "peak               {:.2} at a load of {:.2}{beyond}",
                peak.throughput, peak.load
            )
        }
        (None, Some(limit)) => writeln!(text, "no peak; throughput approaches {limit:.2}"),
        (None, None) => writeln!(text, "no peak; throughput grows with the load"),
    };
    if points.len() < 6 {
        let _ = writeln!(
            text,
            "{} points are few for three parameters; measure at 6 loads or more",
            points.len()
        );
    }
    let _ = writeln!(
        text,
        "\n{:>12} {:>14} {:>14} {:>8}",
        "load", "measured", "law", "off by"
    );
    for point in points {
        let law = usl.throughput(point.load);
        let off = (point.throughput / law - 1.0) * 100.0;
        let _ = writeln!(
            text,
            "{:>12} {:>14.2} {law:>14.2} {off:>7.1}%",
            point.load, point.throughput
        );
    }
    text
}
