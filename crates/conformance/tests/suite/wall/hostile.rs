//! Actors that misbehave on purpose, and their effects on others.

use corsair::{
    AsyncContext, Config, Event, Executor, Message, Outcome, Panics, Reason, Report, RunError,
    Scenario, Spawn, Time, TimerHandle, Token, run, run_on,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

const EXECUTORS: [Executor; 3] = [Executor::Tokio, Executor::Threads, Executor::Pool];
const MS: Duration = Duration::from_millis(1);

/// Returns a configuration with which a run that hangs fails.
fn config(workers: usize) -> Config {
    Config {
        workers: workers.try_into().unwrap(),
        end: Some(Time::ZERO.after(Duration::from_secs(20))),
        ..Config::default()
    }
}

#[derive(Debug, PartialEq, Message)]
struct Number(u32);

/// Defines a scenario whose root is this block.
macro_rules! scenario {
    ($name:ident, $message:ty, $cx:ident, $body:block) => {
        struct $name;
        impl Scenario<$message> for $name {
            #[allow(unused_mut, reason = "not every root uses its context")]
            async fn root<C: AsyncContext<$message>>(self, mut $cx: C) {
                $body
            }
        }
    };
}

fn on_all<M: Message, S: Scenario<M>>(workers: usize, scenario: impl Fn() -> S) -> Vec<Report> {
    let report = |executor| match run(executor, &config(workers), scenario()) {
        Ok(report) => report,
        Err(error) => panic!("{executor:?}: {error:?}"),
    };
    EXECUTORS.map(report).into()
}

scenario!(Hasty, Number, cx, {
    let ticks = cx.every(Duration::from_nanos(1), Token::new(1));
    cx.timer(MS * 20, Token::new(2));
    let mut seen = 0_u64;
    while cx.recv().await != Event::Timer(Token::new(2)) {
        seen += 1;
        // Handling a tick takes far longer than the period.
        let until = Instant::now() + Duration::from_micros(2);
        while Instant::now() < until {}
    }
    assert!(seen > 0);
    assert!(cx.cancel(ticks));
    assert_eq!(cx.recv_timeout(MS).await, None);
});

// Guarantee: core-16.
#[test]
fn a_period_that_is_too_short_for_its_actor_neither_grows_nor_holds_up_other_timers() {
    on_all(2, || Hasty);
}

scenario!(Talkative, Number, cx, {
    cx.spawn_one("talks to itself", |mut cx: C| async move {
        loop {
            cx.send_self(Number(1));
            cx.recv().await;
        }
    })
    .await;
    cx.sleep(MS * 5).await;
});

#[test]
fn who_talks_to_itself_without_an_end_lets_the_others_run() {
    on_all(1, || Talkative);
}

scenario!(GivesUp, Number, cx, {
    {
        let mut hour = std::pin::pin!(cx.sleep(Duration::from_secs(3600)));
        std::future::poll_fn(|task| Poll::Ready(hour.as_mut().poll(task).is_pending())).await;
    }
    cx.recv().await;
});

// Guarantee: core-50.
#[test]
fn a_sleep_that_was_given_up_does_not_hide_a_deadlock() {
    for executor in EXECUTORS {
        match run(executor, &config(2), GivesUp) {
            Err(RunError::Deadlock { .. }) => {}
            other => panic!("{executor:?}: {other:?}"),
        }
    }
}

/// Panics when it is dropped, unless the thread is already panicking.
#[derive(Debug, Message)]
struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0 || std::thread::panicking(), "a bomb");
    }
}

