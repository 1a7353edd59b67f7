//! A picture of the differences between two architectures.

use super::PictureError;
use super::style::{Area, colour, font, mesh, picture};
use crate::experiment::Compared;
use corsair::picture;
use plotters::prelude::*;

/// Draws the differences of the second architecture from the first in per cent, with intervals.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn compared(compared: &[Compared]) -> Result<String, PictureError> {
    let clear = compared.iter().filter(|row| row.difference.is_clear());
    let clear: Vec<&str> = clear
        .map(|row| row.name.trim_end_matches("_seconds"))
        .collect();
    let clear = match clear.is_empty() {
        true => "nothing".to_owned(),
        false => clear.join(", "),
    };
    let description = format!("Differences with 95 % intervals. Clearly different: {clear}.");
    picture((800, 400), TITLE, &description, |area| draw(area, compared))
}

const TITLE: &str = "b against a, per cent of a";

fn draw(area: &Area<'_>, compared: &[Compared]) -> Result<(), Box<dyn std::error::Error>> {
    let relative: Vec<(&str, f64, f64)> = compared
        .iter()
        .filter(|row| row.of[0].mean.abs() > 0.0)
        .map(|row| {
            let part = 100.0 / row.of[0].mean;
            let within = row.difference.within.unwrap_or(0.0);
            let name = row.name.trim_end_matches("_seconds");
            (name, row.difference.mean * part, within * part)
        })
        .collect();
    let most = relative.iter().map(|(_, mean, within)| mean.abs() + within);
    let most = most.fold(1.0, f64::max) * 1.15;
    let ink = colour(picture::INK);
    let rows = relative.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(TITLE, font(20, ink))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(20)
        .build_cartesian_2d(-most..most, 0.0..rows)?;
    mesh(&mut chart)
        .disable_y_mesh()
        .y_labels(0)
        .x_desc("per cent")
        .draw()?;
    let zero = [(0.0, 0.0), (0.0, rows)];
    chart.draw_series(LineSeries::new(zero, colour(picture::FAINT)))?;
    for (number, &(name, mean, within)) in relative.iter().rev().enumerate() {
        let y = number as f64 + 0.4;
        let is_clear = mean.abs() > within;
        let colour = colour(if is_clear {
            picture::NOTABLE
        } else {
            picture::NORMAL
        });
        let across = [(mean - within, y), (mean + within, y)];
        chart.draw_series(LineSeries::new(across, colour.stroke_width(2)))?;
        chart.draw_series([Circle::new((mean, y), 4, colour.filled())])?;
        let mark = if is_clear { " *" } else { "" };
        let text = Text::new(format!("{name}{mark}"), (-most, y + 0.3), font(14, ink));
        chart.draw_series([text])?;
    }
    Ok(())
}
