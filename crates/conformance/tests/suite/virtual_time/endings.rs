//! The end of a run in virtual time: destructors that panic or use their context. The result does not depend on the
//! number of workers.

use super::number::MS;
use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Flow, Latency, Message, Panics, Report,
    RunError, Scenario, Simulation, Spawn, Time, Token, check_determinism, simulate,
};
use std::num::NonZeroUsize;
use std::time::Duration;

/// A message whose destructor panics.
#[derive(Message)]
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("message {} exploded", self.0);
        }
    }
}

fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        latency: Latency::constant(MS),
        ..Config::default()
    }
}

/// The location of messages that no actor receives.
#[derive(Clone, Copy, Debug)]
enum Unread {
    /// In flight when the root ends.
    OnTheWay,
    /// In flight for longer than the ring of windows.
    Far,
    /// Skipped by a selective receive.
    Stashed,
    /// Sent to an actor that has ended.
    Dead,
    /// Due after the configured end, but in the same window.
    AfterTheEnd,
}

impl Scenario<Bomb> for Unread {
    async fn root<C: AsyncContext<Bomb>>(self, mut cx: C) {
        let victims = cx
            .spawn(
                Spawn::many(600, "victim", ""),
                |mut cx: C, index| async move {
                    if index % 2 == 0 {
                        cx.recv_where(corsair::WaitReason::Other, |_, _| false)
                            .await;
                    }
                },
            )
            .await;
        cx.sleep(2 * MS).await;
        let delay = match self {
            Unread::Far => Duration::from_secs(3600),
            _ => Duration::ZERO,
        };
        let odd = u32::from(matches!(self, Unread::Dead));
        for index in [500, 300, 10, 580] {
            for number in [2, 1] {
                let to = victims.get(index + odd);
                cx.send_after(delay, to, Bomb(10 * index + number));
            }
        }
        match self {
            Unread::OnTheWay | Unread::Far | Unread::AfterTheEnd => {}
            Unread::Stashed | Unread::Dead => cx.sleep(3 * MS).await,
        }
        if let Unread::AfterTheEnd = self {
            cx.sleep(Duration::from_secs(1)).await;
        }
    }
}

const EACH: [Unread; 5] = [
    Unread::OnTheWay,
    Unread::Far,
    Unread::Stashed,
    Unread::Dead,
    Unread::AfterTheEnd,
];

fn with_end(config: Config, unread: Unread) -> Config {
    let end = Time::ZERO.after(3 * MS + Duration::from_nanos(1));
    let end = matches!(unread, Unread::AfterTheEnd).then_some(end);
    Config { end, ..config }
}

// Guarantee: core-37.
#[test]
fn a_message_that_panics_as_it_is_dropped_is_a_panic_of_its_receiver() {
    for unread in EACH {
        let reports = |workers| {
            let config = with_end(config(workers), unread);
            match simulate(&config, unread).unwrap_err() {
                RunError::Panicked { panic, .. } => *panic,
                other => panic!("{unread:?}: {other}"),
            }
        };
        let one = reports(1);
        let actor = match unread {
            Unread::Dead => 11,
            // The panic of actor 10 comes first in the order of addresses.
            _ => 10,
        };
        assert_eq!(one.name, format!("victim{actor}"), "{unread:?}: {one:?}");
        assert!(one.message.contains("exploded"), "{one:?}");
        for workers in 2..=3 {
            assert_eq!(one, reports(workers), "{unread:?} with {workers} workers");
        }
    }
}

// Guarantee: core-37.
#[test]
fn all_messages_that_panic_as_they_are_dropped_are_reported_where_panics_are_survived() {
    for unread in EACH {
        let reports = |workers| {
            let mut config = with_end(config(workers), unread);
            config.panics = Panics::EndActor;
            let report = match simulate(&config, unread) {
                Ok(report) => report,
                Err(RunError::PastEnd { report, .. }) => *report,
                Err(other) => panic!("{unread:?}: {other}"),
            };
            (report.panics.clone(), report.dead())
        };
        let one = reports(1);
        assert_eq!(one.0.len(), 8, "{unread:?}: {one:?}");
        for workers in 2..=3 {
            assert_eq!(one, reports(workers), "{unread:?} with {workers} workers");
        }
    }
}

// Guarantee: core-37.
#[test]
fn a_simulation_that_is_dropped_drops_messages_that_panic_quietly() {
    for workers in 1..=2 {
        let config = config(workers);
        let mut simulation = Simulation::new(&config, Unread::Stashed).unwrap();
        simulation.run_until(Time::ZERO.after(5 * MS));
        drop(simulation);
    }
}

