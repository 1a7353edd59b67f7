//! Legends: the names of the lines in a chart.

use plotters::coord::CoordTranslate;
use plotters::prelude::*;
use std::error::Error;

/// The colour of text and axes.
pub const INK: RGBColor = RGBColor(40, 44, 52);

/// Returns the legend symbol of a curve: a short line in the curve's colour.
pub fn line(colour: RGBColor) -> impl Fn((i32, i32)) -> PathElement<(i32, i32)> {
    move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3))
}

/// Draws the names of all lines.
pub fn draw<'a, B: DrawingBackend + 'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, B, C>,
    at: SeriesLabelPosition,
) -> Result<(), Box<dyn Error>>
where
    B::ErrorType: 'static,
{
    chart
        .configure_series_labels()
        .position(at)
        .background_style(WHITE.mix(0.9))
        .label_font(("sans-serif", 13).into_font().color(&INK))
        .draw()?;
    Ok(())
}
