//! Ties, sequence numbers and waits in virtual time: an actor's view depends only on the actor and its own counts, not
//! on the number of workers or the lookahead.

use super::number::{Body, MS, Number, config, nine, run};
use corsair::{
    AskError, AsyncContext, Config, EachKind, Event, Message, RunError, Scenario, Spawn, Time,
    Token,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const US: Duration = Duration::from_micros(1);
/// More than two pages of addresses; fewer under miri, which is slow.
const CROWD: u32 = if cfg!(miri) { 4 } else { 600 };

/// The call that sends several numbers to each actor of a crowd.
#[derive(Clone, Copy)]
enum How {
    OneByOne,
    Together,
    ToEach,
    ToEachByKind,
}

/// The messages of one round, made by kind.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Round(u64);

impl EachKind<Number, 5> for Round {
    const NAME: &'static str = "round";

    fn bodies(&self, index: u32) -> [Number; 5] {
        [1, 2, 3, 4, 5].map(|n| Number(self.0 * 10_000 + u64::from(index) * 5 + n))
    }
}

/// Sends numbers to a crowd; each receiver records its events with their times.
#[derive(Clone)]
struct Batches {
    how: How,
    seen: EventLines,
}

impl Scenario<Number> for Batches {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let Batches { how, seen } = self;
        let crowd = Spawn::many(CROWD, "listener", "");
        let crowd = cx
            .spawn(crowd, move |mut cx: C, _| {
                let seen = seen.clone();
                async move {
                    loop {
                        let event = cx.recv().await;
                        let (now, envelope) = (cx.now(), cx.envelope());
                        seen.note(format!("{:?} {now:?} {event:?} {envelope:?}", cx.me()));
                    }
                }
            })
            .await;
        for round in 0..3 {
            let round = Round(round);
            let numbers = move |index| round.bodies(index);
            match how {
                How::OneByOne => {
                    for (index, to) in (0..).zip(crowd.iter()) {
                        for number in numbers(index) {
                            cx.send(to, number);
                        }
                    }
                }
                How::Together => {
                    for (index, to) in (0..).zip(crowd.iter()) {
                        cx.send_all(to, numbers(index));
                    }
                }
                How::ToEach => cx.send_each(crowd, numbers),
                How::ToEachByKind => cx.send_each_kind(crowd, round),
            }
            // Sent in the same window as the batch that it must follow.
            cx.send(crowd.get(CROWD - 1), Number(round.0));
            cx.sleep(MS).await;
        }
        cx.settle().await;
    }
}

// Guarantee: core-1.
#[test]
fn sending_together_is_sending_one_after_the_other() {
    use corsair::network::{Constant, Jitter, Lossy};
    let network = |which: u32| -> Option<Arc<dyn corsair::network::Network>> {
        let jitter = || Jitter::new(MS, MS * 4).unwrap();
        match which {
            0 => None,
            1 => Some(Arc::new(Lossy::new(jitter(), 0.2).unwrap())),
            _ => Some(Arc::new(Constant::new(MS).unwrap())),
        }
    };
    for (traces, which) in [(true, 0), (false, 0), (false, 1), (true, 2)] {
        let run_of = |workers, lookahead: Option<Duration>, how| {
            let seen = EventLines::default();
            let batches = Batches {
                how,
                seen: seen.clone(),
            };
            let config = Config {
                traces,
                lookahead,
                network: network(which),
                ..config(workers)
            };
            let report = run(&config, batches).unwrap();
            (report.digest, report.delivered(), seen.take())
        };
        let one_by_one = run_of(1, None, How::OneByOne);
        assert!(one_by_one.1 > 0);
        for (workers, lookahead) in [(1, None), (2, None), (3, Some(US * 10))] {
            // With windows of 10 us, these messages are due beyond the ring.
            for how in [How::Together, How::ToEach, How::ToEachByKind] {
                assert_eq!(run_of(workers, lookahead, how), one_by_one);
            }
        }
    }
}

/// Lines recorded by actors, sorted before they are compared.
#[derive(Clone, Default)]
struct EventLines(Arc<Mutex<Vec<String>>>);

impl EventLines {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        let mut lines = std::mem::take(&mut *self.0.lock().unwrap());
        lines.sort();
        lines
    }
}

