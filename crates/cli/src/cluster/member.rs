//! One process of a run over several.

use super::listening::{Listening, Records};
use super::saving::{Keeper, Outputs, Place, Writer};
use crate::arch::Services;
use crate::checkpoint;
use crate::console::{Console, complain};
use crate::flags::Group;
use crate::flags::values::Values;
use crate::fsm::Pirates;
use crate::options::{Checkpoints, Options, What, failed};
use crate::progress::{Bar, Measure};
use crate::simulation::{self, Ending};
use crate::summary::ProcessSummary;
use crate::workload::Workload;
use crate::{exit_code, interrupt};
use anyhow::{Context, Result, bail};
use corsair::cluster::{Carrier, Part, conclude_parts};
use corsair::fsm::Form;
use corsair::{Config, Message, Snapshot};
use corsair_cluster::{Agreement, ClusterError, Member, ProcessEnd, Terms, Topic};
use corsair_observe::checkpoint::{Claim, RunId};
use corsair_observe::{Recorder, Replacement, Resumed};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a process was started with.
#[derive(Debug)]
pub struct Setting {
    /// The flags, as files quote them.
    pub described: String,
    /// See [`configuration`].
    pub configuration: Vec<u8>,
    /// How many workers each process has, if the user has said so.
    pub workers: Option<NonZeroUsize>,
    /// All processes are on this machine.
    pub is_local: bool,
}

/// A workload of which several processes have a part each.
pub trait Spread: Workload {
    /// What its actors say to each other.
    type Message: Message;

    /// All that decides the result of the run.
    ///
    /// # Errors
    /// If it cannot be run.
    fn course(&self, options: &Options) -> Result<Vec<u8>>;

    /// Runs the part of this process. Returns how it ended, and what else its actors have to tell.
    ///
    /// # Errors
    /// How it failed.
    fn run_part(&mut self, run: PartRun<'_>) -> Result<(Vec<u8>, Vec<u8>)>;

    /// The configuration that its parts are run with.
    fn config(&self, options: &Options) -> Config {
        options.config.clone()
    }

    /// What has been done, in the first process: `beside` is what the actors of all processes have told.
    ///
    /// # Errors
    /// If that makes no sense.
    fn into_results(self, options: &Options, beside: &[Vec<u8>]) -> Result<Self::Results>;
}

/// The part of a run that this process has.
pub struct PartRun<'a> {
    pub options: &'a Options,
    pub part: Part,
    pub recorder: Recorder,
    pub console: &'a Arc<Console>,
    /// Where it resumes from.
    pub snapshot: Option<Snapshot>,
    /// Taken once.
    pub carrier: Option<&'a mut dyn Carrier>,
    writer: Option<&'a Writer>,
}

impl<'a> PartRun<'a> {
    /// What saves the run as it goes, if it is to be saved.
    pub fn keeper<'b>(&'b self, outputs: &'b Outputs<'b>) -> Option<Keeper<'b>>
    where
        'a: 'b,
    {
        let checkpoints = self.options.checkpoints.as_ref()?;
        let workers = self.part.workers.get();
        Some(self.writer?.keeper(checkpoints, workers, outputs))
    }
}

/// Checks that the run can be on several processes.
///
/// # Errors
/// Why it cannot.
pub fn check(options: &Options) -> Result<()> {
    match &options.what {
        What::Pirates(pirates) if pirates.form == Form::Async => bail!(
            "--form async and several processes do not go together: an async body cannot be sent to another process; leave it out"
        ),
        _ => Ok(()),
    }
}

/// All flags that must be equal in all processes, as bytes.
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

/// Runs the part of this process.
///
/// # Errors
/// How the run failed in this process, while others may still run.
pub fn run(options: &Options, setting: &Setting, member: Member<impl Carrier>) -> Result<ExitCode> {
    let machines = match setting.is_local {
        true => 1,
        false => member.processes() as u32,
    };
    match &options.what {
        What::Pirates(pirates) => spread(options, setting, member, || {
            check(options)?;
            Pirates::new_shared(options, pirates, machines)
        }),
        What::Services(services) => spread(options, setting, member, || {
            Services::new(options, services)
        }),
    }
}

