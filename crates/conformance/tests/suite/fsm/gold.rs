//! All gold and all pirates return to the FSM, on every executor.

use corsair::fsm::{self, Form, Fsm, Tally};
use corsair::{Config, Executor, Report};
use std::time::Duration;

/// All executors, each with a population that it supports.
const EXECUTORS: [(Executor, u32); 4] = [
    (Executor::Virtual, 3_000),
    (Executor::Tokio, 3_000),
    (Executor::Threads, 100),
    (Executor::Pool, 3_000),
];

fn run(executor: Executor, fsm: Fsm) -> (Report, Tally) {
    let name = format!("{executor:?} {fsm:?}");
    match fsm::run(executor, &Config::default(), fsm) {
        Ok((report, Some(tally))) => (report, tally),
        other => panic!("{name}: {other:?}"),
    }
}

/// Returns the number of delivered messages of this kind.
fn delivered(report: &Report, kind: &str) -> u64 {
    report
        .messages
        .iter()
        .find(|count| count.kind == kind)
        .expect("a kind of Msg")
        .count
}

// Guarantee: core-82.
#[test]
fn all_gold_and_all_goodbyes_come_back_without_talk() {
    for (executor, population) in EXECUTORS {
        for form in [Form::Async, Form::Handler] {
            let fsm = Fsm {
                population,
                form,
                talk: Duration::ZERO,
                ..Fsm::default()
            };
            let (report, tally) = run(executor, fsm);
            assert_eq!(tally.goodbyes, population, "{executor:?} {form:?}");
            assert!(
                tally.minted > 0 && tally.is_complete(),
                "{executor:?} {form:?}: {tally:?}"
            );
            assert_eq!(report.waiting_total, 0, "{executor:?} {form:?}");
            assert_eq!(delivered(&report, "Hello"), u64::from(population));
            assert_eq!(delivered(&report, "Chat"), u64::from(population));
            assert_eq!(delivered(&report, "Goodbye"), 2 * u64::from(population));
        }
    }
}

// Guarantee: core-82.
#[test]
fn all_gold_comes_back_from_pirates_that_chat_until_the_end() {
    for (executor, population) in EXECUTORS {
        for form in [Form::Async, Form::Handler] {
            let chat = Some(Duration::from_millis(10));
            let talk = Duration::from_millis(100);
            let (report, tally) = run(
                executor,
                Fsm {
                    population,
                    form,
                    talk,
                    chat,
                    ..Fsm::default()
                },
            );
            assert!(tally.is_complete(), "{executor:?} {form:?}: {tally:?}");
            let gifts = delivered(&report, "GoldCoin") - u64::from(population);
            assert!(
                gifts > u64::from(population) / 2,
                "{executor:?} {form:?}: {gifts} gifts"
            );
        }
    }
}

// Guarantee: core-82.
#[test]
fn coins_for_pirates_that_have_ended_are_salvaged() {
    let chat = Some(Duration::from_millis(1));
    let talk = Duration::from_millis(50);
    let fsm = Fsm {
        population: 4_000,
        talk,
        chat,
        ..Fsm::default()
    };
    let (report, tally) = run(Executor::Virtual, fsm);
    assert!(tally.salvaged > 0, "{tally:?}");
    assert!(tally.is_complete(), "{tally:?}");
    assert!(report.dead() > 0);
}

#[test]
fn two_pirates_are_enough() {
    for (executor, _) in EXECUTORS {
        let fsm = Fsm {
            population: 2,
            talk: Duration::ZERO,
            ..Fsm::default()
        };
        let (report, tally) = run(executor, fsm);
        assert!(tally.is_complete(), "{executor:?}: {tally:?}");
        assert_eq!(report.delivered(), 2 * 5 + 2 * 2, "{executor:?}");
    }
}

#[test]
fn fewer_than_two_pirates_are_refused() {
    for population in [0, 1] {
        let fsm = Fsm {
            population,
            ..Fsm::default()
        };
        let error = fsm::run(Executor::Virtual, &Config::default(), fsm).unwrap_err();
        assert!(error.to_string().contains("at least 2 pirates"), "{error}");
    }
}

#[test]
fn a_chat_period_that_pirates_cannot_keep_is_refused() {
    for chat in [
        Duration::ZERO,
        Duration::from_micros(1500),
        Duration::from_secs(66),
    ] {
        let fsm = Fsm {
            chat: Some(chat),
            ..Fsm::default()
        };
        let error = fsm::run(Executor::Virtual, &Config::default(), fsm).unwrap_err();
        assert!(
            error.to_string().contains("whole number of milliseconds"),
            "{error}"
        );
    }
}