/// Runs a scenario in several ways, checks that the recorded lines are equal, and returns them.
fn seen_always(scenario: impl Scenario<Number> + Clone, seen: &EventLines) -> Vec<String> {
    let ways = [
        (1, None),
        (2, None),
        (3, Some(700 * US)),
        (1, Some(2 * US)),
        (5, Some(US)),
    ];
    let mut first = None;
    for (workers, lookahead) in ways {
        let config = Config {
            lookahead,
            ..config(workers)
        };
        let report = run(&config, scenario.clone()).unwrap();
        let outcome = (seen.take(), report.digest, report.messages, report.timers);
        let first = first.get_or_insert_with(|| outcome.clone());
        assert_eq!(
            *first, outcome,
            "{workers} workers, lookahead {lookahead:?}"
        );
    }
    first.unwrap().0
}

// Guarantee: core-22.
#[test]
fn the_number_of_a_spawn_request_is_the_actors_own() {
    scenario!(
        #[derive(Clone)]
        Requests { seen: EventLines },
        cx,
        {
            let crowd = cx
                .spawn(
                    Spawn::many(CROWD, "parent", "").watched(),
                    move |mut cx: C, index| {
                        let seen = seen.clone();
                        async move {
                            for _ in 0..1 + index % 3 {
                                let request = cx.spawn_bodies(Spawn::one("child"), |_, _| async {});
                                seen.note(format!("{index}: {request}"));
                                let event = cx.recv().await;
                                seen.note(format!("{index}: {event:?} {:?}", cx.envelope()));
                            }
                        }
                    },
                )
                .await;
            for _ in crowd.iter() {
                cx.recv().await;
            }
        }
    );
    let seen = EventLines::default();
    seen_always(Requests { seen: seen.clone() }, &seen);
}

// Guarantee: core-22.
#[test]
fn a_start_and_the_answer_to_a_spawn_were_sent_when_the_spawn_was_asked_for() {
    scenario!(
        #[derive(Clone)]
        Starts { seen: EventLines },
        cx,
        {
            for round in 0..3 {
                cx.sleep(US * 7).await;
                let asked = cx.now();
                let child = seen.clone();
                let request = cx.spawn_bodies(Spawn::many(CROWD, "child", ""), move |cx: C, _| {
                    let sent = cx.envelope().sent;
                    child.note(format!("child of round {round}: {sent}"));
                    async move { drop(cx) }
                });
                let event = cx.recv().await;
                assert!(matches!(event, Event::Spawned { request: r, .. } if r == request));
                assert_eq!(cx.envelope().sent, asked);
                assert_eq!(cx.now(), asked.after(MS));
            }
            cx.sleep(MS).await;
        }
    );
    let seen = EventLines::default();
    let lines = seen_always(Starts { seen: seen.clone() }, &seen);
    assert_eq!(lines.len(), 3 * CROWD as usize);
}

// Guarantee: core-2.
#[test]
fn a_stop_comes_after_a_delayed_message_that_was_sent_before_and_arrives_with_it() {
    scenario!(
        #[derive(Clone)]
        Stops { seen: EventLines },
        cx,
        {
            let crowd = {
                let seen = seen.clone();
                cx.spawn(Spawn::many(CROWD, "x", ""), move |mut cx: C, index| {
                    let seen = seen.clone();
                    async move {
                        loop {
                            let event = cx.recv().await;
                            seen.note(format!("{index} {event:?} {}", cx.now()));
                        }
                    }
                })
                .await
            };
            for who in crowd.iter() {
                cx.send_after(5 * MS, who, Number(1));
            }
            cx.sleep(5 * MS).await;
            for who in crowd.iter() {
                cx.stop(who);
                // Arrives at the instant of the stop, after it, so it is a dead letter.
                cx.send(who, Number(2));
            }
            cx.sleep(5 * MS).await;
        }
    );
    let seen = EventLines::default();
    let lines = seen_always(Stops { seen: seen.clone() }, &seen);
    assert_eq!(lines.len(), CROWD as usize, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("Number(1)")));
}

