//! In virtual time, the result of a scenario does not depend on the number of workers, the window or the form of the
//! pirates.

use corsair::fsm::{self, Form, Fsm, Tally};
use corsair::{Config, Executor, Latency};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Returns the digest of a run, its tally, and the number of delivered messages.
fn outcome(config: &Config, workers: usize, fsm: Fsm) -> (u64, Tally, u64) {
    let workers = NonZeroUsize::new(workers).expect("at least one worker");
    let config = Config {
        workers,
        ..config.clone()
    };
    let (report, tally) = fsm::run(Executor::Virtual, &config, fsm).expect("the run succeeds");
    let digest = report.digest.expect("virtual time has a digest");
    (
        digest,
        tally.expect("the run was not cancelled"),
        report.delivered(),
    )
}

fn assert_same_for_all_workers_and_forms(config: &Config, fsm: &Fsm) -> u64 {
    let first = outcome(
        config,
        1,
        Fsm {
            form: Form::Handler,
            ..fsm.clone()
        },
    );
    for form in [Form::Handler, Form::Async] {
        for workers in 1..=4 {
            let other = outcome(
                config,
                workers,
                Fsm {
                    form,
                    ..fsm.clone()
                },
            );
            assert_eq!(
                first, other,
                "{form:?} with {workers} workers, {config:?}, {fsm:?}"
            );
        }
    }
    first.0
}

// Guarantee: core-33, core-58.
#[test]
fn digests_are_equal_for_any_workers_and_form_and_differ_by_seed() {
    let fsm = Fsm {
        population: 500,
        talk: Duration::from_secs(3),
        ..Fsm::default()
    };
    let mut digests: Vec<u64> = (0..4)
        .map(|seed| {
            let config = Config {
                seed,
                ..Config::default()
            };
            assert_same_for_all_workers_and_forms(&config, &fsm)
        })
        .collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 4);
}

// Guarantee: core-58.
#[test]
fn digests_are_equal_for_more_pirates_than_the_fsm_speaks_to_at_once() {
    let fsm = Fsm {
        population: 20_000,
        talk: Duration::from_millis(300),
        ..Fsm::default()
    };
    assert_same_for_all_workers_and_forms(&Config::default(), &fsm);
}

// Guarantee: core-10.
#[test]
fn digests_do_not_depend_on_the_lookahead() {
    let fsm = Fsm {
        population: 200,
        talk: Duration::from_secs(2),
        ..Fsm::default()
    };
    let of = |lookahead: Option<u64>| {
        let lookahead = lookahead.map(Duration::from_nanos);
        outcome(
            &Config {
                lookahead,
                ..Config::default()
            },
            2,
            fsm.clone(),
        )
    };
    let whole = of(None);
    assert_eq!(whole, of(Some(1 << 19)));
    assert_eq!(whole, of(Some(300_007)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    // Guarantee: core-58.
    #[test]
    fn digests_are_equal_for_any_population_latency_and_lookahead(
        seed: u64,
        population in 2..300u32,
        talk_ms in prop_oneof![Just(0), 1..2_000u64],
        chat_ms in prop::option::of(5..500u64),
        min in 200_000..3_000_000u64,
        spread in prop_oneof![Just(0), 1..5_000_000u64],
        part in 0.3..=1.0f64,
    ) {
        let [shortest, longest] = [min, min + spread].map(Duration::from_nanos);
        let config = Config {
            seed,
            latency: Latency::between(shortest, longest).expect("a range"),
            lookahead: Some(shortest.mul_f64(part)),
            ..Config::default()
        };
        let fsm = Fsm {
            population,
            talk: Duration::from_millis(talk_ms),
            chat: chat_ms.map(Duration::from_millis),
            ..Fsm::default()
        };
        assert_same_for_all_workers_and_forms(&config, &fsm);
    }
}
