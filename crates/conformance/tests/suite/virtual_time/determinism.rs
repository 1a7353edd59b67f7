//! Every difference between two runs of a scenario is reported.

use super::config;
use corsair::{
    AsyncContext, Message, NotDeterministic, Results, Scenario, Spawn, Token, check_determinism,
};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, Message)]
struct Nothing;

/// A root whose action depends on the number of the run, which is 0 or 1.
struct Act {
    act: fn(u32) -> What,
    run: u32,
}

/// An action of the root.
enum What {
    Spawn(Spawn),
    Stop(u32),
    SendInVain(u32),
    Count(&'static str),
    Gauge(f64),
    Timer(u32),
    Linger(u64),
}

impl Scenario<Nothing> for Act {
    async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
        let how = Spawn::many(2, "idle", "");
        let idle = cx.spawn(how, |mut cx: C, _| async move {
            cx.recv().await;
        });
        let idle = idle.await;
        match (self.act)(self.run) {
            What::Spawn(how) => drop(cx.spawn(how, |_: C, _| async {}).await),
            What::Stop(which) => cx.stop(idle.get(which)),
            What::SendInVain(number) => {
                cx.stop(idle.get(number));
                cx.sleep(MS * 5).await;
                cx.send(idle.get(number), Nothing);
            }
            What::Count(name) => cx.count(name, 1),
            What::Gauge(value) => cx.gauge("value", value),
            What::Timer(token) => cx.timer(MS, Token::new(token)),
            What::Linger(nanos) => cx.sleep(Duration::from_nanos(nanos)).await,
        }
        cx.sleep(MS * 10).await;
    }
}

fn difference(act: fn(u32) -> What) -> String {
    let runs = AtomicU32::new(0);
    let make = || Act {
        act,
        run: runs.fetch_add(1, Relaxed),
    };
    match check_determinism(&config(2), make) {
        Err(NotDeterministic::Differs(difference)) => difference.to_string(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn reports(act: fn(u32) -> What, parts: &[&str]) {
    let said = difference(act);
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}

// Guarantee: core-64.
#[test]
fn what_no_message_and_no_timer_shows_is_reported_as_well() {
    let many = |run| What::Spawn(Spawn::many(1 + run, "more", ""));
    reports(
        many,
        &["1 actors spawned for it", "2 actors spawned for it"],
    );
    let on_demand = |run| What::Spawn(Spawn::many(1 + run, "more", "").on_demand());
    reports(
        on_demand,
        &["root got the addresses of 1 actors", "of 2 actors"],
    );
    reports(
        What::Stop,
        &["idle0 was stopped by root", "idle1 was stopped by root"],
    );
    reports(
        What::SendInVain,
        &["idle0 was stopped", "idle1 was stopped"],
    );
    reports(What::Timer, &["root got timer 0", "root got timer 1"]);
    reports(|run| What::Linger(run.into()), &["a wait of root was over"]);
}

// Guarantee: core-64.
#[test]
fn what_is_recorded_differently_is_reported_with_its_name() {
    reports(
        |run| What::Count(["one", "two"][run as usize]),
        &["the counter `one` was 1", "the counter `one` is missing"],
    );
    reports(
        |run| What::Gauge(run.into()),
        &["the gauge `value` was Gauge { value: 0.0", "value: 1.0"],
    );
}

/// Performs every kind of action, equally in both runs. One gauge is NaN.
struct Same;

impl Scenario<Nothing> for Same {
    async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
        let results = Results::new();
        let idle = cx.spawn(
            Spawn::many(300, "idle", "").watched(),
            move |mut cx: C, index| {
                let results = results.clone();
                async move {
                    results.hand_in(&cx, index);
                    if index % 3 == 0 {
                        cx.recv().await;
                    }
                }
            },
        );
        let idle = idle.await;
        cx.gauge("no number", f64::NAN);
        for one in idle.iter().step_by(6) {
            cx.stop(one);
            cx.send(one, Nothing);
            cx.request(one, Nothing);
        }
        while cx.recv_timeout(MS * 10).await.is_some() {}
    }
}

// Guarantee: core-64.
#[test]
fn a_scenario_that_does_the_same_twice_is_no_difference() {
    let report = check_determinism(&config(3), || Same).unwrap();
    assert!(report.dead() > 0 && report.ended > 200);
}

/// Panics in one of two runs, after equal events in both.
struct Sometimes(u32);

impl Scenario<Nothing> for Sometimes {
    async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
        for number in 0..3 {
            let me = cx.me();
            cx.timer(Duration::from_nanos(10), Token::new(number));
            cx.recv().await;
            cx.send_self(Nothing);
            cx.recv().await;
            assert!(number < 2 || self.0 == 0, "{me} has had enough");
        }
        cx.recv().await;
    }
}

#[test]
fn of_two_runs_of_which_one_panics_it_is_reported_which_and_after_what() {
    let runs = AtomicU32::new(0);
    let make = || Sometimes(runs.fetch_add(1, Relaxed));
    match check_determinism(&config(1), make).unwrap_err() {
        NotDeterministic::Differs(difference) => {
            let text = difference.to_string();
            let [one, two] = difference.happened;
            assert_eq!(one, None, "{text}");
            let two = two.unwrap();
            assert!(two.contains("the run ended with: root panicked"), "{two}");
            assert!(two.contains("has had enough"), "{two}");
            let last = difference.last_common.unwrap();
            assert!(last.contains("root got timer 2"), "{last}");
            assert!(text.contains(&last), "{text}");
        }
        other => panic!("{other}"),
    }
}
