//! Tests with a third workload. It implements the trait once, and can be run, paused, saved, resumed, stopped and run
//! on the wall clock.

use super::*;
use crate::checkpoint::{self, Program};
use corsair::{AsyncContext, Context, Event, Scenario, Wait, perform};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(corsair::Message, Serialize, Deserialize)]
struct Toss(u64);

/// Tosses a die once per second.
#[derive(Clone, Serialize, Deserialize)]
struct Gambler {
    left: u32,
    sum: u64,
    #[serde(skip)]
    total: Arc<AtomicU64>,
}

impl Script<Toss> for Gambler {
    fn resume<C: Context<Toss>>(&mut self, event: Option<Event<Toss>>, cx: &mut C) -> Wait {
        if let Some(Event::Message { body, .. }) = event {
            self.sum += body.0;
            return Wait::Sleep(Duration::from_secs(1));
        }
        if self.left == 0 {
            self.total.store(self.sum, Ordering::Relaxed);
            return Wait::End;
        }
        self.left -= 1;
        let (me, eyes) = (cx.me(), cx.random() % 6 + 1);
        cx.send(me, Toss(eyes));
        Wait::Event
    }
}

impl Scenario<Toss> for Gambler {
    async fn root<C: AsyncContext<Toss>>(self, cx: C) {
        perform(self, cx).await;
    }
}

impl Kind for Gambler {
    const NAME: &'static str = "gambler";
    type Parameters = u32;
    type Local = Arc<AtomicU64>;

    fn make(tosses: &u32, total: &Arc<AtomicU64>, _: u32) -> Gambler {
        Gambler {
            left: *tosses,
            sum: 0,
            total: Arc::clone(total),
        }
    }

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.serialize(to)
    }

    fn restore<'de, D: Deserializer<'de>>(
        from: D,
        total: &Arc<AtomicU64>,
    ) -> Result<Gambler, D::Error> {
        let gambler = Gambler::deserialize(from)?;
        Ok(Gambler {
            total: Arc::clone(total),
            ..gambler
        })
    }
}

/// A workload that tosses dice a number of times. The totals are the sum of the tosses.
struct Dice {
    config: Config,
    tosses: u32,
    total: Arc<AtomicU64>,
}

impl Dice {
    fn new(workers: usize) -> Dice {
        Dice {
            config: Config {
                seed: 7,
                workers: NonZeroUsize::new(workers).unwrap(),
                ..Config::default()
            },
            tosses: 20,
            total: Arc::default(),
        }
    }
}

impl Workload for Dice {
    type Message = Toss;
    type Root = Gambler;
    type Totals = u64;
    type Error = SnapshotError;

    fn config(&self) -> &Config {
        &self.config
    }

    fn kinds(&self) -> Kinds<Toss> {
        Kinds::new().with_script::<Gambler>(Arc::clone(&self.total))
    }

    fn root(&self) -> (u32, Arc<AtomicU64>) {
        (self.tosses, Arc::clone(&self.total))
    }

    fn run(self, executor: Executor) -> Result<(Report, u64), SnapshotError> {
        let gambler = Gambler::make(&self.tosses, &self.total, 0);
        let report = corsair::run(executor, &self.config, gambler)?;
        Ok((report, self.totals()))
    }

    fn totals(self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    fn merge(sum: &mut u64, other: u64) {
        *sum += other;
    }
}

const PROGRAM: Program = Program {
    name: "dice",
    version: "1",
    build: "1",
};

/// Records events of checkpoints.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Checkpointing for Notes {
    fn program(&self) -> Program {
        PROGRAM
    }

    fn details(&self) -> Value {
        json!("a game of dice")
    }

    fn report(&self, event: SaveEvent<'_>) {
        let note = match event {
            SaveEvent::Saved { time, .. } => format!("saved at {time}"),
            SaveEvent::Failed(error) => panic!("{error}"),
            SaveEvent::Missed { times, .. } => format!("missed {times:?}"),
        };
        self.0.lock().unwrap().push(note);
    }
}

fn second(seconds: u64) -> Time {
    Time::ZERO.after(Duration::from_secs(seconds))
}

fn policy(directory: &Path, at: &[u64]) -> Policy {
    Policy {
        at: at.iter().map(|&seconds| second(seconds)).collect(),
        directory: directory.to_owned(),
        ..Policy::default()
    }
}

#[test]
fn a_workload_that_is_held_saved_and_resumed_ends_as_it_would_have() {
    let whole = Run::new(Dice::new(1)).finish().unwrap();
    assert!((20..=120).contains(&whole.totals), "{}", whole.totals);
    let mut held = Run::new(Dice::new(2)).hold().unwrap();
    held.simulation.run_until(second(5));
    let snapshot = held.simulation.snapshot().unwrap();
    let held = held.finish().unwrap();
    let resumed = Run::new(Dice::new(3)).resume(snapshot).finish().unwrap();
    for other in [held, resumed] {
        assert_eq!(other.report.digest, whole.report.digest);
        assert_eq!(other.totals, whole.totals);
    }
}

#[test]
fn a_workload_is_saved_on_the_way_and_stops_where_it_is_to_stop() {
    let whole = Run::new(Dice::new(1)).finish().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (policy, notes) = (policy(directory.path(), &[3, 9, 500]), Notes::default());
    let run = RunId::of(&Dice::new(1).run_inputs());
    let saved = Run::new(Dice::new(1)).checkpoint(&policy, &notes, run);
    assert_eq!(saved.finish().unwrap().report.digest, whole.report.digest);
    let said = notes.0.into_inner().unwrap().join(", ");
    assert!(
        said.starts_with("saved at 3") && said.contains("saved at 9"),
        "{said}"
    );
    assert!(said.contains("missed"), "{said}");
    let found = checkpoint::find(directory.path()).unwrap();
    let found = checkpoint::read(&found, PROGRAM).unwrap();
    assert_eq!(
        (found.manifest.time, found.manifest.run),
        (9_000_000_000, run)
    );
    let resume = || Run::new(Dice::new(2)).resume(found.snapshot().unwrap());
    let stopped = resume().until(second(12)).finish().unwrap();
    assert_eq!(stopped.totals, 0, "the gambler has not come to the end");
    assert_ne!(stopped.report.digest, whole.report.digest);
    let resumed = resume().finish().unwrap();
    assert_eq!(resumed.report.digest, whole.report.digest);
    assert_eq!(resumed.totals, whole.totals);
}

#[test]
fn a_workload_runs_on_the_wall_clock() {
    let dice = Dice {
        tosses: 1,
        ..Dice::new(1)
    };
    let finished = Run::new(dice).on(Executor::Threads).finish().unwrap();
    assert!((1..=6).contains(&finished.totals));
}