/// A handler that must be asked to stop before it is dropped.
struct Careful;

impl Drop for Careful {
    fn drop(&mut self) {
        assert!(
            std::thread::panicking(),
            "dropped before it was asked to stop"
        );
    }
}

#[derive(Message)]
struct Job;

impl Actor<Job> for Careful {
    fn on<C: Context<Job>>(&mut self, _: Event<Job>, _: &mut C) -> Flow {
        Flow::Continue
    }
}

/// One of many actors fails while the others wait, each for a different time.
struct Failing;

impl Scenario<Job> for Failing {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        cx.spawn_actors(Spawn::many(600, "waiting", ""), |_| Careful)
            .await;
        let busy = Spawn::many(600, "busy", "");
        cx.spawn(busy, |mut cx: C, index| async move {
            cx.sleep(MS * (1 + index % 20)).await;
            assert_ne!(index, 399, "the cause");
        })
        .await;
        cx.sleep(Duration::from_secs(1)).await;
    }
}

// Guarantee: core-37.
#[test]
fn the_cause_of_a_failed_run_is_reported_and_not_what_it_does_to_those_who_wait() {
    for workers in 1..=3 {
        match simulate(&config(workers), Failing).unwrap_err() {
            RunError::Panicked { panic, report } => {
                assert_eq!(panic.name, "busy399", "{panic:?}");
                assert!(panic.message.contains("the cause"), "{panic:?}");
                assert_eq!(panic.time, Time::ZERO.after(22 * MS));
                assert_eq!(report.panics, [*panic]);
            }
            other => panic!("{other}"),
        }
    }
}

/// Ends while `Careful` handlers wait, and drops them.
struct Ending;

impl Scenario<Job> for Ending {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        cx.spawn_actors(Spawn::many(600, "waiting", ""), |_| Careful)
            .await;
        let busy = Spawn::many(1200, "busy", "");
        cx.spawn(busy, |mut cx: C, index| async move {
            cx.sleep(Duration::from_micros(u64::from(index))).await;
        })
        .await;
        cx.sleep(Duration::from_micros(5500)).await;
    }
}

// Guarantee: core-37.
#[test]
fn a_panic_at_the_end_of_a_run_is_reported_with_the_time_of_the_end() {
    for workers in 1..=3 {
        match simulate(&config(workers), Ending).unwrap_err() {
            RunError::Panicked { panic, .. } => {
                assert_eq!(panic.name, "waiting0", "{panic:?}");
                assert_eq!(panic.time, Time::from_nanos(7_500_000));
            }
            other => panic!("{other}"),
        }
    }
}

/// Sends and draws through its context when it is dropped.
struct LastWords<C: Context<Job>>(C, Addr);

impl<C: Context<Job>> Drop for LastWords<C> {
    fn drop(&mut self) {
        let number = self.0.random() % 1_000_000;
        self.0.track("last words", number as f64);
        for _ in 0..5 {
            self.0.send(self.1, Job);
        }
    }
}

/// Actors whose bodies are dropped at the end, with a network that loses and duplicates messages.
struct Words;

impl Scenario<Job> for Words {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        let root = cx.me();
        let talkers = Spawn::many(700, "talker", "");
        cx.spawn(talkers, move |cx: C, index| async move {
            let mut words = LastWords(cx, root);
            words.0.timer(Duration::from_secs(9), Token::new(index));
            let mut drawn = 0;
            // A deadlock report polls the body, which draws one more number.
            std::future::poll_fn(|_| {
                drawn += words.0.random() % 2;
                std::task::Poll::<()>::Pending
            })
            .await;
        })
        .await;
        cx.sleep(3 * MS).await;
    }
}

// Guarantee: core-37.
#[test]
fn what_destructors_draw_and_send_at_the_end_does_not_depend_on_workers() {
    use corsair::network::{Jitter, Lossy};
    let base = Config {
        network: Some(std::sync::Arc::new(
            Lossy::new(Jitter::new(MS, 2 * MS).unwrap(), 0.5).unwrap(),
        )),
        ..Config::default()
    };
    let run = |workers| -> Report {
        let workers = NonZeroUsize::new(workers).unwrap();
        simulate(
            &Config {
                workers,
                ..base.clone()
            },
            Words,
        )
        .unwrap()
    };
    let one = run(1);
    assert!(one.lost > 1000 && one.lost < 2500, "{}", one.lost);
    for workers in 2..=3 {
        let other = run(workers);
        assert_eq!(one.lost, other.lost, "{workers} workers");
        assert_eq!(one.probes, other.probes, "{workers} workers");
    }
    check_determinism(&base, || Words).unwrap();
}
