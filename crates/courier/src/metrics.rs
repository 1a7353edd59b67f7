//! The counters of a node, for Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::fmt;

/// The counters of a node. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub requests: Family<Status, Counter>,
    pub refused: Family<RefusalLabel, Counter>,
    pub groups: Counter,
    pub posted: Counter,
    pub repeated: Counter,
    pub delivered: Counter,
    pub caught_up: Counter,
    pub overflows: Counter,
    pub acknowledged: Counter,
    pub expired: Counter,
    pub snapshots: Counter,
    pub compactions: Counter,
    pub dead_peers: Counter,
    pub connections: Gauge,
    pub sockets: Gauge,
    pub online: Gauge,
    pub post_seconds: Histogram,
}

/// The label of an answered request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Status {
    pub status: u16,
}

/// The label of a refusal, which names the limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RefusalLabel {
    pub why: &'static str,
}

impl Metrics {
    pub fn new() -> Metrics {
        // Buckets from 0.1 ms to 3.3 s.
        let buckets = (0..16).map(|power| 0.0001 * f64::from(1 << power));
        Metrics {
            requests: Family::default(),
            refused: Family::default(),
            groups: Counter::default(),
            posted: Counter::default(),
            repeated: Counter::default(),
            delivered: Counter::default(),
            caught_up: Counter::default(),
            overflows: Counter::default(),
            acknowledged: Counter::default(),
            expired: Counter::default(),
            snapshots: Counter::default(),
            compactions: Counter::default(),
            dead_peers: Counter::default(),
            connections: Gauge::default(),
            sockets: Gauge::default(),
            online: Gauge::default(),
            post_seconds: Histogram::new(buckets),
        }
    }

    /// Counts a refusal.
    pub fn refuse(&self, why: &'static str) {
        self.refused.get_or_create(&RefusalLabel { why }).inc();
    }

    /// Formats all counters as text.
    pub fn render(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("courier");
        let all = self.clone();
        registry.register("requests", "Requests answered", all.requests);
        registry.register(
            "refused",
            "Requests and frames refused, by reason",
            all.refused,
        );
        registry.register(
            "groups",
            "Group commits of the log, each with one fsync",
            all.groups,
        );
        registry.register("posted", "Messages stored", all.posted);
        registry.register(
            "repeated",
            "Repeated posts whose message was already stored",
            all.repeated,
        );
        registry.register("delivered", "Messages written to sockets", all.delivered);
        registry.register(
            "caught_up",
            "Messages written to sockets from the durable queue",
            all.caught_up,
        );
        registry.register(
            "overflows",
            "Times that a mailbox or socket was full and its messages were left in the durable queue",
            all.overflows,
        );
        registry.register("acknowledged", "Acknowledgements", all.acknowledged);
        registry.register(
            "expired",
            "Messages removed because of age or size",
            all.expired,
        );
        registry.register(
            "snapshots",
            "Copies of the index sent to other members",
            all.snapshots,
        );
        registry.register(
            "compactions",
            "Automatic compactions of the index",
            all.compactions,
        );
        registry.register("dead_peers", "Sockets closed as silent", all.dead_peers);
        registry.register("connections", "Connections open", all.connections);
        registry.register("sockets", "WebSockets open", all.sockets);
        registry.register("online", "Users with a socket on this node", all.online);
        registry.register(
            "post_seconds",
            "Time from a POST to its answer, in seconds",
            all.post_seconds,
        );
        if let Some(bytes) = corsair::resident_memory() {
            let gauge: Gauge = Gauge::default();
            gauge.set(bytes as i64);
            registry.register("resident_bytes", "Memory of this process", gauge);
        }
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}
