//! The measured points and the law as a drawing (SVG).

use super::{Point, Usl};
use quick_xml::Writer;
use quick_xml::events::BytesText;
use std::io::{self, Write};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
/// Room for labels, left, right, above and below the axes.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 44.0;
const BELOW: f64 = 52.0;

/// Marks on an axis, about so many.
const MARKS: f64 = 6.0;

/// Pieces of the curve.
const PIECES: u32 = 200;

/// Where values are on the drawing.
struct Axes {
    load: f64,
    throughput: f64,
}

impl Axes {
    fn x(&self, load: f64) -> f64 {
        LEFT + load / self.load * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, throughput: f64) -> f64 {
        HEIGHT - BELOW - throughput / self.throughput * (HEIGHT - TOP - BELOW)
    }
}

/// A distance between marks that people like: 1, 2 or 5 times a power of ten.
fn distance(end: f64) -> f64 {
    let rough = end / MARKS;
    let power = 10f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0];
    let nice = times.into_iter().find(|times| times * power >= rough);
    nice.unwrap_or(10.0) * power
}

/// A number of an axis, without more digits than the distance needs.
fn label(value: f64, distance: f64) -> String {
    let digits = (-distance.log10().floor()).clamp(0.0, 9.0) as usize;
    match value.abs() {
        1e6.. => format!("{value:.2e}"),
        _ => format!("{value:.digits$}"),
    }
}

/// Coordinates with a tenth of a pixel, so that the drawing is the same everywhere.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Writes the drawing. It depends on nothing but its arguments.
///
/// # Errors
/// Those of `out`.
pub fn plot(out: &mut impl Write, points: &[Point], usl: &Usl, title: &str) -> io::Result<()> {
    let peak = usl.peak();
    let most = |value: fn(&Point) -> f64| points.iter().map(value).fold(0.0, f64::max);
    // The peak is shown, unless it is far beyond what was measured.
    let far = most(|point| point.load) * 1.1;
    let load = match peak {
        Some(peak) if peak.load < 3.0 * far => far.max(peak.load * 1.25),
        _ => far,
    };
    let highest = peak.filter(|peak| peak.load <= load);
    let highest = highest.map_or(usl.throughput(load), |peak| peak.throughput);
    let throughput = most(|point| point.throughput).max(highest) * 1.1;
    let axes = Axes { load, throughput };

    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    let size = [("width", px(WIDTH)), ("height", px(HEIGHT))];
    xml.create_element("svg")
        .with_attributes([
            ("xmlns", "http://www.w3.org/2000/svg"),
            ("viewBox", &*format!("0 0 {WIDTH} {HEIGHT}")),
            ("font-family", "sans-serif"),
            ("font-size", "12"),
        ])
        .with_attributes(size.iter().map(|(key, value)| (*key, value.as_str())))
        .write_inner_content(|xml| {
            let all = [
                ("x", "0"),
                ("y", "0"),
                ("width", "100%"),
                ("height", "100%"),
            ];
            xml.create_element("rect")
                .with_attributes(all)
                .with_attribute(("fill", "white"))
                .write_empty()?;
            text(xml, LEFT, TOP - 20.0, "start", title)?;
            let parameters = format!(
                "λ {:.6}  α {:.6}  β {:.9}  R² {:.4}",
                usl.lambda, usl.alpha, usl.beta, usl.r_squared
            );
            text(xml, WIDTH - RIGHT, TOP - 20.0, "end", &parameters)?;
            grid(xml, &axes)?;
            curve(xml, &axes, usl)?;
            for point in points {
                circle(xml, &axes, point, "#c2410c")?;
            }
            if let Some(peak) = peak.filter(|peak| peak.load <= load) {
                circle(xml, &axes, &peak, "#15803d")?;
                let said = format!("peak {:.0} at {:.1}", peak.throughput, peak.load);
                text(
                    xml,
                    axes.x(peak.load),
                    axes.y(peak.throughput) - 10.0,
                    "middle",
                    &said,
                )?;
            }
            Ok(())
        })?;
    writeln!(out)
}

