//! Tests of the user's controls: cancellable timers, time-outs, restarts, runs that return a value, and their
//! comparison.

use crate::everywhere::config;
use corsair::{
    Actor, AsyncContext, Config, Context, Distribution, Estimate, Event, Executor, Experiment,
    FinalAction, Flow, Message, NotDeterministic, Panics, Reason, RestartPolicy, RunError,
    Scenario, Select, Spawn, Time, Token, check_determinism, measure, replicate, restarting, run,
};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Message)]
enum Note {
    Ping,
    Number(u32),
}

const MS: Duration = Duration::from_millis(1);
/// A time limit that no test reaches.
const LONG: Duration = Duration::from_secs(60);

on_every_executor! {
    a_cancelled_timer_does_not_come
    a_periodic_timer_comes_until_it_is_cancelled
    a_receive_gives_up_after_its_time_out_and_leaves_nothing_behind
    a_receive_with_a_time_out_gets_what_was_kept_first
    a_select_says_which_of_several_came_and_keeps_the_others
    an_actor_that_panics_is_made_anew_in_its_place
    an_actor_that_panics_too_often_escalates
    an_actor_that_panics_too_often_gives_up
    a_panic_ends_the_actor_or_the_run_as_is_asked
    a_run_gives_what_its_root_returns
}

/// Defines an experiment whose root is this block.
macro_rules! experiment {
    ($name:ident { $($field:ident: $type:ty),* } -> $value:ty, $cx:ident, $body:block) => {
        struct $name { $($field: $type),* }
        impl Experiment<Note> for $name {
            type Value = $value;
            #[allow(unused_mut, reason = "not every root uses its context")]
            async fn root<C: AsyncContext<Note>>(self, mut $cx: C) -> $value {
                let $name { $($field),* } = self;
                $body
            }
        }
    };
}

#[track_caller]
fn value<E: Experiment<Note>>(executor: Executor, experiment: E) -> E::Value {
    let panics = Panics::EndActor;
    let config = Config { panics, ..config() };
    measure(executor, &config, experiment).unwrap().0
}

// Guarantee: core-16.
fn a_cancelled_timer_does_not_come(executor: Executor) {
    experiment!(Cancels {} -> Vec<u32>, cx, {
        let near = cx.timer_handle(MS, Token::new(1));
        let far = cx.timer_handle(MS * 3, Token::new(2));
        cx.timer(MS * 5, Token::new(3));
        let again = cx.timer_handle(MS * 7, Token::new(2));
        assert!(cx.cancel(near));
        assert!(!cx.cancel(near), "it was cancelled");
        let mut seen = Vec::new();
        while let Some(Event::Timer(token)) = cx.recv_timeout(MS * 40).await {
            seen.push(token.number());
        }
        assert!(!cx.cancel(far) && !cx.cancel(again), "they have come");
        seen
    });
    assert_eq!(value(executor, Cancels {}), [2, 3, 2]);
}

// Guarantee: core-16.
fn a_periodic_timer_comes_until_it_is_cancelled(executor: Executor) {
    experiment!(Ticks { is_exact: bool } -> u32, cx, {
        let ticks = cx.every(MS * 2, Token::new(1));
        for number in 1..=5 {
            assert_eq!(cx.recv().await, Event::Timer(Token::new(1)));
            let due = Time::ZERO.after(MS * 2 * number);
            assert!(cx.now() >= due);
            assert!(!is_exact || cx.now() == due);
        }
        assert!(cx.cancel(ticks));
        // On the wall clock, a tick that was due before the cancellation may already have been queued.
        let mut more = 0;
        while cx.recv_timeout(MS * 20).await.is_some() {
            more += 1;
        }
        more
    });
    let is_exact = executor == Executor::Virtual;
    let more = value(executor, Ticks { is_exact });
    assert!(!is_exact || more == 0, "{more}");
}

// Guarantee: core-32.
fn a_receive_gives_up_after_its_time_out_and_leaves_nothing_behind(executor: Executor) {
    experiment!(Waits {} -> (), cx, {
        let begun = cx.now();
        assert_eq!(cx.recv_timeout(MS * 3).await, None);
        assert!(cx.now().since(begun) >= MS * 3);
        assert_eq!(cx.recv_timeout(Duration::ZERO).await, None);
        let me = cx.me();
        cx.send(me, Note::Ping);
        let event = cx.recv_timeout(LONG).await;
        assert!(matches!(event, Some(Event::Message { body: Note::Ping, .. })));
        // The time-out of an earlier receive is not delivered as an event.
        assert_eq!(cx.recv_timeout(MS).await, None);
    });
    value(executor, Waits {});
}

