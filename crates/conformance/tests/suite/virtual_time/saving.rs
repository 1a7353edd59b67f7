//! Runs that are saved while they are paused, and restored with any number of workers.

use crate::paused::paused_run;
use corsair::fsm::{self, Form, Fsm, FsmError};
use corsair::network::{Duplicating, Fifo, Jitter, Lossy};
use corsair::{
    Actor, Addr, AddrRange, AsyncContext, Config, Context, DeadLetters, Event, Flow, Kind, Kinds,
    Latency, Message, Panics, ProcessState, Random, ReplyHandle, Report, RunError, Scenario,
    Script, Simulation, Snapshot, SnapshotError, Spawn, Time, TimerHandle, Token, Wait,
};
use corsair_observe::run::{Finished, Pirates};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn at(time: Duration) -> Time {
    Time::ZERO.after(time)
}

#[derive(Message, Clone, Debug, Serialize, Deserialize)]
#[message(duplicate)]
enum Word {
    Work(u32),
    Ask(u32),
    Answer(u32),
    Later { text: String, request: ReplyHandle },
    Leave,
}

/// At each event, performs one of the actions that an actor can perform.
#[derive(Clone, Serialize, Deserialize, Kind)]
#[kind(name = "busy")]
struct Busy {
    others: AddrRange,
    heard: u64,
    timers: Vec<TimerHandle>,
    open: Vec<ReplyHandle>,
    children: u32,
}

impl Busy {
    fn new(others: AddrRange) -> Busy {
        Busy {
            others,
            heard: 0,
            timers: Vec::new(),
            open: Vec::new(),
            children: 0,
        }
    }

    fn other<C: Context<Word>>(&self, cx: &mut C) -> Addr {
        match self.others.len() {
            0 => cx.parent(),
            count => self.others.get(cx.below(count)),
        }
    }

    fn act<C: Context<Word>>(&mut self, number: u32, cx: &mut C) -> Flow {
        let (to, much) = (self.other(cx), number / 2 + 1);
        match cx.below(14) {
            0 => drop(cx.send(to, Word::Work(number))),
            1 => drop(cx.send_after(much * MS, to, Word::Work(number))),
            2 => drop(cx.send_after(much * 400 * MS, to, Word::Work(number))),
            3 => drop(cx.request(to, Word::Ask(number))),
            4 => cx.timer(much * MS / 3, Token::new(number % 7)),
            5 => self
                .timers
                .push(cx.timer_handle(much * 7 * MS, Token::new(8))),
            6 => self.timers.push(cx.every(much * 5 * MS, Token::new(9))),
            7 => {
                if let Some(timer) = self.timers.pop() {
                    cx.cancel(timer);
                }
            }
            8 => drop(cx.send_self(Word::Work(number / 2))),
            9 => {
                if let Some(request) = self.open.pop() {
                    cx.reply(request, Word::Answer(number));
                }
            }
            10 if self.children < 4 => {
                self.children += 1;
                let count = 1 + cx.below(3);
                let how = Spawn::many(count, "child", "").watched();
                let how = if number.is_multiple_of(2) {
                    how.on_demand()
                } else {
                    how
                };
                let child = Busy {
                    children: self.children,
                    ..Busy::new(self.others)
                };
                cx.spawn_kind_request::<Busy>(how, child, ());
            }
            11 => cx.observe("number", f64::from(number)),
            12 => cx.track("over time", f64::from(number)),
            13 if number.is_multiple_of(16) => cx.stop(to),
            _ => cx.count("acts", 1),
        }
        if self.heard > 40 && number.is_multiple_of(11) {
            return Flow::Stop;
        }
        Flow::Continue
    }
}

impl Actor<Word> for Busy {
    fn start<C: Context<Word>>(&mut self, cx: &mut C) {
        cx.timer(3 * MS, Token::new(1));
    }