// Guarantee: core-15.
#[test]
fn a_selective_receive_is_not_shown_the_librarys_own_timers() {
    scenario!(
        #[derive(Clone)]
        Shown { seen: EventLines },
        cx,
        {
            let mute = cx
                .spawn_one("mute", |mut cx: C| async move {
                    cx.recv().await;
                    cx.sleep(50 * MS).await;
                })
                .await;
            let me = cx.me();
            let echo = cx.spawn_one("echo", nine).await;
            // One request times out, and one is answered before its time-out.
            assert!(cx.ask(mute, Number(1), 3 * MS).await.is_err());
            assert_eq!(cx.ask(echo, Number(1), 5 * MS).await, Ok(Number(9)));
            cx.send_after(20 * MS, me, Number(7));
            let looked = Mutex::new(0);
            cx.recv_if(|event| {
                *looked.lock().unwrap() += 1;
                seen.note(format!("{event:?}"));
                matches!(event, Event::Message { .. })
            })
            .await;
        }
    );
    let seen = EventLines::default();
    let lines = seen_always(Shown { seen: seen.clone() }, &seen);
    assert_eq!(lines, ["Message { from: #0, body: Number(7) }"]);
}

// Guarantee: core-15.
#[test]
fn an_answered_request_leaves_no_time_out_behind() {
    scenario!(
        #[derive(Clone)]
        Asks {},
        cx,
        {
            let echo = cx.spawn_one("echo", nine).await;
            for _ in 0..100 {
                let answer = cx.ask(echo, Number(1), Duration::from_secs(3600)).await;
                assert_eq!(answer, Ok(Number(9)));
            }
            cx.recv().await;
        }
    );
    for workers in 1..=2 {
        let config = Config {
            end: Some(Time::from_nanos(10_000_000_000)),
            ..config(workers)
        };
        let error = run(&config, Asks {}).unwrap_err();
        // No event is left: the run neither waits for the time-outs nor fails because they are past its end.
        let RunError::Deadlock { report } = error else {
            panic!("{error}")
        };
        assert_eq!(report.timers, 0);
        assert_eq!(report.time, Time::from_nanos(201_000_000));
    }
}

// Guarantee: core-30.
#[test]
fn a_request_that_has_timed_out_is_not_notified_that_nobody_will_answer() {
    scenario!(
        #[derive(Clone)]
        Late { seen: EventLines },
        cx,
        {
            let child = cx
                .spawn_one("child", |mut cx: C| async move {
                    // Stashes the request, and ends with it after the time-out.
                    cx.recv_if(|event| matches!(event, Event::Timer(_))).await;
                })
                .await;
            let asked = cx.ask(child, Number(1), 3 * MS).await;
            assert!(matches!(asked, Err(AskError::TimedOut { .. })), "{asked:?}");
            cx.stop(child);
            cx.timer(50 * MS, Token::new(1));
            let event = cx.recv().await;
            seen.note(format!("{event:?}"));
        }
    );
    let seen = EventLines::default();
    let lines = seen_always(Late { seen: seen.clone() }, &seen);
    assert_eq!(lines, ["Timer(Token(1))"]);
}

// Guarantee: core-18.
#[test]
fn a_root_that_returns_near_the_end_of_time_completes() {
    scenario!(
        #[derive(Clone)]
        Old { nanos: u64 },
        cx,
        {
            cx.sleep(Duration::from_nanos(nanos)).await;
        }
    );
    for before in [1, 2, 1_000, 1_000_000, 1_000_001, 5_000_000] {
        for workers in 1..=2 {
            let nanos = u64::MAX - before;
            let report = run(&config(workers), Old { nanos }).unwrap();
            assert_eq!(report.time, Time::from_nanos(nanos));
        }
    }
}

// Guarantee: core-18.
#[test]
fn a_message_that_would_arrive_after_the_end_of_time_never_does() {
    scenario!(
        #[derive(Clone)]
        Never {},
        cx,
        {
            let me = cx.me();
            cx.send_after(Duration::MAX, me, Number(1));
            cx.recv().await;
        }
    );
    for workers in 1..=2 {
        let error = run(&config(workers), Never {}).unwrap_err();
        assert!(matches!(error, RunError::Deadlock { .. }), "{error}");
    }
}

#[test]
fn windows_are_counted_alike_by_any_number_of_workers() {
    scenario!(
        #[derive(Clone)]
        Sparse {},
        cx,
        {
            let crowd = cx
                .spawn(Spawn::many(CROWD, "x", ""), |mut cx: C, index| async move {
                    for round in 1..5 {
                        let far = cx.random() >> (24 + cx.below(20));
                        cx.sleep(Duration::from_nanos(far)).await;
                        let _ = (round, index);
                    }
                })
                .await;
            cx.sleep(Duration::from_secs(2_000)).await;
            let _ = crowd;
        }
    );
    let windows = |workers| run(&config(workers), Sparse {}).unwrap().windows;
    let alone = windows(1);
    assert!(
        (2..=2 + 4 * u64::from(CROWD) + 2).contains(&alone),
        "{alone}"
    );
    assert_eq!(alone, windows(2));
    assert_eq!(alone, windows(3));
}

