//! Draws the measured points and the law as SVG.

use super::law::{Point, Usl};
use corsair::picture;
use plotters::prelude::*;
use std::error::Error;

/// The number of pieces of the curve.
const PIECES: u32 = 200;

/// The chart could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the law cannot be drawn: {0}")]
pub struct PlotError(String);

/// Draws the points, the law, and its peak. The curve goes from a load of 0 to slightly beyond the
/// highest load (or the peak, if it is near). Returns the text of the drawing.
///
/// # Errors
/// Returns a [`PlotError`] if numbers are too large for axes.
pub fn plot(points: &[Point], usl: &Usl, title: &str) -> Result<String, PlotError> {
    let mut svg = String::new();
    draw(&mut svg, points, usl, title).map_err(|error| PlotError(error.to_string()))?;
    let description = format!(
        "{} measured points, and the universal scalability law fitted to them.",
        points.len()
    );
    Ok(picture::finish(&svg, title, &description))
}

fn colour(hex: &str) -> RGBColor {
    let (red, green, blue) = picture::rgb(hex);
    RGBColor(red, green, blue)
}

fn draw(svg: &mut String, points: &[Point], usl: &Usl, title: &str) -> Result<(), Box<dyn Error>> {
    let most = |value: fn(&Point) -> f64| points.iter().map(value).fold(0.0, f64::max);
    let measured = most(|point| point.load);
    // A distant peak would squeeze the measured points together.
    let peak = usl.peak().filter(|peak| peak.load <= 2.0 * measured);
    let load = peak.map_or(measured, |peak| peak.load.max(measured)) * 1.05;
    let highest = most(|point| point.throughput).max(usl.throughput(measured));
    let throughput = peak.map_or(highest, |peak| peak.throughput.max(highest)) * 1.1;

    let area = SVGBackend::with_string(svg, (720, 440)).into_drawing_area();
    area.fill(&colour(picture::PAPER))?;
    let ink = colour(picture::INK);
    let font = |size: u32| ("sans-serif", size).into_font().color(&ink);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, font(18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..load, 0.0..throughput)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(colour(picture::RULE))
        .axis_style(colour(picture::FAINT))
        .label_style(font(12))
        .axis_desc_style(font(14))
        .x_desc("load")
        .y_desc("throughput")
        .draw()?;
    let curve = (0..=PIECES).map(|piece| {
        let load = load * f64::from(piece) / f64::from(PIECES);
        (load, usl.throughput(load).clamp(0.0, throughput))
    });
    chart.draw_series(LineSeries::new(
        curve,
        colour(picture::NORMAL).stroke_width(2),
    ))?;
    let dots = points.iter().map(|point| (point.load, point.throughput));
    chart.draw_series(dots.map(|dot| Circle::new(dot, 4, ink.filled())))?;
    if let Some(peak) = peak {
        let at = (peak.load, peak.throughput);
        let label = format!("peak {:.0} at {:.1}", peak.throughput, peak.load);
        let text = Text::new(label, (-40, -18), font(13));
        chart.draw_series([EmptyElement::at(at)
            + Circle::new((0, 0), 4, colour(picture::LIMIT).filled())
            + text])?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_has_every_point_the_curve_and_the_peak() {
        let usl = Usl {
            lambda: 100.0,
            alpha: 0.05,
            beta: 0.01,
            r_squared: 1.0,
        };
        let points: Vec<Point> = (1..=12u32)
            .map(|load| Point {
                load: load.into(),
                throughput: usl.throughput(load.into()),
            })
            .collect();
        let text = plot(&points, &usl, "a <title>").unwrap();
        assert_eq!(text.matches("<circle").count(), points.len() + 1);
        for part in ["a &lt;title&gt;", "peak 426 at 9.7", "load", "throughput"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let mut reader = quick_xml::Reader::from_str(&text);
        while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
    }

    #[test]
    fn a_law_without_a_peak_is_drawn_too() {
        let straight = Usl {
            lambda: 2.0,
            alpha: 0.0,
            beta: 0.0,
            r_squared: 1.0,
        };
        let points = [1.0, 2.0, 4.0].map(|load| Point {
            load,
            throughput: 2.0 * load,
        });
        let text = plot(&points, &straight, "straight").unwrap();
        assert_eq!(text.matches("<circle").count(), 3);
    }
}
