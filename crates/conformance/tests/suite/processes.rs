//! A run over several processes, simulated by threads, has the result of a run in one process.

mod digest;
mod failures;
mod saving;

use corsair::cluster::{
    Carrier, ProcessLost, ProcessPart, Saving, ThreadCarrier, conclude_parts, thread_carriers,
};
use corsair::fsm::{self, Fsm, FsmError, Msg, Tally};
use corsair::{Config, Report, RunError, Snapshot, Time};
use corsair_observe::run::{Pirates, Run};
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

/// The report, the FSM's tally, and the traffic of the first process.
type Outcome = (Result<Report, RunError>, Option<Tally>, ExchangeTotals);

/// Runs pirates over a number of processes with a number of workers each.
fn run(config: &Config, scenario: &Fsm, processes: usize, workers: usize) -> Outcome {
    run_from(config, scenario, (processes, workers), None, None)
}

/// Runs pirates like [`run`], from a snapshot and with checkpoints.
fn run_from(
    config: &Config,
    scenario: &Fsm,
    over: (usize, usize),
    from: Option<&Snapshot>,
    saving: Option<&dyn Saving>,
) -> Outcome {
    run_until(config, scenario, over, from, saving, None)
}

/// Runs pirates like [`run_from`], up to a point of virtual time.
fn run_until(
    config: &Config,
    scenario: &Fsm,
    (processes, workers): (usize, usize),
    from: Option<&Snapshot>,
    saving: Option<&dyn Saving>,
    until: Option<Time>,
) -> Outcome {
    let part = |process| ProcessPart {
        until,
        ..part(process, processes, workers)
    };
    let one = |(process, carrier)| {
        let mut carrier = CountingCarrier {
            carrier,
            totals: ExchangeTotals::default(),
        };
        let part = part(process);
        let pirates = Pirates::new(config, scenario.clone()).unwrap();
        let run = Run::new(pirates).resume(from.cloned());
        let (report, tally) = run.over(part, &mut carrier, saving).unwrap();
        (report, tally, carrier.totals)
    };
    let carriers = thread_carriers(processes).into_iter().enumerate();
    let ends: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = carriers
            .map(|carrier| scope.spawn(|| one(carrier)))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap();
        threads.into_iter().map(join).collect()
    });
    assert!(ends[1..].iter().all(|(_, tally, _)| tally.is_none()));
    let reports: Vec<Vec<u8>> = ends.iter().map(|(report, ..)| report.clone()).collect();
    let config = fsm::config(config.clone());
    let report = conclude_parts::<Msg>(&config, part(0), &reports, Duration::from_secs(1));
    (report, ends[0].1, ends[0].2)
}

fn part(process: usize, processes: usize, workers: usize) -> ProcessPart {
    let number = |number| NonZeroUsize::new(number).unwrap();
    ProcessPart {
        process,
        processes: number(processes),
        workers: number(workers),
        until: None,
    }
}

/// The bytes that a process has sent and received, and the number of its exchanges.
#[derive(Clone, Copy, Debug, Default)]
struct ExchangeTotals {
    sent: usize,
    received: usize,
    exchanges: u64,
}

struct CountingCarrier {
    carrier: ThreadCarrier,
    totals: ExchangeTotals,
}

impl Carrier for CountingCarrier {
    fn exchange(
        &mut self,
        outgoing: &mut [Vec<u8>],
        incoming: &mut [Vec<u8>],
    ) -> Result<(), ProcessLost> {
        let all = |batches: &[Vec<u8>]| batches.iter().map(Vec::len).sum::<usize>();
        self.totals.sent += all(outgoing);
        self.totals.exchanges += 1;
        self.carrier.exchange(outgoing, incoming)?;
        self.totals.received += all(incoming);
        Ok(())
    }
}

/// Returns the parts of a report that do not depend on the clock or the machine.
fn result(report: &Report) -> String {
    let result = Report {
        workers: 0,
        wall: Duration::ZERO,
        peak_memory: None,
        ..report.clone()
    };
    format!("{result:?}")
}