// Guarantee: core-37.
#[test]
fn a_panic_on_a_timer_within_the_window_is_reported_with_that_timer() {
    scenario!(
        #[derive(Clone)]
        Near { delay: Duration },
        cx,
        {
            let crowd = cx
                .spawn(
                    Spawn::many(CROWD, "x", ""),
                    move |mut cx: C, index| async move {
                        cx.timer(delay, Token::new(index));
                        cx.timer(2 * delay, Token::new(index + 1));
                        let event = cx.recv().await;
                        assert!(index != CROWD - 2, "on {event:?}");
                        cx.recv().await;
                    },
                )
                .await;
            cx.sleep(MS).await;
            let _ = crowd;
        }
    );
    for delay in [Duration::ZERO, Duration::from_nanos(1), 100 * US] {
        for (workers, lookahead) in [(1, None), (2, None), (1, Some(2 * US)), (3, Some(US))] {
            let config = Config {
                lookahead,
                ..config(workers)
            };
            let error = run(&config, Near { delay }).unwrap_err();
            let RunError::Panicked { panic, .. } = error else {
                panic!("{error}")
            };
            let timer = CROWD - 2;
            assert_eq!(panic.name, format!("x{timer}"));
            assert_eq!(panic.event, format!("timer {timer}"));
            assert_eq!(panic.message, format!("on Timer(Token({timer}))"));
            assert_eq!(panic.time, Time::from_nanos(1_000_000).after(delay));
        }
    }
}

// Guarantee: core-37.
#[test]
fn a_body_that_panics_as_it_is_dropped_ends_once() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("dropped");
            }
        }
    }
    scenario!(
        #[derive(Clone)]
        Drops {},
        cx,
        {
            let loud = cx
                .spawn_one("loud", |mut cx: C| async move {
                    let _loud = Loud;
                    cx.recv().await;
                })
                .await;
            cx.stop(loud);
            cx.sleep(5 * MS).await;
        }
    );
    let error = run(&config(1), Drops {}).unwrap_err();
    let RunError::Panicked { panic, report } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (panic.name.as_str(), panic.message.as_str()),
        ("loud", "dropped")
    );
    assert_eq!(report.ended, 1);
}

// Guarantee: core-30.
#[test]
fn that_nobody_will_answer_comes_before_the_time_out_of_its_instant() {
    scenario!(
        #[derive(Clone)]
        Nobody { seen: EventLines },
        cx,
        {
            // Other actors have timers at the same instants, set before and after those of the root.
            let crowd = cx
                .spawn(Spawn::many(CROWD, "x", ""), |mut cx: C, _| async move {
                    for _ in 0..20 {
                        cx.sleep(MS).await;
                    }
                })
                .await;
            for round in 0..8 {
                let asked = cx.ask(corsair::Addr::NONE, Number(round), 2 * MS).await;
                seen.note(format!("{round}: {asked:?}"));
                cx.sleep(3 * MS / 2).await;
                cx.sleep(3 * MS / 2).await;
            }
            let _ = crowd;
        }
    );
    let seen = EventLines::default();
    let lines = seen_always(Nobody { seen: seen.clone() }, &seen);
    assert_eq!(lines.len(), 8);
    assert!(lines.iter().all(|line| line.contains("Ended")), "{lines:?}");
}

// Guarantee: core-37.
#[test]
fn a_panic_on_a_stashed_message_is_reported_with_that_message() {
    #[derive(Debug, Message)]
    enum Word {
        First,
        Second,
    }
    struct Keeps;
    impl Scenario<Word> for Keeps {
        async fn root<C: AsyncContext<Word>>(self, mut cx: C) {
            let me = cx.me();
            cx.send(me, Word::First);
            cx.send(me, Word::Second);
            let second = |event: &Event<Word>| {
                matches!(
                    event,
                    Event::Message {
                        body: Word::Second,
                        ..
                    }
                )
            };
            cx.recv_if(second).await;
            let event = cx.recv().await;
            panic!("{event:?}");
        }
    }
    let error = corsair::simulate(&config(1), Keeps).unwrap_err();
    let RunError::Panicked { panic, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(panic.event, "First from root");
}
