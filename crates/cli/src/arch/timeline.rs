//! What happened over time and by zone, as CSV or as a picture.

use crate::text::quoted;
use anyhow::{Context, Result, anyhow};
use corsair_arch::{Places, Slice, Timeline};
use corsair_observe::Replacement;
use plotters::prelude::*;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// More services than this share no picture: those are drawn that queue or work most.
const MOST_CURVES: usize = 8;

/// The flag that asks for it.
const FLAG: &str = "--timeline";

/// A file that is to be written.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    file: Replacement,
}

impl File {
    /// Begins the files, before the run.
    ///
    /// # Errors
    /// That one cannot be written.
    pub fn begin_all(paths: &[PathBuf]) -> Result<Vec<File>> {
        let begin = |path: &PathBuf| {
            let file = Replacement::begin(path).context(FLAG)?;
            let path = path.clone();
            Ok(File { path, file })
        };
        paths.iter().map(begin).collect()
    }

    /// Writes what happened; `services` are the names of services, and whether each is an entry
    /// point; `places` those of regions and zones.
    ///
    /// # Errors
    /// That it cannot be written.
    pub fn write(
        self,
        title: &str,
        timeline: &Timeline,
        services: &[(String, bool)],
        places: &Places,
    ) -> Result<String> {
        let File { path, mut file } = self;
        let text = if is_picture(&path) {
            svg(title, timeline, services).map_err(|error| anyhow!("{FLAG}: {error}"))?
        } else {
            csv(timeline, services, places)
        };
        let written = file.writer().write_all(text.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context(FLAG)?;
        Ok(path.display().to_string())
    }
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "svg")
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or(String::new(), |time| format!("{:.9}", time.as_secs_f64()))
}

fn csv(timeline: &Timeline, services: &[(String, bool)], places: &Places) -> String {
    let interval = timeline.interval;
    let mut text = "seconds,service,region,zone,requests,errors,p50_seconds,p90_seconds,\
                    p99_seconds,queue,longest_queue,utilisation\n"
        .to_owned();
    for (&(service, zone), slices) in &timeline.slices {
        for (number, slice) in (0..).zip(slices) {
            let at = (interval * number).as_secs_f64();
            let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|part| seconds(slice.percentile(part)));
            let used = slice.utilisation().map(|part| format!("{part:.4}"));
            text += &format!(
                "{at},{},{},{},{},{},{p50},{p90},{p99},{:.3},{},{}\n",
                quoted(&services[service as usize].0),
                quoted(zone.region_name(places)),
                quoted(zone.zone_name(places)),
                slice.requests,
                slice.errors,
                slice.queue(interval),
                slice.longest_queue,
                used.unwrap_or_default(),
            );
        }
    }
    text
}

/// A curve: its name, and its points.
type Curve = (String, Vec<(f64, f64)>);

/// What a point of a curve shows.
type Value<'a> = &'a dyn Fn(&Slice) -> Option<f64>;

fn svg(
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

/// Those curves that are highest somewhere, in the order of services.
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
