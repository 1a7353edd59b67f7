//! PHOLD in corsair and in ROSS, over lookahead, size and remote fraction.

use corsair::picture::{FAINT, LIMIT, NORMAL, NOTABLE};
use corsair_arch::picture::style::{Area, NAMES, Name, colour, mesh, name_ends, picture};
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
type Curve = (&'static str, fn(&Row) -> Option<f64>, &'static str);

const CURVES: [Curve; 4] = [
    ("corsair", |row| row.corsair, NORMAL),
    ("ROSS, sequential", |row| row.sequential, FAINT),
    ("ROSS, conservative", |row| row.conservative, NOTABLE),
    ("ROSS, optimistic", |row| row.optimistic, LIMIT),
];

/// The size, the lookahead and the remote fraction of the row that all three panels share.
const COMMON: (u64, f64, f64) = (100_000, 0.1, 0.5);

/// Draws one panel for each parameter, with the rates on a logarithmic axis.
///
/// # Errors
/// If nothing was measured, or the picture cannot be drawn.
pub fn draw(rows: &[Row]) -> Result<String, Box<dyn Error>> {
    let (processes, lookahead, remote) = COMMON;
    let along = |keep: &dyn Fn(&Row) -> bool| -> Vec<&Row> {
        rows.iter().filter(|row| keep(row)).collect()
    };
    let by_lookahead = along(&|row| row.processes == processes && row.remote == remote);
    let by_size = along(&|row| row.lookahead == lookahead && row.remote == remote);
    let by_remote = along(&|row| row.processes == processes && row.lookahead == lookahead);
    let description =
        "Million events per second by lookahead, processes and remote events, of corsair and ROSS.";
    let drawn = picture((960 + NAMES, 360), "PHOLD", description, |area| {
        let (charts, _) = area.split_horizontally(960);
        let panels = charts.split_evenly((1, 3));
        let lookaheads = (7e-4..1.5).log_scale();
        let size = |row: &Row| row.processes as f64;
        panel(
            &panels[0],
            "lookahead",
            &by_lookahead,
            |row| row.lookahead,
            lookaheads,
        )?;
        panel(
            &panels[1],
            "processes",
            &by_size,
            size,
            (7e3..1.5e6).log_scale(),
        )?;
        let title = "share of remote events";
        let names = panel(&panels[2], title, &by_remote, |row| row.remote, -0.05..1.05)?;
        Ok(name_ends(area, names)?)
    });
    Ok(drawn?)
}

/// Draws the rates over one parameter, and returns the names at the ends of the curves.
fn panel<X>(
    area: &Area<'_>,
    title: &str,
    rows: &[&Row],
    parameter: fn(&Row) -> f64,
    range: X,
) -> Result<Vec<Name>, Box<dyn Error>>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    if rows.is_empty() {
        return Err(format!("phold.json has no row for the panel of {title}").into());
    }
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(range, (0.03..100.0).log_scale())?;
    mesh(&mut chart)
        .x_labels(5)
        .x_desc(title)
        .y_desc("million events per second")
        .x_label_formatter(&|value| format!("{value}"))
        .y_label_formatter(&|rate| format!("{rate}"))
        .draw()?;
    let mut names = Vec::new();
    for (name, rate, hex) in CURVES {
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .filter_map(|row| Some((parameter(row), rate(row)?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let end = points.last().map(|end| chart.backend_coord(end));
        names.extend(end.map(|end| (end, name.to_owned(), colour(hex))));
        let style = colour(hex).filled().stroke_width(2);
        chart.draw_series(LineSeries::new(points, style).point_size(4))?;
    }
    Ok(names)
}