// Guarantee: core-32.
fn a_receive_with_a_time_out_gets_what_was_kept_first(executor: Executor) {
    experiment!(Keeps {} -> Vec<u32>, cx, {
        let me = cx.me();
        for number in 0..4 {
            cx.send(me, Note::Number(number));
        }
        let is = |event: &Event<Note>, wanted| {
            matches!(event, Event::Message { body: Note::Number(number), .. } if *number == wanted)
        };
        cx.recv_if(|event| is(event, 2)).await;
        let mut seen = Vec::new();
        while let Some(Event::Message { body: Note::Number(number), .. }) =
            cx.recv_timeout(MS * 20).await
        {
            seen.push(number);
        }
        seen
    });
    assert_eq!(value(executor, Keeps {}), [0, 1, 3]);
}

// Guarantee: core-32.
fn a_select_says_which_of_several_came_and_keeps_the_others(executor: Executor) {
    experiment!(Selects {} -> (), cx, {
        // The slow actor answers on request, so that its answer is late on every machine.
        let slow = cx.spawn(Spawn::one("slow").watched(), |mut cx, _| async move {
            serve(&mut cx, true).await;
        }).await.get(0);
        let fast = cx.spawn(Spawn::one("fast").watched(), |mut cx, _| async move {
            serve(&mut cx, false).await;
        }).await.get(0);
        let me = cx.me();
        let asked = [slow, fast].map(|who| cx.request(who, Note::Ping));
        cx.send(me, Note::Number(5));
        let answers = || Select::new().answer(asked[0]).answer(asked[1]);
        let (which, _) = cx.select(answers()).await.unwrap();
        assert_eq!(which, 1);
        let (which, event) = cx.select(Select::new().down(fast)).await.unwrap();
        let reason = Reason::Returned;
        assert_eq!((which, event), (0, Event::Down { who: fast, reason }));
        assert_eq!(cx.select(answers().within(Duration::ZERO)).await, None);
        let number = |wanted| {
            move |_, note: &Note| *note == Note::Number(wanted)
        };
        let numbers = Select::new().message(number(4)).message(number(5)).any();
        let (which, _) = cx.select(numbers.within(LONG)).await.unwrap();
        assert_eq!(which, 1, "what was kept comes first");
        cx.send(slow, Note::Number(0));
        let (which, _) = cx.select(answers().within(LONG)).await.unwrap();
        assert_eq!(which, 0);
        // An actor that ends without an answer is reported as well.
        let lost = cx.request(fast, Note::Ping);
        let (_, event) = cx.select(Select::new().answer(lost)).await.unwrap();
        assert_eq!(event, Event::Unanswered { who: fast, request: lost });
    });
    value(executor, Selects {});
}

/// Answers one request: at once, or after the next message if `on_request` is set.
async fn serve<C: AsyncContext<Note>>(cx: &mut C, on_request: bool) {
    cx.recv().await;
    let request = cx.envelope().reply_handle();
    if on_request {
        cx.recv().await;
    }
    cx.reply(request, Note::Ping);
}

/// Answers with the number of messages since its creation. Panics on 13, and at its start if `stillborn` is set.
struct Fragile {
    seen: u32,
    stillborn: bool,
}

impl Actor<Note> for Fragile {
    fn start<C: Context<Note>>(&mut self, _: &mut C) {
        assert!(!self.stillborn, "stillborn");
    }

    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        if let Event::Message {
            body: Note::Number(number),
            ..
        } = event
        {
            assert!(number != 13, "unlucky");
            self.seen += 1;
            let request = cx.envelope().reply_handle();
            cx.reply(request, Note::Number(self.seen));
        }
        Flow::Continue
    }
}

