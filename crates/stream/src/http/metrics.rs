//! `GET /metrics`: counters for Prometheus.

use super::refusal::Refusal;
use super::{Server, answer};
use crate::engine::{EdgeStatus, Engine};
use axum::extract::State;
use axum::response::Response;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt;

pub(super) async fn metrics(State(server): State<Server>) -> Result<Response, Refusal> {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let engine = server.engine.clone();
    let make = move || {
        let mut registry = Registry::with_prefix("corsair_stream");
        registry.register_collector(Box::new(Counts(engine)));
        let mut written = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut written, &registry);
        written.into_bytes()
    };
    answer::long(&server, kind, make).await
}

/// The counters of an engine, read on request.
#[derive(Debug)]
struct Counts(Engine);

/// A value with its labels.
type Sample<'a> = (Vec<(&'static str, &'a str)>, u64);

/// Writes a metric with all its samples.
fn family<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, kind): (&str, &str, MetricType),
    samples: impl Iterator<Item = Sample<'a>>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in samples {
        let family = metric.encode_family(&labels)?;
        match kind {
            MetricType::Counter => ConstCounter::new(value).encode(family)?,
            _ => {
                ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(family)?;
            }
        }
    }
    Ok(())
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let (accepted, rejected, writes) = self.0.totals();
        for (name, help, value) in [
            ("writes", "Writes that were answered", writes),
            ("lines_accepted", "Lines accepted", accepted),
            ("lines_rejected", "Lines rejected", rejected),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        if let Some((position, writable)) = self.0.log_status() {
            let gauges = [
                (
                    "log_position",
                    "The number of writes in the log since it was created",
                    position,
                ),
                (
                    "log_writable",
                    "1 if the log can be written",
                    u64::from(writable),
                ),
            ];
            for (name, help, value) in gauges {
                let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(metric)?;
            }
        }
        let tasks = self.0.statuses();
        let states = ["running", "ended", "failed"].map(|name| {
            let count = tasks.iter().filter(|task| task.state.word() == name);
            (vec![("state", name)], count.count() as u64)
        });
        let head = ("tasks", "Tasks by state", MetricType::Gauge);
        family(encoder, head, states.into_iter())?;
        let edges = || {
            tasks
                .iter()
                .flat_map(|task| task.edges.iter().map(move |edge| (task, edge)))
        };
        let Some((_, first)) = edges().next() else {
            return Ok(());
        };
        for (at, (counter, _)) in EdgeStatus::counters(first).iter().enumerate() {
            let name = match *counter {
                "buffered" | "high_water" => format!("edge_{counter}_batches"),
                "collect_blocked_ns" => "edge_collect_blocked_nanoseconds".into(),
                "emit_blocked_ns" => "edge_emit_blocked_nanoseconds".into(),
                points => format!("edge_points_{points}"),
            };
            let kind = match *counter {
                "buffered" | "high_water" => MetricType::Gauge,
                _ => MetricType::Counter,
            };
            let samples = edges().map(|(task, edge)| {
                let (name, from, to) = (&*task.name, &*edge.from, &*edge.to);
                let labels = vec![("task", name), ("from", from), ("to", to)];
                (labels, edge.counters()[at].1)
            });
            family(encoder, (&name, "Per edge of a task", kind), samples)?;
        }
        let nodes = tasks
            .iter()
            .flat_map(|task| task.nodes.iter().map(move |node| (task, node)));
        let waiting = nodes.clone().flat_map(|(task, node)| {
            let counters = node.counters.iter();
            let on_disk = counters.filter(|(counter, _)| *counter == "on_disk");
            on_disk.map(move |(_, value)| {
                let labels = vec![("task", &*task.name), ("node", &*node.name)];
                (labels, *value)
            })
        });
        let help = "Bodies that wait in the disk buffer of a sink";
        family(encoder, ("sink_on_disk", help, MetricType::Gauge), waiting)?;
        let samples = nodes.flat_map(|(task, node)| {
            let counters = node.counters.iter();
            let counted = counters.filter(|(counter, _)| *counter != "on_disk");
            counted.map(move |(counter, value)| {
                let labels = vec![
                    ("task", &*task.name),
                    ("node", &*node.name),
                    ("counter", *counter),
                ];
                (labels, *value)
            })
        });
        let help = "What nodes count, by counter";
        family(encoder, ("node", help, MetricType::Counter), samples)
    }
}
