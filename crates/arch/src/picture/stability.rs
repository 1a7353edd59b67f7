//! A stability map as a picture.

use super::PictureError;
use crate::stability::{Stability, StabilityMap};
use plotters::prelude::*;

const STABLE: RGBColor = RGBColor(96, 168, 104);
const DEGRADED: RGBColor = RGBColor(226, 178, 70);
const METASTABLE: RGBColor = RGBColor(196, 66, 54);

/// Draws the map: a cell for each point, in the colour of its class, with the mean time of recovery in seconds.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn stability(map: &StabilityMap) -> Result<String, PictureError> {
    draw(map).map_err(PictureError::new)
}

fn draw(map: &StabilityMap) -> Result<String, Box<dyn std::error::Error>> {
    let (columns, rows) = (map.loads.len() as i32, map.axis.len() as i32);
    let (left, top) = (150, 44);
    let (width, height) = ((900 / columns).clamp(8, 90), (500 / rows).clamp(8, 44));
    let size = (left + columns * width + 20, top + rows * height + 60);
    let mut svg = String::new();
    {
        let area =
            SVGBackend::with_string(&mut svg, (size.0 as u32, size.1 as u32)).into_drawing_area();
        area.fill(&WHITE)?;
        let text = |text: String, x: i32, y: i32| Text::new(text, (x, y), ("sans-serif", 13));
        let legend = [
            ("stable, s to recover", STABLE),
            ("degraded", DEGRADED),
            ("metastable", METASTABLE),
        ];
        for (place, (name, colour)) in (0..).zip(legend) {
            let x = 14 + 170 * place;
            area.draw(&Rectangle::new([(x, 8), (x + 14, 22)], colour.filled()))?;
            area.draw(&text(name.to_owned(), x + 20, 8))?;
        }
        for point in &map.points {
            let column = map
                .loads
                .iter()
                .position(|load| *load == point.load)
                .unwrap_or(0) as i32;
            let (x, y) = (
                left + column * width,
                top + (rows - 1 - point.place as i32) * height,
            );
            let colour = match point.class {
                Stability::Stable => STABLE,
                Stability::Degraded => DEGRADED,
                Stability::Metastable => METASTABLE,
            };
            let cell = [(x, y), (x + width - 1, y + height - 1)];
            area.draw(&Rectangle::new(cell, colour.filled()))?;
            if point.class == Stability::Stable && width > 30 && height > 14 {
                let shown = format!("{:.1}", point.recovery.mean);
                area.draw(&text(shown, x + 4, y + height / 2 - 7))?;
            }
        }
        for (column, load) in (0..).zip(&map.loads) {
            area.draw(&text(
                load.to_string(),
                left + column * width + 2,
                top + rows * height + 6,
            ))?;
        }
        for place in 0..rows {
            let value: String = map.axis.value(place as usize).chars().take(18).collect();
            area.draw(&text(
                value,
                14,
                top + (rows - 1 - place) * height + height / 2 - 7,
            ))?;
        }
        let caption = format!(
            "requests a second at each entry point; up: {}",
            map.axis.name()
        );
        area.draw(&text(caption, left, top + rows * height + 30))?;
        area.present()?;
    }
    Ok(svg)
}
