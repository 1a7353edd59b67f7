//! Shows the output files of a run as a world that can be played: a graph file, the flows in the same directory, and
//! the table of `--timeline`.

mod states;

use crate::command::Command;
use crate::frame::Frame;
use crate::layout::{LayoutNode, layout, sunflower};
use crate::series::Point;
use crate::world::{Sample, Scene, SceneArea, SceneNode, World, unknown};
use corsair::Time;
pub use corsair_arch::outputs::OutputError as DrawnError;
use corsair_arch::outputs::{Flows, TimelineTable as Timeline};
use corsair_observe::graph::{self, GraphFile};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The output files of a run, in the form in which the page shows them.
#[derive(Debug)]
pub struct OutputView {
    scene: Scene,
    /// The index of a node by each of the node's names.
    places: HashMap<String, u32>,
    knows: Vec<Vec<u32>>,
    full_names: Vec<String>,
    /// The index of the folded node to which each node belongs.
    groups_of: Vec<u32>,
    flows: Flows,
    timeline: Timeline,
    /// The killed nodes, with the times at which they were killed in seconds.
    killed: Vec<(u32, f64)>,
    /// The ends of the edges with traffic: first between nodes, then between folded nodes.
    ends: [Vec<(u32, u32)>; 2],
    /// The time whose state is shown; `None` shows the whole run.
    shown: Option<f64>,
}

/// The parts of a node's name.
struct Parts<'a> {
    region: &'a str,
    zone: &'a str,
    label: &'a str,
    service: &'a str,
}

/// Splits a name, which has either four parts (`arch.region.zone.label`) or all nine.
fn parts(name: &str) -> Parts<'_> {
    let all: Vec<&str> = name.split('.').collect();
    let at = |place: usize| all.get(place).copied().unwrap_or("*");
    let label = if all.len() >= 9 { at(4) } else { at(3) };
    let label = if all.len() < 4 || label.is_empty() {
        name
    } else {
        label
    };
    let digits = |c: char| c.is_ascii_digit();
    let service = if all.len() >= 9 {
        at(all.len() - 2)
    } else {
        label.trim_end_matches(digits)
    };
    Parts {
        region: at(1),
        zone: at(2),
        label,
        service,
    }
}

impl OutputView {
    /// Reads a graph file, or a directory that a run has written to.
    ///
    /// # Errors
    /// Returns a [`DrawnError`] if the files cannot be read or are invalid.
    pub fn read(path: &Path) -> Result<OutputView, DrawnError> {
        let file = match path.is_dir() {
            true => match graph_in(path) {
                Err(error @ DrawnError::NoGraph { .. }) => {
                    let table = Timeline::find(path)?;
                    return table
                        .map(|table| OutputView::of_table("run", table))
                        .ok_or(error);
                }
                found => found?,
            },
            false => path.to_owned(),
        };
        if file.extension().is_some_and(|end| end == "csv") {
            let stem = file.file_stem().and_then(|stem| stem.to_str());
            let table = Timeline::read(&file)?;
            return Ok(OutputView::of_table(stem.unwrap_or("run"), table));
        }
        let graph = graph::read(&file)?;
        let stem = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("graph");
        let mut drawn = OutputView::new(stem, &graph);
        // A run may have written its table of results over time into the given directory, or into the parent of the
        // graph's directory.
        let above = file.parent().and_then(Path::parent);
        let mut directories: Vec<&Path> = above.into_iter().collect();
        if path.is_dir() && above != Some(path) {
            directories.insert(0, path);
        }
        for directory in directories {
            if let Some(timeline) = Timeline::find(directory)? {
                drawn.scene.groups.clone_from(&timeline.groups);
                drawn.timeline = timeline;
                break;
            }
        }
        // The directory of flows is beside `json/`.
        let beside = file.parent().and_then(Path::parent).map(|directory| {
            directory
                .join("json_metrics")
                .join(format!("{stem}_flow.json"))
        });
        if let Some(beside) = beside.filter(|beside| beside.is_file()) {
            drawn.flows = Flows::read(&beside, &drawn.places, |name| parts(name).label)?;
        }
        Ok(drawn.ready())
    }

