//! One process of a run over several.

use super::lineage::Newest;
use super::saving::{Keeper, Outputs, Place, Writer, advice};
use crate::arch::Services;
use crate::checkpoint;
use crate::console::{Console, complain};
use crate::fsm::Pirates;
use crate::options::{Checkpoints, Options, What, failed};
use crate::progress::{Bar, Measure};
use crate::simulation::{self, Ending};
use crate::summary::ProcessSummary;
use crate::workload::Workload;
use crate::{exit_code, interrupt, observed};
use anyhow::{Context, Result, anyhow, bail};
use corsair::cluster::{Part, conclude_parts};
use corsair::fsm::Form;
use corsair::{Config, Message, Snapshot};
use corsair_cluster::{
    CarrierBuilder, ClusterCarrier, ClusterError, ClusterRun, Health, Hosts, LOST, Limits,
    Membership, Mesh, Origin, ProcessEnd, RelaySocket, Secret,
};
use corsair_observe::checkpoint::Claim;
use corsair_observe::{Observer, Recorder, Relay, Replacement, Resumed, Settings, Source};
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Which process this is, and what it needs to find the others.
#[derive(Debug)]
pub struct Member {
    pub hosts: Hosts,
    pub process: usize,
    /// How many workers each process has.
    pub workers: NonZeroUsize,
    pub secret: Secret,
    pub listener: Option<TcpListener>,
    pub parent: Option<u32>,
    /// All processes are on this machine.
    pub is_local: bool,
    pub limits: Limits,
    /// Where the run goes on from, because it was lost before.
    pub origin: Option<Origin>,
    /// What workers of different processes have for each other goes this way.
    pub connect: Connect,
}

/// [`Mesh::connect`], or another way.
pub type Connect = fn(Mesh) -> Result<(Vec<CarrierBuilder>, ClusterRun), ClusterError>;

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
    /// Where it goes on from.
    pub snapshot: Option<Snapshot>,
    pub carriers: Vec<Box<dyn FnOnce() -> ClusterCarrier + Send>>,
    writer: Option<&'a Writer>,
    health: Health,
}

impl<'a> PartRun<'a> {
    /// What saves the run as it goes, if it is to be saved.
    pub fn keeper<'b>(
        &'b self,
        outputs: &'b Outputs<'b>,
        fail: &'b (dyn Fn(String) + Sync),
    ) -> Option<Keeper<'b>>
    where
        'a: 'b,
    {
        let checkpoints = self.options.checkpoints.as_ref()?;
        let workers = self.part.workers.get();
        Some(self.writer?.keeper(checkpoints, workers, outputs, fail))
    }

    /// What ends the run of all processes.
    pub fn fail(&self) -> impl Fn(String) + Sync + use<> {
        let health = self.health.clone();
        move |why| health.fail(why)
    }
}

/// Runs the part of this process.
///
/// # Errors
/// Why the processes do not run together, or how the run failed.
pub fn run(options: Options, described: &str, member: Member) -> Result<ExitCode> {
    match options.what.clone() {
        What::Pirates(pirates) if pirates.form == Form::Handler => {
            let machines = if member.is_local {
                1
            } else {
                member.hosts.len()
            };
            let make = |options: &Options| Pirates::new_shared(options, &pirates, machines as u32);
            spread(options, described, member, make)
        }
        What::Pirates(_) => bail!(
            "--form async and several processes do not go together: an async body cannot be sent to another process; leave it out"
        ),
        What::Services(services) => {
            let make = |options: &Options| Services::new(options, &services);
            spread(options, described, member, make)
        }
    }
}