    fn on<C: Context<Word>>(&mut self, event: Event<Word>, cx: &mut C) -> Flow {
        self.heard += 1;
        let number = cx.below(64);
        match event {
            Event::Message { body, .. } => match body {
                Word::Leave => return Flow::Stop,
                Word::Ask(_) if number % 3 > 0 => self.open.push(cx.envelope().reply_handle()),
                Word::Ask(n) => {
                    let (request, me) = (cx.envelope().reply_handle(), cx.me());
                    let text = format!("{n} asked");
                    cx.send(me, Word::Later { text, request });
                }
                Word::Later { text, request } => {
                    cx.reply(request, Word::Answer(text.len() as u32));
                }
                Word::Work(_) | Word::Answer(_) => {}
            },
            Event::Spawned { first, count, .. } => {
                for child in AddrRange::new(first, count).iter() {
                    cx.send(child, Word::Work(number));
                }
            }
            Event::Timer(_)
            | Event::Down { .. }
            | Event::Unanswered { .. }
            | Event::DeadLetter { .. } => {}
        }
        self.act(number, cx)
    }
}

/// Spawns actors, waits in every possible way, and ends the actors.
#[derive(Clone, Serialize, Deserialize, Kind)]
#[kind(name = "overseer")]
struct Overseer {
    crowd: u32,
    step: u32,
    actors: Option<AddrRange>,
    heard: u32,
}

impl Overseer {
    fn new(crowd: u32) -> Overseer {
        Overseer {
            crowd,
            step: 0,
            actors: None,
            heard: 0,
        }
    }
}

impl Script<Word> for Overseer {
    fn resume<C: Context<Word>>(&mut self, event: Option<Event<Word>>, cx: &mut C) -> Wait {
        self.step += 1;
        if let Some(Event::Spawned { first, count, .. }) = event {
            self.actors = Some(AddrRange::new(first, count));
        } else if event.is_some() {
            self.heard += 1;
        }
        let actors = self.actors.unwrap_or(AddrRange::new(Addr::NONE, 0));
        match self.step {
            1 => {
                // The spawned actors know each other's addresses, which begin after the root's page.
                let others = AddrRange::new(Addr::from_u32(256), self.crowd);
                let how = Spawn::many(self.crowd, "busy", ".actor").on_demand();
                Wait::Spawned(cx.spawn_kind_request::<Busy>(how, Busy::new(others), ()))
            }
            2 => {
                for actor in actors.iter().take(self.crowd as usize / 2) {
                    cx.send(actor, Word::Work(1));
                }
                Wait::Yield
            }
            3 => {
                for actor in actors.iter().take(4) {
                    cx.request(actor, Word::Ask(self.step));
                }
                Wait::Sleep(40 * MS)
            }
            4 => {
                cx.timer(5 * MS, Token::new(1));
                Wait::Event
            }
            5..30 => {
                let to = actors.get(cx.below(self.crowd));
                cx.send(to, Word::Work(self.heard));
                cx.timer(9 * MS, Token::new(2));
                Wait::Event
            }
            30 => Wait::Sleep(50 * MS),
            31 => {
                for actor in actors.iter() {
                    cx.send(actor, Word::Leave);
                }
                Wait::Settle
            }
            _ => Wait::End,
        }
    }
}

/// The same script, performed by an async body.
struct Perform(Overseer);

impl Scenario<Word> for Perform {
    async fn root<C: AsyncContext<Word>>(self, cx: C) {
        corsair::perform(self.0, cx).await;
    }
}

fn kinds() -> Kinds<Word> {
    Kinds::new().with::<Busy>(()).with_script::<Overseer>(())
}

fn begin(config: &Config, crowd: u32) -> Simulation<Word> {
    Simulation::with_kinds::<Overseer>(config, &kinds(), Overseer::new(crowd), ()).unwrap()
}