scenario!(Bombs, Bomb, cx, {
    // Bombs that are in the victim's mailbox or stash when it ends.
    let how = Spawn::one("victim").watched();
    let victim = cx
        .spawn(how, |mut cx: C, _| async move {
            cx.recv_if(|event| {
                matches!(
                    event,
                    Event::Message {
                        body: Bomb(false),
                        ..
                    }
                )
            })
            .await;
        })
        .await
        .get(0);
    for bomb in [true, true, false, true, true] {
        cx.send(victim, Bomb(bomb));
    }
    match cx.recv().await {
        Event::Down {
            who,
            reason: Reason::Returned | Reason::Panicked,
        } if who == victim => {}
        other => panic!("{other:?}"),
    }
    // A bomb sent to the ended actor affects only its sender.
    let sender = Spawn::one("sender").watched();
    let sender = cx
        .spawn(sender, move |mut cx: C, _| async move {
            cx.send_after(MS, victim, Bomb(true));
            cx.send(victim, Bomb(true));
            cx.sleep(MS * 20).await;
        })
        .await
        .get(0);
    match cx.recv().await {
        Event::Down {
            who,
            reason: Reason::Panicked,
        } if who == sender => {}
        Event::Down {
            who,
            reason: Reason::Returned,
        } if who == sender => {}
        other => panic!("{other:?}"),
    }
    cx.sleep(MS * 10).await;
});

// Guarantee: core-35.
#[test]
fn a_message_that_panics_as_it_is_dropped_stops_neither_a_worker_nor_the_run() {
    for report in on_all(1, || Bombs) {
        assert_eq!(report.outcome, Outcome::Completed);
        assert!(!report.panics.is_empty(), "they are reported");
    }
}

/// Panics when it is dropped with the body that owns it.
struct Grenade(Arc<AtomicBool>);

impl Drop for Grenade {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
        assert!(std::thread::panicking(), "a grenade");
    }
}

struct Grenades(Arc<AtomicBool>);

impl Scenario<Number> for Grenades {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let dropped = self.0;
        cx.spawn(Spawn::many(10, "holder", ""), move |mut cx: C, _| {
            let grenade = Grenade(dropped.clone());
            async move {
                let _grenade = grenade;
                cx.recv().await;
            }
        })
        .await;
        cx.settle().await;
    }
}

#[track_caller]
fn all_grenades_are_reported(what: &str, result: Result<Report, RunError>) {
    let report = result.unwrap();
    assert_eq!(report.outcome, Outcome::Completed, "{what}");
    let mut reported: Vec<_> = report.panics.iter().map(|panic| &panic.name).collect();
    reported.sort();
    let names: Vec<_> = (0..10).map(|n| format!("holder{n}")).collect();
    assert!(
        reported.into_iter().eq(&names),
        "{what}: {:?}",
        report.panics
    );
    for panic in &report.panics {
        let said = (panic.event.as_str(), panic.message.as_str());
        assert_eq!(said, ("the end of the run", "a grenade"), "{what}");
    }
}

// Guarantee: core-35.
#[test]
fn a_body_that_panics_as_it_is_dropped_at_the_end_does_not_stop_the_report() {
    for executor in EXECUTORS {
        let dropped = Arc::<AtomicBool>::default();
        let result = run(executor, &config(2), Grenades(dropped.clone()));
        assert!(dropped.load(Relaxed));
        all_grenades_are_reported(&format!("{executor:?}"), result);
    }
}

// Guarantee: core-35.
#[test]
fn a_body_that_panics_as_it_is_dropped_on_anothers_runtime_is_reported() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let dropped = Arc::<AtomicBool>::default();
    let result = run_on(runtime.handle(), &config(2), Grenades(dropped.clone()));
    assert!(dropped.load(Relaxed));
    all_grenades_are_reported("guest", result);
}

// Guarantee: core-35.
#[test]
fn a_body_that_panics_as_it_is_dropped_at_the_end_ends_the_run_if_that_is_asked() {
    for executor in EXECUTORS {
        let config = Config {
            panics: Panics::EndRun,
            ..config(2)
        };
        match run(executor, &config, Grenades(Arc::default())) {
            Err(RunError::Panicked { panic, .. }) => assert_eq!(panic.message, "a grenade"),
            other => panic!("{executor:?}: {other:?}"),
        }
    }
}