    fn new(name: &str, graph: &GraphFile) -> OutputView {
        let mut services: Vec<&str> = Vec::new();
        let mut regions: Vec<&str> = Vec::new();
        let mut zones: Vec<&str> = Vec::new();
        let mut labels: HashMap<&str, u32> = HashMap::new();
        let mut places = Vec::with_capacity(graph.nodes.len());
        let mut known: HashMap<&str, u32> = HashMap::new();
        for node in &graph.nodes {
            let parts = parts(&node.name);
            *labels.entry(parts.label).or_default() += 1;
            let service = match known.get(parts.service) {
                Some(&service) => service,
                None => {
                    services.push(parts.service);
                    known.insert(parts.service, services.len() as u32 - 1);
                    services.len() as u32 - 1
                }
            };
            places.push(LayoutNode {
                service,
                region: numbered(&mut regions, parts.region),
                zone: numbered(&mut zones, parts.zone),
            });
        }
        let index: HashMap<&str, u32> = (0..)
            .zip(&graph.nodes)
            .map(|(i, node)| (node.name.as_str(), i))
            .collect();
        let edges: Vec<(u32, u32)> = (graph.edges.iter())
            .filter_map(|(from, to)| Some((*index.get(from.as_str())?, *index.get(to.as_str())?)))
            .collect();
        let is_pirates = graph.nodes.iter().all(|node| node.package == "pirate");
        let mut calls = vec![Vec::new(); services.len()];
        let mut knows = vec![Vec::new(); graph.nodes.len()];
        for &(from, to) in &edges {
            knows[from as usize].push(to);
            let [from, to] = [from, to].map(|i| places[i as usize].service);
            let called: &mut Vec<u32> = &mut calls[from as usize];
            if from != to && !called.contains(&to) {
                called.push(to);
            }
        }
        let laid = match is_pirates {
            true => {
                let nodes = sunflower(graph.nodes.len() as u32);
                let size = 2.0 * (nodes.len() as f32).sqrt() + 2.0;
                crate::Layout {
                    nodes,
                    width: size,
                    height: size,
                    ..crate::Layout::default()
                }
            }
            false => layout(&places, &calls),
        };
        let node = |i: usize, name: String, (x, y): (f32, f32), count: u32, size: f32| {
            let parts = parts(&graph.nodes[i].name);
            SceneNode {
                name,
                x,
                y,
                service: parts.service.to_owned(),
                package: graph.nodes[i].package.clone(),
                region: parts.region.to_owned(),
                zone: parts.zone.to_owned(),
                count,
                size,
                slots: 0,
            }
        };
        let name_of = |i: usize| {
            let label = parts(&graph.nodes[i].name).label;
            match labels.get(label) {
                Some(1) => label.to_owned(),
                _ => graph.nodes[i].name.clone(),
            }
        };
        let nodes: Vec<SceneNode> = (0..graph.nodes.len())
            .map(|i| {
                node(
                    i,
                    name_of(i),
                    laid.nodes[i],
                    1,
                    laid.sizes.get(i).copied().unwrap_or(1.0),
                )
            })
            .collect();
        let mut counts = vec![0; laid.groups.len()];
        for &group in laid.groups_of.iter().filter(|_| !is_pirates) {
            counts[group as usize] += 1;
        }
        let folded = laid.groups.iter().zip(counts).map(|(&(i, at), count)| {
            let i = i as usize;
            node(
                i,
                parts(&graph.nodes[i].name).service.to_owned(),
                at,
                count,
                1.0,
            )
        });
        let folded: Vec<SceneNode> = folded.collect();
        let mut folded_edges: Vec<(u32, u32)> = Vec::new();
        if !is_pirates {
            let group = |i: u32| laid.groups_of[i as usize];
            folded_edges.extend(edges.iter().map(|&(from, to)| (group(from), group(to))));
            folded_edges.sort_unstable();
            folded_edges.dedup();
        }
        let areas = laid.areas.iter().map(|area| {
            let region = regions[usize::from(area.region)];
            SceneArea::new(area, region, area.zone.map(|zone| zones[usize::from(zone)]))
        });
        let mut by_name: HashMap<String, u32> = HashMap::new();
        for (i, (shown, file)) in (0..).zip(nodes.iter().zip(&graph.nodes)) {
            by_name.insert(file.name.clone(), i);
            by_name.insert(shown.name.clone(), i);
        }
        let killed = graph
            .killed
            .iter()
            .filter_map(|(name, at)| Some((*by_name.get(name)?, at.as_secs_f64())));
        OutputView {
            killed: killed.collect(),
            ends: Default::default(),
            shown: None,
            scene: Scene {
                kind: "graph",
                arch: name.to_owned(),
                groups: vec!["all".to_owned()],
                edges,
                folded,
                folded_edges,
                areas: areas.collect(),
                width: laid.width,
                height: laid.height,
                total: nodes.len() as u64,
                nodes,
                ..Scene::default()
            },
            places: by_name,
            groups_of: laid.groups_of,
            knows,
            full_names: graph.nodes.iter().map(|node| node.name.clone()).collect(),
            flows: Flows::default(),
            timeline: Timeline::default(),
        }
    }

    fn place(&self, name: &str) -> Result<u32, String> {
        let known = self.scene.nodes.iter().map(|node| node.name.as_str());
        let place = self.places.get(name).copied();
        place.ok_or_else(|| unknown("actor", name, known))
    }

    /// Returns the actors that a name at either end of an edge stands for: one actor, or the instances of a service in
    /// a zone (`login@us-east-1.zoneA`).
    fn ends(&self, name: &str) -> Result<Vec<u32>, String> {
        let Some((service, zone)) = name.split_once('@') else {
            return self.place(name).map(|place| vec![place]);
        };
        let is_there = |node: &SceneNode| {
            node.service == service
                && zone.split_once('.') == Some((node.region.as_str(), node.zone.as_str()))
        };
        let nodes = (0..).zip(&self.scene.nodes);
        Ok(nodes
            .filter(|(_, node)| is_there(node))
            .map(|(place, _)| place)
            .collect())
    }