/// Returns the parts of a report that do not depend on the machine, one per line.
fn essence(report: &Report) -> Vec<String> {
    let mut lines = vec![
        format!("digest {:?} at {}", report.digest, report.time),
        format!("{} timers, {} windows", report.timers, report.windows),
        format!("{} spawned, {} ended", report.spawned, report.ended),
        format!("{} waiting: {:?}", report.waiting_total, report.waiting),
        format!("{} lost, {} twice", report.lost, report.duplicated),
        format!("messages {:?}", report.messages),
        format!("dead letters {:?}", report.dead_letters),
        format!("panics {:?}", report.panics),
        format!("counters {:?}", report.probes.counters),
        format!("histograms {:?}", report.probes.histograms),
    ];
    let series = report.probes.series.values();
    lines.extend(series.map(|series| format!("{:?}", series.intervals().collect::<Vec<_>>())));
    lines.extend(report.per_actor.iter().map(|totals| format!("{totals:?}")));
    lines
}

/// Fails with the first line that differs.
#[track_caller]
fn assert_same(left: &[String], right: &[String]) {
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left, right);
    }
}

fn lossy() -> Duplicating<Lossy<Jitter>> {
    let jitter = Jitter::new(MS, 3 * MS).unwrap();
    Duplicating::new(Lossy::new(jitter, 0.05).unwrap(), 0.05).unwrap()
}

fn config(seed: u64, how: u32) -> Config {
    let base = Config {
        seed,
        workers: workers(1),
        panics: Panics::EndActor,
        per_actor: how % 2 == 1,
        traces: how % 3 == 1,
        dead_letters: match how % 4 {
            0 | 1 => DeadLetters::Count,
            _ => DeadLetters::ToRoot,
        },
        ..Config::default()
    };
    match how % 5 {
        0 => Config {
            latency: Latency::constant(MS),
            ..base
        },
        1 => Config {
            lookahead: Some(MS / 4),
            ..base
        },
        2 => Config {
            network: Some(Arc::new(Fifo(lossy()))),
            ..base
        },
        _ => base,
    }
}

