//! Rates over the number of actors.

use crate::measured::Benchmark;
use corsair::picture::{FAINT, SERIES};
use corsair_arch::picture::style::{NAMES, colour, mesh, name_ends, picture};
use plotters::prelude::*;
use std::error::Error;

/// Draws the rate of ten virtual seconds of chat, in events per second of wall-clock time, by
/// population.
///
/// # Errors
/// If nothing was measured, or the picture cannot be drawn.
pub fn chat(rows: &[Benchmark]) -> Result<String, Box<dyn Error>> {
    let curves = [
        ("virtual-2-handler", "handler, 2 workers", SERIES[0]),
        ("virtual-1-handler", "handler, 1 worker", SERIES[3]),
        ("virtual-2-async", "async, 2 workers", SERIES[2]),
        ("virtual-1-async", "async, 1 worker", SERIES[5]),
        ("heap", "a binary heap", FAINT),
    ];
    let points = |id: &str| -> Vec<(f64, f64)> {
        let mut points: Vec<_> = rows
            .iter()
            .filter(|row| row.group == "chat" && row.contender == id)
            .map(|row| (row.parameter as f64, 1e3 / row.nanoseconds))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let most = curves
        .iter()
        .flat_map(|curve| points(curve.0))
        .map(|point| point.1)
        .fold(0.0, f64::max);
    if most == 0.0 {
        return Err("criterion.json has no row of chat".into());
    }
    let description = "Million events per second of wall-clock time by number of actors, of handlers, async bodies and a binary heap of events.";
    let drawn = picture((960, 420), "Rates of chat", description, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .margin_right(NAMES + 20)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d((900.0..1_100_000.0).log_scale(), 0.0..most * 1.1)?;
        mesh(&mut chart)
            .x_desc("actors")
            .y_desc("million events per second")
            .x_label_formatter(&|actors| format!("{actors}"))
            .draw()?;
        let mut names = Vec::new();
        for (id, name, hex) in curves {
            let points = points(id);
            let end = points.last().map(|end| chart.backend_coord(end));
            names.extend(end.map(|end| (end, name.to_owned(), colour(hex))));
            let style = colour(hex).filled().stroke_width(2);
            chart.draw_series(LineSeries::new(points, style).point_size(4))?;
        }
        Ok(name_ends(area, names)?)
    });
    Ok(drawn?)
}
