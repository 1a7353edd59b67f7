//! The FSM ends and reports missing pirates and gold, even if messages are lost or the run is cancelled.

use corsair::fsm::{self, Form, Fsm};
use corsair::{CancelToken, Config, DeadLetters, Executor, Outcome, Overflow};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Runs pirates whose mailboxes hold one message and drop further ones. Both drop policies run at the same time,
/// because each spends most of its time waiting.
fn ends_and_counts_what_was_dropped(executor: Executor) {
    let ends_with = |overflow| {
        let config = Config {
            overflow,
            mailbox: NonZeroUsize::MIN,
            ..Config::default()
        };
        let fsm = Fsm {
            population: 200,
            talk: Duration::from_millis(50),
            chat: Some(Duration::from_millis(1)),
            ..Fsm::default()
        };
        let (report, tally) = fsm::run(executor, &config, fsm).expect("it ends");
        let tally = tally.expect("the run was not cancelled");
        assert!(report.dropped > 0, "{overflow:?}");
        assert!(tally.goodbyes <= 200, "{overflow:?}: {tally:?}");
        assert!(tally.missing_gold() >= 0, "{overflow:?}: {tally:?}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ends_with(Overflow::DropNewest));
        ends_with(Overflow::DropOldest);
    });
}

// Guarantee: core-83.
#[test]
fn the_fsm_ends_where_full_mailboxes_of_tasks_drop_messages() {
    ends_and_counts_what_was_dropped(Executor::Tokio);
}

// Guarantee: core-83.
#[test]
fn the_fsm_ends_where_full_mailboxes_of_threads_drop_messages() {
    ends_and_counts_what_was_dropped(Executor::Threads);
}

// Guarantee: core-83.
#[test]
fn the_fsm_ends_where_full_mailboxes_of_a_pool_drop_messages() {
    ends_and_counts_what_was_dropped(Executor::Pool);
}

// Guarantee: core-83.
#[test]
fn the_fsm_ends_where_dead_letters_do_not_come_back() {
    let config = Config {
        dead_letters: DeadLetters::Count,
        ..Config::default()
    };
    let fsm = Fsm {
        population: 4_000,
        talk: Duration::from_millis(50),
        chat: Some(Duration::from_millis(1)),
        ..Fsm::default()
    };
    let report = corsair::run(Executor::Virtual, &config, fsm).expect("it ends");
    assert_eq!(report.outcome, Outcome::Completed);
    assert!(report.dead() > 0, "some coins were late");
}

#[test]
fn a_run_that_was_cut_has_a_report_and_no_tally() {
    for form in [Form::Async, Form::Handler] {
        let cancel = CancelToken::default();
        cancel.cancel();
        let config = Config {
            cancel,
            ..Config::default()
        };
        let fsm = Fsm {
            form,
            talk: Duration::from_secs(1_000_000),
            ..Fsm::default()
        };
        let (report, tally) =
            fsm::run(Executor::Virtual, &config, fsm).expect("a cancellation is not an error");
        assert_eq!(report.outcome, Outcome::Cancelled);
        assert_eq!(tally, None);
    }
}
