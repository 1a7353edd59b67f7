//! Tests of guarantees that only the virtual executor gives: exact times, and results that depend on nothing but
//! the configuration and the seed.

mod bounds;
mod determinism;
mod driven;
mod endings;
mod fuzz;
mod multicasts;
mod number;
mod rows;
mod saving;
mod simulation;
mod ties;

use corsair::{
    Addr, AsyncContext, Config, Event, Latency, Message, Outcome, Report, RunError, Scenario,
    Spawn, Time, Token, WaitReason,
};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A number, or a reference-counted mark that shows leaks.
#[derive(Clone, Debug, Message)]
enum Note {
    Number(u32),
    Mark(Arc<()>),
}

type Body = Note;

/// More than two pages of addresses; fewer under miri, which is slow.
const GLASSES: u32 = if cfg!(miri) { 50 } else { 600 };
const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    }
}

fn run(config: &Config, scenario: impl Scenario<Note>) -> Result<Report, RunError> {
    corsair::simulate(config, scenario)
}

// Guarantee: core-5, core-13.
#[test]
fn timers_fire_to_the_nanosecond() {
    scenario!(Exact {}, cx, {
        // Delays within the first window, across windows, and in all levels of the timer wheel.
        let delays = [
            1,
            3,
            999,
            1 << 20,
            (1 << 20) + 1,
            123_456_789,
            3_600_000_000_007,
        ];
        for (index, nanos) in delays.into_iter().enumerate() {
            cx.timer(Duration::from_nanos(nanos), Token::new(index as u32));
        }
        for (index, nanos) in delays.into_iter().enumerate() {
            assert_eq!(cx.recv().await, Event::Timer(Token::new(index as u32)));
            assert_eq!(cx.now(), Time::from_nanos(nanos));
        }
        for nanos in [0, 1, 77] {
            let before = cx.now();
            cx.sleep(Duration::from_nanos(nanos)).await;
            assert_eq!(cx.now().since(before), Duration::from_nanos(nanos));
        }
    });
    let report = run(&config(1), Exact {}).unwrap();
    assert_eq!(report.timers, 10);
    assert_eq!(report.time, Time::from_nanos(3_600_000_000_007 + 78));
}

/// Compares events whose other messages cannot be compared.
impl PartialEq for Note {
    fn eq(&self, other: &Note) -> bool {
        match (self, other) {
            (Note::Number(a), Note::Number(b)) => a == b,
            _ => false,
        }
    }
}

// Guarantee: core-6.
#[test]
fn messages_take_the_latency_of_their_pair() {
    scenario!(Travel { latency: Latency }, cx, {
        let sent = cx.now();
        let me = cx.me();
        cx.send(me, Note::Number(1));
        cx.recv().await;
        let took = cx.now().since(sent);
        assert!(took >= latency.min() && took <= latency.max());
        assert_eq!(cx.envelope().sent, sent);
        cx.send_after(5 * MS, me, Note::Number(2));
        let sent = cx.now();
        cx.recv().await;
        assert_eq!(cx.now().since(sent), 5 * MS + took);
    });
    for latency in [
        Latency::constant(3 * MS),
        Latency::between(MS, 9 * MS).unwrap(),
    ] {
        let config = Config {
            latency,
            ..config(1)
        };
        run(&config, Travel { latency }).unwrap();
    }
}

// Guarantee: core-3.
#[test]
fn a_timer_comes_after_the_messages_of_its_instant_and_before_later_ones() {
    scenario!(Instant { seen: Arc<Mutex<Vec<u32>>> }, cx, {
        let me = cx.me();
        cx.timer(MS, Token::new(100));
        cx.timer(MS, Token::new(101));
        cx.send(me, Note::Number(1));
        cx.send_after(Duration::from_nanos(1), me, Note::Number(2));
        for _ in 0..4 {
            let number = match cx.recv().await {
                Event::Timer(token) => token.number(),
                Event::Message { body: Note::Number(n), .. } => n,
                other => panic!("{other:?}"),
            };
            seen.lock().unwrap().push(number);
        }
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let config = Config {
        latency: Latency::constant(MS),
        ..config(1)
    };
    run(
        &config,
        Instant {
            seen: Arc::clone(&seen),
        },
    )
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 100, 101, 2]);
}

