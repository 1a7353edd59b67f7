//! A picture of the differences between two architectures.

use super::PictureError;
use crate::experiment::Compared;
use plotters::prelude::*;

/// Draws the differences of the second architecture from the first in per cent, with intervals.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn compared(compared: &[Compared]) -> Result<String, PictureError> {
    draw(compared).map_err(PictureError::new)
}

fn draw(compared: &[Compared]) -> Result<String, Box<dyn std::error::Error>> {
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
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (800, 400)).into_drawing_area();
        area.fill(&WHITE)?;
        let rows = relative.len().max(1) as f64;
        let mut chart = ChartBuilder::on(&area)
            .caption("b against a, per cent of a", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(20)
            .build_cartesian_2d(-most..most, 0.0..rows)?;
        let mesh = &mut chart.configure_mesh();
        mesh.disable_y_mesh()
            .y_labels(0)
            .x_desc("per cent")
            .draw()?;
        for (number, &(name, mean, within)) in relative.iter().rev().enumerate() {
            let y = number as f64 + 0.4;
            let colour = if mean.abs() > within { RED } else { BLUE };
            let across = [(mean - within, y), (mean + within, y)];
            chart.draw_series(LineSeries::new(across, colour.stroke_width(2)))?;
            chart.draw_series([Circle::new((mean, y), 4, colour.filled())])?;
            let text = Text::new(name.to_owned(), (-most, y + 0.3), ("sans-serif", 14));
            chart.draw_series([text])?;
        }
        chart.draw_series(LineSeries::new([(0.0, 0.0), (0.0, rows)], BLACK))?;
        area.present()?;
    }
    Ok(svg)
}
