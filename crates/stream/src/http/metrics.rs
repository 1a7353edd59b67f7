//! `GET /metrics`: counters in the text format of Prometheus.

use crate::engine::{EdgeStatus, Engine, TaskState, TaskStatus};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use std::fmt::Write;

pub(super) async fn metrics(State(engine): State<Engine>) -> Response {
    let content_type = [(CONTENT_TYPE, "text/plain; version=0.0.4")];
    (content_type, text(&engine)).into_response()
}

fn text(engine: &Engine) -> String {
    let mut text = String::new();
    let (accepted, rejected, writes) = engine.totals();
    total(
        &mut text,
        "writes_total",
        "Writes that were answered.",
        writes,
    );
    total(
        &mut text,
        "lines_accepted_total",
        "Lines accepted.",
        accepted,
    );
    total(
        &mut text,
        "lines_rejected_total",
        "Lines rejected.",
        rejected,
    );
    let tasks = engine.statuses();
    family(&mut text, "tasks", "gauge", "Tasks by state.");
    let states = ["running", "ended", "failed"];
    for (state, name) in states.iter().enumerate() {
        let count = tasks.iter().filter(|task| place(task) == state).count();
        let _ = writeln!(text, "corsair_stream_tasks{{state=\"{name}\"}} {count}");
    }
    edges(&mut text, &tasks);
    nodes(&mut text, &tasks);
    text
}

fn place(task: &TaskStatus) -> usize {
    match task.state {
        TaskState::Running => 0,
        TaskState::Ended => 1,
        TaskState::Failed { .. } => 2,
    }
}

/// A metric per counter of edges, a sample per edge.
fn edges(text: &mut String, tasks: &[TaskStatus]) {
    let edges = || {
        tasks
            .iter()
            .flat_map(|task| task.edges.iter().map(move |edge| (task, edge)))
    };
    let Some((_, first)) = edges().next() else {
        return;
    };
    for (at, (counter, _)) in EdgeStatus::counters(first).iter().enumerate() {
        let kind = match *counter {
            "buffered" | "high_water" => "gauge",
            _ => "counter",
        };
        let metric = match *counter {
            "collect_blocked_ns" => "edge_collect_blocked_nanoseconds_total".into(),
            "emit_blocked_ns" => "edge_emit_blocked_nanoseconds_total".into(),
            "buffered" => "edge_buffered_points".into(),
            "high_water" => "edge_high_water".into(),
            points => format!("edge_points_{points}_total"),
        };
        family(text, &metric, kind, "Per edge of a task.");
        for (task, edge) in edges() {
            let (_, value) = edge.counters()[at];
            let (task, from, to) = (&task.name, &edge.from, &edge.to);
            let _ = writeln!(
                text,
                "corsair_stream_{metric}{{task=\"{task}\",from=\"{from}\",to=\"{to}\"}} {value}"
            );
        }
    }
}

/// One metric for what nodes count beside their edges.
fn nodes(text: &mut String, tasks: &[TaskStatus]) {
    family(
        text,
        "node_total",
        "counter",
        "What nodes count, by counter.",
    );
    for task in tasks {
        for node in &task.nodes {
            for (counter, value) in &node.counters {
                let (task, node) = (&task.name, &node.name);
                let _ = writeln!(
                    text,
                    "corsair_stream_node_total{{task=\"{task}\",node=\"{node}\",counter=\"{counter}\"}} {value}"
                );
            }
        }
    }
}

fn total(text: &mut String, name: &str, help: &str, value: u64) {
    family(text, name, "counter", help);
    let _ = writeln!(text, "corsair_stream_{name} {value}");
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(
        text,
        "# HELP corsair_stream_{name} {help}\n# TYPE corsair_stream_{name} {kind}"
    );
}