// Guarantee: core-40.
fn an_actor_that_panics_is_made_anew_in_its_place(executor: Executor) {
    experiment!(Anew {} -> Vec<u32>, cx, {
        let policy = RestartPolicy { max_restarts: 3, backoff: MS * 2, ..RestartPolicy::default() };
        let mut made = 0;
        let worker = cx.spawn_one("worker", move |cx| {
            // The second instance panics at its start.
            let make = move || { made += 1; Fragile { seen: 0, stillborn: made == 2 } };
            restarting(policy, make, cx)
        }).await;
        let mut seen = Vec::new();
        for number in [1, 1, 13, 1, 1] {
            if number == 13 {
                // Both messages wait until the actor has restarted, and the request keeps its reply handle.
                cx.send(worker, Note::Number(13));
                continue;
            }
            match cx.ask(worker, Note::Number(number), LONG).await {
                Ok(Note::Number(count)) => seen.push(count),
                other => panic!("{other:?}"),
            }
        }
        seen
    });
    assert_eq!(value(executor, Anew {}), [1, 2, 1, 2]);
}

experiment!(Often { then: FinalAction } -> Reason, cx, {
    let policy = RestartPolicy { max_restarts: 2, backoff: MS, on_exhausted: then, ..RestartPolicy::default() };
    let worker = cx.spawn(Spawn::one("worker").watched(), move |cx, _| {
        restarting(policy, || Fragile { seen: 0, stillborn: false }, cx)
    }).await.get(0);
    for _ in 0..3 {
        cx.send(worker, Note::Number(13));
    }
    match cx.recv().await {
        Event::Down { who, reason } if who == worker => reason,
        other => panic!("{other:?}"),
    }
});

// Guarantee: core-40.
fn an_actor_that_panics_too_often_escalates(executor: Executor) {
    let then = FinalAction::Escalate;
    assert_eq!(value(executor, Often { then }), Reason::Panicked);
}

// Guarantee: core-40.
fn an_actor_that_panics_too_often_gives_up(executor: Executor) {
    let then = FinalAction::GiveUp;
    assert_eq!(value(executor, Often { then }), Reason::Returned);
}

// Guarantee: core-38.
fn a_panic_ends_the_actor_or_the_run_as_is_asked(executor: Executor) {
    experiment!(Panicking {} -> bool, cx, {
        let body = |mut cx: C, _| async move {
            cx.recv().await;
            panic!("at the disco");
        };
        // The actors are not watched, but a panic is reported nevertheless.
        let crowd = cx.spawn(Spawn::many(3, "dancer", ""), body).await;
        cx.send(crowd.get(1), Note::Ping);
        let notified = cx.recv_timeout(LONG).await;
        let (who, reason) = (crowd.get(1), Reason::Panicked);
        cx.send(who, Note::Ping);
        cx.settle().await;
        notified == Some(Event::Down { who, reason })
    });
    let config = |panics| Config { panics, ..config() };
    let survives = measure(executor, &config(Panics::EndActor), Panicking {});
    let (notified, report) = survives.unwrap();
    assert!(notified);
    assert_eq!((report.ended, report.dead()), (1, 1));
    let [panic] = &report.panics[..] else {
        panic!("{:?}", report.panics);
    };
    assert_eq!(
        (panic.name.as_str(), panic.message.as_str()),
        ("dancer1", "at the disco")
    );
    assert_eq!(panic.event, "Ping from root");
    match measure(executor, &config(Panics::EndRun), Panicking {}).unwrap_err() {
        RunError::Panicked { panic, .. } => assert_eq!(panic.name, "dancer1"),
        other => panic!("{other}"),
    }
}

// Guarantee: core-48.
fn a_run_gives_what_its_root_returns(executor: Executor) {
    experiment!(Gives { text: String } -> String, _cx, { text + "!" });
    let text = "treasure".to_owned();
    assert_eq!(value(executor, Gives { text }), "treasure!");
    experiment!(Never { config: Config } -> u32, cx, {
        config.cancel.cancel();
        cx.sleep(LONG).await;
        1
    });
    let config = config();
    let error = measure(
        executor,
        &config,
        Never {
            config: config.clone(),
        },
    )
    .unwrap_err();
    assert!(matches!(error, RunError::NoValue { .. }), "{error}");
}

