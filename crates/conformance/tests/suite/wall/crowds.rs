//! Many actors on demand, and actors on demand whose first message comes from an actor that continues without a wait.

use corsair::{
    Addr, AsyncContext, Config, Event, Executor, Message, Reason, Scenario, Spawn, Time, run,
};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Message)]
enum Note {
    Number(u32),
    Sum(u32),
}

const EXECUTORS: [Executor; 3] = [Executor::Tokio, Executor::Threads, Executor::Pool];

fn config(workers: usize) -> Config {
    Config {
        workers: workers.try_into().unwrap(),
        // A run that hangs fails at this time.
        end: Some(Time::ZERO.after(Duration::from_secs(60))),
        ..Config::default()
    }
}

/// Sends three numbers to each actor of a crowd in one step, and waits for the sums.
struct Crowd {
    count: u32,
}

/// Adds up three numbers. Every seventh actor ends at once, and the root stops every eleventh.
async fn adder<C: AsyncContext<Note>>(mut cx: C, index: u32) {
    let root = cx.parent();
    let mut last = 0;
    let mut sum = 0;
    for _ in 0..3 {
        if let Event::Message {
            body: Note::Number(number),
            ..
        } = cx.recv().await
        {
            assert!(number > last, "in the order of sending");
            last = number;
            sum += number;
        }
    }
    cx.send(root, Note::Sum(sum));
    if !index.is_multiple_of(7) {
        cx.recv().await;
    }
}

impl Scenario<Note> for Crowd {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let how = Spawn::many(self.count, "adder", "").on_demand().watched();
        let all = cx.spawn(how, adder).await;
        let stopped = |who: Addr| (who.as_u32() - all.get(0).as_u32()).is_multiple_of(11);
        let (mut due, mut ends) = (0, 0);
        for (index, who) in (0..).zip(all.iter()) {
            cx.send_all(who, [1, 2, 3].map(|n| Note::Number(n + index)));
            if stopped(who) {
                cx.stop(who);
                ends += 1;
            } else {
                due += 1;
                ends += u32::from(index % 7 == 0);
            }
        }
        let mut sums = 0;
        while due > 0 || ends > 0 {
            match cx.recv().await {
                Event::Message { from, body } => {
                    let index = from.as_u32() - all.get(0).as_u32();
                    assert_eq!(body, Note::Sum(6 + 3 * index));
                    sums += 1;
                    due -= u32::from(!stopped(from));
                }
                Event::Down { who, reason } => {
                    let wanted = if stopped(who) {
                        Reason::Stopped
                    } else {
                        Reason::Returned
                    };
                    // A stopped actor may have ended before.
                    assert!(reason == wanted || stopped(who), "{reason:?}");
                    ends -= 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(sums >= self.count - self.count.div_ceil(11));
    }
}

// Guarantee: core-22.
#[test]
fn a_crowd_that_is_sent_to_in_one_step_begins_and_gets_all_in_order() {
    for executor in EXECUTORS {
        // Numbers below, at and above the sizes of the groups in which actors begin.
        for count in [1, 7, 8, 255, 256, 257, 600] {
            for workers in [1, 2] {
                let report = run(executor, &config(workers), Crowd { count }).unwrap();
                assert_eq!(report.spawned, u64::from(count) + 1);
            }
        }
    }
    for executor in [Executor::Tokio, Executor::Pool] {
        run(executor, &config(2), Crowd { count: 20_000 }).unwrap();
    }
}

/// Sends to actors on demand and occupies its thread, without a wait, until all of them have begun.
struct Stubborn {
    begun: Arc<AtomicU32>,
}

impl Scenario<Note> for Stubborn {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let begun = self.begun.clone();
        let how = Spawn::many(10, "guest", "").on_demand();
        let all = cx
            .spawn(how, move |mut cx, _| {
                let begun = begun.clone();
                async move {
                    cx.recv().await;
                    begun.fetch_add(1, SeqCst);
                }
            })
            .await;
        for who in all.iter() {
            cx.send(who, Note::Number(0));
        }
        let patience = Instant::now() + Duration::from_secs(20);
        while self.begun.load(SeqCst) < 10 && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

// Guarantee: core-22.
#[test]
fn actors_begin_though_who_sent_to_them_goes_on_without_a_wait() {
    for executor in EXECUTORS {
        let begun = Arc::new(AtomicU32::new(0));
        let stubborn = Stubborn {
            begun: begun.clone(),
        };
        run(executor, &config(2), stubborn).unwrap();
        assert_eq!(begun.load(SeqCst), 10, "{executor:?}");
    }
}

/// Ends before its actors on demand, which have messages, have begun.
struct Hasty;

impl Scenario<Note> for Hasty {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let how = Spawn::many(1_000, "late", "").on_demand();
        let all = cx.spawn(how, adder).await;
        for who in all.iter() {
            cx.send(who, Note::Number(1));
        }
    }
}

#[test]
fn a_run_may_end_before_those_on_demand_have_begun() {
    for executor in [Executor::Tokio, Executor::Pool] {
        for _ in 0..20 {
            let report = run(executor, &config(2), Hasty).unwrap();
            assert_eq!(report.spawned, 1_001);
        }
    }
}
