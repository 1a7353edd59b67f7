//! Tests of the common behaviour of all executors: each scenario here runs on all of them.
//!
//! A scenario sends lines to a channel, and the test compares them.

use crate::everywhere::config;
use corsair::{
    Addr, AskError, AsyncContext, Config, DeadLetters, Event, Executor, Message, Outcome, Reason,
    ReplyHandle, Report, RunError, Scenario, SpanId, Spawn, Token, run,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The message type of the scenarios.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
enum Note {
    Ping,
    Number(u32),
    Ask(u32),
    Pass(ReplyHandle),
}

type Body = Note;

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(60);

on_every_executor! {
    two_actors_play_ping_pong
    messages_of_a_pair_keep_their_order
    messages_sent_together_come_one_after_the_other
    messages_sent_to_each_of_many_come_in_order
    a_selective_receive_keeps_what_it_skips_in_order
    a_request_is_answered
    a_passed_on_request_is_answered_by_somebody_else
    a_request_without_an_answer_times_out
    a_request_to_an_ended_actor_ends
    a_request_left_unread_by_an_ended_actor_ends
    timers_fire_in_order_of_time_and_then_of_setting
    a_delayed_message_comes_after_its_delay
    messages_to_ended_actors_are_counted
    dead_letters_go_to_the_root_if_asked
    a_watched_actor_that_ends_is_reported_to_its_parent
    an_actor_on_demand_starts_with_its_first_event
    a_stopped_actor_gets_nothing_more
    settling_waits_for_what_was_sent_before
    strict_makes_dead_letters_an_error
    strict_makes_waiting_actors_an_error
    a_deadlock_names_who_waits_for_what
    a_message_continues_the_trace_of_what_is_being_handled
    work_put_off_continues_the_trace_that_it_is_given
    random_streams_belong_to_seed_and_address
    totals_per_actor_count_sent_and_received
    handlers_do_what_bodies_do
    a_run_without_messages_completes
}

/// The lines that a scenario logs.
type Log = Sender<String>;

/// Runs a scenario that must complete; returns its report and the logged lines.
fn completes<S: Scenario<Note>>(
    executor: Executor,
    config: &Config,
    make: impl FnOnce(Log) -> S,
) -> (Report, Vec<String>) {
    let (log, seen) = channel();
    match run(executor, config, make(log)) {
        Ok(report) => {
            assert_eq!(report.outcome, Outcome::Completed);
            assert_eq!(report.executor, executor);
            (report, all(seen))
        }
        Err(error) => panic!("{executor:?}: {error}"),
    }
}

fn all(seen: Receiver<String>) -> Vec<String> {
    seen.try_iter().collect()
}

fn say(log: &Log, what: impl ToString) {
    log.send(what.to_string()).expect("the test listens");
}

fn number(event: &Event<Note>) -> u32 {
    match event {
        Event::Message {
            body: Note::Number(n) | Note::Ask(n),
            ..
        } => *n,
        other => panic!("a number was expected, not {other:?}"),
    }
}

/// Ends with its first event.
async fn until_event<C: AsyncContext<Note>>(mut cx: C) {
    cx.recv().await;
}

/// Answers each request with its number plus one.
async fn successor<C: AsyncContext<Note>>(mut cx: C) {
    loop {
        let event = cx.recv().await;
        let reply_handle = cx.envelope().reply_handle();
        cx.reply(reply_handle, Note::Number(number(&event) + 1));
    }
}

/// Never answers.
async fn silent<C: AsyncContext<Note>>(mut cx: C) {
    loop {
        cx.recv().await;
    }
}

/// Waits until a watched actor has ended, and returns the reason.
async fn ended<C: AsyncContext<Note>>(cx: &mut C, whom: Addr) -> Reason {
    match cx
        .recv_if(|event| matches!(event, Event::Down { who, .. } if *who == whom))
        .await
    {
        Event::Down { reason, .. } => reason,
        other => panic!("the end of an actor was expected, not {other:?}"),
    }
}

// Guarantee: core-1.
fn messages_sent_together_come_one_after_the_other(executor: Executor) {
    scenario!(Together { log: Log }, cx, {
        let me = cx.me();
        cx.send(me, Note::Number(0));
        cx.send_all(me, [1, 2, 3].map(Note::Number));
        cx.send_all(me, []);
        cx.send(me, Note::Number(4));
        for _ in 0..5 {
            say(&log, number(&cx.recv().await));
        }
    });
    let (report, seen) = completes(executor, &config(), |log| Together { log });
    assert_eq!(seen, ["0", "1", "2", "3", "4"]);
    assert_eq!(report.delivered(), 5);
}

// Guarantee: core-1.
fn messages_sent_to_each_of_many_come_in_order(executor: Executor) {
    // More than two pages of addresses; fewer where each actor is a thread.
    const MANY: u32 = if cfg!(miri) { 120 } else { 700 };
    scenario!(Each { log: Log }, cx, {
        let root = cx.me();
        let crowd = Spawn::many(MANY, "x", "").on_demand();
        let crowd = cx
            .spawn(crowd, move |mut cx: C, index| async move {
                for n in [0, 1, 2, index] {
                    assert_eq!(number(&cx.recv().await), n);
                }
                cx.send(root, Note::Number(index));
            })
            .await;
        cx.send_each(crowd, |_| [0, 1, 2].map(Note::Number));
        cx.send_each(crowd.part(0..0), |_| -> [Note; 1] { unreachable!() });
        cx.send_each(crowd, |_| -> [Note; 0] { [] });
        for part in [100..MANY, 0..100] {
            let first = part.start;
            cx.send_each(crowd.part(part), move |index| [Note::Number(first + index)]);
        }
        let mut sum = 0;
        for _ in crowd.iter() {
            sum += number(&cx.recv().await);
        }
        say(&log, sum);
    });
    let (report, seen) = completes(executor, &config(), |log| Each { log });
    assert_eq!(seen, [(MANY * (MANY - 1) / 2).to_string()]);
    assert_eq!(report.delivered(), u64::from(5 * MANY));
}

fn two_actors_play_ping_pong(executor: Executor) {
    scenario!(PingPong {}, cx, {
        let partner = cx.spawn_one("partner", successor).await;
        let mut n = 0;
        while n < 1000 {
            n = match cx.ask(partner, Note::Ask(n), LONG).await {
                Ok(Note::Number(n)) => n,
                other => panic!("{other:?}"),
            };
        }
    });
    let (report, _) = completes(executor, &config(), |_| PingPong {});
    let counts: Vec<u64> = report.messages.iter().map(|kind| kind.count).collect();
    assert_eq!(counts, [0, 1000, 1000, 0]);
    assert_eq!((report.spawned, report.dead(), report.dropped), (2, 0, 0));
}

// Guarantee: core-1.
fn messages_of_a_pair_keep_their_order(executor: Executor) {
    const SENDERS: u32 = 40;
    const EACH: u32 = 250;
    scenario!(Order {}, cx, {
        let me = cx.me();
        let senders = cx
            .spawn(
                Spawn::many(SENDERS, "sender", ""),
                move |mut cx: C, _| async move {
                    for n in 0..EACH {
                        cx.send(me, Note::Number(n));
                        if n % 7 == 0 {
                            cx.yield_now().await;
                        }
                    }
                },
            )
            .await;
        let mut next = [0; SENDERS as usize];
        for _ in 0..SENDERS * EACH {
            let event = cx.recv().await;
            let Event::Message { from, .. } = event else {
                panic!("{event:?}")
            };
            let sender = senders.index_of(from).expect("one of them") as usize;
            assert_eq!(number(&event), next[sender], "from sender {sender}");
            next[sender] += 1;
        }
    });
    for mailbox in [1, 3, 256] {
        let config = Config {
            mailbox: mailbox.try_into().unwrap(),
            ..config()
        };
        let (report, _) = completes(executor, &config, |_| Order {});
        assert_eq!(report.delivered(), u64::from(SENDERS * EACH));
    }
}

// Guarantee: core-31.
fn a_selective_receive_keeps_what_it_skips_in_order(executor: Executor) {
    scenario!(Selective { log: Log }, cx, {
        let me = cx.me();
        for n in [1, 2, 30, 3, 40, 4] {
            cx.send(me, Note::Number(n));
        }
        for _ in 0..2 {
            let event = cx.recv_if(|event| matches!(event, Event::Message { body: Note::Number(n), .. } if *n >= 10)).await;
            say(&log, number(&event));
        }
        cx.send(me, Note::Number(5));
        for _ in 0..5 {
            say(&log, number(&cx.recv().await));
        }
    });
    let (_, seen) = completes(executor, &config(), |log| Selective { log });
    assert_eq!(seen, ["30", "40", "1", "2", "3", "4", "5"]);
}

// Guarantee: core-29.
fn a_request_is_answered(executor: Executor) {
    scenario!(Request { log: Log }, cx, {
        let whom = cx.spawn_one("oracle", successor).await;
        say(
            &log,
            format!("{:?}", cx.ask(whom, Note::Ask(41), LONG).await),
        );
    });
    let (_, seen) = completes(executor, &config(), |log| Request { log });
    assert_eq!(seen, ["Ok(Number(42))"]);
}

// Guarantee: core-29.
fn a_passed_on_request_is_answered_by_somebody_else(executor: Executor) {
    scenario!(PassedOn { log: Log }, cx, {
        let expert = cx
            .spawn_one("expert", |mut cx: C| async move {
                if let Event::Message {
                    body: Note::Pass(reply_handle),
                    ..
                } = cx.recv().await
                {
                    cx.reply(reply_handle, Note::Number(9));
                }
            })
            .await;
        let desk = cx
            .spawn_one("desk", move |mut cx: C| async move {
                cx.recv().await;
                let reply_handle = cx.envelope().reply_handle();
                cx.send(expert, Note::Pass(reply_handle));
            })
            .await;
        say(
            &log,
            format!("{:?}", cx.ask(desk, Note::Ask(0), LONG).await),
        );
        say(&log, cx.envelope().from == expert);
    });
    let (_, seen) = completes(executor, &config(), |log| PassedOn { log });
    assert_eq!(seen, ["Ok(Number(9))", "true"]);
}

// Guarantee: core-30.
fn a_request_without_an_answer_times_out(executor: Executor) {
    scenario!(TimedOut {}, cx, {
        let to = cx.spawn_one("silent", silent).await;
        let before = cx.now();
        let timeout = MS * 20;
        let answer = cx.ask(to, Note::Ask(0), timeout).await;
        assert_eq!(answer, Err(AskError::TimedOut { to, timeout }));
        assert!(cx.now().since(before) >= timeout);
    });
    completes(executor, &config(), |_| TimedOut {});
}

// Guarantee: core-30.
fn a_request_to_an_ended_actor_ends(executor: Executor) {
    scenario!(Ended {}, cx, {
        let to = cx
            .spawn(Spawn::one("short").watched(), |_, _| async {})
            .await
            .get(0);
        assert_eq!(ended(&mut cx, to).await, Reason::Returned);
        assert_eq!(
            cx.ask(to, Note::Ask(0), LONG).await,
            Err(AskError::Ended { to })
        );
        let nobody = Addr::from_u32(1_000_000);
        assert_eq!(
            cx.ask(nobody, Note::Ask(0), LONG).await,
            Err(AskError::Ended { to: nobody })
        );
    });
    completes(executor, &config(), |_| Ended {});
}

// Guarantee: core-30.
fn a_request_left_unread_by_an_ended_actor_ends(executor: Executor) {
    scenario!(Unread {}, cx, {
        // The asked actor stashes the request, because it first waits for a ping, and then ends.
        let to = cx
            .spawn_one("picky", |mut cx: C| async move {
                cx.recv_if(|event| {
                    matches!(
                        event,
                        Event::Message {
                            body: Note::Ping,
                            ..
                        }
                    )
                })
                .await;
            })
            .await;
        cx.send_after(MS * 10, to, Note::Ping);
        assert_eq!(
            cx.ask(to, Note::Ask(0), LONG).await,
            Err(AskError::Ended { to })
        );
    });
    let (report, _) = completes(executor, &config(), |_| Unread {});
    assert_eq!(report.dead_letters[2].count, 1);
}

// Guarantee: core-3, core-14.
fn timers_fire_in_order_of_time_and_then_of_setting(executor: Executor) {
    scenario!(Timers { log: Log }, cx, {
        let (start, began) = (cx.now(), Instant::now());
        for (after, token) in [(30, 3), (10, 1), (50, 5), (20, 2), (40, 4)] {
            cx.timer(MS * after, Token::new(token));
        }
        say(&log, began.elapsed().as_nanos());
        cx.sleep(MS * 35).await;
        assert!(cx.now().since(start) >= MS * 35);
        for _ in 0..5 {
            let event = cx.recv().await;
            let Event::Timer(token) = event else {
                panic!("{event:?}")
            };
            assert!(cx.now().since(start) >= MS * 10 * token.number());
            say(&log, token.number());
        }
    });
    let (report, seen) = completes(executor, &config(), |log| Timers { log });
    let mut seen: Vec<u64> = seen.iter().map(|said| said.parse().unwrap()).collect();
    // The delay of a timer begins when it is set: on the wall clock, as much later as the thread was interrupted.
    let setting = seen.remove(0);
    let late = if executor == Executor::Virtual {
        0
    } else {
        setting
    };
    let delay = |token: u64| token * 10_000_000;
    for fired in seen.windows(2) {
        assert!(
            delay(fired[0]) <= delay(fired[1]) + late,
            "{seen:?}, {late} ns"
        );
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert_eq!(report.timers, 6);
}

// Guarantee: core-11.
fn a_delayed_message_comes_after_its_delay(executor: Executor) {
    scenario!(Delayed {}, cx, {
        let me = cx.me();
        let sent = cx.now();
        // The sender has ended long before the message is delivered.
        cx.spawn_one("short", move |mut cx: C| async move {
            cx.send_after(MS * 20, me, Note::Number(1));
        })
        .await;
        assert_eq!(number(&cx.recv().await), 1);
        assert!(cx.now().since(sent) >= MS * 20);
    });
    completes(executor, &config(), |_| Delayed {});
}

// Guarantee: core-27.
fn messages_to_ended_actors_are_counted(executor: Executor) {
    scenario!(Dead {}, cx, {
        let gone = cx
            .spawn(Spawn::one("short").watched(), |_, _| async {})
            .await
            .get(0);
        ended(&mut cx, gone).await;
        cx.send(gone, Note::Ping);
        cx.send(gone, Note::Number(1));
        cx.send(gone, Note::Number(2));
        cx.send(Addr::NONE, Note::Ping);
        cx.settle().await;
    });
    let (report, _) = completes(executor, &config(), |_| Dead {});
    let counts: Vec<u64> = report.dead_letters.iter().map(|kind| kind.count).collect();
    assert_eq!(counts, [2, 2, 0, 0]);
    assert_eq!(report.delivered(), 0);
}

// Guarantee: core-27.
fn dead_letters_go_to_the_root_if_asked(executor: Executor) {
    scenario!(ToRoot { log: Log }, cx, {
        let gone = cx
            .spawn(Spawn::one("short").watched(), |_, _| async {})
            .await
            .get(0);
        ended(&mut cx, gone).await;
        cx.spawn_one("sender", move |mut cx: C| async move {
            cx.send(gone, Note::Number(4));
        })
        .await;
        let event = cx.recv().await;
        assert_eq!(
            event,
            Event::DeadLetter {
                to: gone,
                body: Note::Number(4)
            }
        );
        say(&log, "came");
    });
    let config = Config {
        dead_letters: DeadLetters::ToRoot,
        ..config()
    };
    let (report, seen) = completes(executor, &config, |log| ToRoot { log });
    assert_eq!((seen.len(), report.dead()), (1, 1));
}

// Guarantee: core-26, core-39.
fn a_watched_actor_that_ends_is_reported_to_its_parent(executor: Executor) {
    scenario!(Watched {}, cx, {
        let me = cx.me();
        let child = cx
            .spawn(
                Spawn::one("child").watched(),
                move |mut cx: C, _| async move {
                    cx.send(me, Note::Ping);
                },
            )
            .await
            .get(0);
        // The messages that the actor sent arrive before its end is reported.
        let first = cx.recv().await;
        assert_eq!(
            first,
            Event::Message {
                from: child,
                body: Note::Ping
            }
        );
        assert_eq!(
            cx.recv().await,
            Event::Down {
                who: child,
                reason: Reason::Returned
            }
        );
        let other = cx
            .spawn(Spawn::one("other").watched(), |cx, _| silent(cx))
            .await
            .get(0);
        cx.stop(other);
        assert_eq!(
            cx.recv().await,
            Event::Down {
                who: other,
                reason: Reason::Stopped
            }
        );
    });
    let (report, _) = completes(executor, &config(), |_| Watched {});
    assert_eq!(report.waiting_total, 0);
}

// Guarantee: core-22.
fn an_actor_on_demand_starts_with_its_first_event(executor: Executor) {
    scenario!(OnDemand { made: Arc<AtomicU32> }, cx, {
        let count = made.clone();
        let how = Spawn::many(100, "sleeper", "").on_demand();
        let all = cx
            .spawn(how, move |mut cx: C, index| {
                count.fetch_add(1, Relaxed);
                async move {
                    let event = cx.recv().await;
                    let reply_handle = cx.envelope().reply_handle();
                    cx.reply(reply_handle, Note::Number(number(&event) + index));
                }
            })
            .await;
        cx.settle().await;
        assert_eq!(made.load(Relaxed), 0);
        for index in [3, 50] {
            let answer = cx.ask(all.get(index), Note::Ask(1000), LONG).await;
            assert_eq!(answer, Ok(Note::Number(1000 + index)));
        }
        assert_eq!(made.load(Relaxed), 2);
    });
    let (report, _) = completes(executor, &config(), |_| OnDemand {
        made: Arc::default(),
    });
    assert_eq!(report.spawned, 101);
}

// Guarantee: core-25.
fn a_stopped_actor_gets_nothing_more(executor: Executor) {
    scenario!(Stopped {}, cx, {
        let victim = cx
            .spawn(Spawn::one("victim").watched(), |cx, _| silent(cx))
            .await
            .get(0);
        cx.send(victim, Note::Ping);
        cx.settle().await;
        cx.stop(victim);
        assert_eq!(ended(&mut cx, victim).await, Reason::Stopped);
        cx.stop(victim);
        cx.send(victim, Note::Number(1));
        cx.settle().await;
    });
    let (report, _) = completes(executor, &config(), |_| Stopped {});
    assert_eq!(report.messages[0].count, 1);
    assert_eq!(report.messages[1].count, 0);
    assert_eq!(report.dead(), 1);
}

// Guarantee: core-12.
fn settling_waits_for_what_was_sent_before(executor: Executor) {
    const ACTORS: u32 = 200;
    const EACH: u32 = 50;
    scenario!(Settle { handled: Arc<AtomicU32> }, cx, {
        let count = handled.clone();
        let how = Spawn::many(ACTORS, "listener", "").on_demand();
        let all = cx
            .spawn(how, move |mut cx: C, _| {
                let count = count.clone();
                async move {
                    loop {
                        cx.recv().await;
                        count.fetch_add(1, Relaxed);
                    }
                }
            })
            .await;
        // Two actors that exchange messages for ever do not prevent the run from settling.
        let talk = |mut cx: C, index| async move {
            let me = cx.me().as_u32();
            let other = Addr::from_u32(if index == 0 { me + 1 } else { me - 1 });
            loop {
                cx.recv().await;
                cx.send(other, Note::Ping);
            }
        };
        let talkers = cx.spawn(Spawn::many(2, "talker", ""), talk).await;
        cx.send(talkers.get(0), Note::Ping);
        for round in 1..=3 {
            for _ in 0..EACH {
                for to in all.iter() {
                    cx.send(to, Note::Ping);
                }
            }
            cx.settle().await;
            assert_eq!(handled.load(Relaxed), round * ACTORS * EACH);
        }
    });
    completes(executor, &config(), |_| Settle {
        handled: Arc::default(),
    });
}

// Guarantee: core-53.
fn strict_makes_dead_letters_an_error(executor: Executor) {
    scenario!(StrictDead {}, cx, {
        cx.send(Addr::NONE, Note::Number(1));
        cx.settle().await;
    });
    let config = Config {
        strict: true,
        ..config()
    };
    match run(executor, &config, StrictDead {}) {
        Err(RunError::DeadLetters {
            count: 1, first, ..
        }) => {
            assert!(first.starts_with("Number from "), "{first}");
        }
        other => panic!("{other:?}"),
    }
}

// Guarantee: core-53.
fn strict_makes_waiting_actors_an_error(executor: Executor) {
    scenario!(StrictWaiting {}, cx, {
        let waiter = cx.spawn_one("waiter", silent).await;
        cx.send(waiter, Note::Ping);
        cx.settle().await;
        cx.sleep(MS * 10).await;
    });
    let config = Config {
        strict: true,
        ..config()
    };
    match run(executor, &config, StrictWaiting {}) {
        Err(RunError::LeftWaiting { report }) => {
            assert_eq!(report.waiting_total, 1);
            assert_eq!(report.waiting[0].name, "waiter");
        }
        other => panic!("{other:?}"),
    }
}

// Guarantee: core-50.
fn a_deadlock_names_who_waits_for_what(executor: Executor) {
    scenario!(Deadlock {}, cx, {
        cx.spawn_one("waiter", until_event).await;
        let me = cx.me();
        cx.send(me, Note::Ping);
        cx.recv_if(|event| {
            matches!(
                event,
                Event::Message {
                    body: Note::Number(_),
                    ..
                }
            )
        })
        .await;
    });
    match run(executor, &config(), Deadlock {}) {
        Err(error @ RunError::Deadlock { .. }) => {
            let report = error.report().expect("it had begun");
            assert_eq!(report.waiting_total, 2);
            let lines: Vec<String> = report.waiting.iter().map(ToString::to_string).collect();
            assert!(
                lines[0].contains("waits for the event selected at"),
                "{lines:?}"
            );
            assert!(lines[0].ends_with("(1 stashed)"), "{lines:?}");
            assert_eq!(lines[1], "waiter waits for a message");
        }
        other => panic!("{other:?}"),
    }
}

// Guarantee: core-78.
fn a_message_continues_the_trace_of_what_is_being_handled(executor: Executor) {
    scenario!(Trace {}, cx, {
        let echo = cx
            .spawn_one("echo", |mut cx: C| async move {
                loop {
                    cx.recv().await;
                    let to = cx.envelope().from;
                    cx.send(to, Note::Number(1));
                    cx.new_trace();
                    cx.send(to, Note::Number(2));
                }
            })
            .await;
        cx.new_trace();
        let first = cx.send(echo, Note::Ping);
        assert_eq!(first.sender(), cx.me());
        cx.recv().await;
        let one = cx.envelope();
        assert_eq!((one.trace, one.parent, one.from), (first, first, echo));
        assert_eq!(one.answers, SpanId::NONE);
        cx.recv().await;
        let two = cx.envelope();
        assert_eq!((two.trace, two.parent), (two.span, SpanId::NONE));
        assert_eq!(two.span.as_u64(), one.span.as_u64() + 1);
    });
    completes(executor, &config(), |_| Trace {});
}

// Guarantee: arch-11.
fn work_put_off_continues_the_trace_that_it_is_given(executor: Executor) {
    scenario!(Trace {}, cx, {
        let late = cx
            .spawn_one("late", |mut cx: C| async move {
                cx.recv().await;
                let first = cx.envelope();
                cx.recv().await;
                let second = cx.envelope();
                cx.continue_trace(first.trace, first.span);
                cx.send(first.from, Note::Number(1));
                cx.continue_trace(second.trace, second.span);
                cx.send(first.from, Note::Number(2));
            })
            .await;
        cx.new_trace();
        let first = cx.send(late, Note::Ping);
        cx.new_trace();
        let second = cx.send(late, Note::Ping);
        for request in [first, second] {
            cx.recv().await;
            let answer = cx.envelope();
            assert_eq!((answer.trace, answer.parent), (request, request));
        }
    });
    completes(executor, &config(), |_| Trace {});
}

// Guarantee: core-19.
fn random_streams_belong_to_seed_and_address(executor: Executor) {
    scenario!(Draws { log: Log }, cx, {
        let mut numbers = vec![cx.random(), cx.random()];
        let child = cx
            .spawn_one("child", |mut cx: C| async move {
                cx.recv().await;
                let (reply_handle, n) = (cx.envelope().reply_handle(), cx.below(1 << 30));
                cx.reply(reply_handle, Note::Number(n));
            })
            .await;
        match cx.ask(child, Note::Ping, LONG).await {
            Ok(Note::Number(n)) => numbers.push(n.into()),
            other => panic!("{other:?}"),
        }
        say(&log, format!("{numbers:?}"));
    });
    let draws = |seed| completes(executor, &Config { seed, ..config() }, |log| Draws { log }).1;
    assert_eq!(draws(1), draws(1));
    assert_ne!(draws(1), draws(2));
}

// Guarantee: core-57.
fn totals_per_actor_count_sent_and_received(executor: Executor) {
    scenario!(Totals {}, cx, {
        let whom = cx
            .spawn(Spawn::many(2, "oracle", "").on_demand(), |cx, _| {
                successor(cx)
            })
            .await
            .get(0);
        for n in 0..5 {
            assert!(cx.ask(whom, Note::Ask(n), LONG).await.is_ok());
        }
    });
    let config = Config {
        per_actor: true,
        ..config()
    };
    let (report, _) = completes(executor, &config, |_| Totals {});
    let totals: Vec<_> = report
        .per_actor
        .iter()
        .map(|actor| (actor.sent, actor.received))
        .collect();
    assert_eq!(totals, [(5, 5), (5, 5), (0, 0)]);
    assert!(report.per_actor.is_sorted_by_key(|actor| actor.who));
}

// Guarantee: core-33.
fn handlers_do_what_bodies_do(executor: Executor) {
    use corsair::{Actor, Context, Flow};
    struct Countdown(u32);
    impl Actor<Note> for Countdown {
        fn start<C: Context<Note>>(&mut self, cx: &mut C) {
            cx.timer(MS, Token::new(0));
        }
        fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
            assert!(matches!(event, Event::Timer(_)));
            cx.timer(MS, Token::new(0));
            cx.send(cx.parent(), Note::Number(self.0));
            self.0 -= 1;
            if self.0 == 0 {
                Flow::Stop
            } else {
                Flow::Continue
            }
        }
    }
    scenario!(Handlers { log: Log }, cx, {
        cx.spawn_actors(Spawn::one("countdown").watched(), |_| Countdown(3))
            .await;
        loop {
            match cx.recv().await {
                Event::Down { reason, .. } => return say(&log, format!("{reason:?}")),
                event => say(&log, number(&event)),
            }
        }
    });
    let (report, seen) = completes(executor, &config(), |log| Handlers { log });
    assert_eq!(seen, ["3", "2", "1", "Returned"]);
    assert_eq!(report.timers, 3);
}

// Guarantee: core-47.
fn a_run_without_messages_completes(executor: Executor) {
    scenario!(Nothing {}, cx, {
        assert_eq!(cx.parent(), Addr::NONE);
    });
    let (report, _) = completes(executor, &config(), |_| Nothing {});
    assert_eq!((report.delivered(), report.spawned), (0, 1));
}
