//! The example `raft`, with the faults that broke its earlier version.

#[path = "../examples/raft.rs"]
#[expect(dead_code, reason = "the main function of the example is not called")]
mod raft;

use corsair_hunt::{Hunt, Replay, Subject, hunt};
use raft::Raft;
use std::sync::Arc;

#[test]
fn faults_that_led_to_two_leaders_no_longer_do() {
    for text in [
        // A server forgot its vote in a crash, and voted again in the same term.
        include_str!("raft/vote_forgotten.json"),
        // A candidate counted a vote twice that arrived twice.
        include_str!("raft/vote_counted_twice.json"),
    ] {
        let replay = Replay::from_json(text).unwrap();
        assert_eq!(replay.property, "a term has one leader");
        for workers in 1..=4 {
            let result = Arc::new(Raft)
                .run(replay.seed, &replay.plan, workers)
                .unwrap();
            assert!(result.properties.violated().is_empty(), "{replay:?}");
        }
    }
}

#[test]
fn a_hunt_finds_no_violation_and_reaches_many_elections() {
    let settings = Hunt {
        seed: 36,
        runs: 200,
        ..Hunt::default()
    };
    let hunted = hunt(&Arc::new(Raft), &settings).unwrap();
    assert_eq!(hunted.failure, None, "{}", hunted.properties);
    assert!(hunted.properties.never_reached().is_empty());
}
