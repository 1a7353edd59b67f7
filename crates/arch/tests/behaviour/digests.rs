//! Digests of runs with fixed seeds. A digest changes only if the behaviour of an architecture changes intentionally.

use corsair::{Config, Executor};
use corsair_arch::{Plan, Scale, Topology, read, simulate, step};
use std::path::Path;
use std::time::Duration;

fn digest(topology: Topology, seed: u64) -> (u64, u64) {
    let config = Config {
        seed,
        ..Config::default()
    };
    let plan = Plan {
        duration: Duration::from_secs(2),
        ..Plan::default()
    };
    let (report, _) = simulate(Executor::Virtual, &config, topology, &plan).unwrap();
    (report.digest.unwrap(), report.delivered())
}

/// The architecture, the number of regions (`-w`), the seed, and the digest and number of messages of two seconds.
type Known = (&'static str, u32, u64, u64, u64);

const KNOWN: [Known; 11] = [
    ("netflixoss", 1, 0, 0xa537_737f_f0c9_76e4, 3973),
    ("netflixoss", 2, 1, 0x878c_dc91_c619_993a, 7171),
    ("netflix", 1, 2, 0xde1c_064a_a61e_9298, 7797),
    ("lamp", 3, 3, 0x4d9d_9e15_9049_f96f, 3053),
    ("cassandra", 2, 4, 0xd3b4_102f_dbf8_c1a6, 5127),
    ("riak", 1, 5, 0xd7b7_aad5_d343_747a, 7310),
    ("container", 1, 6, 0xe983_af2b_fc96_1e6f, 2029),
    ("storage", 1, 7, 0xe6fb_d706_7c1c_7367, 1089),
    ("aws_ac_ra_web", 1, 8, 0x9db3_f1c4_e9df_c8a4, 2013),
    ("test", 1, 9, 0xcb64_b9a8_a5b4_6de9, 1980),
    ("migration", 2, 10, 0x34d1_3872_4554_be31, 9034),
];

#[test]
fn digests_of_fixed_seeds_stay_as_they_are() {
    let changed: Vec<String> = KNOWN
        .into_iter()
        .filter_map(|known| {
            let (name, regions, seed, ..) = known;
            let scale = Scale {
                regions,
                percent: 100,
            };
            let (checked, scale) = if name == "migration" {
                step(8, scale).unwrap()
            } else {
                (read(name, Path::new("nowhere")).unwrap(), scale)
            };
            let (digest, messages) = digest(Topology::new(&checked, scale).unwrap(), seed);
            let now = (name, regions, seed, digest, messages);
            (now != known)
                .then(|| format!("(\"{name}\", {regions}, {seed}, {digest:#018x}, {messages})"))
        })
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}
