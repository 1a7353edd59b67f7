//! Addresses and the delivery of messages to them do not depend on the number of workers or the lookahead, even if an
//! address has no actor yet, or its actor has ended.

use corsair::{Addr, AsyncContext, Config, Event, Latency, Message, Report, Scenario, Spawn};
use std::num::NonZeroUsize;
use std::time::Duration;

struct Number(u32);

impl Message for Number {
    const KINDS: &'static [&'static str] = &["Number"];
    fn kind(&self) -> usize {
        0
    }
    fn fingerprint(&self) -> u64 {
        self.0.into()
    }
}

const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

/// Returns the parts of a report that must not depend on the number of workers or the lookahead.
fn essence(report: &Report) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        report.digest,
        report.time,
        report.delivered(),
        report.dead(),
        (report.spawned, report.ended, report.waiting_total),
        report.waiting.clone(),
    )
}

/// Runs a scenario with one to four workers and several lookaheads, checks that all reports are equal, and returns one
/// of them.
fn same<S: Scenario<Number> + Clone>(config: &Config, scenario: &S) -> Report {
    let mut first: Option<Report> = None;
    for (workers, lookahead) in [
        (1, None),
        (2, None),
        (3, None),
        (4, Some(MS / 7)),
        (2, Some(MS / 3)),
        (1, Some(3 * US)),
    ] {
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            lookahead,
            ..config.clone()
        };
        let report = corsair::simulate(&config, scenario.clone()).unwrap();
        match &first {
            None => first = Some(report),
            Some(first) => assert_eq!(
                essence(first),
                essence(&report),
                "{workers} workers, lookahead {lookahead:?}"
            ),
        }
    }
    first.unwrap()
}

fn constant() -> Config {
    Config {
        latency: Latency::constant(MS),
        ..Config::default()
    }
}

/// Sends messages to addresses without actors, and spawns actors there while the messages are in flight.
#[derive(Clone)]
struct ToTheUnborn {
    /// The number of actors in each spawn.
    together: u32,
    on_demand: bool,
}

impl Scenario<Number> for ToTheUnborn {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        for number in 0..2000 {
            cx.send(Addr::from_u32(number), Number(number));
            cx.send_after(4 * MS, Addr::from_u32(number), Number(number));
            // Due beyond the ring of windows.
            cx.send_after(300 * MS, Addr::from_u32(number), Number(number));
        }
        cx.send(Addr::NONE, Number(0));
        for _ in 0..5 {
            let mut how = Spawn::many(self.together, "new", "");
            if self.on_demand {
                how = how.on_demand();
            }
            cx.spawn(how, |mut cx: C, _| async move {
                loop {
                    if let Event::Message { from, body } = cx.recv().await {
                        cx.send(from, Number(body.0 + cx.me().as_u32()));
                    }
                }
            })
            .await;
        }
        cx.sleep(400 * MS).await;
    }
}

// Guarantee: core-22.
#[test]
fn a_message_to_an_address_not_yet_given_finds_the_actor_that_is_there_when_it_arrives() {
    for together in [1, 70, 700] {
        for on_demand in [false, true] {
            let report = same(
                &constant(),
                &ToTheUnborn {
                    together,
                    on_demand,
                },
            );
            assert!(report.delivered() > u64::from(together) * 5);
            assert!(report.dead() > 2000, "{}", report.dead());
            assert_eq!(report.spawned, 1 + 5 * u64::from(together));
        }
    }
}

/// Sends messages to a guessed address around the time at which its actor is spawned.
#[derive(Clone)]
struct AtBirth;

impl Scenario<Number> for AtBirth {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let first = cx.spawn_one("first", |_| async {}).await;
        let step = {
            let second = cx.spawn_one("second", |_| async {}).await;
            second.as_u32() - first.as_u32()
        };
        let next = first.as_u32() + 2 * step;
        // The request is sent now. Messages arrive before, at and after the time of the spawn.
        let how = Spawn::many(1, "third", "").on_demand();
        cx.spawn_bodies(how, |mut cx: C, _| async move {
            loop {
                cx.recv().await;
            }
        });
        cx.sleep(MS / 2).await;
        for micros in [0, 1, 400, 499, 500, 501, 999] {
            cx.send_after(micros * US, Addr::from_u32(next), Number(micros));
        }
        cx.sleep(5 * MS).await;
    }
}

// Guarantee: core-22.
#[test]
fn an_address_is_an_actors_from_one_smallest_latency_after_the_request_on() {
    same(&constant(), &AtBirth);
    let latency = Latency::between(MS, 2 * MS).unwrap();
    same(
        &Config {
            latency,
            ..constant()
        },
        &AtBirth,
    );
    // The message has the smallest latency and is sent while the address has no actor.
    #[derive(Clone)]
    struct Early;
    impl Scenario<Number> for Early {
        async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
            let early = Addr::from_u32(256);
            cx.send(early, Number(1));
            cx.sleep(MS / 2).await;
            let how = Spawn::many(1, "only", "").on_demand();
            cx.spawn_bodies(how, |mut cx: C, _| async move {
                cx.recv().await;
            });
            cx.sleep(3 * MS).await;
            cx.send(early, Number(2));
            cx.sleep(3 * MS).await;
        }
    }
    // The first message arrives at 1 ms; the address has an actor from 1.5 ms on.
    let report = same(&constant(), &Early);
    assert_eq!((report.delivered(), report.dead()), (1, 1));
}