fn spread<W: Spread>(
    options: &Options,
    setting: &Setting,
    mut member: Member<impl Carrier>,
    make: impl FnOnce() -> Result<W>,
) -> Result<ExitCode> {
    let prepared =
        make().and_then(|workload| Prepared::new(options, setting, workload, &mut member));
    let failure = prepared.as_ref().err().map(|error| format!("{error:#}"));
    let configuration = prepared
        .as_ref()
        .map_or(&[][..], |prepared| &prepared.configuration);
    let agreed = member.agree(&Terms {
        program: concat!("corsair ", env!("CARGO_PKG_VERSION")),
        configuration,
        workers: setting.workers,
        failure: failure.as_deref(),
    });
    let agreement = match agreed {
        Ok(agreement) => agreement,
        Err(ClusterError::Lost) => bail!(ClusterError::Lost),
        Err(refused) => {
            // All processes know, and one says so.
            if member.process() == 0 {
                complain(refused);
            }
            return Ok(ExitCode::from(exit_code::REFUSED));
        }
    };
    interrupt::on_ctrl_c(options.config.cancel.clone());
    let ran = prepared?.run(options, &agreement, &mut member)?;
    let (part, beside) = ran.reported.clone();
    let ends = member.end(part, beside)?;
    // From here on no other process waits for this one.
    ran.conclude(options, &ends).or_else(|error| {
        complain(format_args!("{error:#}"));
        Ok(ExitCode::from(exit_code::REFUSED))
    })
}

/// A part that is ready to be run, with everything that listens to it.
struct Prepared<W> {
    workload: W,
    configuration: Vec<u8>,
    console: Arc<Console>,
    /// The line behind which the log of messages continues.
    logged: Option<u64>,
    listening: Listening,
    per_actor: Option<Replacement>,
    snapshot: Option<Snapshot>,
    /// The identity of the run, if it is saved.
    run: Option<RunId>,
    claim: Option<Claim>,
}

impl<W: Spread> Prepared<W> {
    fn new(
        options: &Options,
        setting: &Setting,
        workload: W,
        member: &mut Member<impl Carrier>,
    ) -> Result<Prepared<W>> {
        let is_first = member.process() == 0;
        let mut configuration = setting.configuration.clone();
        let settings = simulation::settings(options, &setting.described, &workload)?;
        let logged = settings.resumed.as_ref();
        let logged = logged.filter(|_| options.messages && is_first);
        let logged = logged.map(Resumed::lines).transpose()?;
        let checkpoints = options.checkpoints.as_ref();
        let snapshot = checkpoints.map(snapshot).transpose()?.flatten();
        let course = workload.course(options)?;
        let run = checkpoints.map(|saved| saved.run(&course));
        configuration.extend(course);
        let claimed = checkpoints.zip(run).filter(|_| is_first);
        let claim = claimed.map(|(checkpoints, run)| Claim::new(&checkpoints.directory, run));
        let claim = claim.transpose()?;
        let listening = Listening::start(options, settings, member)?;
        let per_actor = options.per_actor.as_deref().filter(|_| is_first);
        let per_actor = per_actor.map(Replacement::begin).transpose();
        Ok(Prepared {
            workload,
            configuration,
            console: Arc::new(Console::new(!options.json && is_first)),
            logged,
            listening,
            per_actor: per_actor.context("--per-actor")?,
            snapshot,
            run,
            claim,
        })
    }

