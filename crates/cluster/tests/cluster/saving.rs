//! A run over several processes that is saved, and goes on over others.

use crate::cluster::{members, met, start};
use corsair::cluster::{Part, SavedPart, Saving, conclude_parts};
use corsair::fsm::{self, Fsm, Msg};
use corsair::{Config, Executor, Report, Snapshot, Time};
use corsair_cluster::{Mesh, Origin};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Keeps in memory what all processes have saved.
#[derive(Default)]
struct Kept {
    /// How often it was asked whether the run is to be saved: it is twice.
    asked: AtomicU64,
    times: Vec<Time>,
    parts: Mutex<Vec<SavedPart>>,
}

impl Saving for Kept {
    fn wanted(&self) -> u64 {
        (self.asked.fetch_add(1, Ordering::Relaxed) / 8).min(2)
    }

    fn times(&self) -> &[Time] {
        &self.times
    }

    fn save(&self, saved: SavedPart) {
        self.parts.lock().unwrap().push(saved);
    }
}

impl Kept {
    /// The points of virtual time at which it was saved, and what was saved there.
    fn snapshots(self, workers: usize) -> Vec<(Time, Snapshot)> {
        let mut parts = self.parts.into_inner().unwrap();
        parts.sort_by_key(|part| (part.number, part.worker));
        let mut snapshots = Vec::new();
        let mut parts = parts.into_iter().peekable();
        while parts.peek().is_some() {
            let set: Vec<SavedPart> = parts.by_ref().take(workers).collect();
            let (number, time) = (set[0].number, set[0].time);
            let workers: Vec<usize> = set.iter().map(|part| part.worker).collect();
            assert_eq!(workers, (0..set.len()).collect::<Vec<_>>());
            assert!(
                set.iter()
                    .all(|part| (part.number, part.time) == (number, time))
            );
            let head = set[0].head.clone().expect("the first worker has the head");
            let parts = set.into_iter().map(|part| part.part.unwrap()).collect();
            snapshots.push((time, Snapshot::from_parts(head, parts).unwrap()));
        }
        snapshots
    }
}

fn number(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

fn run(
    config: &Config,
    scenario: &Fsm,
    (processes, workers): (usize, usize),
    from: Option<&Snapshot>,
    saving: Option<&Kept>,
) -> Report {
    let (_, mut all) = members(processes);
    all.iter_mut().for_each(|member| member.workers = workers);
    let part = |process| Part {
        process,
        processes: number(processes),
        workers: number(workers),
    };
    let one = |mesh: Mesh| {
        let (builders, run) = mesh.connect().unwrap();
        let carriers = builders.into_iter().map(|builder| move || builder.build());
        let saving = saving.map(|saving| saving as &dyn Saving);
        let part = part(run.process());
        let ran = fsm::run_part(config, part, scenario, from, carriers.collect(), saving);
        run.end(ran.unwrap().0, Vec::new()).unwrap()
    };
    let mut ends = thread::scope(|scope| {
        let runs = met(start(all)).into_iter();
        let runs: Vec<_> = runs.map(|mesh| scope.spawn(|| one(mesh))).collect();
        let ends: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        ends
    });
    let parts: Vec<Vec<u8>> = ends
        .swap_remove(0)
        .into_iter()
        .map(|end| end.part)
        .collect();
    let config = fsm::config(config.clone());
    conclude_parts::<Msg>(&config, part(0), &parts, Duration::ZERO).unwrap()
}

fn scenario() -> Fsm {
    Fsm {
        population: 2000,
        talk: Duration::from_millis(100),
        chat: Some(Duration::from_millis(20)),
        ..Fsm::default()
    }
}

/// What does not depend on how it was run.
fn result(report: &Report) -> String {
    let result = Report {
        workers: 0,
        wall: Duration::ZERO,
        peak_memory: None,
        ..report.clone()
    };
    format!("{result:?}")
}

#[test]
fn a_run_over_processes_is_saved_and_goes_on_over_any_number_of_them() {
    let (config, scenario) = (Config::default(), scenario());
    let (alone, _) = fsm::run(Executor::Virtual, &config, scenario.clone()).unwrap();
    let millis = |millis: u64| Time::ZERO.after(Duration::from_micros(millis * 1000 + 321));
    let kept = Kept {
        times: vec![millis(30), millis(90)],
        ..Kept::default()
    };
    let saved = run(&config, &scenario, (2, 2), None, Some(&kept));
    assert_eq!(result(&saved), result(&alone));
    let snapshots = kept.snapshots(4);
    // Twice because that was wanted, and when it was set.
    let times: Vec<Time> = snapshots.iter().map(|(time, _)| *time).collect();
    assert_eq!(times.len(), 4, "{times:?}");
    assert!(times.is_sorted() && times[0] > Time::ZERO, "{times:?}");
    assert!(
        times.contains(&millis(30)) && times.contains(&millis(90)),
        "{times:?}"
    );
    for ((_, snapshot), over) in snapshots.iter().zip([(1, 1), (3, 1), (2, 1), (2, 2)]) {
        let resumed = run(&config, &scenario, over, Some(snapshot), None);
        assert_eq!(result(&resumed), result(&alone), "over {over:?}");
    }
    // And what one process has saved.
    let (mut simulation, _) = fsm::begin(&config, &scenario).unwrap();
    simulation.run_until(millis(50));
    let snapshot = simulation.snapshot().unwrap();
    let resumed = run(&config, &scenario, (2, 1), Some(&snapshot), None);
    assert_eq!(result(&resumed), result(&alone));
}

#[test]
fn all_go_on_from_the_latest_that_any_of_them_knows() {
    let origin = |time, place: &str| {
        Some(Origin {
            time,
            place: place.to_owned(),
        })
    };
    let (_, mut all) = members(3);
    all[1].origin = origin(7, "saved/000002");
    all[2].origin = origin(5, "saved/000001");
    for mesh in met(start(all)) {
        let (_, run) = mesh.connect().unwrap();
        assert_eq!(run.origin(), origin(7, "saved/000002").as_ref());
    }
}
