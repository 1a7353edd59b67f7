//! Tests of the results of a run besides its report: values that actors hand in at the end, and values that they
//! record.

use crate::everywhere::config;
use corsair::{
    Actor, AsyncContext, Config, Context, Event, Executor, Flow, Message, Panics, Report, Results,
    RunError, Scenario, Spawn, Time, run,
};
use std::num::NonZeroUsize;
use std::time::Duration;

#[derive(Message)]
enum Note {
    Work(u32),
    Stop,
}

on_every_executor! {
    actors_that_live_hand_in_results_when_the_run_is_over
    what_actors_record_is_added_up
    who_is_spawned_when_the_run_is_over_is_nobody
}

/// Adds up the numbers of its messages, records them, and hands in the sum.
struct Worker {
    sum: u32,
    results: Results<u32>,
    fails: bool,
}

impl Actor<Note> for Worker {
    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        match event {
            Event::Message {
                body: Note::Work(work),
                ..
            } => {
                self.sum += work;
                cx.count("work", work.into());
                cx.gauge("last", f64::from(work));
                cx.observe("sizes", f64::from(work) / 7.0);
                cx.track("over time", f64::from(work));
                Flow::Continue
            }
            Event::Message {
                body: Note::Stop, ..
            } => Flow::Stop,
            _ => Flow::Continue,
        }
    }

    fn finish<C: Context<Note>>(&mut self, cx: &mut C) {
        assert!(!self.fails, "cannot finish");
        // A message that is sent at the end of the run does not arrive.
        let me = cx.me();
        cx.send(me, Note::Work(1_000));
        cx.count("finished", 1);
        self.results.hand_in(cx, self.sum);
    }
}

/// Sends work to all workers but the last; stops the first one.
struct Works {
    workers: u32,
    results: Results<u32>,
    fails: bool,
    panics: bool,
}

impl Scenario<Note> for Works {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let Works {
            workers,
            results,
            fails,
            panics,
        } = self;
        let how = Spawn::many(workers, "worker", "").on_demand();
        let all = cx
            .spawn_actors(how, move |index| Worker {
                sum: 0,
                results: results.clone(),
                fails: fails && index == 1,
            })
            .await;
        for number in 0..4 * (workers - 1) {
            let worker = number % (workers - 1);
            cx.send(all.get(worker), Note::Work(number));
            if number % 64 == 63 {
                cx.yield_now().await;
            }
        }
        cx.send(all.get(0), Note::Stop);
        cx.settle().await;
        cx.sleep(Duration::from_millis(20)).await;
        assert!(!panics, "the root panics");
    }
}

fn works(workers: u32, results: &Results<u32>) -> Works {
    Works {
        workers,
        results: results.clone(),
        fails: false,
        panics: false,
    }
}

// Guarantee: core-55.
fn actors_that_live_hand_in_results_when_the_run_is_over(executor: Executor) {
    let results = Results::new();
    let report = run(executor, &config(), works(6, &results)).unwrap();
    // The first worker has ended, and the last one has not begun, so neither hands in a sum.
    let sums: Vec<u32> = results.take().into_iter().map(|(_, sum)| sum).collect();
    assert_eq!(sums, [1, 2, 3, 4].map(|index| 4 * index + 30));
    assert_eq!(
        (report.delivered(), report.probes.counter("finished")),
        (21, 4)
    );
    assert_eq!(report.dead(), 0);
}

// Guarantee: core-56.
fn what_actors_record_is_added_up(executor: Executor) {
    let report = run(executor, &config(), works(6, &Results::new())).unwrap();
    let probes = report.probes;
    assert_eq!(probes.counter("work"), (0..20).sum::<u64>());
    assert_eq!(probes.counter("nothing"), 0);
    let sizes = &probes.histograms["sizes"];
    assert_eq!(
        (sizes.count(), sizes.range()),
        (20, Some((0.0, 19.0 / 7.0)))
    );
    assert_eq!(
        (probes.gauges["last"].least, probes.gauges["last"].greatest),
        (0.0, 19.0)
    );
    let tracked: u64 = probes.series["over time"]
        .intervals()
        .map(|each| each.count)
        .sum();
    assert_eq!(tracked, 20);
}

