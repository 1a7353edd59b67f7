//! Tests of the recorded events and values of actors.

use crate::everywhere::config;
use corsair::{
    Actor, AsyncContext, Config, Context, Event, Executor, Flow, Message, Report, Scenario,
    Simulation, Spawn, Time, Token,
};
use std::time::Duration;

on_every_executor! {
    what_is_recorded_before_the_warm_up_is_over_is_left_out
}

const MS: Duration = Duration::from_millis(1);

#[derive(Message)]
struct Nothing;

/// Records the number of each of its ticks with every kind of probe.
struct Recorder {
    ticks: u32,
}

impl Actor<Nothing> for Recorder {
    fn start<C: Context<Nothing>>(&mut self, cx: &mut C) {
        self.record(cx);
        cx.every(10 * MS, Token::new(1));
    }

    fn on<C: Context<Nothing>>(&mut self, _: Event<Nothing>, cx: &mut C) -> Flow {
        self.record(cx);
        Flow::Continue
    }
}

impl Recorder {
    fn record<C: Context<Nothing>>(&mut self, cx: &mut C) {
        let number = f64::from(self.ticks);
        self.ticks += 1;
        let early = cx.now() < Time::ZERO.after(WARM_UP);
        cx.count("ticks", 1);
        cx.count(if early { "early" } else { "late" }, 1);
        cx.gauge("number", number);
        cx.observe("numbers", number);
        cx.track("course", number);
    }
}

const WARM_UP: Duration = Duration::from_millis(35);

struct Ticks;

impl Scenario<Nothing> for Ticks {
    async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
        let recorder = |_| Recorder { ticks: 0 };
        cx.spawn_actors(Spawn::one("recorder"), recorder).await;
        cx.sleep(Duration::from_millis(85)).await;
    }
}

fn counted(report: &Report, name: &str) -> u64 {
    report.probes.counter(name)
}

// Guarantee: core-56.
fn what_is_recorded_before_the_warm_up_is_over_is_left_out(executor: Executor) {
    let all = corsair::run(executor, &config(), Ticks).unwrap();
    let config = Config {
        warm_up: Time::ZERO.after(WARM_UP),
        ..config()
    };
    let late = corsair::run(executor, &config, Ticks).unwrap();
    assert!(counted(&all, "early") >= 1, "{:?}", all.probes);
    assert_eq!(counted(&late, "early"), 0, "{:?}", late.probes);
    assert!(counted(&late, "late") >= 1, "{:?}", late.probes);
    assert_eq!(counted(&late, "ticks"), counted(&late, "late"));
}

/// Returns the names of all probes in a report.
fn names(report: &Report) -> Vec<&'static str> {
    let probes = &report.probes;
    let all = probes.counters.keys().chain(probes.gauges.keys());
    let all = all.chain(probes.histograms.keys());
    all.chain(probes.series.keys()).copied().collect()
}

// Guarantee: core-56.
#[test]
fn a_warm_up_counts_from_its_instant_in_virtual_time() {
    let warm_up = |nanos| {
        let config = Config {
            warm_up: Time::from_nanos(nanos),
            ..config()
        };
        corsair::simulate(&config, Ticks).unwrap()
    };
    let begun = warm_up(0).probes.series["course"].intervals().next();
    let begun = begun.unwrap().from;
    let all = warm_up(0);
    assert_eq!(all.probes.histograms["numbers"].count(), 9, "{begun}");
    // The recorder begins after the shortest latency. Records made exactly at the end of the warm-up are included.
    let first = Config::default().latency.min().as_nanos() as u64;
    for (nanos, left) in [(first, 9), (first + 1, 8), (first + 10_000_000, 8)] {
        let report = warm_up(nanos);
        assert_eq!(counted(&report, "ticks"), left, "{nanos}");
        let numbers = &report.probes.histograms["numbers"];
        assert_eq!(numbers.count(), left);
        assert_eq!(report.probes.gauges["number"].least, 9.0 - left as f64);
        assert_eq!(report.digest, all.digest, "recording changes nothing");
    }
    assert_eq!(names(&warm_up(u64::MAX - 2)), [""; 0]);
}

// Guarantee: core-56.
#[test]
fn probes_that_are_reset_count_from_then_on() {
    for workers in 1..=3 {
        let config = Config {
            workers: workers.try_into().unwrap(),
            ..config()
        };
        let mut simulation = Simulation::new(&config, Ticks).unwrap();
        simulation.run_until(Time::ZERO.after(WARM_UP));
        assert_eq!(counted(&simulation.report(), "ticks"), 4);
        simulation.reset_probes();
        assert_eq!(names(&simulation.report()), [""; 0]);
        let report = simulation.finish().unwrap();
        assert_eq!(counted(&report, "ticks"), 5);
        assert_eq!(counted(&report, "early"), 0);
        assert_eq!(report.probes.gauges["number"].least, 4.0);
        assert_eq!(
            report.probes.histograms["numbers"].range(),
            Some((4.0, 8.0))
        );
        assert_eq!(
            report.digest,
            corsair::simulate(&config, Ticks).unwrap().digest
        );
    }
}

#[test]
fn a_configuration_may_be_used_after_a_panic() {
    let config = config();
    let panic = std::panic::catch_unwind(|| {
        let seed = config.seed;
        panic!("{seed}");
    });
    assert!(panic.is_err());
    let moved = config.clone();
    assert!(std::panic::catch_unwind(move || drop(moved)).is_ok());
}
