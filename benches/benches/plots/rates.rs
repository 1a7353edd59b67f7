//! Rates over the number of actors.

use crate::legend;
use crate::legend::INK;
use crate::measured::Benchmark;
use plotters::prelude::*;
use std::error::Error;

/// Draws the rate of ten virtual seconds of chat, in events per second of wall-clock time, by
/// population.
///
/// # Errors
/// If nothing was measured, or the picture cannot be drawn.
pub fn chat(rows: &[Benchmark]) -> Result<String, Box<dyn Error>> {
    let curves = [
        (
            "virtual-2-handler",
            "handler, 2 workers",
            RGBColor(196, 78, 36),
        ),
        (
            "virtual-1-handler",
            "handler, 1 worker",
            RGBColor(230, 150, 100),
        ),
        ("virtual-2-async", "async, 2 workers", RGBColor(36, 96, 160)),
        (
            "virtual-1-async",
            "async, 1 worker",
            RGBColor(110, 160, 210),
        ),
        ("heap", "a binary heap of events", RGBColor(120, 134, 148)),
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
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (960, 420)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d((900.0..1_100_000.0).log_scale(), 0.0..most * 1.1)?;
        let text = ("sans-serif", 13).into_font().color(&INK);
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("actors")
            .y_desc("million events per second")
            .x_label_formatter(&|actors| format!("{actors}"))
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .draw()?;
        for (id, name, colour) in curves {
            chart
                .draw_series(
                    LineSeries::new(points(id), colour.filled().stroke_width(2)).point_size(4),
                )?
                .label(name)
                .legend(legend::line(colour));
        }
        legend::draw(&mut chart, SeriesLabelPosition::UpperLeft)?;
        area.present()?;
    }
    Ok(svg)
}