// Guarantee: core-71.
#[test]
fn a_script_does_the_same_as_the_async_body_that_performs_it() {
    for seed in 0..4 {
        let config = config(seed, seed as u32);
        let scripted = begin(&config, 300).finish().unwrap();
        let performed = corsair::simulate(&config, Perform(Overseer::new(300))).unwrap();
        assert_same(&essence(&scripted), &essence(&performed));
        assert!(scripted.delivered() > 500, "{}", scripted.delivered());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    // Guarantee: core-69.
    /// The run is paused at random times, also within windows. It is saved and restored several times with other
    /// numbers of workers.
    #[test]
    fn a_run_that_is_saved_and_restored_ends_as_one_without_a_stop(
        seed in any::<u64>(),
        how in 0..60u32,
        crowd in 130..600u32,
        stops in prop::collection::vec((0..180_000_000u64, 1..5usize), 1..5),
        steps in 0..4u32,
    ) {
        let config = config(seed, how);
        let expected = begin(&config, crowd).finish().unwrap();
        let mut stops = stops;
        stops.sort_unstable();
        let mut run = begin(&config, crowd);
        for (time, count) in stops {
            run.run_until(Time::from_nanos(time));
            (0..steps).for_each(|_| { run.step(); });
            if run.is_over() {
                break;
            }
            let snapshot = run.snapshot().unwrap();
            let config = Config { workers: workers(count), ..config.clone() };
            run = Simulation::restore(&config, &kinds(), &snapshot).unwrap();
        }
        assert_same(&essence(&run.finish().unwrap()), &essence(&expected));
    }
}

// Guarantee: core-69.
#[test]
fn the_run_that_was_saved_goes_on_as_if_nothing_had_been() {
    let config = config(3, 3);
    let expected = begin(&config, 200).finish().unwrap();
    let mut run = begin(&config, 200);
    for step in 1..8 {
        assert!(run.run_until(at(step * 10 * MS)));
        let (first, second) = (run.snapshot().unwrap(), run.snapshot().unwrap());
        let bytes = |snapshot: &Snapshot| snapshot.clone().into_parts().unwrap();
        assert!(
            bytes(&first) == bytes(&second),
            "the same state has the same bytes"
        );
    }
    assert_same(&essence(&run.finish().unwrap()), &essence(&expected));
}

// Guarantee: core-69.
#[test]
fn an_actor_that_is_stepped_to_mid_instant_is_saved_as_well() {
    let config = config(5, 0);
    let expected = begin(&config, 200).finish().unwrap();
    let mut run = begin(&config, 200);
    run.run_until(at(30 * MS));
    // The first actor, which has begun and is not one of the children.
    let who = run.actors()[0];
    for count in 1..5 {
        assert!(run.step_actor(who));
        let snapshot = run.snapshot().unwrap();
        let config = Config {
            workers: workers(1 + count % 3),
            ..config.clone()
        };
        run = Simulation::restore(&config, &kinds(), &snapshot).unwrap();
    }
    assert_same(&essence(&run.finish().unwrap()), &essence(&expected));
}

#[test]
fn what_is_injected_before_a_stop_arrives_after_it() {
    let config = config(5, 3);
    let run = |stop: bool| {
        let mut run = begin(&config, 200);
        run.run_until(at(20 * MS));
        let who = Addr::from_u32(300);
        run.inject(at(30 * MS), who, Word::Work(1)).unwrap();
        run.inject(at(3000 * MS), who, Word::Work(2)).unwrap();
        if stop {
            let snapshot = run.snapshot().unwrap();
            run = Simulation::restore(&config, &kinds(), &snapshot).unwrap();
        }
        run.inject(at(30 * MS), who, Word::Work(3)).unwrap();
        essence(&run.finish().unwrap())
    };
    assert_same(&run(true), &run(false));
}

// Guarantee: core-69.
#[test]
fn pirates_that_are_restored_end_as_those_that_ran_through() {
    let scenario = || Fsm {
        population: 700,
        talk: 900 * MS,
        ..Fsm::default()
    };
    let config = |count| Config {
        seed: 11,
        workers: workers(count),
        ..Config::default()
    };
    let (expected, tally) = fsm::run(corsair::Executor::Virtual, &config(2), scenario()).unwrap();
    for (from, to) in [(1, 2), (2, 1), (2, 3), (3, 3)] {
        for stop in [1, 6, 8, 450, 905, 907, 909] {
            let mut run = paused_run(&config(from), &scenario(), None).simulation;
            assert!(run.run_until(at(stop * MS)), "over at {stop} ms");
            let snapshot = run.snapshot().unwrap();
            let resumed = paused_run(&config(to), &scenario(), Some(&snapshot));
            let Finished { report, totals } = resumed.finish().unwrap();
            assert_eq!(
                report.digest, expected.digest,
                "{from} to {to} at {stop} ms"
            );
            assert_eq!(report.messages, expected.messages);
            assert_eq!(totals, tally);
        }
    }
}

// Guarantee: core-72.
#[test]
fn a_branch_with_another_seed_differs_from_there_on_and_repeats_itself() {
    let scenario = Fsm {
        population: 300,
        talk: 2000 * MS,
        ..Fsm::default()
    };
    let config = Config {
        workers: workers(2),
        ..Config::default()
    };
    let mut run = paused_run(&config, &scenario, None).simulation;
    run.run_until(at(1000 * MS));
    let trunk = run.snapshot().unwrap();
    let branch = |seed: u64, stop: Option<Duration>| {
        let mut branch = trunk.clone();
        branch.reseed(seed).unwrap();
        let mut run = paused_run(&config, &scenario, Some(&branch)).simulation;
        if let Some(stop) = stop {
            run.run_until(at(stop));
            let again = run.snapshot().unwrap();
            run = paused_run(&config, &scenario, Some(&again)).simulation;
        }
        run.finish().unwrap().digest
    };
    assert_eq!(branch(1, None), branch(1, Some(1500 * MS)));
    assert_ne!(branch(1, None), branch(2, None));
    assert_eq!(branch(0, None), run.finish().unwrap().digest);
}

/// A root with an async body, which cannot be saved.
struct Mixed;

impl Scenario<Word> for Mixed {
    async fn root<C: AsyncContext<Word>>(self, mut cx: C) {
        cx.sleep(Duration::from_secs(1)).await;
    }
}

/// Spawns an actor by closure.
#[derive(Clone, Serialize, Deserialize, Kind)]
#[kind(name = "careless")]
struct Careless {
    many: bool,
    spawned: bool,
}

impl Script<Word> for Careless {
    fn resume<C: Context<Word>>(&mut self, _: Option<Event<Word>>, cx: &mut C) -> Wait {
        if self.spawned {
            return Wait::Sleep(Duration::from_secs(1));
        }
        self.spawned = true;
        let how = match self.many {
            true => Spawn::many(500, "by-closure", "").on_demand(),
            false => Spawn::one("by-closure0").on_demand(),
        };
        Wait::Spawned(cx.spawn_request(how, |_| Busy::new(AddrRange::new(Addr::NONE, 0))))
    }
}

// Guarantee: core-70.
#[test]
fn what_has_an_async_body_or_was_spawned_by_closure_is_refused_by_its_name() {
    let mut run = Simulation::new(&Config::default(), Mixed).unwrap();
    run.run_until(at(MS));
    let said = run.snapshot().unwrap_err().to_string();
    assert!(
        said.starts_with("root (#0) was spawned by a closure or has an async body"),
        "{said}"
    );

    let kinds = kinds().with_script::<Careless>(());
    for many in [true, false] {
        let careless = Careless {
            many,
            spawned: false,
        };
        let run = Simulation::with_kinds::<Careless>(&Config::default(), &kinds, careless, ());
        let mut run = run.unwrap();
        // First the spawn request is in flight, then the actors exist.
        for time in [Duration::ZERO, 10 * MS] {
            run.run_until(at(time));
            let said = run.snapshot().unwrap_err().to_string();
            let named = said.starts_with("by-closure") && said.contains(" (");
            assert!(named && said.contains("spawn it by kind"), "{said}");
        }
    }

    let fsm = Fsm {
        form: Form::Async,
        ..Fsm::default()
    };
    let mut run = Simulation::new(&Config::default(), fsm).unwrap();
    assert!(matches!(run.snapshot(), Err(SnapshotError::NoKind { .. })));
}

// Guarantee: core-70.
#[test]
fn a_run_that_is_over_and_a_configuration_that_differs_are_refused() {
    let right = config(1, 3);
    let mut run = begin(&right, 200);
    run.run_until(at(20 * MS));
    let snapshot = run.snapshot().unwrap();
    while run.run_until(run.now().after(Duration::from_secs(1))) {}
    assert!(matches!(run.snapshot(), Err(SnapshotError::Over)));
    let said = |config: Config| {
        let restored = Simulation::restore(&config, &kinds(), &snapshot);
        restored.map(drop).unwrap_err().to_string()
    };
    let wrong = [
        (
            Config {
                seed: 2,
                ..right.clone()
            },
            "the seed 1, not 2",
        ),
        (
            Config {
                traces: !right.traces,
                ..right.clone()
            },
            "traces",
        ),
        (
            Config {
                per_actor: !right.per_actor,
                ..right.clone()
            },
            "totals per actor",
        ),
        (
            Config {
                end: Some(at(MS)),
                ..right.clone()
            },
            "the end",
        ),
        (
            Config {
                lookahead: Some(MS / 2),
                ..right.clone()
            },
            "windows",
        ),
        (
            Config {
                latency: Latency::constant(2 * MS),
                ..right.clone()
            },
            "latencies",
        ),
    ];
    for (config, what) in wrong {
        let said = said(config);
        assert!(said.contains(what), "{what}: {said}");
    }
    let fewer = Kinds::<Word>::new().with_script::<Overseer>(());
    let said = Simulation::restore(&right, &fewer, &snapshot)
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("does not know the kind of actors `busy`"),
        "{said}"
    );
}