// Guarantee: core-38.
#[test]
fn panics_that_are_survived_are_the_same_with_any_number_of_workers() {
    experiment!(Battle {} -> Vec<u32>, cx, {
        let body = |mut cx: C, index: u32| async move {
            cx.recv().await;
            let pause = Distribution::exponential(0.003).unwrap();
            let pause = cx.sample_time(&pause);
            cx.sleep(pause).await;
            assert!(!index.is_multiple_of(3), "{index} fell");
        };
        let crowd = cx.spawn(Spawn::many(900, "soldier", "").watched(), body).await;
        crowd.iter().for_each(|who| {
            cx.send(who, Note::Ping);
        });
        let mut fallen = Vec::new();
        for _ in 0..900 {
            if let Event::Down { who, reason: Reason::Panicked } = cx.recv().await {
                fallen.push(who.as_u32());
            }
        }
        fallen
    });
    let fight = |workers: usize| {
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            panics: Panics::EndActor,
            ..Config::default()
        };
        let (fallen, report) = measure(Executor::Virtual, &config, Battle {}).unwrap();
        assert_eq!((fallen.len(), report.panics.len()), (300, 300));
        (fallen, report.panics, report.digest)
    };
    let first = fight(1);
    assert_eq!(fight(2), first);
    assert_eq!(fight(5), first);
}

experiment!(Mean { mean: f64 } -> f64, cx, {
    let distribution = Distribution::exponential(mean).unwrap();
    (0..500).map(|_| cx.sample(&distribution)).sum::<f64>() / 500.0
});

// Guarantee: core-65.
#[test]
fn replications_have_the_seeds_in_a_row_and_do_not_depend_on_workers() {
    let runs = |workers: usize| {
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            ..config()
        };
        let runs = replicate(12, &config, |_| Mean { mean: 2.0 }).unwrap();
        runs.iter()
            .map(|run| (run.seed, run.value, run.report.digest))
            .collect::<Vec<_>>()
    };
    let one = runs(1);
    assert_eq!(one, runs(3));
    assert_eq!(
        one.iter().map(|run| run.0).collect::<Vec<_>>(),
        (7..19).collect::<Vec<_>>()
    );
    let estimate = Estimate::of(one.iter().map(|run| run.1));
    assert!(estimate.interval(0.9999).contains(&2.0), "{estimate}");
    assert_eq!(estimate.count(), 12);
}

// Guarantee: core-65.
#[test]
fn the_first_replication_that_fails_is_reported_by_its_seed() {
    experiment!(Fails { seed: u64 } -> (), _cx, { assert!(seed < 10, "seed {seed}") });
    let error = replicate(9, &config(), |seed| Fails { seed }).unwrap_err();
    assert_eq!(error.seed, 10);
    assert!(matches!(error.source, RunError::Panicked { .. }));
}

/// Sends a message to each of 40 actors, in the order of a hash map unless `is_ordered` is set.
struct Mapped {
    is_ordered: bool,
}

impl Scenario<Note> for Mapped {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let body = |mut cx: C, _| async move {
            cx.recv().await;
        };
        let crowd = cx.spawn(Spawn::many(40, "guest", ""), body).await;
        let map: HashMap<u32, u32> = (0..40).map(|key| (key, key * 7)).collect();
        let mut entries: Vec<_> = map.into_iter().collect();
        if self.is_ordered {
            entries.sort_unstable();
        }
        cx.sleep(MS * 100).await;
        for (key, number) in entries {
            cx.send(crowd.get(key), Note::Number(number));
        }
        cx.settle().await;
    }
}

// Guarantee: core-64.
#[test]
fn what_is_not_deterministic_is_reported_with_the_first_event_that_differs() {
    let report = check_determinism(&config(), || Mapped { is_ordered: true }).unwrap();
    let usual = run(Executor::Virtual, &config(), Mapped { is_ordered: true }).unwrap();
    assert_eq!((report.digest, report.time), (usual.digest, usual.time));
    match check_determinism(&config(), || Mapped { is_ordered: false }) {
        Err(NotDeterministic::Differs(difference)) => {
            assert!(difference.time > Time::ZERO.after(MS * 100));
            let [one, two] = difference
                .happened
                .each_ref()
                .map(|what| what.as_ref().unwrap());
            assert!(one.contains("got Number from root"), "{one}");
            assert_ne!(one, two);
        }
        other => panic!("{other:?}"),
    }
}

// Guarantee: core-64.
#[test]
fn two_runs_that_fail_alike_are_a_failure_and_no_difference() {
    experiment!(Stuck {} -> (), cx, {
        cx.recv().await;
    });
    struct Waiting;
    impl Scenario<Note> for Waiting {
        async fn root<C: AsyncContext<Note>>(self, cx: C) {
            Stuck {}.root(cx).await;
        }
    }
    let error = check_determinism(&config(), || Waiting).unwrap_err();
    assert!(
        matches!(error, NotDeterministic::Failed(RunError::Deadlock { .. })),
        "{error}"
    );
}