    /// Runs the part to its end, and sends everything that was recorded in it.
    fn run(
        mut self,
        options: &Options,
        agreement: &Agreement,
        member: &mut Member<impl Carrier>,
    ) -> Result<Ran<W>> {
        let checkpoints = options.checkpoints.as_ref();
        let (process, processes) = (member.process(), member.processes());
        let part = Part {
            process,
            processes: NonZeroUsize::new(processes).unwrap_or(NonZeroUsize::MIN),
            workers: agreement.workers,
            until: checkpoints.and_then(|saved| saved.until),
        };
        if let Some(lines) = self.logged {
            self.console.line(format_args!(
                "corsair: the log of messages continues after its line {lines}"
            ));
        }
        let recorder = self.listening.recorder();
        let writer = checkpoints.zip(self.run).map(|(checkpoints, run)| {
            let place = Place {
                process,
                processes,
                session: agreement.session,
            };
            let console = Arc::clone(&self.console);
            let mut writer = Writer::start(
                checkpoints,
                run,
                place,
                console,
                &recorder,
                member.mailbox(),
            )?;
            if process == 0 {
                corsair_observe::checkpoint::remove_left(&checkpoints.directory);
                writer.listen(member.receiver(Topic::Checkpoints))?;
            }
            anyhow::Ok(writer)
        });
        let writer = writer.transpose()?;
        let measure = Measure::Virtual(options.config.progress.clone());
        let bar = (process == 0).then(|| Bar::begin(&self.console, measure));
        let began = Instant::now();
        let reported = self.workload.run_part(PartRun {
            options,
            part,
            recorder,
            console: &self.console,
            snapshot: self.snapshot,
            carrier: Some(member),
            writer: writer.as_ref(),
        });
        let wall = began.elapsed();
        drop(bar);
        let reported = reported?;
        let records = self.listening.flush()?;
        // The first process writes until it has heard from all.
        let writer = match writer {
            Some(writer) if process > 0 => {
                writer.finish();
                None
            }
            writer => writer,
        };
        Ok(Ran {
            workload: self.workload,
            part,
            reported,
            wall,
            console: self.console,
            writer,
            records,
            per_actor: self.per_actor,
            _claim: self.claim,
        })
    }
}

/// A part that was run.
struct Ran<W> {
    workload: W,
    part: Part,
    reported: (Vec<u8>, Vec<u8>),
    wall: Duration,
    console: Arc<Console>,
    writer: Option<Writer>,
    /// In the first process.
    records: Option<Records>,
    per_actor: Option<Replacement>,
    /// On where the run is saved, as long as something may be written there.
    _claim: Option<Claim>,
}

impl<W: Spread> Ran<W> {
    /// In the first process, writes the files and prints the summary of the run.
    fn conclude(self, options: &Options, ends: &[ProcessEnd]) -> Result<ExitCode> {
        if let Some(writer) = self.writer {
            writer.finish();
        }
        let Some(records) = self.records else {
            return Ok(match options.config.cancel.is_cancelled() {
                true => ExitCode::from(interrupt::EXIT_CODE),
                false => ExitCode::SUCCESS,
            });
        };
        let observer = records.wait()?;
        let parts: Vec<Vec<u8>> = ends.iter().map(|end| end.part.clone()).collect();
        let beside: Vec<Vec<u8>> = ends.iter().map(|end| end.beside.clone()).collect();
        let config = self.workload.config(options);
        let report = conclude_parts::<W::Message>(&config, self.part, &parts, self.wall);
        let report = report.map_err(|error| failed(&error, &error, &self.console))?;
        let processes = ends.iter().map(|end| summary(end, self.wall));
        let ending = Ending {
            observer,
            per_actor: self.per_actor,
            processes: processes.collect(),
        };
        let results = self.workload.into_results(options, &beside)?;
        simulation::tell(options, &self.console, &report, results, ending)
    }
}

/// The saved run that this one goes on from.
fn snapshot(checkpoints: &Checkpoints) -> Result<Option<Snapshot>> {
    let Some(from) = &checkpoints.from else {
        return Ok(None);
    };
    let mut snapshot = checkpoint::snapshot_of(from)?;
    if let Some(seed) = checkpoints.reseed {
        snapshot.reseed(seed)?;
    }
    Ok(Some(snapshot))
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
