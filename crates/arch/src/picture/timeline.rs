//! A picture of a timeline.

use super::PictureError;
use super::style::{Area, NAMES, colour, font, mesh, name_ends, picture};
use crate::timeline::{Slice, Timeline};
use corsair::picture;
use plotters::prelude::*;
use std::io;

/// The maximum number of services in a picture: the busiest are drawn.
const MOST_CURVES: usize = 8;

/// A curve: its name, and its points.
type Curve = (String, Vec<(f64, f64)>);

/// The quantity of a curve.
type Value<'a> = &'a dyn Fn(&Slice) -> Option<f64>;

/// Draws response times and rates of entry points, and the queues and utilisation of the busiest other services.
/// `services` are the names of services, with true for entry points.
///
/// # Errors
/// If the picture cannot be drawn.
pub fn timeline(
    title: &str,
    timeline: &Timeline,
    services: &[(String, bool)],
) -> Result<String, PictureError> {
    let panels = panels(timeline, services);
    let names: Vec<&str> = panels.iter().map(|(name, _)| *name).collect();
    let description = format!("Over time: {}.", names.join("; "));
    let rows = panels.len().div_ceil(2).max(1);
    let size = (1000, 50 + 325 * rows as u32);
    picture(size, title, &description, |area| {
        let area = area.titled(title, font(22, colour(picture::INK)))?;
        let columns = if panels.len() == 1 { 1 } else { 2 };
        for (area, (name, curves)) in area.split_evenly((rows, columns)).iter().zip(&panels) {
            panel(area, name, curves)?;
        }
        Ok(())
    })
}

/// Returns the curves of each panel. Panels without curves are left out.
fn panels(timeline: &Timeline, services: &[(String, bool)]) -> Vec<(&'static str, Vec<Curve>)> {
    let width = timeline.interval.as_secs_f64();
    let numbers = || (0..services.len() as u32).map(|n| (n, &services[n as usize]));
    let curve = |name: String, service: u32, value: Value<'_>| -> Curve {
        let slices = timeline.of_service(service);
        let points = slices.iter().enumerate();
        let points = points.filter_map(|(at, slice)| Some((at as f64 * width, value(slice)?)));
        (name, points.collect())
    };
    let entries = || numbers().filter(|(_, (_, is_entry))| *is_entry);
    let others = || numbers().filter(|(_, (_, is_entry))| !*is_entry);
    let millis = |part: f64| move |slice: &Slice| Some(slice.percentile(part)?.as_secs_f64() * 1e3);
    let (p50, p99) = (millis(0.5), millis(0.99));
    let mut times = Vec::new();
    let mut rates = Vec::new();
    for (number, (name, _)) in entries() {
        times.push(curve(format!("{name} p50"), number, &p50));
        times.push(curve(format!("{name} p99"), number, &p99));
        let requests = |slice: &Slice| Some(slice.requests as f64 / width);
        let errors = |slice: &Slice| Some(slice.errors as f64 / width);
        rates.push(curve(format!("{name} requests"), number, &requests));
        rates.push(curve(format!("{name} failed"), number, &errors));
    }
    let queue = |slice: &Slice| Some(slice.queue(timeline.interval));
    let used = |slice: &Slice| Some(slice.utilisation()? * 100.0);
    let most = |value: Value<'_>| {
        let all = others().map(|(number, (name, _))| curve(name.clone(), number, value));
        busiest(all.collect())
    };
    let panels = [
        ("response time, milliseconds", times),
        ("requests per second", rates),
        ("jobs in queues", most(&queue)),
        ("slots or processors in use, per cent", most(&used)),
    ];
    let is_something = |curve: &Curve| curve.1.iter().any(|point| point.1 > 0.0);
    let panels = panels.into_iter();
    panels
        .filter(|(_, curves)| curves.iter().any(is_something))
        .collect()
}

/// Returns the curves with the highest maxima, in the order of services.
fn busiest(mut curves: Vec<Curve>) -> Vec<Curve> {
    let highest = |(_, points): &Curve| points.iter().map(|point| point.1).fold(0.0, f64::max);
    curves.retain(|curve| highest(curve) > 0.0);
    let mut heights: Vec<f64> = curves.iter().map(highest).collect();
    heights.sort_by(|a, b| b.total_cmp(a));
    if let Some(&least) = heights.get(MOST_CURVES - 1) {
        curves.retain(|curve| highest(curve) >= least);
        curves.truncate(MOST_CURVES);
    }
    curves
}

fn panel(
    area: &Area<'_>,
    name: &str,
    curves: &[Curve],
) -> Result<(), DrawingAreaErrorKind<io::Error>> {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let right = points().map(|point| point.0).fold(1e-3, f64::max);
    let top = points().map(|point| point.1).fold(1e-3, f64::max) * 1.1;
    let ink = colour(picture::INK);
    let mut chart = ChartBuilder::on(area)
        .caption(name, font(15, ink))
        .margin(8)
        .margin_right(NAMES)
        .x_label_area_size(32)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    mesh(&mut chart)
        .label_style(font(11, ink))
        .axis_desc_style(font(12, ink))
        .x_desc("seconds")
        .draw()?;
    let mut names = Vec::new();
    let others = curves.iter().filter(|(name, _)| !is_bad(name));
    let series: Vec<&Curve> = others.collect();
    for curve in curves {
        let (name, points) = curve;
        let place = series.iter().position(|other| std::ptr::eq(*other, curve));
        let hex = place.map_or(picture::BAD, |place| {
            picture::SERIES[place % picture::SERIES.len()]
        });
        let style = colour(hex).stroke_width(
            if place.is_some_and(|place| place >= picture::SERIES.len()) {
                1
            } else {
                2
            },
        );
        for piece in pieces(points) {
            chart.draw_series(LineSeries::new(piece.iter().copied(), style))?;
        }
        let end = points.last().map(|end| chart.backend_coord(end));
        names.extend(end.map(|end| (end, name.clone(), colour(hex))));
    }
    name_ends(area, names)
}

/// True for curves of failures, which have a separate colour.
fn is_bad(name: &str) -> bool {
    name.ends_with(" failed")
}

/// Returns the parts of a curve between gaps. A gap is an interval without data.
fn pieces(points: &[(f64, f64)]) -> impl Iterator<Item = &[(f64, f64)]> {
    let steps = points.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let least = steps.fold(f64::INFINITY, f64::min);
    points.chunk_by(move |a, b| b.0 - a.0 < 1.5 * least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_data_is_a_gap() {
        let points = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (7.0, 1.0), (8.0, 2.0)];
        let lengths: Vec<usize> = pieces(&points).map(<[_]>::len).collect();
        assert_eq!(lengths, [3, 2]);
    }
}