fn text<W: Write>(xml: &mut Writer<W>, x: f64, y: f64, anchor: &str, said: &str) -> io::Result<()> {
    xml.create_element("text")
        .with_attributes([("x", &*px(x)), ("y", &*px(y)), ("text-anchor", anchor)])
        .write_text_content(BytesText::new(said))?;
    Ok(())
}

fn line<W: Write>(
    xml: &mut Writer<W>,
    from: (f64, f64),
    to: (f64, f64),
    colour: &str,
) -> io::Result<()> {
    xml.create_element("line")
        .with_attributes([
            ("x1", &*px(from.0)),
            ("y1", &*px(from.1)),
            ("x2", &*px(to.0)),
            ("y2", &*px(to.1)),
            ("stroke", colour),
        ])
        .write_empty()?;
    Ok(())
}

fn grid<W: Write>(xml: &mut Writer<W>, axes: &Axes) -> io::Result<()> {
    const FAINT: &str = "#e5e7eb";
    let (floor, wall) = (axes.y(0.0), axes.x(0.0));
    let (across, up) = (distance(axes.load), distance(axes.throughput));
    for mark in 0..=(axes.load / across) as u32 {
        let value = f64::from(mark) * across;
        let x = axes.x(value);
        line(xml, (x, floor), (x, TOP), FAINT)?;
        text(xml, x, floor + 18.0, "middle", &label(value, across))?;
    }
    for mark in 0..=(axes.throughput / up) as u32 {
        let value = f64::from(mark) * up;
        let y = axes.y(value);
        line(xml, (wall, y), (WIDTH - RIGHT, y), FAINT)?;
        text(xml, wall - 8.0, y + 4.0, "end", &label(value, up))?;
    }
    line(xml, (wall, floor), (WIDTH - RIGHT, floor), "black")?;
    line(xml, (wall, floor), (wall, TOP), "black")?;
    text(
        xml,
        (wall + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0,
        "middle",
        "load",
    )?;
    text(xml, 8.0, TOP - 4.0, "start", "throughput")
}

fn curve<W: Write>(xml: &mut Writer<W>, axes: &Axes, usl: &Usl) -> io::Result<()> {
    let places: Vec<String> = (0..=PIECES)
        .map(|piece| {
            let load = axes.load * f64::from(piece) / f64::from(PIECES);
            let throughput = usl.throughput(load).clamp(0.0, axes.throughput);
            format!("{},{}", px(axes.x(load)), px(axes.y(throughput)))
        })
        .collect();
    xml.create_element("polyline")
        .with_attributes([
            ("points", &*places.join(" ")),
            ("fill", "none"),
            ("stroke", "#1d4ed8"),
            ("stroke-width", "2"),
        ])
        .write_empty()?;
    Ok(())
}

fn circle<W: Write>(
    xml: &mut Writer<W>,
    axes: &Axes,
    point: &Point,
    colour: &str,
) -> io::Result<()> {
    xml.create_element("circle")
        .with_attributes([
            ("cx", &*px(axes.x(point.load))),
            ("cy", &*px(axes.y(point.throughput))),
            ("r", "4"),
            ("fill", colour),
        ])
        .write_empty()?;
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
        let mut out = Vec::new();
        plot(&mut out, &points, &usl, "a <title>").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("<circle").count(), points.len() + 1);
        assert_eq!(text.matches("<polyline").count(), 1);
        for part in [
            "a &lt;title&gt;",
            "peak 426 at 9.7",
            ">load<",
            ">throughput<",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let mut reader = quick_xml::Reader::from_str(&text);
        while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
    }

    #[test]
    fn marks_are_at_round_numbers() {
        for (end, expected) in [(6.0, 1.0), (7.0, 2.0), (35.0, 10.0), (0.5, 0.1), (1e6, 2e5)] {
            assert!((distance(end) / expected - 1.0).abs() < 1e-9, "{end}");
        }
        assert_eq!(label(0.3, 0.1), "0.3");
        assert_eq!(label(1500.0, 500.0), "1500");
    }
}
