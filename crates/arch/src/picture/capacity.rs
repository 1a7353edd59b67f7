//! A picture of response times by load.

use super::PictureError;
use super::style::{Area, NAMES, colour, font, mesh, name_ends, picture};
use crate::capacity::{Capacity, Point};
use corsair::picture;
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
    let found_at = match found.load {
        Some(load) if found.limited => format!("The capacity is {load:.1} requests per second."),
        _ => "No capacity was found.".to_owned(),
    };
    let description = format!(
        "Median, 95th and 99th percentile of the response time at {} loads. {found_at}",
        found.points.len()
    );
    picture((800, 500), title, &description, |area| {
        draw(area, title, found, limit)
    })
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).max(1e-3)
}

fn draw(
    area: &Area<'_>,
    title: &str,
    found: &Capacity,
    limit: Option<Duration>,
) -> Result<(), Box<dyn std::error::Error>> {
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
    let mut chart = ChartBuilder::on(area)
        .caption(title, font(20, colour(picture::INK)))
        .margin(12)
        .margin_right(NAMES)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(
            (least * 0.9..most * 1.1 + 1e-9).log_scale(),
            (shortest * 0.8..longest * 1.25).log_scale(),
        )?;
    mesh(&mut chart)
        .x_desc("requests per second at each entry point")
        .y_desc("milliseconds")
        .draw()?;
    type Time = fn(&Point) -> Duration;
    let curves: [(&str, &str, Time); 3] = [
        ("p50", picture::NORMAL, |point| point.p50),
        ("p95", picture::SERIES[3], |point| point.p95),
        ("p99", picture::NOTABLE, |point| point.p99),
    ];
    let mut names = Vec::new();
    for (name, hex, time) in curves {
        let points: Vec<(f64, f64)> = (found.points.iter())
            .map(|p| (p.load, millis(time(p))))
            .collect();
        let style = colour(hex).filled().stroke_width(2);
        let end = points.last().map(|end| chart.backend_coord(end));
        chart.draw_series(LineSeries::new(points, style).point_size(3))?;
        names.extend(end.map(|end| (end, name.to_owned(), colour(hex))));
    }
    let bad = colour(picture::BAD);
    if let Some(limit) = limit {
        let across = [(least * 0.9, limit), (most * 1.1, limit)];
        names.push((
            chart.backend_coord(&across[1]),
            format!("limit {limit} ms"),
            bad,
        ));
        chart.draw_series(LineSeries::new(across, bad))?;
    }
    if let Some(load) = found.load {
        let up = [(load, shortest * 0.8), (load, longest * 1.25)];
        let (x, y) = chart.backend_coord(&up[1]);
        chart.draw_series(LineSeries::new(up, colour(picture::LIMIT).stroke_width(2)))?;
        let text = format!("capacity {load:.1}/s");
        let style = font(13, colour(picture::LIMIT));
        area.draw(&Text::new(text, (x - 110, y + 4), style))?;
    }
    name_ends(area, names)?;
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
        for part in [
            "<title>shop",
            "<desc>",
            "p50",
            "p99",
            "limit",
            "capacity",
            "milliseconds",
        ] {
            assert!(svg.contains(part), "{part}");
        }
    }
}
