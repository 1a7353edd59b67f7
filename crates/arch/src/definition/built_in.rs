//! The built-in definitions.

/// The built-in definitions by name; the first is the default.
pub const BUILT_IN: [(&str, &str); 10] = [
    (
        "netflixoss",
        include_str!("../../json_arch/netflixoss_arch.json"),
    ),
    ("netflix", include_str!("../../json_arch/netflix_arch.json")),
    ("lamp", include_str!("../../json_arch/lamp_arch.json")),
    (
        "cassandra",
        include_str!("../../json_arch/cassandra_arch.json"),
    ),
    ("riak", include_str!("../../json_arch/riak_arch.json")),
    (
        "container",
        include_str!("../../json_arch/container_arch.json"),
    ),
    ("storage", include_str!("../../json_arch/storage_arch.json")),
    (
        "aws_ac_ra_web",
        include_str!("../../json_arch/aws_ac_ra_web_arch.json"),
    ),
    ("test", include_str!("../../json_arch/test_arch.json")),
    ("demo", include_str!("../../json_arch/demo_arch.json")),
];
