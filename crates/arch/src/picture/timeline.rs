//! A picture of a timeline.

use super::PictureError;
use crate::timeline::{Slice, Timeline};
use plotters::prelude::*;
use std::error::Error;
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
    draw(title, timeline, services).map_err(PictureError::new)
}

fn draw(
    title: &str,
    timeline: &Timeline,
    services: &[(String, bool)],
) -> Result<String, Box<dyn Error>> {
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
        ("requests a second", rates),
        ("jobs in queues", most(&queue)),
        ("slots or processors in use, per cent", most(&used)),
    ];
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (1000, 700)).into_drawing_area();
        area.fill(&WHITE)?;
        let area = area.titled(title, ("sans-serif", 22))?;
        for (area, (name, curves)) in area.split_evenly((2, 2)).iter().zip(&panels) {
            panel(area, name, curves)?;
        }
        area.present()?;
    }
    Ok(svg)
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
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    name: &str,
    curves: &[Curve],
) -> Result<(), DrawingAreaErrorKind<io::Error>> {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let right = points().map(|point| point.0).fold(1e-3, f64::max);
    let top = points().map(|point| point.1).fold(1e-3, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(name, ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(32)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart.configure_mesh().x_desc("seconds").draw()?;
    for (place, (name, points)) in curves.iter().enumerate() {
        let colour = Palette99::pick(place).to_rgba();
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                colour.stroke_width(2),
            ))?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], colour));
    }
    if !curves.is_empty() {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
    }
    Ok(())
}
