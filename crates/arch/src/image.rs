//! The package of an image.

use crate::package::Package;

/// Returns the package of an image; unknown images are business logic.
pub(crate) fn package(image: &str) -> Package {
    // registry.example:5000/team/postgres-ha:12@sha256:… is postgres-ha.
    let last = image.rsplit('/').next().unwrap_or(image);
    let base = last.split([':', '@']).next().unwrap_or(last);
    let base = base.to_lowercase();
    let is = |known: &&str| {
        base.strip_prefix(*known)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    let any = |known: &[&str]| known.iter().any(is);
    if any(&STORES) {
        Package::Store
    } else if any(&CACHES) {
        Package::Cache
    } else if any(&["cassandra", "scylla"]) {
        Package::PriamCassandra
    } else if any(&["riak"]) {
        Package::Riak
    } else if any(&PROXIES) {
        Package::Zuul
    } else {
        Package::Monolith
    }
}

const STORES: [&str; 16] = [
    "mysql",
    "mariadb",
    "percona",
    "postgres",
    "postgresql",
    "postgis",
    "timescaledb",
    "mongo",
    "mongodb",
    "couchdb",
    "couchbase",
    "elasticsearch",
    "opensearch",
    "influxdb",
    "neo4j",
    "minio",
];

const CACHES: [&str; 6] = [
    "redis",
    "valkey",
    "memcached",
    "hazelcast",
    "varnish",
    "dragonfly",
];

const PROXIES: [&str; 6] = ["nginx", "haproxy", "traefik", "envoy", "kong", "caddy"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_last_part_without_tag() {
        for (image, expected) in [
            ("postgres", Package::Store),
            ("registry.example:5000/team/Postgres-ha:12", Package::Store),
            ("redis:7-alpine", Package::Cache),
            ("cassandra@sha256:abc", Package::PriamCassandra),
            ("basho/riak-kv", Package::Riak),
            ("nginx:1.27", Package::Zuul),
            ("nginxinc-like", Package::Monolith),
            ("my/app", Package::Monolith),
            ("", Package::Monolith),
        ] {
            assert_eq!(package(image), expected, "{image}");
        }
    }
}