fn spread<W: Spread>(
    mut options: Options,
    described: &str,
    member: Member,
    make: impl Fn(&Options) -> Result<W>,
) -> Result<ExitCode> {
    let mut workload = make(&options)?;
    let part = Part {
        process: member.process,
        processes: NonZeroUsize::new(member.hosts.len()).unwrap_or(NonZeroUsize::MIN),
        workers: member.workers,
        until: options.checkpoints.as_ref().and_then(|saved| saved.until),
    };
    let is_child = member.parent.is_some();
    let resumed = options.checkpoints.as_ref().and_then(origin_of);
    let membership = Membership {
        hosts: member.hosts,
        process: member.process,
        workers: member.workers.get(),
        secret: member.secret,
        program: format!("corsair {}", env!("CARGO_PKG_VERSION")),
        configuration: configuration(&options, &workload)?,
        listener: member.listener,
        parent: member.parent,
        limits: member.limits,
        origin: member.origin.max(resumed.clone()),
        relays: simulation::settings(&options, described, &workload)?.wants_records(),
        shares_memory: true,
    };
    interrupt::on_ctrl_c(options.config.cancel.clone());
    let (builders, mut cluster) = (member.connect)(membership.meet()?)?;
    if let Some(origin) = cluster.origin() {
        go_on(&mut options, origin, resumed.as_ref())?;
        // What it has opened is opened again.
        drop(workload);
        workload = make(&options)?;
    }
    let newest = options.checkpoints.as_ref().map(Newest::since_now);
    let lost = {
        let newest = newest.clone();
        move |why: &str| {
            let advice = newest
                .as_ref()
                .map_or_else(String::new, |it| advice(Some(it)));
            complain(format_args!("{why}{advice}"));
            if is_child { LOST } else { exit_code::REFUSED }
        }
    };
    let on_hang = lost.clone();
    (cluster.supervisor()).on_hang(move |why| std::process::exit(on_hang(why).into()));
    let carriers = builders.into_iter().map(|builder| {
        let make: Box<dyn FnOnce() -> ClusterCarrier + Send> = Box::new(move || builder.build());
        make
    });
    let carriers = carriers.collect();
    let ran = attend(
        &options,
        described,
        &mut workload,
        part,
        &mut cluster,
        carriers,
    );
    let attended = match ran {
        Ok(attended) => attended,
        Err(failed) => {
            // The others are told why.
            let health = cluster.supervisor().health();
            return match health.lost() {
                Some(why) => Ok(ExitCode::from(lost(why))),
                None => {
                    health.fail(format!("process {}: {failed:#}", part.process));
                    Err(failed)
                }
            };
        }
    };
    let ends = match cluster.end(attended.told.0, attended.told.1) {
        Ok(ends) => ends,
        Err(ClusterError::Lost(why)) => return Ok(ExitCode::from(lost(&why))),
        Err(error) => return Err(error.into()),
    };
    if let Some(writer) = attended.writer {
        writer.finish();
    }
    let Some(observer) = attended.observer else {
        return Ok(match options.config.cancel.is_cancelled() {
            true => ExitCode::from(interrupt::EXIT_CODE),
            false => ExitCode::SUCCESS,
        });
    };
    let parts: Vec<Vec<u8>> = ends.iter().map(|end| end.part.clone()).collect();
    let beside: Vec<Vec<u8>> = ends.iter().map(|end| end.beside.clone()).collect();
    let console = attended.console;
    let config = workload.config(&options);
    let report = conclude_parts::<W::Message>(&config, part, &parts, attended.wall);
    let report = report.map_err(|error| failed(&error, &error, &console))?;
    let processes = ends.iter();
    let processes = processes.map(|end| process(end, attended.wall, part.workers));
    let ending = Ending {
        observer,
        per_actor: attended.per_actor,
        processes: processes.collect(),
    };
    let results = workload.into_results(&options, &beside)?;
    simulation::tell(&options, &console, &report, results, ending)
}

