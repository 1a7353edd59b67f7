//! Full mailboxes: the effect of each policy on the wall-clock executors.

use corsair::{
    Addr, AsyncContext, Config, Event, Executor, Message, Overflow, Reason, RunError, Scenario,
    Spawn, Token, run,
};
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[derive(Clone, Debug, Message)]
struct Number(u32);

const EXECUTORS: [Executor; 3] = [Executor::Tokio, Executor::Threads, Executor::Pool];

fn config(mailbox: usize, overflow: Overflow) -> Config {
    Config {
        workers: 2.try_into().unwrap(),
        mailbox: mailbox.try_into().unwrap(),
        overflow,
        ..Config::default()
    }
}

/// Sends itself ten numbers without a wait, one by one or as two rows, and then records its messages for 20 ms.
struct Flood {
    in_rows: bool,
    seen: Arc<Mutex<Vec<u32>>>,
}

impl Scenario<Number> for Flood {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let me = cx.me();
        if self.in_rows {
            cx.send_all(me, [0, 1, 2].map(Number));
            cx.send_all(me, []);
            cx.send_all(me, [3, 4, 5, 6, 7, 8, 9].map(Number));
        } else {
            for n in 0..10 {
                cx.send(me, Number(n));
            }
        }
        cx.timer(Duration::from_millis(20), Token::new(1));
        while let Event::Message {
            body: Number(n), ..
        } = cx.recv().await
        {
            self.seen.lock().unwrap().push(n);
        }
    }
}

fn flood(executor: Executor, overflow: Overflow) -> (u64, Vec<u32>) {
    let [one_by_one, rows] = [false, true].map(|in_rows| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let flood = Flood {
            in_rows,
            seen: seen.clone(),
        };
        let report = run(executor, &config(4, overflow), flood).unwrap();
        assert_eq!(report.delivered(), seen.lock().unwrap().len() as u64);
        (report.dropped, std::mem::take(&mut *seen.lock().unwrap()))
    });
    assert_eq!(one_by_one, rows);
    rows
}

// Guarantee: core-43, core-44.
#[test]
fn block_loses_nothing() {
    for executor in EXECUTORS {
        assert_eq!(flood(executor, Overflow::Block), (0, (0..10).collect()));
    }
}

// Guarantee: core-45.
#[test]
fn drop_newest_keeps_what_came_first() {
    for executor in EXECUTORS {
        assert_eq!(flood(executor, Overflow::DropNewest), (6, vec![0, 1, 2, 3]));
    }
}

// Guarantee: core-45.
#[test]
fn drop_oldest_keeps_what_came_last() {
    for executor in EXECUTORS {
        assert_eq!(flood(executor, Overflow::DropOldest), (6, vec![6, 7, 8, 9]));
    }
}

// Guarantee: core-46.
#[test]
fn fail_ends_the_run_and_names_the_mailbox() {
    for executor in EXECUTORS {
        match run(
            executor,
            &config(4, Overflow::Fail),
            Flood {
                in_rows: true,
                seen: Arc::default(),
            },
        ) {
            Err(RunError::Overflow {
                name, capacity: 4, ..
            }) => assert_eq!(name, "root"),
            other => panic!("{executor:?}: {other:?}"),
        }
    }
}

/// Actors that each send many messages at once to all others, through mailboxes with a capacity of one.
struct Brawl;

const FIGHTERS: u32 = 6;
const BLOWS: u32 = 300;

impl Scenario<Number> for Brawl {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let first = cx.me().as_u32() + 1;
        let fight = move |mut cx: C, index| async move {
            cx.recv().await;
            for n in 0..BLOWS {
                for other in (0..FIGHTERS).filter(|other| *other != index) {
                    cx.send(Addr::from_u32(first + other), Number(n));
                }
            }
            for _ in 0..BLOWS * (FIGHTERS - 1) {
                cx.recv().await;
            }
        };
        let fighters = cx
            .spawn(Spawn::many(FIGHTERS, "fighter", "").watched(), fight)
            .await;
        assert_eq!(fighters.get(0).as_u32(), first);
        for fighter in fighters.iter() {
            cx.send(fighter, Number(0));
        }
        for _ in fighters.iter() {
            let event = cx.recv().await;
            assert!(
                matches!(
                    event,
                    Event::Down {
                        reason: Reason::Returned,
                        ..
                    }
                ),
                "{event:?}"
            );
        }
    }
}

// Guarantee: core-43, core-44.
#[test]
fn actors_that_flood_each_other_through_mailboxes_for_one_all_finish() {
    for executor in EXECUTORS {
        let report = run(executor, &config(1, Overflow::Block), Brawl).unwrap();
        let expected = FIGHTERS * (FIGHTERS - 1) * BLOWS + FIGHTERS;
        assert_eq!(report.delivered(), u64::from(expected), "{executor:?}");
        assert_eq!((report.dropped, report.dead()), (0, 0));
    }
}

/// An actor sends more messages than a mailbox holds, and ends at once.
struct LastWords;

impl Scenario<Number> for LastWords {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let me = cx.me();
        cx.spawn_one("dying", move |mut cx: C| async move {
            for n in 0..50 {
                cx.send(me, Number(n));
            }
        })
        .await;
        for expected in 0..50 {
            let event = cx.recv().await;
            assert!(matches!(event, Event::Message { body: Number(n), .. } if n == expected));
        }
    }
}

// Guarantee: core-26.
#[test]
fn what_an_actor_sent_before_its_end_arrives_room_or_not() {
    for executor in EXECUTORS {
        let report = run(executor, &config(2, Overflow::Block), LastWords).unwrap();
        assert_eq!(report.delivered(), 50);
    }
}

/// A future that polls its inner future only if that future's own waker was called, like the futures of a
/// `FuturesUnordered`.
struct Picky<F> {
    future: Pin<Box<F>>,
    woken: Arc<Woken>,
}

struct Woken {
    itself: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.itself.store(true, SeqCst);
        let outer = self.outer.lock().unwrap().clone();
        outer.unwrap().wake();
    }
}

impl<F: Future> Future for Picky<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        *this.woken.outer.lock().unwrap() = Some(task.waker().clone());
        if !this.woken.itself.swap(false, SeqCst) {
            return Poll::Pending;
        }
        let waker = Waker::from(this.woken.clone());
        this.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// The root sends more messages than a mailbox holds. It waits for capacity and for an answer in a future with its own
/// waker.
struct Roundabout;

impl Scenario<Number> for Roundabout {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let slow = cx
            .spawn(Spawn::one("slow"), |mut cx, _| async move {
                for _ in 0..9 {
                    cx.sleep(Duration::from_millis(1)).await;
                    cx.recv().await;
                }
                let to = cx.parent();
                cx.send(to, Number(9));
            })
            .await
            .get(0);
        for n in 0..9 {
            cx.send(slow, Number(n));
        }
        let woken = Arc::new(Woken {
            itself: AtomicBool::new(true),
            outer: Mutex::default(),
        });
        let future = Box::pin(cx.recv());
        let answer = Picky { future, woken }.await;
        assert!(matches!(
            answer,
            Event::Message {
                body: Number(9),
                ..
            }
        ));
    }
}

#[test]
fn room_and_answers_wake_the_future_that_waits_for_them() {
    for executor in EXECUTORS {
        let report = run(executor, &config(2, Overflow::Block), Roundabout).unwrap();
        assert_eq!(report.delivered(), 10);
    }
}
