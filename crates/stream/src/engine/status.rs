//! The status of a task as JSON, and as a graph.

mod picture;

pub(crate) use picture::escaped;

use corsair::edge::EdgeStatistics;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt::Write;

/// The status of a task.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TaskStatus {
    /// The name of the task.
    pub name: String,
    /// The state of the task: running, ended or failed.
    #[serde(flatten)]
    pub state: TaskState,
    /// The pipeline in canonical form.
    pub text: String,
    /// The nodes, in an order in which each follows its inputs.
    pub nodes: Vec<NodeStatus>,
    /// The edges between the nodes.
    pub edges: Vec<EdgeStatus>,
}

/// The state of a task.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TaskState {
    /// The task is running.
    Running,
    /// The task has processed all points, and receives no more.
    Ended,
    /// A node failed, and the task stopped.
    Failed {
        /// The name of the failed node.
        node: String,
        /// The cause of the failure.
        reason: String,
    },
}

/// The counters of a node.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// The name in the pipeline.
    pub name: String,
    /// The text of the node.
    pub text: String,
    /// Counters such as `late` of a window.
    pub counters: Vec<(&'static str, u64)>,
    /// The most recent reason for dropping a point.
    pub last_error: Option<String>,
}

/// The counters of an edge, in points.
#[derive(Clone, Debug)]
pub struct EdgeStatus {
    /// The node where the edge begins; `stream` for writes.
    pub from: String,
    /// The node where the edge ends.
    pub to: String,
    /// The counters of the edge.
    pub statistics: EdgeStatistics,
}

impl TaskState {
    /// Returns the state as a word, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Ended => "ended",
            TaskState::Failed { .. } => "failed",
        }
    }
}

impl Serialize for NodeStatus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut node = to.serialize_struct("NodeStatus", self.counters.len() + 3)?;
        node.serialize_field("name", &self.name)?;
        node.serialize_field("text", &self.text)?;
        for (name, count) in &self.counters {
            node.serialize_field(name, count)?;
        }
        if let Some(error) = &self.last_error {
            node.serialize_field("last_error", error)?;
        }
        node.end()
    }
}

impl Serialize for EdgeStatus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let counters = self.counters();
        let mut edge = to.serialize_struct("EdgeStatus", counters.len() + 2)?;
        edge.serialize_field("from", &self.from)?;
        edge.serialize_field("to", &self.to)?;
        for (name, count) in counters {
            edge.serialize_field(name, &count)?;
        }
        edge.end()
    }
}

impl EdgeStatus {
    /// Returns the counters with their names. Counts are points, times are nanoseconds.
    pub fn counters(&self) -> [(&'static str, u64); 8] {
        let s = &self.statistics;
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        [
            ("collected", s.sent),
            ("emitted", s.received),
            ("dropped_by_abort", s.dropped_by_abort),
            ("dropped_by_overflow", s.dropped_by_overflow),
            ("buffered", s.buffered as u64),
            ("high_water", s.high_water as u64),
            ("collect_blocked_ns", nanos(s.blocked_sending)),
            ("emit_blocked_ns", nanos(s.blocked_receiving)),
        ]
    }
}

impl TaskStatus {
    /// Returns the graph in the DOT language of Graphviz, with the counts of each edge.
    pub fn dot(&self) -> String {
        let mut dot = String::new();
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(dot, "digraph \"{}\" {{", quoted(&self.name));
        let _ = writeln!(
            dot,
            "  rankdir=LR;\n  node [shape=box];\n  stream [shape=oval];"
        );
        for node in &self.nodes {
            let mut label = node.name.clone();
            for (name, count) in &node.counters {
                let _ = write!(label, "\\n{name} {count}");
            }
            let failed =
                matches!(&self.state, TaskState::Failed { node: at, .. } if *at == node.name);
            let color = if failed { ", color=red" } else { "" };
            let _ = writeln!(dot, "  {} [label=\"{label}\"{color}];", node.name);
        }
        for edge in &self.edges {
            let EdgeStatus {
                from,
                to,
                statistics: s,
            } = edge;
            let (emitted, collected) = (s.received, s.sent);
            let _ = writeln!(
                dot,
                "  {from} -> {to} [label=\"{emitted} of {collected}\"];"
            );
        }
        dot.push_str("}\n");
        dot
    }
}
