//! PHOLD in corsair and in ROSS, over lookahead, size and remote fraction.

use crate::legend;
use crate::legend::INK;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use serde::Deserialize;
use std::error::Error;

/// One row of `benches/versus/phold/run.sh`: the parameters, and million events per second. The rate of a contender
/// that failed is missing.
#[derive(Debug, Deserialize)]
pub struct Row {
    processes: u64,
    lookahead: f64,
    remote: f64,
    corsair: Option<f64>,
    sequential: Option<f64>,
    conservative: Option<f64>,
    optimistic: Option<f64>,
}

/// A curve: its name, its value in a row, and its colour.
type Curve = (&'static str, fn(&Row) -> Option<f64>, RGBColor);

const CURVES: [Curve; 4] = [
    ("corsair", |row| row.corsair, RGBColor(196, 78, 36)),
    (
        "ROSS, sequential",
        |row| row.sequential,
        RGBColor(120, 134, 148),
    ),
    (
        "ROSS, conservative",
        |row| row.conservative,
        RGBColor(36, 96, 160),
    ),
    (
        "ROSS, optimistic",
        |row| row.optimistic,
        RGBColor(60, 140, 90),
    ),
];

/// The size, the lookahead and the remote fraction of the row that all three panels share.
const COMMON: (u64, f64, f64) = (100_000, 0.1, 0.5);

/// Draws one panel for each parameter, with the rates on a logarithmic axis.
///
/// # Errors
/// If nothing was measured, or the picture cannot be drawn.
pub fn draw(rows: &[Row]) -> Result<String, Box<dyn Error>> {
    let (processes, lookahead, remote) = COMMON;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (960, 360)).into_drawing_area();
        area.fill(&WHITE)?;
        let panels = area.split_evenly((1, 3));
        let along = |keep: &dyn Fn(&Row) -> bool| -> Vec<&Row> {
            rows.iter().filter(|row| keep(row)).collect()
        };
        let by_lookahead = along(&|row| row.processes == processes && row.remote == remote);
        panel(
            &panels[0],
            "lookahead",
            &by_lookahead,
            |row| row.lookahead,
            (7e-4..1.5).log_scale(),
        )?;
        let by_size = along(&|row| row.lookahead == lookahead && row.remote == remote);
        panel(
            &panels[1],
            "processes",
            &by_size,
            |row| row.processes as f64,
            (7e3..1.5e6).log_scale(),
        )?;
        let by_remote = along(&|row| row.processes == processes && row.lookahead == lookahead);
        panel(
            &panels[2],
            "share of remote events",
            &by_remote,
            |row| row.remote,
            -0.05..1.05,
        )?;
        area.present()?;
    }
    Ok(svg)
}

/// Draws the rates over one parameter; the first panel has the legend.
fn panel<X>(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    rows: &[&Row],
    parameter: fn(&Row) -> f64,
    range: X,
) -> Result<(), Box<dyn Error>>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    if rows.is_empty() {
        return Err(format!("phold.json has no row for the panel of {title}").into());
    }
    let text = ("sans-serif", 13).into_font().color(&INK);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(range, (0.03..100.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_labels(5)
        .x_desc(title)
        .y_desc("million events per second")
        .x_label_formatter(&|value| format!("{value}"))
        .y_label_formatter(&|rate| format!("{rate}"))
        .label_style(text.clone())
        .axis_desc_style(text)
        .draw()?;
    for (name, rate, colour) in CURVES {
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .filter_map(|row| Some((parameter(row), rate(row)?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart
            .draw_series(LineSeries::new(points, colour.filled().stroke_width(2)).point_size(4))?
            .label(name)
            .legend(legend::line(colour));
    }
    if title == "lookahead" {
        legend::draw(&mut chart, SeriesLabelPosition::LowerLeft)?;
    }
    Ok(())
}
