//! Tests of limits in virtual time, of the ends of runs, and of the wake-ups of bodies.

use super::number::{Body, MS, Number, config, nine, run};
use corsair::{Config, Event, Executor, Outcome, RunError, Spawn, Time, Token};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

scenario!(
    #[derive(Clone)]
    Loop { self_wake: bool },
    cx,
    {
        let child = cx
            .spawn(
                Spawn::many(3, "child", ""),
                move |mut cx: C, index| async move {
                    if index == 1 && self_wake {
                        std::future::poll_fn(|task| {
                            task.waker().wake_by_ref();
                            Poll::<()>::Pending
                        })
                        .await;
                    }
                    cx.timer(Duration::ZERO, Token::new(1));
                    loop {
                        cx.recv().await;
                        if index == 1 {
                            cx.timer(Duration::ZERO, Token::new(1));
                        }
                    }
                },
            )
            .await;
        cx.sleep(MS).await;
        let _ = child;
    }
);

// Guarantee: core-17.
#[test]
fn a_loop_without_delay_ends_the_run_with_the_actors_name() {
    for workers in 1..=2 {
        for self_wake in [false, true] {
            let config = Config {
                most_at_once: NonZeroU32::new(500).unwrap(),
                end: Some(Time::from_nanos(1_000_000_000)),
                ..config(workers)
            };
            match run(&config, Loop { self_wake }).unwrap_err() {
                RunError::Livelock {
                    name, time, events, ..
                } => {
                    assert_eq!((name.as_str(), events), ("child1", 500));
                    assert_eq!(time, Time::from_nanos(1_000_000));
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a million events")]
fn a_loop_without_delay_is_bounded_by_default() {
    let error = run(&config(1), Loop { self_wake: false }).unwrap_err();
    assert!(error.to_string().contains("child1"), "{error}");
}

// Guarantee: core-17.
#[test]
fn a_cancellation_stops_a_loop_without_delay() {
    scenario!(
        #[derive(Clone)]
        Cuts { config: Config },
        cx,
        {
            cx.timer(Duration::ZERO, Token::new(0));
            for round in 0.. {
                cx.recv().await;
                cx.timer(Duration::ZERO, Token::new(0));
                if round == 100 {
                    config.cancel.cancel();
                }
            }
        }
    );
    let config = Config {
        most_at_once: NonZeroU32::MAX,
        ..config(1)
    };
    let report = run(
        &config,
        Cuts {
            config: config.clone(),
        },
    );
    let report = report.unwrap();
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(report.timers < 3_000, "{}", report.timers);
}

#[test]
fn many_timers_of_one_actor_in_one_window_fire_in_order() {
    scenario!(
        #[derive(Clone)]
        Many { count: u32 },
        cx,
        {
            for number in 0..count {
                let nanos = u64::from(number.wrapping_mul(7919) % count);
                cx.timer(Duration::from_nanos(nanos), Token::new(number));
            }
            let mut last = (Time::ZERO, 0);
            for _ in 0..count {
                let Event::Timer(token) = cx.recv().await else {
                    panic!("a timer")
                };
                assert!(last <= (cx.now(), token.number()));
                last = (cx.now(), token.number());
            }
        }
    );
    let count = if cfg!(miri) { 50 } else { 200_000 };
    assert_eq!(
        run(&config(1), Many { count }).unwrap().timers,
        u64::from(count)
    );
}

#[test]
fn a_server_with_a_long_backlog_serves_it_in_order() {
    const BACKLOG: u64 = if cfg!(miri) { 30 } else { 20_000 };
    scenario!(
        #[derive(Clone)]
        Serve {},
        cx,
        {
            let server = cx
                .spawn_one("server", |mut cx: C| async move {
                    for expected in 0..BACKLOG {
                        let Event::Message { body, .. } = cx.recv().await else {
                            panic!("a message")
                        };
                        assert_eq!(body, Number(expected));
                        cx.sleep(MS).await;
                    }
                })
                .await;
            for number in 0..BACKLOG {
                cx.send(server, Number(number));
            }
            cx.sleep(MS * (BACKLOG as u32 + 5)).await;
        }
    );
    assert_eq!(run(&config(1), Serve {}).unwrap().delivered(), BACKLOG);
}

// Guarantee: core-15.
#[test]
fn a_million_answered_requests_leave_no_timers_behind() {
    const ASKED: u64 = if cfg!(miri) { 20 } else { 100_000 };
    scenario!(
        #[derive(Clone)]
        Asks {},
        cx,
        {
            let echo = cx.spawn_one("echo", nine).await;
            for number in 0..ASKED {
                let answer = cx.ask(echo, Number(number), Duration::from_secs(1 << 30));
                answer.await.unwrap();
            }
            // The timer of a dropped sleep is removed, too.
            futures_util::future::select(
                Box::pin(cx.sleep(Duration::from_secs(1 << 30))),
                std::future::ready(()),
            )
            .await;
        }
    );
    let report = run(&config(1), Asks {}).unwrap();
    assert_eq!((report.delivered(), report.timers), (2 * ASKED, 0));
}

// Guarantee: core-81.
#[test]
fn a_combinator_with_wakers_of_its_own_works_within_a_body() {
    scenario!(#[derive(Clone)] Combines { seen: Arc<Mutex<Vec<u64>>> }, cx, {
        let me = cx.me();
        for number in 0..5 {
            cx.send_after(MS * 2 * number, me, Number(number.into()));
        }
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut events: FuturesUnordered<Pin<Box<dyn Future<Output = u64> + Send>>> =
            FuturesUnordered::new();
        events.push(Box::pin(async move {
            let mut sum = 0;
            for _ in 0..4 {
                match cx.recv().await {
                    Event::Message { body, .. } => sum += body.0,
                    other => panic!("{other:?}"),
                }
                // A yield between two events must not lose either of them.
                tokio::task::yield_now().await;
                cx.sleep(MS).await;
            }
            let _ = sender.send(sum);
            let last = cx
                .recv_if(|event| matches!(event, Event::Message { .. }))
                .await;
            match last {
                Event::Message { body, .. } => body.0,
                other => panic!("{other:?}"),
            }
        }));
        events.push(Box::pin(async move { receiver.await.unwrap() }));
        while let Some(number) = events.next().await {
            seen.lock().unwrap().push(number);
        }
    });
    for workers in 1..=2 {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let report = run(
            &config(workers),
            Combines {
                seen: Arc::clone(&seen),
            },
        );
        let report = report.unwrap();
        assert_eq!(*seen.lock().unwrap(), [6, 4]);
        assert_eq!(report.time, Time::from_nanos(9_000_000));
    }
}

// Guarantee: core-81.
#[test]
fn a_waker_that_outlives_its_run_does_nothing() {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    scenario!(#[derive(Clone)] Leaks { place: Arc<Mutex<Option<Waker>>> }, cx, {
        let waker = std::future::poll_fn(|task| Poll::Ready(task.waker().clone())).await;
        *place.lock().unwrap() = Some(waker);
        cx.sleep(MS).await;
    });
    let place = Arc::new(Mutex::new(None));
    run(
        &config(1),
        Leaks {
            place: Arc::clone(&place),
        },
    )
    .unwrap();
    let waker = place.lock().unwrap().take().unwrap();
    let other = Waker::from(Arc::new(Flag(AtomicBool::new(false))));
    assert!(!waker.will_wake(&other));
    std::thread::spawn(move || waker.wake()).join().unwrap();
}

// Guarantee: core-37.
#[test]
fn a_panic_in_a_destructor_at_the_end_of_the_run_is_that_actors() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    scenario!(
        #[derive(Clone)]
        Leaves {},
        cx,
        {
            cx.spawn(Spawn::many(3, "loud", ""), |mut cx: C, index| async move {
                let _loud = (index == 1).then(|| Loud);
                cx.recv().await;
            })
            .await;
            cx.sleep(MS).await;
        }
    );
    for workers in 1..=2 {
        let error = run(&config(workers), Leaves {}).unwrap_err();
        let RunError::Panicked { panic, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(panic.name, "loud1");
        assert_eq!(panic.event, "the end of the run");
    }
}

// A scenario whose windows are dense enough for several threads.
scenario!(
    #[derive(Clone)]
    Busy {},
    cx,
    {
        let crowd = cx
            .spawn(Spawn::many(1000, "x", ""), |mut cx: C, _| async move {
                loop {
                    cx.recv().await;
                }
            })
            .await;
        for _ in 0..10 {
            for to in crowd.iter() {
                cx.send(to, Number(1));
            }
            cx.sleep(MS).await;
        }
    }
);

/// An environment variable that is set in processes that this test program has started.
const CHILD: &str = "CORSAIR_TEST_CHILD";

/// Runs the current test again in a process, after a shell has run the command `before`. Returns its output on stderr.
fn again(before: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let name = std::thread::current().name().map(str::to_owned);
    let script = format!("{before}; exec \"$0\" \"$1\" --exact --nocapture --test-threads 1");
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .arg(name.as_deref().unwrap_or("main"))
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{before}: {text}");
    text
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_thread_that_cannot_be_started_is_an_error() {
    if std::env::var_os(CHILD).is_some() {
        match run(&config(4), Busy {}).unwrap_err() {
            RunError::Thread { report, .. } => assert_eq!(report.executor, Executor::Virtual),
            other => panic!("{other}"),
        }
        eprintln!("refused");
        return;
    }
    // No thread can have a stack of this size.
    let text = again(&format!("export RUST_MIN_STACK={}", 1u64 << 47));
    assert!(text.contains("refused"), "{text}");
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
#[cfg(target_os = "linux")]
fn more_workers_than_there_is_memory_for_are_an_error() {
    if std::env::var_os(CHILD).is_some() {
        let config = config(1000);
        let refused = |error: RunError| match error {
            RunError::Thread { source, report } => {
                assert_eq!((report.executor, report.workers), (Executor::Virtual, 0));
                let text = source.to_string();
                assert!(text.contains("1000 workers need"), "{text}");
            }
            other => panic!("{other}"),
        };
        refused(run(&config, Busy {}).unwrap_err());
        refused(
            corsair::Simulation::new(&config, Busy {})
                .map(drop)
                .unwrap_err(),
        );
        run(&super::number::config(2), Busy {}).unwrap();
        eprintln!("refused");
        return;
    }
    // Enough memory for two workers, but not for the buffers of a thousand workers.
    for mebibytes in [300, 1000, 2000] {
        let text = again(&format!("ulimit -v {}", mebibytes << 10));
        assert!(text.contains("refused"), "{text}");
    }
}