/// What all processes must have alike: the course of the run, and what is told of it.
fn configuration(options: &Options, workload: &impl Spread) -> Result<[u8; 32]> {
    let mut course = workload.course(options)?;
    let saved = options.checkpoints.as_ref();
    let saved = saved.map(|saved| (&saved.at, saved.until, saved.reseed, &saved.set));
    let told = (options.graph_json, options.graph_ml, options.messages);
    let more = format!("{told:?} {} {saved:?}", options.neo4j.is_some());
    course.extend(more.into_bytes());
    Ok(corsair_cluster::hash(&course))
}

fn origin_of(checkpoints: &Checkpoints) -> Option<Origin> {
    let from = checkpoints.from.as_ref()?;
    Some(Origin {
        time: from.manifest.time,
        place: from.directory.display().to_string(),
    })
}

/// All processes go on from here; `resumed` is where this one was told to.
fn go_on(options: &mut Options, origin: &Origin, resumed: Option<&Origin>) -> Result<()> {
    let Some(checkpoints) = &mut options.checkpoints else {
        bail!(
            "the run goes on from {}, which needs --checkpoint-dir here as in the other processes",
            origin.place
        );
    };
    if resumed != Some(origin) {
        let read = checkpoint::read(origin.place.as_ref())?;
        checkpoints.from = Some(Arc::new(read));
        // What was saved later has the other seed already.
        checkpoints.reseed = None;
    }
    Ok(())
}

/// What is left of a part that has been run.
struct Attended {
    told: (Vec<u8>, Vec<u8>),
    wall: Duration,
    console: Arc<Console>,
    writer: Option<Writer>,
    /// In the first process.
    observer: Option<Observer>,
    per_actor: Option<Replacement>,
    /// On where it is saved, as long as something may be written there.
    _claim: Option<Claim>,
}

