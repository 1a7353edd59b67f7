//! A picture of a simulated architecture: its regions and zones as areas, instances as dots, one row for each service
//! with the entry points on top, and the connections that were made in the run.

use corsair::picture::{AREA, INK, NORMAL, PAPER};
use corsair::{Config, Executor};
use corsair_arch::picture::style::{colour, font, picture};
use corsair_arch::{KINDS, Plan, Scale, Topology, read, simulate};
use corsair_observe::{Clock, GraphFormat, Observer, Settings};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

const LABELS: i32 = 130;
const REGION: i32 = 400;
const GAP: i32 = 16;
const TOP: i32 = 56;
const ROW: i32 = 44;
/// The number of columns in a region: one for each zone, and one for instances outside any zone.
const COLUMNS: i32 = 3;

/// A line of GraphJSON: a node, an edge, or a change to one of them.
#[derive(Deserialize)]
struct Element {
    node: Option<String>,
    edge: Option<String>,
    source: Option<String>,
    target: Option<String>,
}

#[derive(Deserialize)]
struct Graph {
    graph: Vec<Element>,
}

/// Simulates an architecture in `regions` regions for two virtual seconds, and draws its graph.
///
/// # Errors
/// If there is no architecture with this name, or if the run or the picture fails.
pub fn draw(name: &str, regions: u32) -> Result<String, Box<dyn Error>> {
    let checked = read(name, Path::new(""))?;
    let percent = 100;
    let topology = Topology::new(&checked, Scale { regions, percent })?;
    // Definitions begin with the databases and end with the entry points; the picture has the entry points on top.
    let services = topology.services.iter().rev();
    let services: Vec<String> = services.map(|service| service.name.clone()).collect();
    let graph = simulated(name, topology)?;
    drawn(&services, &graph)
}

fn simulated(name: &str, topology: Topology) -> Result<Graph, Box<dyn Error>> {
    let out = tempfile::tempdir()?;
    let config = Config::default();
    let mut settings = Settings::new(name, Clock::Virtual(config.progress.clone()));
    settings.kinds = KINDS;
    settings.out = out.path().to_owned();
    settings.graphs = vec![GraphFormat::Json];
    let observer = Observer::start(settings)?;
    let plan = Plan {
        duration: Duration::from_secs(2),
        recorder: observer.recorder(),
        ..Plan::default()
    };
    simulate(Executor::Virtual, &config, topology, &plan)?;
    let observed = observer.finish()?;
    let file = observed.files.first().ok_or("the run wrote no graph")?;
    Ok(serde_json::from_str(&std::fs::read_to_string(&file.path)?)?)
}

/// The place of an instance, from its name `arch.region.zone.serviceNN`.
struct Place<'a> {
    region: &'a str,
    zone: &'a str,
    service: &'a str,
}

fn place(name: &str) -> Option<Place<'_>> {
    let mut parts = name.split('.').skip(1);
    let (region, zone, instance) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Place {
        region,
        zone,
        service: instance.trim_end_matches(|c: char| c.is_ascii_digit()),
    })
}

fn drawn(services: &[String], graph: &Graph) -> Result<String, Box<dyn Error>> {
    let names = || graph.graph.iter().filter_map(|line| line.node.as_deref());
    let places = || names().filter_map(place);
    let present: BTreeSet<&str> = places().map(|place| place.service).collect();
    let rows: Vec<&str> = services
        .iter()
        .map(String::as_str)
        .filter(|service| present.contains(service))
        .collect();
    let regions: BTreeSet<&str> = places()
        .map(|place| place.region)
        .filter(|r| *r != "*")
        .collect();
    let regions: Vec<&str> = regions.into_iter().collect();
    let zones: BTreeSet<&str> = places()
        .map(|place| place.zone)
        .filter(|z| *z != "*")
        .collect();
    let zones: Vec<&str> = zones.into_iter().collect();
    let width = LABELS + (REGION + GAP) * regions.len() as i32;
    let height = TOP + ROW * rows.len() as i32 + 20;

    // Instances of a service in a zone share their row.
    let mut cells: BTreeMap<(usize, i32, i32), Vec<&str>> = BTreeMap::new();
    for name in names() {
        let Some(place) = place(name) else { continue };
        let Some(row) = rows.iter().position(|row| *row == place.service) else {
            continue;
        };
        let region = regions.iter().position(|region| *region == place.region);
        let zone = zones.iter().position(|zone| *zone == place.zone);
        let number = |at: Option<usize>| at.map_or(-1, |at| at as i32);
        cells
            .entry((row, number(region), number(zone)))
            .or_default()
            .push(name);
    }
    let mut dots: HashMap<&str, (i32, i32)> = HashMap::new();
    for ((row, region, zone), names) in &cells {
        let (left, room) = match (*region, *zone) {
            (-1, _) => (LABELS, width - LABELS - GAP),
            (region, -1) => (LABELS + region * (REGION + GAP), REGION),
            (region, zone) => {
                let zone_width = REGION / COLUMNS;
                (
                    LABELS + region * (REGION + GAP) + zone * zone_width,
                    zone_width,
                )
            }
        };
        for (name, number) in names.iter().zip(1..) {
            let x = left + room * number / (names.len() as i32 + 1);
            dots.insert(name, (x, TOP + *row as i32 * ROW + ROW / 2));
        }
    }

    let description = format!(
        "{} services in {} regions; each dot is an instance, each line a connection.",
        rows.len(),
        regions.len()
    );
    let size = (width as u32, height as u32);
    let drawn = picture(
        size,
        "An architecture in two regions",
        &description,
        |area| {
            let text = font(13, colour(INK));
            let middle = text.pos(Pos::new(HPos::Center, VPos::Center));
            for (region, index) in regions.iter().zip(0..) {
                let left = LABELS + index * (REGION + GAP);
                let corners = [(left, 6), (left + REGION, height - 8)];
                area.draw(&Rectangle::new(corners, colour(AREA).filled()))?;
                area.draw(&Text::new(
                    (*region).to_owned(),
                    (left + REGION / 2, 18),
                    middle.clone(),
                ))?;
                for (zone, column) in zones.iter().zip(0..) {
                    let left = left + column * REGION / COLUMNS;
                    let corners = [(left + 4, 30), (left + REGION / COLUMNS - 4, height - 14)];
                    area.draw(&Rectangle::new(corners, colour(PAPER).filled()))?;
                    let at = (left + REGION / COLUMNS / 2, 42);
                    area.draw(&Text::new((*zone).to_owned(), at, middle.clone()))?;
                }
            }
            let edges = graph.graph.iter().filter(|line| line.edge.is_some());
            for line in edges {
                let ends = (line.source.as_deref(), line.target.as_deref());
                let (Some(source), Some(target)) = ends else {
                    continue;
                };
                if let (Some(&from), Some(&to)) = (dots.get(source), dots.get(target)) {
                    let style = colour(NORMAL).mix(0.16).stroke_width(1);
                    area.draw(&PathElement::new([from, to], style))?;
                }
            }
            for at in dots.values().collect::<BTreeSet<_>>() {
                area.draw(&Circle::new(*at, 4, colour(NORMAL).filled()))?;
            }
            let right = text.pos(Pos::new(HPos::Right, VPos::Center));
            for (service, row) in rows.iter().zip(0..) {
                let at = (LABELS - 10, TOP + row * ROW + ROW / 2);
                area.draw(&Text::new((*service).to_owned(), at, right.clone()))?;
            }
            Ok(())
        },
    );
    Ok(drawn?)
}
