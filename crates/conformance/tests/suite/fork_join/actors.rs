//! Fork-join inside actors, on every executor.

#![allow(
    clippy::manual_async_fn,
    reason = "a recursive `async fn` that must be `Send` does not compile"
)]

use corsair::fork_join::{Pool, fork_join, join};
use corsair::{Addr, AsyncContext, Config, Event, Executor, Message, Scenario, run};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const EXECUTORS: [Executor; 4] = [
    Executor::Virtual,
    Executor::Tokio,
    Executor::Threads,
    Executor::Pool,
];

/// The form of fork-join that an actor uses.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Closures, on the global pool.
    Closures,
    /// Futures, in the actor's own task.
    Futures,
    /// Futures, on the global pool.
    BlockOn,
}

#[derive(Message)]
enum Msg {
    /// Add up all numbers up to this one.
    Sum(u64),
    Total(u64),
}

fn closures(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = low + (high - low) / 2;
    let (a, b) = join(|| closures(low, mid), || closures(mid + 1, high));
    a + b
}

fn futures(low: u64, high: u64) -> impl Future<Output = u64> + Send {
    async move {
        if low == high {
            return low;
        }
        let mid = low + (high - low) / 2;
        let (a, b) = fork_join(futures(low, mid), futures(mid + 1, high)).await;
        a + b
    }
}

/// Adds up the requested ranges, and records the virtual time of each answer.
async fn adder<C: AsyncContext<Msg>>(mut cx: C, form: Form, times: Arc<Mutex<Vec<u64>>>) {
    loop {
        let Event::Message {
            body: Msg::Sum(high),
            from,
        } = cx.recv().await
        else {
            continue;
        };
        let before = cx.now();
        let total = match form {
            Form::Closures => closures(0, high),
            Form::Futures => futures(0, high).await,
            Form::BlockOn => Pool::global().block_on(futures(0, high)),
        };
        let took = cx.now().as_nanos() - before.as_nanos();
        times.lock().expect("no actor panics").push(took);
        cx.send(from, Msg::Total(total));
    }
}

struct Sums {
    form: Form,
    times: Arc<Mutex<Vec<u64>>>,
    totals: Arc<Mutex<Vec<u64>>>,
}

impl Scenario<Msg> for Sums {
    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
        let mut adders: Vec<Addr> = Vec::new();
        for _ in 0..4 {
            let times = Arc::clone(&self.times);
            let form = self.form;
            adders.push(
                cx.spawn_one("adder", move |cx| adder(cx, form, times))
                    .await,
            );
        }
        for (index, adder) in adders.iter().enumerate() {
            cx.send(*adder, Msg::Sum(1000 * (index as u64 + 1)));
        }
        let mut totals = Vec::new();
        while totals.len() < adders.len() {
            if let Event::Message {
                body: Msg::Total(total),
                ..
            } = cx.recv().await
            {
                totals.push(total);
            }
        }
        *self.totals.lock().expect("no actor panics") = totals;
        cx.sleep(Duration::from_millis(1)).await;
    }
}

/// Runs the scenario. Returns the totals in the order of their arrival, the times at the actors, and the time at the
/// end.
fn sums(executor: Executor, form: Form) -> (Vec<u64>, Vec<u64>, u64) {
    let (times, totals) = (Arc::default(), Arc::default());
    let scenario = Sums {
        form,
        times: Arc::clone(&times),
        totals: Arc::clone(&totals),
    };
    let report = run(
        executor,
        &Config {
            seed: 7,
            ..Config::default()
        },
        scenario,
    )
    .unwrap_or_else(|error| panic!("{executor:?}, {form:?}: {error}"));
    let taken = |numbers: &Mutex<Vec<u64>>| numbers.lock().expect("no actor panics").clone();
    (taken(&totals), taken(&times), report.time.as_nanos())
}

// Guarantee: core-92.
#[test]
fn every_form_works_in_actors_of_every_executor() {
    for executor in EXECUTORS {
        for form in [Form::Closures, Form::Futures, Form::BlockOn] {
            let (mut totals, _, _) = sums(executor, form);
            totals.sort_unstable();
            let expected = [500_500, 2_001_000, 4_501_500, 8_002_000];
            assert_eq!(totals, expected, "{executor:?}, {form:?}");
        }
    }
}

// Guarantee: core-92.
#[test]
fn in_virtual_time_a_join_is_part_of_its_event() {
    for form in [Form::Closures, Form::Futures, Form::BlockOn] {
        let first = sums(Executor::Virtual, form);
        assert_eq!(first.1, [0; 4], "{form:?}: a join takes no virtual time");
        assert_eq!(
            first,
            sums(Executor::Virtual, form),
            "{form:?}: twice the same"
        );
    }
}
