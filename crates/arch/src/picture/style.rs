//! The common parts of this crate's pictures: the colours of [`corsair::picture`], and names at the ends of curves.

use super::PictureError;
use corsair::picture;
use plotters::coord::Shift;
use plotters::prelude::*;

/// The width reserved for names on the right, in pixels.
pub(super) const NAMES: u32 = 110;
/// The minimum vertical distance between two names, in pixels.
const APART: i32 = 14;

/// A name with its position in pixels and its colour.
pub(super) type Name = ((i32, i32), String, RGBColor);
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

pub(super) fn colour(hex: &str) -> RGBColor {
    let (red, green, blue) = picture::rgb(hex);
    RGBColor(red, green, blue)
}

/// Returns the font of texts, with a size in pixels and a colour.
pub(super) fn font(size: u32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour)
}

/// Draws names beside the ends of curves, with a minimum distance between them.
pub(super) fn name_ends(area: &Area<'_>, mut names: Vec<Name>) -> Drawn {
    names.sort_by_key(|((_, y), ..)| *y);
    let bottom = area.get_pixel_range().1.end - APART;
    let mut lowest = i32::MIN;
    for ((_, y), ..) in &mut names {
        *y = (*y).max(lowest.saturating_add(APART));
        lowest = *y;
    }
    let mut highest = bottom;
    for ((_, y), ..) in names.iter_mut().rev() {
        *y = (*y).min(highest);
        highest = *y - APART;
    }
    let origin = area.get_pixel_range();
    for ((x, y), name, colour) in names {
        let at = (x + 6 - origin.0.start, y - 7 - origin.1.start);
        area.draw(&Text::new(name, at, font(13, colour)))?;
    }
    Ok(())
}

/// Draws a picture and gives it its title, description and dark scheme.
pub(super) fn picture(
    size: (u32, u32),
    title: &str,
    description: &str,
    draw: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<String, PictureError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = area.fill(&colour(picture::PAPER)).map_err(Into::into);
        drawn
            .and_then(|()| draw(&area))
            .map_err(PictureError::new)?;
        area.present().map_err(PictureError::new)?;
    }
    Ok(picture::finish(&svg, title, description))
}
