//! A run that its caller drives: its end, messages that cannot be injected, and its pace.

use super::config;
use corsair::{
    Addr, AsyncContext, Config, InjectError, Message, RunError, Scenario, Simulation, Time,
};
use std::thread;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, Message)]
struct Nothing;

/// Sleeps for the duration `each`, `times` times.
struct Sleeper {
    each: Duration,
    times: u32,
}

impl Scenario<Nothing> for Sleeper {
    async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
        for _ in 0..self.times {
            cx.sleep(self.each).await;
        }
    }
}

const ROOT: Addr = Addr::from_u32(0);

fn ms(n: u32) -> Time {
    Time::ZERO.after(MS * n)
}

fn sleeper(config: &Config, each: Duration) -> Simulation<Nothing> {
    let times = u32::MAX;
    Simulation::new(config, Sleeper { each, times }).unwrap()
}

// Guarantee: core-68.
#[test]
fn nothing_is_injected_where_the_run_has_been_not_even_at_its_start() {
    for workers in [1, 2] {
        let mut simulation = sleeper(&config(workers), MS * 10);
        simulation.inject(Time::ZERO, ROOT, Nothing).unwrap();
        simulation.run_until(Time::ZERO);
        let late = simulation.inject(Time::ZERO, ROOT, Nothing);
        assert!(matches!(late, Err(InjectError::Past { .. })), "{late:?}");
        simulation
            .inject(Time::from_nanos(1), ROOT, Nothing)
            .unwrap();
    }
}

/// A way to advance a run; returns false when the run is over.
type Advance = fn(&mut Simulation<Nothing>) -> bool;

// Guarantee: core-51.
#[test]
fn a_run_with_an_end_is_over_there_however_it_is_continued() {
    let ways: [(&str, Advance); 5] = [
        ("run_until", |run| run.run_until(run.now().after(MS * 7))),
        ("run_until never", |run| run.run_until(Time::MAX)),
        ("step", |run| run.step()),
        ("step_actor", |run| run.step_actor(ROOT)),
        ("run_while", |run| run.run_while(|_| true)),
    ];
    for workers in [1, 2] {
        for (way, advance) in ways {
            let config = Config {
                end: Some(ms(100)),
                ..config(workers)
            };
            let mut simulation = sleeper(&config, MS * 30);
            let mut calls = 0;
            while advance(&mut simulation) {
                calls += 1;
                assert!(calls < 1000, "{way} never ends");
                assert!(simulation.now() <= ms(100), "{way}: {}", simulation.now());
            }
            assert!(simulation.is_over(), "{way}");
            assert!(simulation.now() <= ms(100), "{way}: {}", simulation.now());
            assert_eq!(
                (simulation.next(), simulation.report().timers),
                (None, 3),
                "{way}"
            );
            match simulation.finish() {
                Err(RunError::PastEnd { end, next, .. }) => {
                    assert_eq!((end, next), (ms(100), ms(120)), "{way}");
                }
                other => panic!("{way}: {other:?}"),
            }
        }
    }
}

/// The root has a timer beyond the end of the run, and receives a message before the end.
struct Late;

impl Scenario<Nothing> for Late {
    async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
        let root = cx.me();
        cx.spawn_one("other", move |mut cx: C| async move {
            cx.sleep(MS * 50).await;
            cx.send(root, Nothing);
        })
        .await;
        cx.timer(MS * 500, corsair::Token::new(1));
        while cx.recv().await != corsair::Event::Timer(corsair::Token::new(1)) {}
    }
}

impl PartialEq for Nothing {
    fn eq(&self, _: &Nothing) -> bool {
        true
    }
}

// Guarantee: core-51.
#[test]
fn an_actors_timer_beyond_the_end_hides_no_event_that_is_still_to_come_for_it() {
    let config = Config {
        end: Some(ms(100)),
        ..config(1)
    };
    let mut simulation = Simulation::new(&config, Late).unwrap();
    while simulation.step_actor(ROOT) {}
    assert_eq!(simulation.report().delivered(), 1);
}

/// Returns the shortest duration of up to eight attempts, so that other load on the machine does not matter.
fn least(enough: Duration, act: impl Fn()) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..8 {
        let begun = Instant::now();
        act();
        least = least.min(begun.elapsed());
        if least < enough {
            break;
        }
    }
    least
}

// Guarantee: core-76.
#[test]
#[cfg_attr(miri, ignore = "miri has no exact clock")]
fn a_pace_holds_over_many_short_calls() {
    let enough = MS * 250;
    let took = least(enough, || {
        let mut simulation = sleeper(&config(1), MS);
        simulation.pace(Some(1.0));
        while simulation.now() < ms(200) {
            simulation.run_until(simulation.now().after(MS / 10));
        }
    });
    assert!(took >= MS * 199 && took < enough, "{took:?}");
}

// Guarantee: core-76.
#[test]
#[cfg_attr(miri, ignore = "miri has no exact clock")]
fn a_pace_is_kept_by_whatever_lets_a_run_go_on() {
    let ways: [(&str, Advance); 3] = [
        ("run_until", |run| run.run_until(run.now().after(MS * 7))),
        ("step", |run| run.step()),
        ("step_actor", |run| run.step_actor(ROOT)),
    ];
    for (way, advance) in ways {
        let mut simulation = sleeper(&config(1), MS * 10);
        simulation.pace(Some(2.0));
        let begun = Instant::now();
        while simulation.report().timers < 10 {
            assert!(advance(&mut simulation));
        }
        assert!(begun.elapsed() >= MS * 45, "{way}: {:?}", begun.elapsed());
    }
}

// Guarantee: core-76.
#[test]
#[cfg_attr(miri, ignore = "miri has no exact clock")]
fn the_slowest_pace_and_the_farthest_time_are_waited_for_until_cancelled() {
    for (factor, until) in [(f64::MIN_POSITIVE, ms(50)), (1e-12, Time::MAX)] {
        let config = config(1);
        let cancel = config.cancel.clone();
        let mut simulation = sleeper(&config, MS);
        simulation.pace(Some(factor));
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(MS * 20);
                cancel.cancel();
            });
            assert!(!simulation.run_until(until));
        });
        assert_eq!(simulation.report().timers, 0);
    }
}
