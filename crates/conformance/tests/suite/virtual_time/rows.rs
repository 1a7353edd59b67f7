//! Rows: several messages that reach one actor at one instant. An async body receives them without returning to the
//! engine in between; the result must be the same as for a handler, which gets them one at a time.

use super::number::{MS, Number, config};
use corsair::{
    Actor, AsyncContext, Config, Context, Event, Flow, Message, Panics, Report, RunError, Scenario,
    Spawn, Token, drive,
};
use std::time::Duration;

/// The action of a receiver at one of the messages of its rows.
#[derive(Clone, Copy, Debug)]
enum Act {
    End,
    Panic,
    /// Panics while the engine computes the message's fingerprint.
    PanicInFingerprint,
    SendSelf,
    TimerNow,
    Draw,
}

const ACTS: [Act; 6] = [
    Act::End,
    Act::Panic,
    Act::PanicInFingerprint,
    Act::SendSelf,
    Act::TimerNow,
    Act::Draw,
];

const BAD: u64 = 1 << 40;

/// A number whose fingerprint panics for some values.
#[derive(Debug)]
struct CheckedNumber(u64);

impl Message for CheckedNumber {
    const KINDS: &'static [&'static str] = &["CheckedNumber"];

    fn kind(&self) -> usize {
        0
    }

    fn fingerprint(&self) -> u64 {
        assert!(self.0 < BAD, "bad fingerprint");
        self.0
    }
}

struct Receiver {
    act: Act,
    at: u64,
    got: u64,
}

impl Actor<CheckedNumber> for Receiver {
    fn on<C: Context<CheckedNumber>>(&mut self, event: Event<CheckedNumber>, cx: &mut C) -> Flow {
        self.got += 1;
        cx.count(
            if matches!(event, Event::Timer(_)) {
                "timers"
            } else {
                "messages"
            },
            1,
        );
        let parent = cx.parent();
        cx.send(parent, CheckedNumber(self.got));
        if self.got != self.at {
            return Flow::Continue;
        }
        match self.act {
            Act::End => return Flow::Stop,
            Act::Panic => panic!("on {event:?}"),
            Act::PanicInFingerprint => {}
            Act::SendSelf => {
                cx.send_self(CheckedNumber(7));
            }
            Act::TimerNow => cx.timer(Duration::ZERO, Token::new(3)),
            Act::Draw => {
                let random = cx.random();
                cx.send(parent, CheckedNumber(random % 1000));
            }
        }
        Flow::Continue
    }
}

#[derive(Clone, Copy)]
struct Rows {
    act: Act,
    at: u64,
    bodies: bool,
}

const RECEIVERS: u32 = if cfg!(miri) { 3 } else { 300 };

impl Scenario<CheckedNumber> for Rows {
    async fn root<C: AsyncContext<CheckedNumber>>(self, mut cx: C) {
        let Rows { act, at, bodies } = self;
        let make = move |index: u32| Receiver {
            act,
            at: if index.is_multiple_of(3) {
                at
            } else {
                u64::MAX
            },
            got: 0,
        };
        let spawn = Spawn::many(RECEIVERS, "receiver", "").watched();
        let receivers = if bodies {
            cx.spawn(spawn, move |cx: C, index| async move {
                drive(make(index), cx).await;
            })
            .await
        } else {
            cx.spawn_actors(spawn, make).await
        };
        // Each sender sends rows. Because all rows arrive at one instant, they also form rows of several senders.
        let senders = Spawn::many(3, "sender", "");
        cx.spawn(senders, move |mut cx: C, sender| async move {
            for to in receivers.iter() {
                for number in 0..4 {
                    let bad = matches!(act, Act::PanicInFingerprint)
                        && (to.as_u32() + sender) % 7 == 0
                        && number == at;
                    cx.send(to, CheckedNumber(number + if bad { BAD } else { 0 }));
                }
            }
            cx.recv().await;
        })
        .await;
        while cx.recv_timeout(20 * MS).await.is_some() {}
    }
}

/// Returns the results that must be the same for both forms.
fn comparable(result: Result<Report, RunError>) -> String {
    let (end, report) = match result {
        Ok(report) => ("ok".to_owned(), report),
        Err(RunError::Panicked { panic, report }) => (format!("{panic:?}"), *report),
        Err(other) => panic!("{other}"),
    };
    format!(
        "{end} {:?} {} {} {:?} {:?} {}",
        report.digest,
        report.delivered(),
        report.dead(),
        report.panics,
        report.probes,
        report.ended,
    )
}

// Guarantees: core-33, core-38, core-58.
#[test]
fn a_body_gets_rows_as_a_handler_does() {
    for act in ACTS {
        for at in [1, 2, 5, 11] {
            for panics in [Panics::EndActor, Panics::EndRun] {
                let all = |bodies, workers, lookahead| {
                    let config = Config {
                        panics,
                        traces: at != 2,
                        lookahead,
                        ..config(workers)
                    };
                    comparable(corsair::simulate(&config, Rows { act, at, bodies }))
                };
                let handlers = all(false, 1, None);
                for (workers, lookahead) in [(1, None), (2, None), (3, Some(MS / 7))] {
                    let bodies = all(true, workers, lookahead);
                    assert_eq!(bodies, handlers, "{act:?} at {at}, {workers} workers");
                }
            }
        }
    }
}

// Guarantee: core-31.
#[test]
fn a_body_that_waits_for_something_else_within_a_row_stashes_the_rest() {
    struct Waits;
    impl Scenario<Number> for Waits {
        async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
            let me = cx.me();
            for number in 0..6 {
                cx.send(me, Number(number));
            }
            let number = |event| match event {
                Event::Message { body, .. } => body,
                other => panic!("{other:?}"),
            };
            let mut seen = vec![number(cx.recv().await)];
            let fifth = |event: &Event<Number>| {
                matches!(
                    event,
                    Event::Message {
                        body: Number(4),
                        ..
                    }
                )
            };
            seen.push(number(cx.recv_if(fifth).await));
            cx.sleep(MS).await;
            for _ in 0..4 {
                seen.push(number(cx.recv().await));
            }
            let seen: Vec<u64> = seen.iter().map(|number| number.0).collect();
            assert_eq!(seen, [0, 4, 1, 2, 3, 5]);
        }
    }
    for workers in 1..=2 {
        corsair::simulate(&config(workers), Waits).unwrap();
    }
}

/// Polls two futures in one body: one receives, and the other counts its polls.
#[test]
fn a_row_reaches_futures_that_are_polled_together() {
    struct Joins;
    impl Scenario<Number> for Joins {
        async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
            let me = cx.me();
            for number in 0..6 {
                cx.send(me, Number(number));
            }
            let (done, over) = futures_util::future::abortable(std::future::pending::<()>());
            let receive = async {
                let mut sum = 0;
                for _ in 0..6 {
                    match cx.recv().await {
                        Event::Message { body, .. } => sum += body.0,
                        other => panic!("{other:?}"),
                    }
                }
                over.abort();
                sum
            };
            let (sum, other) = futures_util::future::join(receive, done).await;
            assert!(other.is_err());
            cx.track("sum", sum as f64);
            assert_eq!(sum, 15);
        }
    }
    let one = corsair::simulate(&config(1), Joins).unwrap();
    let two = corsair::simulate(&config(2), Joins).unwrap();
    assert_eq!((one.digest, one.probes), (two.digest, two.probes));
}
