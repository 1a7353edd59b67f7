//! A run on the caller's tokio runtime.

use corsair::{
    AsyncContext, CancelToken, Config, Event, Message, Outcome, Report, RunError, Scenario, Spawn,
    Time, run_on,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;

#[derive(Debug, Message)]
struct Number(u64);

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

/// Adds up numbers from a channel, and sends the sum to another one.
struct Sum {
    numbers: mpsc::Receiver<u64>,
    answer: mpsc::Sender<u64>,
    runtime: tokio::runtime::Id,
}

impl Scenario<Number> for Sum {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        assert_eq!(Handle::current().id(), self.runtime);
        let root = cx.me();
        let (mut numbers, here) = (self.numbers, self.runtime);
        cx.spawn_one("gate", move |mut cx: C| async move {
            assert_eq!(Handle::current().id(), here);
            while let Some(number) = numbers.recv().await {
                cx.send(root, Number(number));
            }
            cx.send(root, Number(0));
        })
        .await;
        let mut sum = 0;
        loop {
            match cx.recv().await {
                Event::Message {
                    body: Number(0), ..
                } => break,
                Event::Message {
                    body: Number(number),
                    ..
                } => sum += number,
                _ => {}
            }
        }
        self.answer.send(sum).await.unwrap();
    }
}

#[test]
fn actors_share_a_runtime_and_its_channels_with_other_tasks() {
    let runtime = runtime();
    let (give, numbers) = mpsc::channel(4);
    let (answer, mut answers) = mpsc::channel(1);
    let sum = Sum {
        numbers,
        answer,
        runtime: runtime.handle().id(),
    };
    let giver = runtime.spawn(async move {
        for number in 1..=1000 {
            give.send(number).await.unwrap();
        }
    });
    let report = run_on(runtime.handle(), &Config::default(), sum).unwrap();
    assert_eq!(report.outcome, Outcome::Completed);
    assert_eq!(report.workers, 2);
    runtime.block_on(giver).unwrap();
    assert_eq!(answers.blocking_recv(), Some(500_500));
}

/// Spawns actors that wait for ever, each of which owns a clone of `held`.
struct Waiting {
    held: Arc<()>,
    /// The channel on which the root waits; `None` to end without a wait.
    root: Option<mpsc::Receiver<()>>,
    begun: Arc<AtomicBool>,
}

impl Waiting {
    /// Returns a scenario whose root waits until the returned sender is dropped.
    fn for_ever() -> (Waiting, mpsc::Sender<()>) {
        let (never, root) = mpsc::channel(1);
        let waiting = Waiting {
            held: Arc::default(),
            root: Some(root),
            begun: Arc::default(),
        };
        (waiting, never)
    }
}

impl Scenario<Number> for Waiting {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let held = self.held.clone();
        cx.spawn(Spawn::many(100, "waits.", ""), move |mut cx: C, index| {
            let held = held.clone();
            async move {
                let held = held;
                if index % 2 == 0 {
                    std::future::pending::<()>().await;
                }
                cx.recv().await;
                drop(held);
            }
        })
        .await;
        self.begun.store(true, SeqCst);
        if let Some(mut root) = self.root {
            root.recv().await;
        }
    }
}

#[test]
fn every_body_is_dropped_before_the_run_reports_and_other_tasks_go_on() {
    let runtime = runtime();
    let held = Arc::new(());
    let (give, mut take) = mpsc::channel(1);
    let other = runtime.spawn(async move { take.recv().await });
    let waiting = Waiting {
        held: held.clone(),
        root: None,
        begun: Arc::default(),
    };
    let report = run_on(runtime.handle(), &Config::default(), waiting).unwrap();
    assert_eq!(Arc::strong_count(&held), 1);
    assert_eq!(report.spawned, 101);
    give.blocking_send(7).unwrap();
    assert_eq!(runtime.block_on(other).unwrap(), Some(7));
}

/// Sleeps, and waits for a message with a time-out.
struct Patience;

impl Scenario<Number> for Patience {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let begun = cx.now();
        cx.sleep(Duration::from_millis(2)).await;
        assert!(cx.recv_timeout(Duration::from_millis(2)).await.is_none());
        assert!(cx.now().since(begun) >= Duration::from_millis(4));
    }
}

#[test]
fn timers_need_no_clock_of_the_runtime() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let report = run_on(runtime.handle(), &Config::default(), Patience).unwrap();
    assert_eq!(report.outcome, Outcome::Completed);
}

#[test]
fn a_runtime_that_is_shut_down_cuts_the_run() {
    let runtime = runtime();
    let (waiting, _never) = Waiting::for_ever();
    let (held, begun) = (waiting.held.clone(), waiting.begun.clone());
    let handle = runtime.handle().clone();
    let run = thread::spawn(move || -> Result<Report, RunError> {
        run_on(&handle, &Config::default(), waiting)
    });
    while !begun.load(SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
    drop(runtime);
    let report = run.join().unwrap().unwrap();
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert_eq!(Arc::strong_count(&held), 1);
}

/// Runs a scenario that waits for ever, on a runtime that only this thread can drive. Drives the runtime for the
/// duration `driven` and then no more. Returns the result, and the number of live clones of `held`.
fn left_alone(
    driven: Duration,
    config: Config,
    act: fn(&CancelToken),
) -> (Result<Report, RunError>, usize) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let (waiting, _never) = Waiting::for_ever();
    let (held, begun) = (waiting.held.clone(), waiting.begun.clone());
    let (handle, cancel) = (runtime.handle().clone(), config.cancel.clone());
    let (sender, receiver) = std::sync::mpsc::channel();
    let run = thread::spawn(move || {
        let result = run_on(&handle, &config, waiting);
        assert!(sender.send(result).is_ok());
    });
    let until = Instant::now() + driven;
    while Instant::now() < until {
        runtime.block_on(tokio::task::yield_now());
    }
    assert_eq!(begun.load(SeqCst), !driven.is_zero());
    act(&cancel);
    let result = receiver.recv_timeout(Duration::from_secs(20));
    let result = result.expect("the run ends although no thread drives the runtime");
    run.join().unwrap();
    (result, Arc::strong_count(&held))
}

// Guarantee: core-52.
#[test]
fn a_run_on_an_idle_runtime_can_be_cancelled() {
    for driven in [0, 200].map(Duration::from_millis) {
        let (result, holders) = left_alone(driven, Config::default(), CancelToken::cancel);
        assert_eq!(result.unwrap().outcome, Outcome::Cancelled, "{driven:?}");
        assert_eq!(holders, 1, "{driven:?}: bodies are left");
    }
}

// Guarantee: core-52.
#[test]
fn a_run_on_a_runtime_that_nobody_drives_ends_when_its_time_is_over() {
    for driven in [0, 200].map(Duration::from_millis) {
        let config = Config {
            end: Some(Time::ZERO.after(driven + Duration::from_millis(50))),
            ..Config::default()
        };
        let cancel = config.cancel.clone();
        let (result, holders) = left_alone(driven, config, |_| {});
        assert!(
            matches!(result, Err(RunError::PastEnd { .. })),
            "{driven:?}: {result:?}"
        );
        assert_eq!(holders, 1, "{driven:?}: bodies are left");
        assert!(!cancel.is_cancelled(), "the run was not cancelled");
    }
}
