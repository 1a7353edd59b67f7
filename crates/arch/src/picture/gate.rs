//! Pictures of a gate's result: objectives with their intervals, and the time of each service.

use super::PictureError;
use crate::experiment::Estimate;
use crate::gate::{GateResult, Judged, ServiceChange, Verdict, size};
use plotters::prelude::*;

/// Services beyond this number are not drawn.
const MOST_SERVICES: usize = 12;
const BEFORE: RGBColor = RGBColor(140, 140, 140);
const MET: RGBColor = RGBColor(36, 96, 160);
const MISSED: RGBColor = RGBColor(196, 48, 36);
const UNDECIDED: RGBColor = RGBColor(214, 140, 20);
/// Queue, work and network.
const PARTS: [(&str, RGBColor); 3] = [
    ("queue", RGBColor(196, 78, 36)),
    ("work", RGBColor(36, 96, 160)),
    ("network", RGBColor(120, 160, 90)),
];

/// Draws the value of each objective before and after, with its interval, in per cent of its limit.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn objectives(result: &GateResult) -> Result<String, PictureError> {
    draw_objectives(result).map_err(PictureError::new)
}

/// Draws the time that requests spend at each service, before (upper bar) and after (lower bar).
///
/// # Errors
/// If the picture cannot be drawn.
pub fn services(result: &GateResult) -> Result<String, PictureError> {
    draw_services(result).map_err(PictureError::new)
}

type Drawn = Result<String, Box<dyn std::error::Error>>;

fn draw_objectives(result: &GateResult) -> Drawn {
    let share = |judged: &Judged, of: Estimate| {
        let part = 100.0 / judged.slo.most.max(1e-9);
        (of.mean * part, of.within.unwrap_or(0.0) * part)
    };
    let drawn: Vec<&Judged> = (result.objectives.iter())
        .filter(|judged| !judged.value.is_empty())
        .collect();
    let ends = drawn.iter().flat_map(|judged| {
        let all = std::iter::once(judged.value).chain(judged.base);
        all.filter(|of| !of.is_empty()).map(|of| {
            let (mean, within) = share(judged, of);
            mean + within
        })
    });
    // What is far beyond the limit is at the edge.
    let most = (ends.fold(120.0, f64::max) * 1.08).min(1_000.0);
    let rows = drawn.len().max(1);
    let mut svg = String::new();
    {
        let size = (800, 90 + 56 * rows as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(10)
            .build_cartesian_2d(0.0..most, 0.0..rows as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_desc("per cent of the limit (grey: before the change)")
            .draw()?;
        for (number, judged) in drawn.iter().rev().enumerate() {
            let colour = match judged.verdict {
                Verdict::Met => MET,
                Verdict::Missed => MISSED,
                Verdict::Undecided(_) => UNDECIDED,
            };
            let y = number as f64;
            let sides = [
                (judged.base, y + 0.5, BEFORE),
                (Some(judged.value), y + 0.25, colour),
            ];
            for (of, y, colour) in sides {
                let Some(of) = of.filter(|of| !of.is_empty()) else {
                    continue;
                };
                let (mean, within) = share(judged, of);
                let [least, mean, end] =
                    [mean - within, mean, mean + within].map(|end| end.clamp(0.0, most));
                let line = [(least, y), (end, y)];
                chart.draw_series(LineSeries::new(line, colour.stroke_width(3)))?;
                chart.draw_series([Circle::new((mean, y), 5, colour.filled())])?;
            }
            let name = Text::new(
                judged.slo.to_string(),
                (most * 0.01, y + 0.95),
                ("sans-serif", 14),
            );
            chart.draw_series([name])?;
        }
        let limit = [(100.0, 0.0), (100.0, rows as f64)];
        chart.draw_series(LineSeries::new(limit, BLACK.stroke_width(2)))?;
        area.present()?;
    }
    Ok(svg)
}

fn draw_services(result: &GateResult) -> Drawn {
    let mut rows: Vec<&ServiceChange> = result.services.iter().collect();
    rows.retain(|row| size(row) > 0.0);
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    rows.truncate(MOST_SERVICES);
    let most = rows.iter().map(|row| size(row) * 1e3).fold(1e-3, f64::max) * 1.05;
    let mut svg = String::new();
    {
        let extent = (800, 100 + 44 * rows.len().max(1) as u32);
        let area = SVGBackend::with_string(&mut svg, extent).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(150)
            .build_cartesian_2d(0.0..most, 0.0..rows.len().max(1) as f64)?;
        let names: Vec<String> = rows.iter().rev().map(|row| row.name.clone()).collect();
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_desc("milliseconds of a request from outside; above: before, below: after")
            .draw()?;
        for (number, row) in rows.iter().rev().enumerate() {
            let y = number as f64;
            let short: String = names[number].chars().take(24).collect();
            let at = chart.backend_coord(&(0.0, y + 0.55));
            area.draw(&Text::new(short, (14, at.1 - 6), ("sans-serif", 13)))?;
            for (side, from) in [(&row.base, y + 0.5), (&row.now, y + 0.12)] {
                let Some(used) = side else {
                    continue;
                };
                let mut x = 0.0;
                let parts = [used.queue, used.work, used.network];
                for (part, (_, colour)) in parts.into_iter().zip(PARTS) {
                    let end = x + part * 1e3;
                    let corners = [(x, from), (end, from + 0.34)];
                    chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                    x = end;
                }
            }
        }
        for (place, (name, colour)) in (0..).zip(PARTS) {
            let x = 560 + 75 * place;
            area.draw(&Rectangle::new([(x, 4), (x + 10, 14)], colour.filled()))?;
            area.draw(&Text::new(name, (x + 14, 4), ("sans-serif", 12)))?;
        }
        area.present()?;
    }
    Ok(svg)
}