// Guarantee: core-56.
#[test]
fn what_is_recorded_is_the_same_for_any_workers_and_lookahead() {
    let once = |workers, lookahead| -> (Report, Vec<_>) {
        let results = Results::new();
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            lookahead,
            ..Config::default()
        };
        let works = works(1500, &results);
        (
            run(Executor::Virtual, &config, works).unwrap(),
            results.take(),
        )
    };
    let (one, handed_in) = once(1, None);
    assert_eq!(handed_in.len(), 1498);
    for (workers, lookahead) in [(2, None), (3, Some(Duration::from_micros(100))), (7, None)] {
        let (other, others) = once(workers, lookahead);
        assert_eq!(other.probes, one.probes);
        assert_eq!(others, handed_in);
    }
}

// Guarantee: core-55.
#[test]
fn a_run_that_fails_by_a_panic_asks_nobody_for_results() {
    for workers in [1, 2] {
        let results = Results::new();
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            ..Config::default()
        };
        let works = Works {
            panics: true,
            ..works(600, &results)
        };
        let failed = run(Executor::Virtual, &config, works);
        assert!(matches!(failed, Err(RunError::Panicked { .. })));
        assert!(results.take().is_empty());
    }
}

// Guarantee: core-55.
#[test]
fn a_panic_as_an_actor_finishes_is_that_actors() {
    for executor in [Executor::Virtual, Executor::Tokio, Executor::Pool] {
        for panics in [Panics::EndActor, Panics::EndRun] {
            let results = Results::new();
            let works = Works {
                fails: true,
                ..works(6, &results)
            };
            let config = Config { panics, ..config() };
            let report = match (run(executor, &config, works), panics) {
                (Ok(report), Panics::EndActor) => report,
                (Err(RunError::Panicked { panic, report }), Panics::EndRun) => {
                    assert_eq!(panic.name, "worker1");
                    *report
                }
                (other, _) => panic!("{executor:?}: {other:?}"),
            };
            assert_eq!(report.panics.len(), 1);
            assert_eq!(report.panics[0].event, "the end of the run");
            assert_eq!(results.take().len(), 3);
        }
    }
}

/// Hands in the time at which it finishes.
struct Clocked(Results<Time>);

impl Actor<Note> for Clocked {
    fn on<C: Context<Note>>(&mut self, _: Event<Note>, _: &mut C) -> Flow {
        Flow::Continue
    }

    fn finish<C: Context<Note>>(&mut self, cx: &mut C) {
        let now = cx.now();
        self.0.hand_in(cx, now);
    }
}

struct Waits(Results<Time>);

impl Scenario<Note> for Waits {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let results = self.0;
        cx.spawn_actors(Spawn::many(600, "clocked", ""), move |_| {
            Clocked(results.clone())
        })
        .await;
        cx.sleep(Duration::from_millis(100)).await;
    }
}

// Guarantee: core-55.
#[test]
fn actors_finish_at_the_time_of_the_runs_end() {
    for workers in [1, 2, 3] {
        let results = Results::new();
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            ..Config::default()
        };
        let report = run(Executor::Virtual, &config, Waits(results.clone())).unwrap();
        let times = results.take();
        assert_eq!(times.len(), 600);
        assert!(times.iter().all(|(_, time)| *time == report.time));
    }
}

/// Spawns actors at the end of the run: when it finishes.
struct Late;

impl Actor<Note> for Late {
    fn on<C: Context<Note>>(&mut self, _: Event<Note>, _: &mut C) -> Flow {
        Flow::Continue
    }

    fn finish<C: Context<Note>>(&mut self, cx: &mut C) {
        cx.spawn_request(Spawn::many(3, "later", ""), |_| Late);
    }
}

struct Spawner<C: Context<Note>>(C);

impl<C: Context<Note>> Drop for Spawner<C> {
    fn drop(&mut self) {
        self.0.spawn_request(Spawn::one("last"), |_| Late);
    }
}

struct LateOnes;

impl Scenario<Note> for LateOnes {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        cx.spawn_actors(Spawn::many(5, "late", ""), |_| Late).await;
        let body = |cx: C, _| async move {
            let mut spawner = Spawner(cx);
            spawner.0.recv().await;
        };
        cx.spawn(Spawn::many(5, "spawner", ""), body).await;
        cx.sleep(Duration::from_millis(5)).await;
    }
}

// Guarantee: core-55.
fn who_is_spawned_when_the_run_is_over_is_nobody(executor: Executor) {
    let report = run(executor, &config(), LateOnes).unwrap();
    assert_eq!((report.spawned, report.ended), (11, 0));
}
