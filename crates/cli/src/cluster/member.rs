//! One process of a distributed run.

use super::listening::{Listening, Records};
use super::saving::{Writer, Writing};
use crate::checkpoint::{Details, Owner};
use crate::chosen::{Purpose, with_workload};
use crate::console::{Console, complain};
use crate::driver::{Driver, Failure};
use crate::ending::Ending;
use crate::flags::Group;
use crate::flags::values::Values;
use crate::options::{Options, WorkloadOptions};
use crate::progress::{Bar, Measure};
use crate::simulation;
use crate::summary::ProcessSummary;
use crate::workload::{Results, Workload};
use crate::{exit_code, interrupt, observed};
use anyhow::{Context, Result, bail};
use corsair::cluster::{Carrier, ProcessPart, Saving, conclude_parts};
use corsair::fsm::Form;
use corsair::{Report, Snapshot, SnapshotError};
use corsair_cluster::{Agreement, ClusterError, Member, ProcessEnd, Terms, Topic};
use corsair_observe::checkpoint::{Claim, remove_left};
use corsair_observe::run::{self, Finished, Run};
use corsair_observe::{Replacement, ResumePoint};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The start parameters of a process.
#[derive(Debug)]
pub struct Setting {
    /// The flags as they are quoted in files.
    pub described: String,
    /// The bytes that [`configuration`] returns.
    pub configuration: Vec<u8>,
    /// The number of workers of each process, if the user has set it.
    pub workers: Option<NonZeroUsize>,
    /// True if all processes are on this machine.
    pub is_local: bool,
}

/// Checks that the run can be on several processes.
///
/// # Errors
/// If the processes cannot run together.
pub fn check(options: &Options) -> Result<()> {
    match &options.what {
        WorkloadOptions::Pirates(pirates) if pirates.form == Form::Async => bail!(
            "--form async and several processes do not go together: an async body cannot be sent to another process; leave it out"
        ),
        _ => Ok(()),
    }
}

/// Returns all flags that must be equal in all processes as bytes.
pub fn configuration(values: &Values, options: &Options) -> Vec<u8> {
    let mut text = String::new();
    let mut add = |name: &str, value: &str| text.extend([name, "=", value, "\0"]);
    for (flag, value) in values.differing() {
        if flag.group != Group::Processes && flag.name != "workers" && flag.name != "cpus" {
            add(flag.name, value);
        }
    }
    if let Some(saved) = &options.checkpoints {
        let from = saved.from.as_ref().map(|from| &from.manifest);
        add(
            "resumed",
            &from.map_or_else(String::new, |from| format!("{} {}", from.run, from.time)),
        );
        add(
            "until",
            &saved
                .until
                .map_or_else(String::new, |until| until.as_nanos().to_string()),
        );
        add(
            "seed-from-here",
            &saved
                .reseed
                .map_or_else(String::new, |seed| seed.to_string()),
        );
        for setting in &saved.set {
            add("set", &setting.typed());
        }
    }
    text.into_bytes()
}

/// Runs the part of the run that belongs to this process.
///
/// # Errors
/// If the run fails in this process; others may then still run.
pub fn run(options: &Options, setting: &Setting, member: Member<impl Carrier>) -> Result<ExitCode> {
    let machines = match setting.is_local {
        true => 1,
        false => member.processes() as u32,
    };
    with_workload(options, machines, Process::new(options, setting, member))
}

impl<C: Carrier> Purpose for Process<'_, C> {
    type Output = Result<ExitCode>;

    fn fulfil<W: Workload>(mut self, workload: Result<W>) -> Result<ExitCode> {
        let workload = check(self.options).and(workload);
        let ran = workload.and_then(|workload| self.run(workload));
        self.conclude(ran)
    }
}

/// The driver of one process's part of a distributed run.
struct Process<'a, C> {
    options: &'a Options,
    setting: &'a Setting,
    is_first: bool,
    console: Arc<Console>,
    /// The connection to the other processes; `None` after the part of this process has ended.
    member: Option<Member<C>>,
    /// The receiver of records; `None` after the part of this process has ended.
    listening: Option<Listening>,
    /// The number of the line after which the message log continues.
    logged: Option<u64>,
    per_actor: Option<Replacement>,
    /// The common progress of the processes.
    stage: Stage,
    /// The end of the run; set in the first process when all processes have ended.
    ending: Option<Ending>,
}

/// The common progress of the processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The processes have not compared their configurations yet; the other processes wait for that.
    Preparing,
    /// The processes cannot run together, and every process knows that.
    Refused,
    /// The processes run; the other processes wait for this one at each exchange.
    Running,
    /// All parts have ended; no process waits for this one.
    Ended,
}

