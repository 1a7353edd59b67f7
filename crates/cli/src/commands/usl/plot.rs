//! Draws the measured points and the law as SVG.

use super::law::{Point, Usl};
use corsair::picture;
use corsair_arch::picture::PictureError;
use corsair_arch::picture::style::{self, Area, colour, font, mesh};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

/// The number of pieces of the curve.
const PIECES: u32 = 200;

/// Draws the points, the law, and its peak. The curve goes from a load of 0 to slightly beyond the
/// highest load (or the peak, if it is near). Returns the text of the drawing.
///
/// # Errors
/// Returns a [`PictureError`] if numbers are too large for axes.
pub fn plot(points: &[Point], usl: &Usl, title: &str) -> Result<String, PictureError> {
    let description = format!(
        "{} measured points, and the universal scalability law fitted to them.",
        points.len()
    );
    style::picture((720, 440), title, &description, |area| {
        draw(area, points, usl, title)
    })
}

fn draw(area: &Area<'_>, points: &[Point], usl: &Usl, title: &str) -> Result<(), Box<dyn Error>> {
    let most = |value: fn(&Point) -> f64| points.iter().map(value).fold(0.0, f64::max);
    let measured = most(|point| point.load);
    // A distant peak would squeeze the measured points.
    let peak = usl.peak().filter(|peak| peak.load <= 2.0 * measured);
    let load = peak.map_or(measured, |peak| peak.load.max(measured)) * 1.05;
    let highest = most(|point| point.throughput).max(usl.throughput(measured));
    let throughput = peak.map_or(highest, |peak| peak.throughput.max(highest)) * 1.1;

    let ink = colour(picture::INK);
    let mut chart = ChartBuilder::on(area)
        .caption(title, font(18, ink))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..load, 0.0..throughput)?;
    mesh(&mut chart)
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
        // The label lies over the longer part of the curve.
        let side = if peak.load > load / 2.0 {
            HPos::Right
        } else {
            HPos::Left
        };
        let style = font(13, ink).pos(Pos::new(side, VPos::Top));
        let text = Text::new(label, (0, -18), style);
        chart.draw_series([EmptyElement::at(at)
            + Circle::new((0, 0), 4, colour(picture::LIMIT).filled())
            + text])?;
    }
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
    fn the_label_of_a_peak_at_the_right_ends_at_the_peak() {
        let usl = Usl {
            lambda: 1000.0,
            alpha: 0.036,
            beta: 0.0006,
            r_squared: 1.0,
        };
        let points = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|load| Point {
            load,
            throughput: usl.throughput(load),
        });
        let text = plot(&points, &usl, "a peak").unwrap();
        let (before, _) = text.split_once("peak 1").unwrap();
        let label = &before[before.rfind("<text").unwrap()..];
        assert!(label.contains("text-anchor=\"end\""), "{label}");
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
