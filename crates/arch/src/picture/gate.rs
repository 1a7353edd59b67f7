//! Pictures of a gate's result: objectives with their intervals, and the time of each service.

use super::PictureError;
use super::style::{Area, colour, font, mesh, picture};
use crate::experiment::Estimate;
use crate::gate::{GateResult, Judged, ServiceChange, Verdict, size, verdict_word};
use corsair::picture;
use plotters::prelude::*;

/// The maximum number of services in a picture.
const MOST_SERVICES: usize = 12;
/// Queue, work and network.
const PARTS: [(&str, &str); 3] = [
    ("queue", picture::NOTABLE),
    ("work", picture::NORMAL),
    ("network", picture::LIMIT),
];

type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Draws the value of each objective before and after, with its interval, in per cent of its limit.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn objectives(result: &GateResult) -> Result<String, PictureError> {
    let drawn = result.objectives.iter();
    let drawn: Vec<&Judged> = drawn.filter(|judged| !judged.value.is_empty()).collect();
    let verdicts = drawn.iter().map(|judged| {
        let word = verdict_word(judged.verdict);
        format!("{}: {word}", judged.slo)
    });
    let verdicts: Vec<String> = verdicts.collect();
    let description = match verdicts.is_empty() {
        true => "No objective was measured.".to_owned(),
        false => format!("In per cent of the limit. {}.", verdicts.join("; ")),
    };
    let size = (800, 90 + 56 * drawn.len() as u32);
    picture(size, OBJECTIVES, &description, |area| {
        draw_objectives(area, &drawn)
    })
}

const OBJECTIVES: &str = "Objectives after the change";

/// Draws the time that requests spend at each service, before (upper bar) and after (lower bar).
///
/// # Errors
/// If the picture cannot be drawn.
pub fn services(result: &GateResult) -> Result<String, PictureError> {
    let mut rows: Vec<&ServiceChange> = result.services.iter().collect();
    rows.retain(|row| size(row) > 0.0);
    rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
    rows.truncate(MOST_SERVICES);
    let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
    let description = match names.is_empty() {
        true => "No service was measured.".to_owned(),
        false => format!("Queue, work and network of {}.", names.join(", ")),
    };
    let extent = (800, 100 + 44 * rows.len() as u32);
    picture(extent, SERVICES, &description, |area| {
        draw_services(area, &rows)
    })
}

const SERVICES: &str = "Time of a request at each service";

/// Draws a title, and a sentence if there is nothing else to draw.
fn titled(area: &Area<'_>, title: &str, is_empty: bool) -> Result<(), Box<dyn std::error::Error>> {
    let ink = colour(picture::INK);
    area.draw(&Text::new(title.to_owned(), (12, 8), font(18, ink)))?;
    if is_empty {
        let text = Text::new("Nothing was measured.", (12, 44), font(14, ink));
        area.draw(&text)?;
    }
    Ok(())
}

fn draw_objectives(area: &Area<'_>, drawn: &[&Judged]) -> Drawn {
    titled(area, OBJECTIVES, drawn.is_empty())?;
    if drawn.is_empty() {
        return Ok(());
    }
    let share = |judged: &Judged, of: Estimate| {
        let part = 100.0 / judged.slo.most.max(1e-9);
        (of.mean * part, of.within.unwrap_or(0.0) * part)
    };
    let ends = drawn.iter().flat_map(|judged| {
        let all = std::iter::once(judged.value).chain(judged.base);
        all.filter(|of| !of.is_empty()).map(|of| {
            let (mean, within) = share(judged, of);
            mean + within
        })
    });
    // What is far beyond the limit is at the edge.
    let most = (ends.fold(120.0, f64::max) * 1.08).min(1_000.0);
    let rows = drawn.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_top(36)
        .x_label_area_size(40)
        .y_label_area_size(10)
        .build_cartesian_2d(0.0..most, 0.0..rows)?;
    mesh(&mut chart)
        .disable_y_mesh()
        .y_labels(0)
        .x_desc("per cent of the limit")
        .draw()?;
    let limit = [(100.0, 0.0), (100.0, rows)];
    let style = colour(picture::LIMIT).stroke_width(2);
    chart.draw_series(LineSeries::new(limit, style))?;
    for (number, judged) in drawn.iter().rev().enumerate() {
        let hex = match judged.verdict {
            Verdict::Met => picture::NORMAL,
            Verdict::Missed => picture::BAD,
            Verdict::Undecided(_) => picture::NOTABLE,
        };
        let y = number as f64;
        let sides = [
            (judged.base, y + 0.5, picture::FAINT, "before"),
            (Some(judged.value), y + 0.2, hex, "after"),
        ];
        for (of, y, hex, name) in sides {
            let Some(of) = of.filter(|of| !of.is_empty()) else {
                continue;
            };
            let (mean, within) = share(judged, of);
            let [least, mean, end] =
                [mean - within, mean, mean + within].map(|end| end.clamp(0.0, most));
            let line = [(least, y), (end, y)];
            chart.draw_series(LineSeries::new(line, colour(hex).stroke_width(3)))?;
            chart.draw_series([Circle::new((mean, y), 5, colour(hex).filled())])?;
            if judged.base.is_some() {
                let (x, y) = chart.backend_coord(&(end, y));
                // Near the right edge there is no space for the name.
                let x = if end > 0.9 * most { x - 60 } else { x + 10 };
                area.draw(&Text::new(name, (x, y - 7), font(12, colour(hex))))?;
            }
        }
        let name = format!("{}: {}", judged.slo, verdict_word(judged.verdict));
        let name = Text::new(name, (most * 0.01, y + 0.95), font(14, colour(hex)));
        chart.draw_series([name])?;
    }
    Ok(())
}

fn draw_services(area: &Area<'_>, rows: &[&ServiceChange]) -> Drawn {
    titled(area, SERVICES, rows.is_empty())?;
    if rows.is_empty() {
        return Ok(());
    }
    let ink = colour(picture::INK);
    let most = rows.iter().map(|row| size(row) * 1e3).fold(1e-3, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_top(36)
        .x_label_area_size(40)
        .y_label_area_size(150)
        .build_cartesian_2d(0.0..most, 0.0..rows.len() as f64)?;
    mesh(&mut chart)
        .disable_y_mesh()
        .y_labels(0)
        .x_desc("milliseconds of a request from outside; above: before, below: after")
        .draw()?;
    for (number, row) in rows.iter().rev().enumerate() {
        let y = number as f64;
        let short: String = row.name.chars().take(24).collect();
        let at = chart.backend_coord(&(0.0, y + 0.55));
        area.draw(&Text::new(short, (14, at.1 - 6), font(13, ink)))?;
        for (side, from) in [(&row.base, y + 0.5), (&row.now, y + 0.12)] {
            let Some(used) = side else {
                continue;
            };
            let mut x = 0.0;
            let parts = [used.queue, used.work, used.network];
            for (part, (_, hex)) in parts.into_iter().zip(PARTS) {
                let end = x + part * 1e3;
                let corners = [(x, from), (end, from + 0.34)];
                chart.draw_series([Rectangle::new(corners, colour(hex).filled())])?;
                x = end;
            }
        }
    }
    for (place, (name, hex)) in (0..).zip(PARTS) {
        let x = 560 + 75 * place;
        area.draw(&Rectangle::new(
            [(x, 12), (x + 10, 22)],
            colour(hex).filled(),
        ))?;
        area.draw(&Text::new(name, (x + 14, 11), font(12, ink)))?;
    }
    Ok(())
}