impl<'a, C: Carrier> Process<'a, C> {
    fn new(options: &'a Options, setting: &'a Setting, member: Member<C>) -> Process<'a, C> {
        let is_first = member.process() == 0;
        Process {
            options,
            setting,
            is_first,
            console: Arc::new(Console::new(!options.json && is_first)),
            member: Some(member),
            listening: None,
            logged: None,
            per_actor: None,
            stage: Stage::Preparing,
            ending: None,
        }
    }

    /// Runs a workload as usual, with this process as its driver.
    fn run<W: Workload>(&mut self, workload: W) -> Result<Option<(Report, W::Results)>> {
        let options = self.options;
        let settings = simulation::settings(options, &self.setting.described, &workload)?;
        if self.is_first {
            let resumed = settings.resumed.as_ref().filter(|_| options.messages);
            self.logged = resumed.map(ResumePoint::lines).transpose()?;
            let per_actor = options.per_actor.as_deref().map(Replacement::begin);
            self.per_actor = per_actor.transpose().context("--per-actor")?;
        }
        let listening = Listening::start(options, settings, self.member()?)?;
        let recorder = listening.recorder();
        self.listening = Some(listening);
        let console = Arc::clone(&self.console);
        workload.run(options, recorder, &console, self)
    }

    fn member(&mut self) -> Result<&mut Member<C>> {
        self.member.as_mut().context("a part is run once")
    }

    /// Compares the configurations of all processes. Returns `None` if the processes cannot run together; one of them
    /// has then reported the reason.
    fn agree(&mut self, configuration: &[u8], failure: Option<&str>) -> Result<Option<Agreement>> {
        let terms = Terms {
            program: concat!("corsair ", env!("CARGO_PKG_VERSION")),
            configuration,
            workers: self.setting.workers,
            failure,
        };
        let agreed = self.member()?.agree(&terms);
        match agreed {
            Ok(agreement) => {
                self.stage = Stage::Running;
                Ok(Some(agreement))
            }
            Err(ClusterError::Lost) => bail!(ClusterError::Lost),
            Err(refused) => {
                self.stage = Stage::Refused;
                if self.is_first {
                    complain(refused);
                }
                Ok(None)
            }
        }
    }

    /// Prints the summary of the run in the first process, and returns the exit code.
    fn conclude<R: Results>(mut self, ran: Result<Option<(Report, R)>>) -> Result<ExitCode> {
        let ended = match (ran, self.stage) {
            (Err(error), Stage::Preparing) => {
                self.agree(&[], Some(&format!("{error:#}")))?;
                return Ok(ExitCode::from(exit_code::REFUSED));
            }
            (_, Stage::Refused) => return Ok(ExitCode::from(exit_code::REFUSED)),
            (Ok(Some((report, results))), _) => {
                let ending = self.ending.take().context("the run has no end")?;
                let ended = ending.finish(self.options, &self.console, &report, results);
                ended.map_err(|error| observed::with_flag(self.options, error))
            }
            (Ok(None), _) => Ok(match self.options.config.cancel.is_cancelled() {
                true => ExitCode::from(interrupt::EXIT_CODE),
                false => ExitCode::SUCCESS,
            }),
            (Err(error), _) => Err(error),
        };
        match ended {
            Err(error) if self.stage == Stage::Ended => {
                complain(format_args!("{error:#}"));
                Ok(ExitCode::from(exit_code::REFUSED))
            }
            ended => ended,
        }
    }

    /// Returns the part of this process, as determined by the agreement of all processes.
    fn part(&mut self, agreement: &Agreement) -> Result<ProcessPart> {
        let checkpoints = self.options.checkpoints.as_ref();
        let until = checkpoints.and_then(|saved| saved.until);
        let member = self.member()?;
        Ok(ProcessPart {
            process: member.process(),
            processes: NonZeroUsize::new(member.processes()).unwrap_or(NonZeroUsize::MIN),
            workers: agreement.workers,
            until,
        })
    }
}

