//! The common style of charts made with plotters: the colours of [`corsair::picture`], axes, and names at the ends of
//! curves.

use super::PictureError;
use corsair::picture;
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

/// The width reserved for names on the right, in pixels.
pub const NAMES: u32 = 110;
/// The minimum vertical distance between two names, in pixels.
const APART: i32 = 14;

/// A name with its position in pixels and its colour.
pub type Name = ((i32, i32), String, RGBColor);
/// An area of an SVG picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

/// Returns a colour of [`corsair::picture`].
pub const fn colour(hex: &str) -> RGBColor {
    let (red, green, blue) = picture::rgb(hex);
    RGBColor(red, green, blue)
}

/// Returns the font of texts, with a size in pixels and a colour.
pub fn font(size: u32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&colour)
}

/// Returns the style of axes and of the grid.
pub fn mesh<'a, 'b, 'c, X, Y>(
    chart: &'c mut Chart<'a, 'b, X, Y>,
) -> MeshStyle<'a, 'c, X, Y, SVGBackend<'b>>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    let ink = colour(picture::INK);
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(colour(picture::RULE))
        .axis_style(colour(picture::FAINT))
        .label_style(font(12, ink))
        .axis_desc_style(font(14, ink));
    mesh
}

/// Draws names beside the ends of curves, with a minimum distance between them.
///
/// # Errors
/// If the names cannot be drawn.
pub fn name_ends(area: &Area<'_>, mut names: Vec<Name>) -> Drawn {
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
///
/// # Errors
/// If the picture cannot be drawn.
pub fn picture(
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