/// Larger than the stacks of some threads.
#[derive(Message)]
struct Huge([u8; 300_000]);

scenario!(Heavy, Huge, cx, {
    let holder = cx
        .spawn_one("holder", |mut cx: C| async move {
            let mut kept = [0_u8; 300_000];
            if let Event::Message { from, body } = cx.recv().await {
                kept = body.0;
                cx.recv().await;
                cx.send(from, Huge(kept));
            }
            std::hint::black_box(&mut kept);
        })
        .await;
    cx.send(holder, Huge([7; 300_000]));
    cx.send(holder, Huge([8; 300_000]));
    match cx.recv().await {
        Event::Message { body, .. } => assert_eq!(body.0[299_999], 7),
        _ => panic!("no message"),
    }
});

#[test]
fn messages_and_bodies_may_be_larger_than_a_thread_is_as_a_rule() {
    // The runs start on a thread with a large stack, so that only the executor's stacks are tested.
    let runs = || drop(on_all(2, || Heavy));
    let large = std::thread::Builder::new().stack_size(64 << 20);
    large.spawn(runs).unwrap().join().unwrap();
}

scenario!(Nothing, Number, cx, {
    cx.sleep(MS).await;
});

#[test]
fn a_run_may_be_begun_on_a_thread_that_runs_tasks() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    for executor in EXECUTORS {
        let report = runtime.block_on(async { run(executor, &config(1), Nothing) });
        assert_eq!(report.unwrap().outcome, Outcome::Completed);
    }
}

#[test]
fn a_run_on_a_runtime_that_has_ended_is_cancelled() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let report = run_on(&handle, &config(1), Nothing).unwrap();
    assert_eq!(report.outcome, Outcome::Cancelled);
}

scenario!(Timers, Number, cx, {
    const MANY: u32 = 100_000;
    let far = |cx: &mut C| -> Vec<TimerHandle> {
        let hour = Duration::from_secs(3600);
        (0..MANY)
            .map(|n| cx.timer_handle(hour, Token::new(n)))
            .collect()
    };
    let cancelled = far(&mut cx);
    let (first, last) = cancelled.split_at(cancelled.len() / 2);
    assert!(
        last.iter()
            .rev()
            .chain(first)
            .all(|&timer| cx.cancel(timer))
    );
    assert!(!cx.cancel(cancelled[7]));
    for n in 0..MANY {
        cx.timer_handle(MS, Token::new(n));
    }
    for n in 0..MANY {
        assert_eq!(cx.recv().await, Event::Timer(Token::new(n)));
    }
    assert_eq!(cx.recv_timeout(MS).await, None);
});

#[test]
fn a_hundred_thousand_timers_of_one_actor_are_set_cancelled_and_due_in_time() {
    on_all(2, || Timers);
}

scenario!(Curious, Number, cx, {
    // No request is answered, and some go to an actor that has ended.
    let deaf = cx
        .spawn_one("deaf", |cx: C| async move {
            let _cx = cx;
            std::future::pending::<()>().await;
        })
        .await;
    let gone = cx
        .spawn(Spawn::one("gone").watched(), |_: C, _| async {})
        .await
        .get(0);
    cx.recv().await;
    for n in 0..20_000 {
        let request = cx.request(gone, Number(n));
        cx.request(deaf, Number(n));
        let unanswered = Event::Unanswered { who: gone, request };
        assert!(cx.recv().await == unanswered);
    }
    assert!(cx.ask(deaf, Number(0), MS).await.is_err());
});

#[test]
fn thousands_of_requests_remain_unanswered() {
    for executor in EXECUTORS {
        let mailbox = 1_000_000.try_into().unwrap();
        run(
            executor,
            &Config {
                mailbox,
                ..config(2)
            },
            Curious,
        )
        .unwrap();
    }
}