// Guarantee: cluster-4.
#[test]
fn what_actors_of_a_process_change_together_is_saved_once_and_added_up() {
    struct Sum(AtomicU64);

    impl ProcessState for Sum {
        type Snapshot = u64;

        fn save(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn add(&self, saved: u64) {
            self.0.fetch_add(saved, Ordering::Relaxed);
        }
    }

    let with_sum = |sum: u64| {
        let sum = Arc::new(Sum(AtomicU64::new(sum)));
        (kinds().with_state(Arc::clone(&sum)), sum)
    };
    for (saved, restored) in [(1, 2), (2, 1), (3, 2)] {
        let of = |count| Config {
            workers: workers(count),
            ..config(1, 3)
        };
        let (kinds, _) = with_sum(5);
        let root = Overseer::new(700);
        let mut run = Simulation::with_kinds::<Overseer>(&of(saved), &kinds, root, ()).unwrap();
        run.run_until(at(60 * MS));
        let snapshot = run.snapshot().unwrap();
        let (kinds, sum) = with_sum(2);
        drop(Simulation::restore(&of(restored), &kinds, &snapshot).unwrap());
        assert_eq!(sum.0.load(Ordering::Relaxed), 7);
    }
}

// Guarantee: core-70.
#[test]
fn bytes_that_were_changed_are_refused_or_read_and_never_panic() {
    let config = config(1, 3);
    let mut run = begin(&config, 140);
    run.run_until(at(60 * MS));
    let snapshot = run.snapshot().unwrap();
    let mut random = Random::new(7);
    let mut refused = 0;
    for round in 0..400 {
        let (mut head, mut parts) = snapshot.clone().into_parts().unwrap();
        let bytes = if round % 8 == 0 {
            &mut head
        } else {
            &mut parts[0]
        };
        let place = random.below(bytes.len() as u32) as usize;
        match round % 3 {
            0 => bytes.truncate(place),
            1 => bytes[place] ^= 1 << random.below(8),
            _ => bytes[place] = 0xFF,
        }
        let restored = Snapshot::from_parts(head, parts)
            .and_then(|snapshot| Simulation::restore(&config, &kinds(), &snapshot));
        refused += u32::from(restored.is_err());
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn fewer_than_two_pirates_cannot_be_saved_either() {
    let fsm = Fsm {
        population: 1,
        ..Fsm::default()
    };
    assert!(matches!(
        Pirates::new(&Config::default(), fsm),
        Err(FsmError::Population(1))
    ));
}

// Guarantee: core-69.
#[test]
fn a_run_that_runs_dry_says_who_waits_also_after_a_stop() {
    /// Never ends.
    #[derive(Clone, Serialize, Deserialize, Kind)]
    #[kind(name = "patient")]
    struct Patient;

    impl Script<Word> for Patient {
        fn resume<C: Context<Word>>(&mut self, event: Option<Event<Word>>, cx: &mut C) -> Wait {
            if event.is_some() {
                return Wait::Event;
            }
            let nobody = Busy::new(AddrRange::new(Addr::NONE, 0));
            Wait::Spawned(cx.spawn_kind_request::<Busy>(Spawn::many(3, "b", ""), nobody, ()))
        }
    }

    let kinds = kinds().with_script::<Patient>(());
    let config = Config {
        workers: workers(2),
        ..config(9, 3)
    };
    let begin = || Simulation::with_kinds::<Patient>(&config, &kinds, Patient, ()).unwrap();
    let waiting = |run: Simulation<Word>| match run.finish() {
        Err(RunError::Deadlock { report }) => essence(&report),
        other => panic!("{other:?}"),
    };
    let mut run = begin();
    run.run_until(at(5 * MS));
    let snapshot = run.snapshot().unwrap();
    let restored = Simulation::restore(&config, &kinds, &snapshot).unwrap();
    assert_same(&waiting(restored), &waiting(begin()));
}