    fn name(&self, place: u32) -> &str {
        &self.scene.nodes[place as usize].name
    }
}

/// Returns the number of a region or zone; `None` for all, or beyond the maximum number.
fn numbered<'a>(known: &mut Vec<&'a str>, name: &'a str) -> Option<u8> {
    if name == "*" || name.is_empty() {
        return None;
    }
    let place = known.iter().position(|other| *other == name);
    let place = place.unwrap_or_else(|| {
        known.push(name);
        known.len() - 1
    });
    u8::try_from(place).ok()
}

/// Returns the only graph in a directory.
fn graph_in(path: &Path) -> Result<PathBuf, DrawnError> {
    let below = path.join("json");
    let directory = if below.is_dir() {
        below
    } else {
        path.to_owned()
    };
    let unreadable = |error| DrawnError::Unreadable {
        path: directory.clone(),
        error,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.ends_with(".json") && !name.ends_with("_conf.json") && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    match found.len() {
        0 => Err(DrawnError::NoGraph {
            path: path.to_owned(),
        }),
        1 => Ok(found.remove(0)),
        _ => {
            let names: Vec<_> = found
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            Err(DrawnError::Several {
                path: path.to_owned(),
                what: "graphs",
                names: names.join(", "),
            })
        }
    }
}

impl World for OutputView {
    fn scene(&self) -> Scene {
        self.scene.clone()
    }

    fn now(&self) -> Time {
        Time::from_nanos((self.shown.unwrap_or(self.end()) * 1e9).round() as u64)
    }

    fn is_over(&self) -> bool {
        self.shown.is_none_or(|shown| shown >= self.end())
    }

    fn run_until(&mut self, time: Time) {
        self.seek(time);
    }

    fn seek(&mut self, time: Time) -> bool {
        let end = self.end();
        if end > 0.0 {
            self.shown = Some(time.elapsed().as_secs_f64().min(end));
        }
        end > 0.0
    }

    fn at(&mut self, time: f64) -> Option<Frame> {
        let mut frame = Frame::default();
        frame.next(self.state(Some(time)));
        frame.now = time;
        Some(frame)
    }

    fn step(&mut self) -> bool {
        false
    }

    fn step_actor(&mut self, who: &str) -> Result<bool, String> {
        self.place(who).map(|_| false)
    }

    fn apply(&mut self, _: &Command) -> Result<(), String> {
        Err("the run is over".to_owned())
    }

    fn watch(&mut self, _: bool) {}

    fn sample(&mut self) -> Sample {
        self.state(self.shown)
    }

    fn look(&mut self, query: &Value) -> Result<Value, String> {
        let text = |key: &str| query.get(key).and_then(Value::as_str);
        if let Some(name) = text("actor") {
            let place = self.place(name)?;
            let about = &self.scene.nodes[place as usize];
            let knows = self.knows[place as usize].iter();
            return Ok(json!({
                "name": self.full_names[place as usize], "service": about.service,
                "package": about.package, "region": about.region, "zone": about.zone,
                "knows": knows.map(|&to| self.name(to)).collect::<Vec<_>>(),
                "requests_in_flows": self.flows.count_of(place),
            }));
        }
        if let (Some(from), Some(to)) = (text("from"), text("to")) {
            let (clients, servers) = (self.ends(from)?, self.ends(to)?);
            return Ok(self.flows.edge(&clients, &servers, (from, to)));
        }
        if let Some(name) = text("requests") {
            let place = self.place(name)?;
            return Ok(self.flows.requests(place, |place| self.name(place)));
        }
        if let Some(trace) = text("trace") {
            return Ok(self.flows.trace(trace, |place| self.name(place)));
        }
        if let Some(part) = text("find") {
            let nodes = self.scene.nodes.iter().map(|node| node.name.as_str());
            let found: Vec<&str> = nodes.filter(|name| name.contains(part)).take(50).collect();
            return Ok(json!(found));
        }
        Err("unknown query; expected actor, from and to, requests, trace or find".to_owned())
    }

    fn points(&self, group: usize) -> Option<Vec<Point>> {
        self.timeline.of(group)
    }

    fn dead_letters(&mut self) -> u64 {
        0
    }

    fn digest(&mut self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_as_they_are_put_together() {
        let four = parts("netflixoss.us-east-1.zoneC.homepage14");
        assert_eq!((four.region, four.zone), ("us-east-1", "zoneC"));
        assert_eq!((four.label, four.service), ("homepage14", "homepage"));
        let nine = parts("netflixoss.us-east-1.zoneC..homepage14...homepage.karyon");
        assert_eq!((nine.label, nine.service), ("homepage14", "homepage"));
        let alone = parts("edda");
        assert_eq!((alone.region, alone.label), ("*", "edda"));
    }
}
