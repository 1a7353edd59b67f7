//! A run over several processes is saved, and continues on other numbers of processes.

use super::{result, run_from, run_until};
use crate::paused::paused_run;
use corsair::cluster::{SavedPart, Saving};
use corsair::fsm::{self, Fsm};
use corsair::{Config, Executor, Snapshot, StoredPart, Time};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Stores the checkpoints of all processes in memory.
#[derive(Default)]
struct Checkpoints {
    /// The number of calls of `wanted`, which requests two checkpoints in all.
    asked: AtomicU64,
    times: Vec<Time>,
    parts: Mutex<Vec<SavedPart>>,
}

impl Saving for Checkpoints {
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

impl Checkpoints {
    /// Returns the snapshots with their points of virtual time.
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

fn scenario() -> Fsm {
    Fsm {
        population: 2000,
        talk: Duration::from_millis(100),
        chat: Some(Duration::from_millis(20)),
        ..Fsm::default()
    }
}

// Guarantee: cluster-4.
#[test]
fn a_run_over_processes_is_saved_and_goes_on_over_any_number_of_them() {
    let (config, scenario) = (Config::default(), scenario());
    let (alone, _) = fsm::run(Executor::Virtual, &config, scenario.clone()).unwrap();
    let millis = |millis: u64| Time::ZERO.after(Duration::from_micros(millis * 1000 + 321));
    let checkpoints = Checkpoints {
        times: vec![millis(30), millis(90)],
        ..Checkpoints::default()
    };
    let (saved, ..) = run_from(&config, &scenario, (2, 2), None, Some(&checkpoints));
    assert_eq!(result(&saved.unwrap()), result(&alone));
    let snapshots = checkpoints.snapshots(4);
    // Two snapshots were requested by `wanted`, and two by `times`.
    let times: Vec<Time> = snapshots.iter().map(|(time, _)| *time).collect();
    assert_eq!(times.len(), 4, "{times:?}");
    assert!(times.is_sorted() && times[0] > Time::ZERO, "{times:?}");
    assert!(
        times.contains(&millis(30)) && times.contains(&millis(90)),
        "{times:?}"
    );
    for ((_, snapshot), over) in snapshots.iter().zip([(1, 1), (3, 1), (2, 1), (2, 2)]) {
        let (resumed, ..) = run_from(&config, &scenario, over, Some(snapshot), None);
        assert_eq!(result(&resumed.unwrap()), result(&alone), "over {over:?}");
    }
    // A snapshot of a run in one process continues on two processes.
    let mut simulation = paused_run(&config, &scenario, None).simulation;
    simulation.run_until(millis(50));
    let snapshot = simulation.snapshot().unwrap();
    let (resumed, ..) = run_from(&config, &scenario, (2, 1), Some(&snapshot), None);
    assert_eq!(result(&resumed.unwrap()), result(&alone));
}

// Guarantee: cluster-4.
#[test]
fn a_run_over_processes_stops_where_it_is_asked_to_and_reports_what_has_happened_until_then() {
    let (config, scenario) = (Config::default(), scenario());
    let micros = |micros| Time::ZERO.after(Duration::from_micros(micros));
    let mut simulation = paused_run(&config, &scenario, None).simulation;
    for until in [micros(0), micros(40_321), micros(70_000)] {
        simulation.run_until(until);
        let expected = simulation.report();
        let checkpoints = Checkpoints {
            times: vec![micros(20_000), micros(70_000), micros(80_000)],
            ..Checkpoints::default()
        };
        let stop = Some(until);
        let saving: Option<&dyn Saving> = Some(&checkpoints);
        let (report, tally, _) = run_until(&config, &scenario, (2, 2), None, saving, stop);
        assert_eq!(result(&report.unwrap()), result(&expected), "until {until}");
        assert_eq!(tally, None);
        let snapshots = checkpoints.snapshots(4);
        assert!(snapshots.iter().all(|(time, _)| *time <= until));
        // A run that continues from any of the snapshots has the same result.
        for (_, snapshot) in &snapshots {
            let from = Some(snapshot);
            let (report, ..) = run_until(&config, &scenario, (3, 1), from, None, stop);
            assert_eq!(report.unwrap().digest, expected.digest, "until {until}");
        }
    }
    // The run ends before `until`: its result is the usual one.
    let (alone, counted) = fsm::run(Executor::Virtual, &config, scenario.clone()).unwrap();
    let stop = Some(micros(1_000_000_000));
    let (report, tally, _) = run_until(&config, &scenario, (2, 1), None, None, stop);
    assert_eq!(result(&report.unwrap()), result(&alone));
    assert_eq!(tally, counted);
}

/// A stored part that counts the bytes that are read from it.
struct Watched {
    part: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl StoredPart for Watched {
    fn name(&self) -> String {
        "watched".to_owned()
    }

    fn bytes(&self) -> u64 {
        self.part.len() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(into.len() as u64, Ordering::Relaxed);
        into.copy_from_slice(&self.part[at as usize..][..into.len()]);
        Ok(())
    }
}

// Guarantee: cluster-4.
#[test]
fn each_process_reads_of_a_saved_run_what_its_own_shards_need() {
    let config = Config::default();
    let scenario = Fsm {
        population: 20_000,
        ..scenario()
    };
    let mut simulation = paused_run(&config, &scenario, None).simulation;
    simulation.run_until(Time::ZERO.after(Duration::from_millis(50)));
    let (head, parts) = simulation.snapshot().unwrap().into_parts().unwrap();
    let alone = simulation.finish().unwrap();
    let read = Arc::new(AtomicU64::new(0));
    let bytes: usize = parts.iter().map(Vec::len).sum();
    let watched = parts.into_iter().map(|part| {
        let read = Arc::clone(&read);
        Arc::new(Watched { part, read }) as Arc<dyn StoredPart>
    });
    let snapshot = Snapshot::stored_in(head, watched.collect()).unwrap();
    let (resumed, ..) = run_from(&config, &scenario, (4, 1), Some(&snapshot), None);
    assert_eq!(resumed.unwrap().digest, alone.digest);
    let read = read.load(Ordering::Relaxed);
    // Each part is read once, and the index once by each process.
    assert!(read >= bytes as u64, "{read} of {bytes}");
    assert!(read < bytes as u64 * 11 / 10, "{read} of {bytes}");
}
