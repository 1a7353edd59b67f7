//! A metastable failure over time: after a load spike, retries keep the system overloaded; with a retry budget it
//! recovers.

use corsair::picture::{BAD, NORMAL, NOTABLE};
use corsair::{Config, Executor};
use corsair_arch::picture::style::{Area, NAMES, colour, mesh, name_ends, picture};
use corsair_arch::{DefinitionText, Plan, Scale, Setting, Slice, Topology, simulate};
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

const SECONDS: u64 = 40;
/// The start and the end of the spike, in seconds.
const SPIKE: (f64, f64) = (10.0, 12.0);

/// The result of one run: the share of requests that fail and the attempts per second, for each half second.
struct Story {
    failing: Vec<(f64, f64)>,
    attempts: Vec<(f64, f64)>,
}

fn story(settings: &[Setting]) -> Result<Story, Box<dyn Error>> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/metastable_arch.json"
    );
    let checked = DefinitionText::find(file, Path::new(""))?.with(settings)?;
    let topology = Topology::new(&checked, Scale::default())?;
    let interval = Duration::from_millis(500);
    let plan = Plan {
        duration: Duration::from_secs(SECONDS),
        interval: Some(interval),
        ..Plan::default()
    };
    let number = |name: &str| {
        let place = topology
            .services
            .iter()
            .position(|service| service.name == name);
        place
            .map(|place| place as u32)
            .ok_or("a service is missing")
    };
    let (www, db) = (number("www")?, number("db")?);
    let (_, totals) = simulate(Executor::Virtual, &Config::default(), topology, &plan)?;
    let timeline = totals.timeline.ok_or("no timeline was kept")?;
    let width = interval.as_secs_f64();
    let points = |service: u32, value: &dyn Fn(&Slice) -> f64| {
        let slices = timeline.of_service(service);
        let slices = slices.iter().enumerate();
        slices
            .map(|(at, slice)| ((at as f64 + 0.5) * width, value(slice)))
            .collect()
    };
    Ok(Story {
        failing: points(www, &|slice| {
            slice.errors as f64 / slice.requests.max(1) as f64 * 100.0
        }),
        attempts: points(db, &|slice| slice.requests as f64 / width),
    })
}

/// Runs `examples/metastable_arch.json` with and without a budget for retries, and draws both.
///
/// # Errors
/// If a run or the picture fails.
pub fn draw() -> Result<String, Box<dyn Error>> {
    let without = story(&[])?;
    let with = story(&[Setting {
        path: "services.api.calls.db.retries.budget".to_owned(),
        value: Setting::value(r#"{"share": 0.1}"#),
    }])?;
    let most = without.attempts.iter().map(|point| point.1);
    let most = most.fold(0.0, f64::max) * 1.1;
    let description = "Requests that fail and attempts a second, with a spike from 10 to 12 s: three retries keep the system down, a budget of retries lets it recover.";
    let drawn = picture((960, 520), "A metastable failure", description, |area| {
        let (above, below) = area.split_vertically(270);
        let failing = [&*without.failing, &*with.failing];
        panel(&above, "requests that fail, per cent", 105.0, failing)?;
        let attempts = [&*without.attempts, &*with.attempts];
        panel(&below, "answered attempts a second", most, attempts)
    });
    Ok(drawn?)
}

/// Draws one quantity without and with a budget.
fn panel(
    area: &Area<'_>,
    unit: &str,
    top: f64,
    curves: [&[(f64, f64)]; 2],
) -> Result<(), Box<dyn Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(NAMES)
        .x_label_area_size(36)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..SECONDS as f64, 0.0..top)?;
    let spike = [(SPIKE.0, 0.0), (SPIKE.1, top)];
    chart.draw_series([Rectangle::new(spike, colour(NOTABLE).mix(0.25).filled())])?;
    mesh(&mut chart)
        .x_desc("seconds, with a spike from 10 to 12")
        .y_desc(unit)
        .draw()?;
    let mut names = Vec::new();
    let styles = [("three retries", BAD), ("with a budget", NORMAL)];
    for ((name, hex), points) in styles.into_iter().zip(curves) {
        let style = colour(hex).filled().stroke_width(2);
        let end = points.last().map(|end| chart.backend_coord(end));
        names.extend(end.map(|end| (end, name.to_owned(), colour(hex))));
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
    }
    Ok(name_ends(area, names)?)
}
