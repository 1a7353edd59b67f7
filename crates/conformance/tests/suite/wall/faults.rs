//! Tests of faults on the wall-clock executors and their effects on the run.

use corsair::{
    Addr, AsyncContext, CancelToken, Config, Event, Executor, Message, Outcome, Reason, RunError,
    Scenario, Spawn, Time, Token, run,
};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

const EXECUTORS: [Executor; 3] = [Executor::Tokio, Executor::Threads, Executor::Pool];

fn config() -> Config {
    Config {
        workers: 2.try_into().unwrap(),
        ..Config::default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Message)]
struct Number(u32);

/// Panics when it receives 13.
async fn superstitious<C: AsyncContext<Number>>(mut cx: C) {
    loop {
        let event = cx.recv().await;
        assert!(
            !matches!(
                event,
                Event::Message {
                    body: Number(13),
                    ..
                }
            ),
            "not {}",
            13
        );
    }
}

struct OnePanics;

impl Scenario<Number> for OnePanics {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let all = cx
            .spawn(Spawn::many(10, "sailor", ".ship"), |cx, _| {
                superstitious(cx)
            })
            .await;
        for n in [1, 13, 2] {
            cx.send(all.get(4), Number(n));
        }
        let event = cx.recv().await;
        assert_eq!(
            event,
            Event::Down {
                who: all.get(4),
                reason: Reason::Panicked
            }
        );
        for to in all.iter() {
            cx.send(to, Number(3));
        }
        cx.settle().await;
    }
}

// Guarantee: core-34.
#[test]
fn a_panic_ends_one_actor_is_reported_also_to_its_parent() {
    for executor in EXECUTORS {
        let report = run(executor, &config(), OnePanics).unwrap();
        let [panic] = &report.panics[..] else {
            panic!("{:?}", report.panics)
        };
        assert_eq!(panic.name, "sailor4.ship");
        assert_eq!(panic.who, Addr::from_u32(5));
        assert_eq!(panic.event, "Number from root");
        assert_eq!(panic.message, "not 13");
        // Delivered: 1 and 13 to sailor 4, and 3 to the other nine. Dead: the messages 2 and 3 to sailor 4.
        assert_eq!((report.delivered(), report.dead()), (11, 2));
        assert_eq!((report.ended, report.waiting_total), (1, 9));
    }
}

struct RootPanics;

impl Scenario<Number> for RootPanics {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        cx.spawn(Spawn::many(3, "sailor", ""), |cx, _| superstitious(cx))
            .await;
        panic!("no captain");
    }
}

// Guarantee: core-36.
#[test]
fn a_panic_of_the_root_ends_the_run() {
    for executor in EXECUTORS {
        match run(executor, &config(), RootPanics) {
            Err(RunError::Panicked { panic, report }) => {
                assert_eq!(panic.message, "no captain");
                assert_eq!(report.spawned, 4);
            }
            other => panic!("{executor:?}: {other:?}"),
        }
    }
}

struct MakingPanics;

impl Scenario<Number> for MakingPanics {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let how = Spawn::many(2, "stillborn", "").on_demand();
        let all = cx
            .spawn(how, |cx, index| {
                assert_ne!(index, 1, "no body");
                superstitious(cx)
            })
            .await;
        cx.send(all.get(1), Number(1));
        assert_eq!(
            cx.recv().await,
            Event::Down {
                who: all.get(1),
                reason: Reason::Panicked
            }
        );
    }
}

// Guarantee: core-34.
#[test]
fn a_panic_while_a_body_is_made_is_that_actors_own() {
    for executor in EXECUTORS {
        let report = run(executor, &config(), MakingPanics).unwrap();
        assert_eq!(
            report.panics[0].message.lines().next_back(),
            Some(" right: 1")
        );
        assert_eq!(report.dead(), 1);
    }
}

/// Sleeps for an hour; cancels the run before, if there is a token.
struct Sleeper {
    cancel: Option<CancelToken>,
}

impl Scenario<Number> for Sleeper {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        cx.spawn(Spawn::many(20, "sailor", ""), |cx, _| superstitious(cx))
            .await;
        cx.sleep(Duration::from_millis(5)).await;
        self.cancel.iter().for_each(CancelToken::cancel);
        cx.sleep(Duration::from_secs(3600)).await;
    }
}

