//! The role of a workload, inferred from its image and its name.

use crate::image::package;
use crate::package::Package;

/// The role of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A database or a cache, which stores values.
    Storage,
    /// A message broker, which passes messages to the services that wait for them.
    Broker,
    /// A collector of traces, metrics or logs, or a service registry: no request waits for it.
    Background,
    /// An entry point for requests, by its name or its image.
    Front,
    /// A load generator.
    Load,
    /// Any other service.
    Service,
}

const BROKERS: &[&str] = &[
    "kafka",
    "rabbitmq",
    "nats",
    "activemq",
    "pulsar",
    "mosquitto",
    "redpanda",
];
const BACKGROUND: &[&str] = &[
    "jaeger",
    "zipkin",
    "prometheus",
    "grafana",
    "otel",
    "otelcol",
    "opentelemetry",
    "collector",
    "loki",
    "tempo",
    "fluentd",
    "fluentbit",
    "kibana",
    "opensearch",
    "consul",
    "etcd",
    "zookeeper",
    "eureka",
    "registry",
    "flagd",
    "dns",
    "cadvisor",
    "opamp",
    "statsd",
    "vault",
    "pyroscope",
    "profiler",
];
const LOAD: &[&str] = &[
    "loadgenerator",
    "loadgen",
    "locust",
    "k6",
    "loadtest",
    "wrk",
    "jmeter",
];
const FRONT: &[&str] = &[
    "front",
    "frontend",
    "web",
    "webui",
    "ui",
    "gateway",
    "proxy",
    "ingress",
    "productpage",
    "nginx",
    "envoy",
    "haproxy",
    "traefik",
    "kong",
    "caddy",
    "edge",
    "www",
];
const STORAGE: &[&str] = &[
    "db",
    "database",
    "mongo",
    "mongodb",
    "mysql",
    "mariadb",
    "postgres",
    "postgresql",
    "redis",
    "memcached",
    "valkey",
    "cassandra",
    "cockroach",
    "cockroachdb",
    "dynamodb",
    "elasticsearch",
];

/// Infers the role of a workload from its name and image.
pub(super) fn role(name: &str, image: &str) -> Role {
    let image = image.to_lowercase();
    let last = image.rsplit('/').next().unwrap_or_default();
    let base = last.split([':', '@']).next().unwrap_or_default();
    let lower = name.to_lowercase();
    let has = |known: &[&str]| has_word(&lower, known) || has_word(base, known);
    let is_load = |text: &str| text.contains("load-gen") || has_word(text, LOAD);
    let package = package(&image);
    if is_load(&lower) || is_load(base) {
        Role::Load
    } else if has(BROKERS) {
        Role::Broker
    } else if package.is_storage() || has_word(&lower, STORAGE) {
        Role::Storage
    } else if has(BACKGROUND) {
        Role::Background
    } else if package == Package::Zuul || has_word(&lower, FRONT) {
        Role::Front
    } else {
        Role::Service
    }
}

/// True if a name contains one of these words, between dashes or underscores.
fn has_word(name: &str, words: &[&str]) -> bool {
    name.split(['-', '_', '.'])
        .any(|word| words.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_from_names_and_images() {
        for (name, image, expected) in [
            ("post-storage-mongodb", "mongo:4.4.6", Role::Storage),
            (
                "teastore-db",
                "descartesresearch/teastore-db",
                Role::Storage,
            ),
            ("redis-cart", "redis@sha256:1", Role::Storage),
            ("jaeger-agent", "jaegertracing/all-in-one", Role::Background),
            ("otel-collector", "", Role::Background),
            ("teastore-registry", "x", Role::Background),
            ("kafka", "x/demo:latest-kafka", Role::Broker),
            ("nginx-thrift", "yg397/openresty-thrift", Role::Front),
            ("frontend-proxy", "x", Role::Front),
            ("loadgenerator", "x", Role::Load),
            ("load-generator", "x", Role::Load),
            ("cartservice", "x/cartservice:v1", Role::Service),
        ] {
            assert_eq!(role(name, image), expected, "{name}");
        }
    }
}