/// A crowd that acts at random: it sends with short and long delays, sets timers within and beyond the window, spawns,
/// stops, sends requests, and gets messages after its end.
struct Crowd {
    members: u32,
    rounds: u32,
}

/// The body of a member; at each timer it performs a random action.
async fn member<C: AsyncContext<Note>>(mut cx: C, members: u32, rounds: u32) {
    let parent = cx.parent();
    let base = parent.as_u32();
    for round in 0..rounds {
        let nap = Duration::from_nanos(cx.random() >> (64 - 1 - cx.below(27)));
        cx.timer(nap, Token::new(round));
        loop {
            match cx.recv().await {
                Event::Timer(token) if token == Token::new(round) => break,
                Event::Message {
                    from,
                    body: Note::Number(n),
                } if n % 3 == 0 => {
                    let reply_handle = cx.envelope().reply_handle();
                    cx.reply(reply_handle, Note::Number(n / 3 + from.as_u32() % 2));
                }
                _ => {}
            }
        }
        // The crowd was spawned right after its parent, so its addresses begin at the next page.
        let who = Addr::from_u32(base + 256 + cx.below(members));
        let number = cx.below(1000);
        match cx.below(8) {
            0 => {
                let far = Duration::from_nanos(cx.random() >> 34);
                cx.send_after(far, who, Note::Number(number));
            }
            1 => {
                let _ = cx.ask(who, Note::Number(3 * number), 10 * MS).await;
            }
            2 => {
                let children = cx
                    .spawn(
                        Spawn::many(2, "child", "").watched(),
                        move |mut cx: C, index| async move {
                            let parent = cx.parent();
                            let number = cx.below(50) + index;
                            cx.send(parent, Note::Number(3 * number + 1));
                            cx.sleep(US * number).await;
                        },
                    )
                    .await;
                cx.send(children.get(1), Note::Number(7));
            }
            3 if number < 100 => cx.stop(who),
            _ => {
                cx.send(who, Note::Number(number));
                cx.send(who, Note::Number(number + 1));
            }
        }
    }
}

impl Scenario<Note> for Crowd {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let Crowd { members, rounds } = self;
        let spawn = Spawn::many(members, "member", "").watched();
        let crowd = cx
            .spawn(spawn, move |cx, _| member(cx, members, rounds))
            .await;
        assert_eq!(crowd.get(0).as_u32(), cx.me().as_u32() + 256);
        for _ in 0..members {
            cx.recv_if(|event| matches!(event, Event::Down { .. }))
                .await;
        }
    }
}

/// Returns the parts of a report that must not depend on the number of workers or the lookahead.
fn essence(report: &Report) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        report.digest,
        report.time,
        report.messages.clone(),
        report.dead_letters.clone(),
        (
            report.timers,
            report.spawned,
            report.ended,
            report.waiting_total,
        ),
        report.per_actor.clone(),
        report.waiting.clone(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 12 }) })]

    // Guarantee: core-23, core-58.
    #[test]
    fn a_run_is_the_same_for_any_number_of_workers_and_any_lookahead(
        seed: u64,
        members in 1u32..700,
        rounds in 1u32..12,
        lookaheads in proptest::collection::vec(1_000u64..100_000, 3),
    ) {
        let (members, rounds) = if cfg!(miri) { (3, 2) } else { (members, rounds) };
        let latency = Latency::between(100 * US, 900 * US).unwrap();
        let with = |workers, lookahead: Option<u64>| {
            let lookahead = lookahead.map(Duration::from_nanos);
            let config = Config { seed, latency, lookahead, per_actor: true, ..config(workers) };
            essence(&run(&config, Crowd { members, rounds }).unwrap())
        };
        let alone = with(1, None);
        for (index, lookahead) in lookaheads.into_iter().enumerate() {
            prop_assert_eq!(&alone, &with(2 + index, None));
            prop_assert_eq!(&alone, &with(1 + index, Some(lookahead)));
        }
    }
}