// Guarantee: core-52.
#[test]
fn a_cancelled_run_ends_cleanly_and_reports() {
    for executor in EXECUTORS {
        let config = config();
        let report = run(
            executor,
            &config,
            Sleeper {
                cancel: Some(config.cancel.clone()),
            },
        )
        .unwrap();
        assert_eq!(report.outcome, Outcome::Cancelled);
        assert_eq!((report.spawned, report.waiting_total), (21, 21));
        assert_eq!(
            report.waiting[0].to_string(),
            "root waits for the end of a sleep"
        );
    }
}

// Guarantee: core-51.
#[test]
fn a_run_past_its_end_is_an_error() {
    for executor in EXECUTORS {
        let end = Time::from_nanos(20_000_000);
        match run(
            executor,
            &Config {
                end: Some(end),
                ..config()
            },
            Sleeper { cancel: None },
        ) {
            Err(RunError::PastEnd {
                end: reported,
                next,
                ..
            }) => assert!(reported == end && next > end),
            other => panic!("{executor:?}: {other:?}"),
        }
    }
}

struct Crowd;

impl Scenario<Number> for Crowd {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        cx.spawn(Spawn::many(1_000_000, "sailor", ""), |cx, _| {
            superstitious(cx)
        })
        .await;
    }
}

// Guarantee: core-24.
#[test]
fn more_actors_than_threads_are_refused_by_name() {
    match run(Executor::Threads, &config(), Crowd) {
        Err(
            error @ RunError::TooManyThreads {
                asked: 1_000_001,
                limit,
                ..
            },
        ) => {
            assert!(limit <= 30_000);
            let text = error.to_string();
            assert!(
                text.contains(&limit.to_string()) && text.contains("pool"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

struct Thousand;

impl Scenario<Number> for Thousand {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let all = cx
            .spawn(Spawn::many(1000, "sailor", ""), |cx, _| superstitious(cx))
            .await;
        for to in all.iter() {
            cx.send(to, Number(1));
        }
        cx.settle().await;
    }
}

// Guarantee: core-24.
#[test]
fn a_thousand_actors_have_a_thread_each() {
    let report = run(Executor::Threads, &config(), Thousand).unwrap();
    assert_eq!((report.delivered(), report.workers), (1000, 1001));
}

/// Waits for a message or for another thread, whichever comes first. Then it waits for a message alone.
struct Foreign;

#[derive(Default)]
struct Signal {
    given: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Scenario<Number> for Foreign {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let signal = Arc::new(Signal::default());
        let given = signal.clone();
        let thread = std::thread::spawn(move || {
            // Long enough for a deadlock to be detected, if this were one.
            std::thread::sleep(Duration::from_millis(60));
            given.given.store(true, Relaxed);
            given
                .waker
                .lock()
                .unwrap()
                .take()
                .into_iter()
                .for_each(Waker::wake);
        });
        {
            let mut message = std::pin::pin!(cx.recv());
            std::future::poll_fn(|task| {
                assert!(message.as_mut().poll(task).is_pending(), "nothing is sent");
                *signal.waker.lock().unwrap() = Some(task.waker().clone());
                if signal.given.load(Relaxed) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
        thread.join().unwrap();
        // Nothing can wake the actor from here on.
        drop(signal);
        cx.recv().await;
    }
}

/// Waits for a timer together with another future, drops that wait, and waits for the timer alone.
struct Changes;

impl Scenario<Number> for Changes {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        cx.timer(Duration::from_millis(40), Token::new(1));
        {
            let event = cx.recv();
            let mut both = FuturesUnordered::from_iter([Box::pin(event)]);
            let nothing = poll_fn(|task| Poll::Ready(both.poll_next_unpin(task).is_pending()));
            if !nothing.await {
                // The machine was so slow that the timer is already due.
                return;
            }
        }
        assert_eq!(cx.recv().await, Event::Timer(Token::new(1)));
    }
}

#[test]
fn a_timer_wakes_whoever_waits_for_it_last() {
    for executor in EXECUTORS {
        let end = Some(Time::from_nanos(20_000_000_000));
        run(executor, &Config { end, ..config() }, Changes).unwrap();
    }
}

// Guarantee: core-50.
#[test]
fn waiting_for_something_outside_of_the_run_is_no_deadlock() {
    for executor in EXECUTORS {
        match run(executor, &config(), Foreign) {
            Err(RunError::Deadlock { report }) => {
                assert!(report.time >= Time::from_nanos(60_000_000));
                assert_eq!(report.waiting[0].to_string(), "root waits for a message");
            }
            other => panic!("{executor:?}: {other:?}"),
        }
    }
}
