//! `corsair usl`: the universal scalability law, fitted to measured throughputs.

use anyhow::{Context, Result, anyhow};
use clap::Args;
use corsair_observe::Replacement;
use corsair_observe::usl::{Point, Usl, parse, parse_pairs, plot};
use std::fmt::Write;
use std::path::PathBuf;

/// The arguments of `corsair usl`.
#[derive(Args, Clone, Debug)]
pub struct UslArgs {
    /// A load and a throughput on each line: `16 9897.2`, or CSV
    #[arg(
        value_name = "FILE",
        required_unless_present = "points",
        conflicts_with = "points"
    )]
    file: Option<PathBuf>,
    /// Loads and throughputs: 1:955,2:1878,4:3548
    #[arg(long, value_name = "LOAD:THROUGHPUT,…")]
    points: Option<String>,
    /// Draw the points and the law as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Fits, prints the law, and draws it if asked.
///
/// # Errors
/// If the points cannot be read or fitted, or the drawing cannot be written.
pub fn run(args: &UslArgs) -> Result<()> {
    let points = match (&args.file, &args.points) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
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
    if let Some(path) = &args.svg {
        let mut file = Replacement::begin(path).context("--svg")?;
        let title = args.file.as_ref().and_then(|path| path.file_name());
        let title = title.map_or("Universal scalability law".into(), |name| {
            name.to_string_lossy()
        });
        plot(&mut file, &points, &usl, &title).map_err(|error| file.failed(error))?;
        file.finish()?;
        let _ = writeln!(text, "drawn in {}", path.display());
    }
    crate::console::Console::new(true)
        .print(|mut out| std::io::Write::write_all(&mut out, text.as_bytes()));
    Ok(())
}

/// The lines that the command prints.
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