// Guarantee: core-80.
#[test]
fn a_run_without_traces_is_the_same_and_its_envelopes_say_less() {
    let with = |workers, traces| {
        let config = Config {
            traces,
            per_actor: true,
            ..config(workers)
        };
        let (members, rounds) = if cfg!(miri) { (3, 2) } else { (300, 6) };
        essence(&run(&config, Crowd { members, rounds }).unwrap())
    };
    let traced = with(1, true);
    for workers in 1..=3 {
        assert_eq!(traced, with(workers, false));
    }
    scenario!(Envelopes {}, cx, {
        let me = cx.me();
        let plain = cx.send(me, Note::Number(1));
        let request = cx.request(me, Note::Number(2));
        let sent = cx.now();
        cx.recv().await;
        let (one, none) = (cx.envelope(), corsair::SpanId::NONE);
        assert_eq!((one.from, one.span), (me, plain));
        assert_eq!((one.sent, one.trace, one.parent), (cx.now(), none, none));
        cx.recv().await;
        let two = cx.envelope();
        assert_eq!((two.sent, two.trace, two.span), (sent, request, request));
        cx.reply(two.reply_handle(), Note::Number(3));
        cx.recv().await;
        assert_eq!(cx.envelope().answers, request);
    });
    let config = Config {
        traces: false,
        ..config(1)
    };
    run(&config, Envelopes {}).unwrap();
}