/// Runs the part of this process, with all that listens to it.
fn attend<W: Spread>(
    options: &Options,
    described: &str,
    workload: &mut W,
    part: Part,
    cluster: &mut ClusterRun,
    carriers: Vec<Box<dyn FnOnce() -> ClusterCarrier + Send>>,
) -> Result<Attended> {
    let is_first = part.process == 0;
    let console = Arc::new(Console::new(!options.json && is_first));
    let settings = simulation::settings(options, described, workload)?;
    let logged = settings.resumed.as_ref();
    let logged = logged.filter(|_| options.messages && is_first);
    if let Some(lines) = logged.map(Resumed::lines).transpose()? {
        console.line(format_args!(
            "corsair: the log of messages goes on behind line {lines} of it"
        ));
    }
    let sockets = cluster.take_relays();
    let listening = match is_first {
        true => Listening::first(options, settings, sockets)?,
        false => Listening::other(&settings, sockets)?,
    };
    let per_actor = options.per_actor.as_deref().filter(|_| is_first);
    let per_actor = per_actor.map(Replacement::begin).transpose();
    let per_actor = per_actor.context("--per-actor")?;
    let supervisor = cluster.supervisor();
    let saved = options.checkpoints.as_ref();
    let run = saved.map(|saved| workload.course(options).map(|course| saved.run(&course)));
    let saved = saved.zip(run.transpose()?);
    let claimed = saved.filter(|_| is_first);
    let claim = claimed.map(|(checkpoints, run)| Claim::new(&checkpoints.directory, run));
    let claim = claim.transpose()?;
    let writer = saved.map(|(checkpoints, run)| {
        let place = Place {
            process: part.process,
            processes: part.processes.get(),
            session: cluster.session(),
        };
        let writer = Writer::start(
            checkpoints,
            run,
            place,
            Arc::clone(&console),
            &listening.recorder(),
            supervisor.teller(),
        )?;
        if is_first {
            corsair_observe::checkpoint::remove_left(&checkpoints.directory);
            supervisor.on_told(writer.listener());
        }
        anyhow::Ok(writer)
    });
    let writer = writer.transpose()?;
    let from = options.checkpoints.as_ref();
    let snapshot = from.map(snapshot).transpose()?.flatten();
    let bar =
        is_first.then(|| Bar::begin(&console, Measure::Virtual(options.config.progress.clone())));
    let began = Instant::now();
    let told = workload.run_part(PartRun {
        options,
        part,
        recorder: listening.recorder(),
        console: &console,
        snapshot,
        carriers,
        writer: writer.as_ref(),
        health: supervisor.health(),
    });
    let wall = began.elapsed();
    drop(bar);
    let (told, listened) = (told?, listening.end());
    // Of a run that is lost the supervisor says why.
    let observer = match (listened, supervisor.health().lost()) {
        (Ok(observer), _) => observer,
        (Err(_), Some(_)) => None,
        (Err(error), None) => return Err(error),
    };
    // The first process writes until it has heard of all parts.
    let writer = match is_first {
        true => writer,
        false => {
            if let Some(writer) = writer {
                writer.finish();
            }
            None
        }
    };
    Ok(Attended {
        told,
        wall,
        console,
        writer,
        observer,
        per_actor,
        _claim: claim,
    })
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

/// What listens to the actors of this process: in the first one what writes files of all, in others what takes it there.
enum Listening {
    Observer(Box<Observer>, Vec<JoinHandle<std::io::Result<()>>>),
    Relay(Relay),
    Nothing,
}

impl Listening {
    fn first(
        options: &Options,
        mut settings: Settings,
        sockets: Vec<RelaySocket>,
    ) -> Result<Listening> {
        settings.sources = sockets.len();
        let observer = Observer::start(settings);
        let observer = observer.map_err(|error| observed::with_flag(options, error))?;
        let sources = sockets.into_iter().zip(observer.sources());
        let threads = sources.map(|(socket, source)| {
            let named = std::thread::Builder::new().name("records".to_owned());
            named.spawn(move || listen(socket, source))
        });
        let threads = threads.collect::<Result<_, _>>()?;
        Ok(Listening::Observer(Box::new(observer), threads))
    }

    fn other(settings: &Settings, mut sockets: Vec<RelaySocket>) -> Result<Listening> {
        let Some(mut socket) = sockets.pop() else {
            return Ok(Listening::Nothing);
        };
        let relay = Relay::start(settings, move |batch| socket.send(batch))?;
        Ok(Listening::Relay(relay))
    }

    fn recorder(&self) -> Recorder {
        match self {
            Listening::Observer(observer, _) => observer.recorder(),
            Listening::Relay(relay) => relay.recorder(),
            Listening::Nothing => Recorder::off(),
        }
    }

    /// The run is over here: waits until all has been told.
    fn end(self) -> Result<Option<Observer>> {
        match self {
            Listening::Observer(observer, threads) => {
                for thread in threads {
                    let ended = thread.join();
                    ended.map_err(|_| anyhow!("what listens to another process has failed"))??;
                }
                Ok(Some(*observer))
            }
            Listening::Relay(relay) => relay.finish().map(|()| None).map_err(Into::into),
            Listening::Nothing => Ok(None),
        }
    }
}

/// Takes in what another process tells, up to its end.
fn listen(mut socket: RelaySocket, mut source: Source) -> std::io::Result<()> {
    let mut batch = Vec::new();
    loop {
        socket.receive(&mut batch)?;
        match source.receive(&batch) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                socket.fail(error.to_string());
                return Err(std::io::Error::other(error));
            }
        }
    }
}

/// What one process had to do with others, on the average of its workers.
fn process(end: &ProcessEnd, wall: Duration, workers: NonZeroUsize) -> ProcessSummary {
    let share = |time: Duration| {
        let all = wall.as_secs_f64() * workers.get() as f64;
        if all > 0.0 {
            time.as_secs_f64() / all
        } else {
            0.0
        }
    };
    let exchange = &end.exchange;
    ProcessSummary {
        exchange_share: share(exchange.time.total),
        waiting_share: share(exchange.time.waiting),
        sent_bytes: exchange.sent,
        received_bytes: exchange.received,
        peak_memory_bytes: end.peak_memory,
    }
}
