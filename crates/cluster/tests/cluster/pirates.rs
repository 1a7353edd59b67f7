//! Pirates over processes, which are threads of a test.

use crate::cluster::{members, start};
use corsair::cluster::{Part, Saving, conclude_parts};
use corsair::fsm::{self, Fsm, Msg, Tally};
use corsair::{Config, Report, RunError, Snapshot, Time};
use corsair_cluster::{Mesh, ProcessEnd};
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

/// How a run over processes ended: its report, what the FSM has counted, and what each process has told.
type Ended = (Result<Report, RunError>, Option<Tally>, Vec<ProcessEnd>);

/// Runs pirates over a number of processes, which are threads here, each with a number of workers.
pub fn run(config: &Config, scenario: &Fsm, processes: usize, workers: usize) -> Ended {
    run_from(config, scenario, (processes, workers), None, None)
}

/// The same, from where they were saved, and saved on the way.
pub fn run_from(
    config: &Config,
    scenario: &Fsm,
    over: (usize, usize),
    from: Option<&Snapshot>,
    saving: Option<&dyn Saving>,
) -> Ended {
    run_until(config, scenario, over, from, saving, None)
}

/// The same, up to a time.
pub fn run_until(
    config: &Config,
    scenario: &Fsm,
    (processes, workers): (usize, usize),
    from: Option<&Snapshot>,
    saving: Option<&dyn Saving>,
    until: Option<Time>,
) -> Ended {
    let (_, mut all) = members(processes);
    for member in &mut all {
        member.workers = workers;
        // By memory or by sockets.
        member.shares_memory = config.seed.is_multiple_of(2);
        member.configuration = corsair_cluster::hash(&fsm::course(config, scenario));
    }
    let number = |number| NonZeroUsize::new(number).unwrap();
    let part = |process| Part {
        process,
        processes: number(processes),
        workers: number(workers),
        until,
    };
    let one = |mesh: Mesh| {
        let (builders, run) = mesh.connect().unwrap();
        let shares = cfg!(target_os = "linux") && config.seed.is_multiple_of(2);
        let sharing = if shares { processes - 1 } else { 0 };
        assert_eq!(
            run.sharing(),
            sharing,
            "memory with all others, or with none"
        );
        let carriers = builders.into_iter().map(|builder| move || builder.build());
        let part = part(run.process());
        let ran = fsm::run_part(config, part, scenario, from, carriers.collect(), saving);
        let (told, tally) = ran.unwrap();
        (run.end(told, Vec::new()).unwrap(), tally)
    };
    let mut ends = thread::scope(|scope| {
        let meets = start(all)
            .into_iter()
            .map(|meets| meets.join().unwrap().unwrap());
        let runs: Vec<_> = meets.map(|mesh| scope.spawn(|| one(mesh))).collect();
        let ends: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        ends
    });
    for (others, tally) in &ends[1..] {
        assert!(others.is_empty() && tally.is_none());
    }
    let (ends, tally) = ends.swap_remove(0);
    let parts: Vec<Vec<u8>> = ends.iter().map(|end| end.part.clone()).collect();
    let config = fsm::config(config.clone());
    let report = conclude_parts::<Msg>(&config, part(0), &parts, Duration::from_secs(1));
    (report, tally, ends)
}

/// All of a report that does not depend on the clock or the machine.
pub fn result(report: &Report) -> String {
    let result = Report {
        workers: 0,
        wall: Duration::ZERO,
        peak_memory: None,
        ..report.clone()
    };
    format!("{result:?}")
}