// Guarantee: core-59.
#[test]
fn another_seed_is_another_run() {
    let digest = |seed| {
        let config = Config { seed, ..config(2) };
        run(
            &config,
            Crowd {
                members: if cfg!(miri) { 2 } else { 20 },
                rounds: 3,
            },
        )
        .unwrap()
        .digest
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

// Guarantee: core-37.
#[test]
fn a_panic_stops_the_run_with_actor_time_and_event() {
    scenario!(Panics {}, cx, {
        let crowd = cx
            .spawn(
                Spawn::many(GLASSES, "glass", "").on_demand(),
                |mut cx: C, index| async move {
                    let event = cx.recv().await;
                    assert!(index % 100 != 42, "too loud: {event:?}");
                    cx.recv().await;
                },
            )
            .await;
        crowd.iter().for_each(|glass| {
            cx.send(glass, Note::Number(glass.as_u32()));
        });
        cx.recv().await;
    });
    let panics: Vec<_> = (1..=4)
        .map(|workers| {
            let config = Config {
                latency: Latency::constant(MS),
                ..config(workers)
            };
            match run(&config, Panics {}) {
                Err(RunError::Panicked { panic, report }) => {
                    assert_eq!(
                        report.delivered(),
                        u64::from(GLASSES),
                        "the window was completed"
                    );
                    *panic
                }
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let first = &panics[0];
    assert_eq!(
        (first.name.as_str(), first.event.as_str()),
        ("glass42", "Number from root")
    );
    assert_eq!(first.time, Time::from_nanos(2_000_000));
    assert!(first.message.contains("too loud"), "{}", first.message);
    assert!(panics.iter().all(|panic| panic == first));
}

// Guarantee: core-51.
#[test]
fn time_past_the_end_is_an_error_that_tells_the_next_event() {
    scenario!(Late {}, cx, {
        cx.sleep(5 * MS).await;
        cx.sleep(10 * MS).await;
    });
    let end = |millis: u64| Some(Time::from_nanos(millis * 1_000_000));
    for (workers, lookahead) in [(1, None), (2, None), (1, Some(2 * US)), (3, Some(700 * US))] {
        let config = |end| Config {
            end,
            lookahead,
            ..config(workers)
        };
        match run(&config(end(7)), Late {}) {
            Err(RunError::PastEnd {
                end: at,
                next,
                report,
            }) => {
                assert_eq!((Some(at), Some(next)), (end(7), end(15)));
                assert_eq!(report.timers, 1);
            }
            other => panic!("{other:?}"),
        }
        assert!(run(&config(end(15)), Late {}).is_ok());
    }
}

// Guarantee: core-50.
#[test]
fn a_deadlock_tells_who_waits_for_what() {
    scenario!(Circle {}, cx, {
        let me = cx.me();
        let other = cx
            .spawn_one("other", move |mut cx: C| async move {
                let _ = cx.recv_if(|_| false).await;
            })
            .await;
        cx.send(other, Note::Number(1));
        let request = cx.request(me, Note::Number(2));
        cx.recv_where(WaitReason::Answer(other), move |_, envelope| {
            envelope.answers == request
        })
        .await;
    });
    match run(&config(2), Circle {}) {
        Err(error @ RunError::Deadlock { .. }) => {
            let report = error.report().unwrap();
            assert_eq!(report.waiting_total, 2);
            let text = error.to_string();
            assert!(
                text.contains("root waits for an answer of other (1 stashed)"),
                "{text}"
            );
            assert!(
                text.contains("other waits for the event selected at "),
                "{text}"
            );
            assert!(text.contains("virtual_time.rs:"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

// Guarantee: core-50.
#[test]
fn a_wait_for_something_outside_of_the_run_is_reported_as_such() {
    scenario!(Foreign {}, cx, {
        let _cx = &mut cx;
        std::future::pending::<()>().await;
    });
    match run(&config(1), Foreign {}) {
        Err(error @ RunError::Deadlock { .. }) => {
            assert_eq!(
                error.report().unwrap().waiting[0].waiting,
                WaitReason::Other
            );
            let text = error.to_string();
            assert!(
                text.contains("root waits for something") && text.contains("Test your service"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

// Guarantee: core-52.
#[test]
fn a_cancelled_run_reports_what_it_has_done() {
    scenario!(Endless { config: Config }, cx, {
        for round in 0.. {
            cx.sleep(MS).await;
            if round == 10 {
                config.cancel.cancel();
            }
        }
    });
    for workers in [1, 3] {
        let config = config(workers);
        let report = run(
            &config,
            Endless {
                config: config.clone(),
            },
        )
        .unwrap();
        assert_eq!(report.outcome, Outcome::Cancelled);
        assert!(report.timers >= 11);
        assert_eq!(report.waiting_total, 1);
    }
}

// Guarantee: core-49.
#[test]
fn nothing_happens_after_the_root_has_ended_but_what_was_under_way() {
    scenario!(Short {}, cx, {
        let ticker = cx
            .spawn_one("ticker", |mut cx: C| async move {
                loop {
                    cx.sleep(100 * US).await;
                }
            })
            .await;
        cx.send(ticker, Note::Number(1));
        cx.sleep(20 * MS).await;
    });
    let digests: Vec<_> = [(1, None), (2, None), (1, Some(3 * US)), (4, Some(700 * US))]
        .map(|(workers, lookahead)| {
            let latency = Latency::constant(MS);
            let report = run(
                &Config {
                    lookahead,
                    latency,
                    ..config(workers)
                },
                Short {},
            )
            .unwrap();
            assert_eq!(
                (report.time, report.waiting_total),
                (Time::from_nanos(21_000_000), 1)
            );
            (report.digest, report.timers)
        })
        .into();
    assert!(
        digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

// Guarantee: core-54.
#[test]
fn messages_that_are_never_received_are_dropped_with_the_run() {
    let mark = Arc::new(());
    scenario!(Leaves { mark: Arc<()> }, cx, {
        let me = cx.me();
        let keeper = cx
            .spawn_one("keeper", |mut cx: C| async move {
                let _ = cx.recv_if(|_| false).await;
            })
            .await;
        let ended = cx.spawn_one("ended", |_| async {}).await;
        for to in [keeper, ended, Addr::NONE, Addr::from_u32(1 << 30), me] {
            cx.send(to, Note::Mark(Arc::clone(&mark)));
            cx.send_after(Duration::from_secs(5), to, Note::Mark(Arc::clone(&mark)));
            cx.send_after(5 * MS, to, Note::Mark(Arc::clone(&mark)));
        }
        cx.sleep(3 * MS).await;
    });
    for workers in 1..=3 {
        let report = run(
            &config(workers),
            Leaves {
                mark: Arc::clone(&mark),
            },
        )
        .unwrap();
        assert_eq!(
            report.dead(),
            4,
            "the ended one's, nobody's and an unknown one's, and the root's"
        );
        assert_eq!(Arc::strong_count(&mark), 1);
    }
}

// Guarantee: core-24.
#[test]
fn more_actors_than_addresses_are_an_error() {
    scenario!(Many {}, cx, {
        cx.spawn(Spawn::many(u32::MAX, "m", "").on_demand(), |_, _| async {})
            .await;
    });
    for workers in 1..=2 {
        let error = run(&config(workers), Many {}).unwrap_err();
        assert!(matches!(error, RunError::TooManyActors { .. }), "{error}");
    }
}

// Guarantee: core-28.
#[test]
fn a_context_carried_out_of_its_run_panics_instead_of_acting_for_another() {
    trait AnyContext: Send {
        fn use_it(&mut self) -> Addr;
    }
    struct Carried<C>(C);
    impl<C: AsyncContext<Note>> AnyContext for Carried<C> {
        fn use_it(&mut self) -> Addr {
            self.0.send(Addr::NONE, Note::Number(1));
            self.0.me()
        }
    }
    type Place = Arc<Mutex<Option<Box<dyn AnyContext>>>>;
    scenario!(Carry { place: Place }, cx, {
        *place.lock().unwrap() = Some(Box::new(Carried(cx)));
    });
    let place = Place::default();
    run(
        &config(1),
        Carry {
            place: Arc::clone(&place),
        },
    )
    .unwrap();
    let mut context = place.lock().unwrap().take().unwrap();
    let outside = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| context.use_it()));
    assert!(outside.is_err());
    scenario!(Use { context: Box<dyn AnyContext> }, cx, {
        let _cx = cx;
        let mut context = context;
        context.use_it();
    });
    let inside_another = run(&config(1), Use { context });
    assert!(
        matches!(inside_another, Err(RunError::Panicked { .. })),
        "{inside_another:?}"
    );
}

// Guarantee: core-28.
#[test]
fn a_run_within_an_actor_leaves_the_outer_one_alone() {
    scenario!(Outer {}, cx, {
        let before = (cx.me(), cx.now());
        let inner = run(
            &config(1),
            Crowd {
                members: 3,
                rounds: 2,
            },
        )
        .unwrap();
        assert!(inner.delivered() > 0);
        assert_eq!((cx.me(), cx.now()), before);
        cx.sleep(MS).await;
    });
    let report = run(&config(1), Outer {}).unwrap();
    assert_eq!(report.timers, 1);
}

// Guarantee: core-113.
#[tokio::test]
async fn an_actor_that_awaits_a_foreign_future_fails_the_run() {
    scenario!(Foreign {}, cx, {
        // More waiting actors than the report lists, before the sleepers in the order of addresses.
        cx.spawn(
            Spawn::many(1_000, "listener", ""),
            |mut cx: C, _| async move { while let Event::Message { .. } = cx.recv().await {} },
        )
        .await;
        cx.spawn(Spawn::many(3, "sleeper", ""), |mut cx: C, _| async move {
            cx.sleep(MS).await;
            tokio::time::sleep(MS).await;
        })
        .await;
        cx.sleep(MS * 10).await;
    });
    for workers in [1, 2, 3] {
        let error = run(&config(workers), Foreign {}).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(&error, RunError::ForeignFuture { name, report }
                if name == "sleeper0" && report.waiting_total == 1_003
                    && report.waiting.len() == Report::MOST_WAITING),
            "{workers}: {error:?}"
        );
        assert!(text.contains("Test your service"), "{text}");
    }
}
