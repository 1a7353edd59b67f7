//! The exact digests of a few runs. If one changes, the results change for everybody who has noted a seed: explain the
//! change in CHANGELOG.md before changing the digest here.

use corsair::fsm::{self, Fsm};
use corsair::{Config, Executor, Latency};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn digest(seed: u64, latency: Latency, fsm: Fsm) -> String {
    let config = Config {
        seed,
        latency,
        ..Config::default()
    };
    let (report, _) = fsm::run(Executor::Virtual, &config, fsm).expect("the run succeeds");
    format!("{:016x}", report.digest.expect("virtual time has a digest"))
}

#[test]
fn digests_of_fixed_seeds_stay_as_they_are() {
    let pirates = |population, talk| Fsm {
        population,
        talk,
        ..Fsm::default()
    };
    let usual = Latency::default();
    let wide = Latency::between(MS / 10, 3 * MS).expect("it is in order");
    let digests = [
        digest(0, usual, pirates(100, Duration::ZERO)),
        digest(1, usual, pirates(100, 1000 * MS)),
        digest(2, usual, pirates(2_000, 100 * MS)),
        digest(u64::MAX, Latency::constant(MS), pirates(50, 500 * MS)),
        digest(7, wide, pirates(300, 500 * MS)),
    ];
    assert_eq!(
        digests,
        [
            "79facbc2ace1b3c1",
            "be58d7a23fe0babd",
            "9ae5c8b57c15b634",
            "07f74642eca4a69e",
            "fe6ca211ebfd1cf9"
        ]
    );
}
