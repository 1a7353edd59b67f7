//! A picture of response times by load.

use super::PictureError;
use crate::capacity::{Capacity, Point};
use plotters::prelude::*;
use std::time::Duration;

/// Draws the median, the 95th and the 99th percentile of every load that was tried, the limit, and the highest load
/// that meets the objectives. Both axes are logarithmic.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn capacity(
    title: &str,
    found: &Capacity,
    limit: Option<Duration>,
) -> Result<String, PictureError> {
    let mut svg = String::new();
    draw(&mut svg, title, found, limit).map_err(PictureError::new)?;
    Ok(svg)
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).max(1e-3)
}

fn draw(
    svg: &mut String,
    title: &str,
    found: &Capacity,
    limit: Option<Duration>,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, (800, 500)).into_drawing_area();
    area.fill(&WHITE)?;
    let loads = || found.points.iter().map(|point| point.load);
    let (least, most) = (
        loads().fold(f64::MAX, f64::min),
        loads().fold(0.0, f64::max),
    );
    let times = || {
        found
            .points
            .iter()
            .flat_map(|p| [millis(p.p50), millis(p.p99)])
    };
    let limit = limit.map(millis);
    let shortest = times().chain(limit).fold(f64::MAX, f64::min);
    let longest = times().chain(limit).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (least * 0.9..most * 1.1 + 1e-9).log_scale(),
            (shortest * 0.8..longest * 1.25).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("requests a second at each entry point")
        .y_desc("milliseconds")
        .draw()?;
    type Time = fn(&Point) -> Duration;
    let curves: [(&str, RGBColor, Time); 3] = [
        ("p50", BLUE, |point| point.p50),
        ("p95", MAGENTA, |point| point.p95),
        ("p99", RED, |point| point.p99),
    ];
    for (name, colour, time) in curves {
        let points = found.points.iter().map(|p| (p.load, millis(time(p))));
        chart
            .draw_series(LineSeries::new(points, &colour).point_size(3))?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], colour));
    }
    if let Some(limit) = limit {
        let across = [(least * 0.9, limit), (most * 1.1, limit)];
        chart
            .draw_series(LineSeries::new(across, BLACK.mix(0.5)))?
            .label("limit")
            .legend(|(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], BLACK.mix(0.5)));
    }
    if let Some(load) = found.load {
        let up = [(load, shortest * 0.8), (load, longest * 1.25)];
        chart
            .draw_series(LineSeries::new(up, GREEN.mix(0.8)))?
            .label("capacity")
            .legend(|(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], GREEN.mix(0.8)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_has_both_curves_the_limit_and_the_capacity() {
        let point = |load: f64, p99: u64| Point {
            load,
            throughput: load,
            p50: Duration::from_millis(2),
            p95: Duration::from_millis(p99 / 2),
            objectives: Vec::new(),
            p99: Duration::from_millis(p99),
            p99_within: None,
            errors: 0.0,
            utilisations: Vec::new(),
            runs: 1,
            is_certain: true,
            holds: p99 < 100,
        };
        let found = Capacity {
            points: vec![point(10.0, 5), point(20.0, 50), point(40.0, 500)],
            load: Some(20.0),
            between: (Some(20.0), Some(40.0)),
            beyond: false,
            limited: true,
        };
        let svg = capacity("shop", &found, Some(Duration::from_millis(100))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for part in ["shop", "p50", "p99", "limit", "capacity", "milliseconds"] {
            assert!(svg.contains(part), "{part}");
        }
    }
}