impl<C: Carrier> Driver for Process<'_, C> {
    fn is_first(&self) -> bool {
        self.is_first
    }

    fn drive<W: run::Workload>(
        &mut self,
        workload: W,
        snapshot: Option<Snapshot>,
        details: &Details<'_>,
    ) -> Result<Option<Finished<W::Totals>>, Failure<W::Error>> {
        let (options, config) = (self.options, workload.config().clone());
        let run_inputs = workload.run_inputs();
        let saved = options.checkpoints.as_ref();
        let saved = saved.map(|saved| (saved, saved.run(&run_inputs), saved.policy()));
        let claimed = saved.as_ref().filter(|_| self.is_first);
        let _claim = claimed.map(|(_, run, policy)| Claim::new(&policy.directory, *run));
        let _claim = _claim.transpose().map_err(anyhow::Error::from)?;
        let configuration = [&self.setting.configuration[..], &run_inputs].concat();
        let Some(agreement) = self.agree(&configuration, None)? else {
            return Ok(None);
        };
        interrupt::on_ctrl_c(options.config.cancel.clone());
        if let Some(lines) = self.logged {
            self.console.line(format_args!(
                "corsair: the log of messages continues after its line {lines}"
            ));
        }
        let part = self.part(&agreement)?;
        let listening = self.listening.take().context("a part is run once")?;
        let console = Arc::clone(&self.console);
        let owner = saved.as_ref();
        let owner = owner.map(|(checkpoints, ..)| Owner::new(checkpoints, &console, details));
        let writing = saved.as_ref().zip(owner.as_ref());
        let writing = writing.map(|((_, run, policy), owner)| Writing {
            policy,
            owner,
            run: *run,
            recorder: listening.recorder(),
            process: part.process,
            processes: part.processes.get(),
            session: agreement.session,
        });
        let run = Run::new(workload).resume(snapshot);
        let ended = self.run_part(run, part, listening, writing.as_ref())?;
        let Some(Parts {
            ends,
            wall,
            records,
        }) = ended
        else {
            return Ok(None);
        };
        let observer = records.wait()?;
        let outcomes: Vec<Vec<u8>> = ends.iter().map(|end| end.part.clone()).collect();
        let report = conclude_parts::<W::Message>(&config, part, &outcomes, wall);
        let report = report.map_err(SnapshotError::from)?;
        self.ending = Some(Ending {
            observer,
            per_actor: self.per_actor.take(),
            processes: ends.iter().map(|end| summary(end, wall)).collect(),
        });
        let mut ends = ends.iter().map(|end| {
            let totals = serde_json::from_slice::<W::Totals>(&end.actor_report);
            totals.context("the totals of a process cannot be read")
        });
        let mut totals = ends.next().context("the run has no process")??;
        for other in ends {
            W::merge(&mut totals, other?);
        }
        Ok(Some(Finished { report, totals }))
    }
}

/// The results of the parts of all processes.
struct Parts {
    ends: Vec<ProcessEnd>,
    wall: Duration,
    records: Records,
}

impl<C: Carrier> Process<'_, C> {
    /// Runs the part of this process to its end, sends all of its records, and waits for the other processes. In the
    /// first process, returns the results of all processes.
    fn run_part<W: run::Workload>(
        &mut self,
        run: Run<'_, W>,
        part: ProcessPart,
        listening: Listening,
        writing: Option<&Writing<'_>>,
    ) -> Result<Option<Parts>, Failure<W::Error>> {
        let mut member = self.member.take().context("a part is run once")?;
        thread::scope(|scope| {
            let start = |writing| Writer::start(scope, writing, member.mailbox());
            let writer = writing
                .map(start)
                .transpose()
                .map_err(anyhow::Error::from)?;
            if let (Some(writer), Some(writing), true) = (&writer, writing, self.is_first) {
                remove_left(&writing.policy.directory);
                let reports = member.receiver(Topic::Checkpoints);
                writer.listen(reports).map_err(anyhow::Error::from)?;
            }
            let saver = writer.as_ref();
            let saver = saver.map(|writer| writer.part_saver(part.workers.get()));
            let measure = Measure::Virtual(self.options.config.progress.clone());
            let bar = self.is_first.then(|| Bar::begin(&self.console, measure));
            let began = Instant::now();
            let saving = saver.as_ref().map(|saver| saver as &dyn Saving);
            let ran = run.over(part, &mut member as &mut dyn Carrier, saving);
            let wall = began.elapsed();
            drop(bar);
            let (outcome, totals) = ran.map_err(Failure::Workload)?;
            drop(saver);
            let records = listening.flush()?;
            // The first process writes until it has received the reports of all processes; the others have finished
            // writing when their parts end.
            let writer = match (writer, self.is_first) {
                (Some(writer), false) => {
                    writer.finish();
                    None
                }
                (writer, _) => writer,
            };
            let totals = serde_json::to_vec(&totals).map_err(anyhow::Error::from)?;
            let ends = member.end(outcome, totals).map_err(anyhow::Error::from)?;
            self.stage = Stage::Ended;
            drop(writer);
            Ok(records.map(|records| Parts {
                ends,
                wall,
                records,
            }))
        })
    }
}

fn summary(end: &ProcessEnd, wall: Duration) -> ProcessSummary {
    let exchange = &end.exchange;
    let share = exchange.time.as_secs_f64() / wall.as_secs_f64();
    ProcessSummary {
        exchange_share: if share.is_finite() { share } else { 0.0 },
        sent_bytes: exchange.sent,
        received_bytes: exchange.received,
        peak_memory_bytes: end.peak_memory,
    }
}
