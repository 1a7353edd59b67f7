//! The states of a saved run: at a time, or over all of it.

use super::OutputView;
use crate::world::{GroupSample, Mark, Sample};
use crate::{EdgeState, NodeState};
use corsair_arch::outputs::TimelineTable as Timeline;
use corsair_observe::graph::{GraphFile, GraphNode};

impl OutputView {
    /// Creates a view from a table of results over time only, with a node for each service in each zone.
    pub(super) fn of_table(name: &str, table: Timeline) -> OutputView {
        let node = |(service, zone): &(String, String)| {
            let service = service.replace('.', "·");
            GraphNode {
                name: format!("{name}.{zone}..{service}0...{service}.service"),
                package: "service".to_owned(),
            }
        };
        let graph = GraphFile {
            nodes: table.places.iter().map(node).collect(),
            ..GraphFile::default()
        };
        let mut drawn = OutputView::new(&name.replace('.', "·"), &graph);
        drawn.scene.groups.clone_from(&table.groups);
        drawn.timeline = table;
        drawn.ready()
    }

    /// Completes a view after all files have been read.
    pub(super) fn ready(mut self) -> OutputView {
        self.ends = [
            self.flows.ends(|node| node),
            self.flows.ends(|node| self.group_of(node)),
        ];
        let end = self.end();
        self.scene.load = (end > 0.0).then_some((0.0, end));
        let marks = self.killed.iter().map(|&(place, at)| Mark {
            at,
            name: format!("kill {}", self.name(place)),
            ..Mark::default()
        });
        self.scene.marks = marks.collect();
        self
    }

    fn group_of(&self, node: u32) -> u32 {
        self.groups_of.get(node as usize).copied().unwrap_or(node)
    }

    /// Returns the last time with a known state, in seconds; 0 if no states are known.
    pub(super) fn end(&self) -> f64 {
        let killed = self.killed.iter().map(|&(_, at)| at);
        killed.fold(self.flows.end().max(self.timeline.end()), f64::max)
    }

    /// Returns the state at a time in seconds, or of the whole run if `time` is `None`.
    pub(super) fn state(&self, time: Option<f64>) -> Sample {
        let end = self.end();
        let at = time.unwrap_or(end);
        let during = time.map_or((-1.0, end), |time| (time - end / WINDOWS, time));
        let edges = self.flows.edges(&self.ends[0], during, |node| node);
        let folded_edges = self
            .flows
            .edges(&self.ends[1], during, |node| self.group_of(node));
        let mut nodes = vec![NodeState::default(); self.scene.nodes.len()];
        let mut folded = vec![NodeState::default(); self.scene.folded.len()];
        for (node, knows) in nodes.iter_mut().zip(&self.knows) {
            node.busy = knows.len() as f32;
        }
        for (states, edges) in [(&mut nodes, &edges), (&mut folded, &folded_edges)] {
            edges
                .iter()
                .for_each(|edge| add(&mut states[edge.to as usize], edge));
        }
        for (state, about) in folded.iter_mut().zip(&self.scene.folded) {
            let count = about.count.min(u16::MAX.into()) as u16;
            state.health = (count, count);
            let group = format!("{} {}.{}", about.service, about.region, about.zone);
            if let Some(point) = self.timeline.at(&group, time) {
                (state.rate, state.queue) = (point.rate as f32, point.queue as f32);
                state.errors = if point.rate > 0.0 {
                    (point.errors / point.rate) as f32
                } else {
                    0.0
                };
            }
        }
        for &(place, _) in self.killed.iter().filter(|&&(_, killed)| killed <= at) {
            nodes[place as usize].bits |= NodeState::DOWN;
            if let Some(group) = folded.get_mut(self.group_of(place) as usize) {
                group.bits |= NodeState::DOWN;
                group.health.0 = group.health.0.saturating_sub(1);
            }
        }
        let groups = vec![GroupSample::default(); self.scene.groups.len()];
        Sample {
            nodes,
            edges,
            folded,
            folded_edges,
            groups,
        }
    }
}

/// The number of parts into which the run is divided. The state at a time is measured over a part of this length before
/// the time.
const WINDOWS: f64 = 100.0;

/// Adds the traffic of an edge to the node that the edge leads to.
fn add(state: &mut NodeState, edge: &EdgeState) {
    let rate = state.rate + edge.rate;
    if rate > 0.0 {
        state.errors = (state.errors * state.rate + edge.errors * edge.rate) / rate;
    }
    state.rate = rate;
}
