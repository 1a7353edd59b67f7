//! A stability map as a picture.

use super::PictureError;
use super::style::{Area, colour, font, picture};
use crate::stability::{MapPoint, Stability, StabilityMap};
use corsair::picture;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The width of the space to the left of the cells, for the values of the second axis. `TOP` is the height above the
/// cells, for the title and the legend.
const LEFT: i32 = 150;
const TOP: i32 = 64;

/// Returns the colour of a class, the colour of the text on it, and the name of the class. Worse classes have darker
/// colours.
fn shown(class: Stability) -> (&'static str, &'static str, &'static str) {
    match class {
        Stability::Stable => (picture::AREA, picture::INK, "S: recovers, in seconds"),
        Stability::Degraded => (picture::BAD_AREA, picture::INK, "D: degraded before"),
        Stability::Metastable => (
            picture::BAD,
            picture::PAPER,
            "M: share of runs that stay down",
        ),
    }
}

/// Draws the map: a cell for each point, in the colour of its class, with the mean time of recovery in seconds.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn stability(map: &StabilityMap) -> Result<String, PictureError> {
    let (columns, rows) = (map.loads.len() as i32, map.axis.len() as i32);
    let cell = ((900 / columns).clamp(8, 90), (500 / rows).clamp(8, 44));
    let size = (
        (LEFT + columns * cell.0 + 20).max(640) as u32,
        (TOP + rows * cell.1 + 60) as u32,
    );
    let count = |class| map.points.iter().filter(move |point| point.class == class);
    let description = format!(
        "Loads from left to right, {} upwards. Of {} points, {} recover, {} are degraded before the trigger, {} do not recover.",
        map.axis.name(),
        map.points.len(),
        count(Stability::Stable).count(),
        count(Stability::Degraded).count(),
        count(Stability::Metastable).count(),
    );
    picture(size, TITLE, &description, |area| draw(area, map, cell))
}

const TITLE: &str = "Recovery after the trigger";

fn draw(
    area: &Area<'_>,
    map: &StabilityMap,
    (width, height): (i32, i32),
) -> Result<(), Box<dyn std::error::Error>> {
    let ink = colour(picture::INK);
    area.draw(&Text::new(TITLE, (14, 8), font(18, ink)))?;
    let mut x = 14;
    for class in [
        Stability::Stable,
        Stability::Degraded,
        Stability::Metastable,
    ] {
        let (fill, _, name) = shown(class);
        let corners = [(x, 38), (x + 14, 52)];
        area.draw(&Rectangle::new(corners, colour(fill).filled()))?;
        area.draw(&Rectangle::new(corners, colour(picture::FAINT)))?;
        area.draw(&Text::new(name, (x + 20, 39), font(13, ink)))?;
        x += 190;
    }
    for point in &map.points {
        draw_point(area, map, point, (width, height))?;
    }
    let rows = map.axis.len() as i32;
    let bottom = TOP + rows * height;
    for (column, load) in (0..).zip(&map.loads) {
        let at = (LEFT + column * width + 2, bottom + 6);
        area.draw(&Text::new(load.to_string(), at, font(13, ink)))?;
    }
    for place in 0..rows {
        let value: String = map.axis.value(place as usize).chars().take(18).collect();
        let at = (14, TOP + (rows - 1 - place) * height + height / 2 - 7);
        area.draw(&Text::new(value, at, font(13, ink)))?;
    }
    let caption = format!(
        "requests a second at each entry point; up: {}",
        map.axis.name()
    );
    area.draw(&Text::new(caption, (LEFT, bottom + 30), font(13, ink)))?;
    Ok(())
}

fn draw_point(
    area: &Area<'_>,
    map: &StabilityMap,
    point: &MapPoint,
    (width, height): (i32, i32),
) -> Result<(), Box<dyn std::error::Error>> {
    let column = map.loads.iter().position(|load| *load == point.load);
    let row = map.axis.len() - 1 - point.place;
    let (x, y) = (
        LEFT + column.unwrap_or(0) as i32 * width,
        TOP + row as i32 * height,
    );
    let (fill, ink, _) = shown(point.class);
    let corners = [(x, y), (x + width - 1, y + height - 1)];
    area.draw(&Rectangle::new(corners, colour(fill).filled()))?;
    area.draw(&Rectangle::new(corners, colour(picture::RULE)))?;
    if width <= 50 || height <= 14 {
        return Ok(());
    }
    let middle = font(13, colour(ink)).pos(Pos::new(HPos::Center, VPos::Center));
    area.draw(&Text::new(
        point.label(),
        (x + width / 2, y + height / 2),
        middle,
    ))?;
    Ok(())
}
