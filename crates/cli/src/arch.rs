//! `corsair -a` anything but fsm: an architecture of services, simulated and observed.

pub mod options;
pub mod source;
mod summary;

use crate::console::{Console, complain};
use crate::interrupt;
use crate::memory;
use crate::observed;
use crate::per_actor;
use crate::profile::Profile;
use crate::progress::{Bar, Measure};
use anyhow::{Context, Result, anyhow};
use corsair::{Executor, Outcome, Report};
use corsair_arch::{KINDS, Plan, SimulateError, Topology, simulate};
use corsair_observe::{
    Clock, GraphFormat, ObserveError, Observed, Observer, Replacement, Settings,
};
use jiff::Timestamp;
use options::ArchOptions;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use summary::Summary;

/// Simulates an architecture as the options say. `args` are the flags, as files quote them.
///
/// # Errors
/// What is wrong before the run begins, how it failed, or what could not be written.
pub fn run(options: &ArchOptions, args: &str) -> Result<ExitCode> {
    let topology = source::topology(options)?;
    let connections = corsair_arch::connections(&topology);
    memory::check_architecture(topology.len(), connections).context("-p")?;
    let settings = settings(options, args, &topology)?;
    let profile = options.profile.as_deref().map(Profile::begin).transpose()?;
    let per_actor = PerActor::begin(options, &topology).context("--per-actor")?;
    let observer = Observer::start(settings).map_err(|error| blame(options, error))?;
    let console = Arc::new(Console::new(!options.json));
    if let Some(address) = observer.metrics_address() {
        console.line(format_args!(
            "corsair: serving times at http://{address}/metrics"
        ));
    }
    interrupt::on_ctrl_c(options.config.cut.clone());
    let measure = match options.executor {
        Executor::Virtual => Measure::Virtual(options.config.progress.clone()),
        _ => Measure::Clock,
    };
    console.talking(options.duration);
    let bar = Bar::begin(&console, measure);
    let plan = Plan {
        duration: options.duration,
        poll: options.poll,
        collapse: options.collapse,
        recorder: observer.recorder(),
        ..Plan::default()
    };
    let plan = Plan {
        chat: options.chat.unwrap_or(plan.chat),
        ..plan
    };
    for late in topology.faults_after(plan.duration) {
        complain(&late);
    }
    let described = Described::new(&topology);
    let ran = simulate(options.executor, &options.config, topology, &plan);
    drop(bar);
    if let Some(profile) = profile {
        profile.end()?;
    }
    let (report, totals) = ran.map_err(|error| failed(error, &console))?;
    let observed = observer.finish().map_err(|error| blame(options, error))?;
    for panic in &report.panics {
        complain(panic);
    }
    let mut files = observed::tell(&observed);
    if let Some(per_actor) = per_actor {
        let written = per_actor.write(&report).context("--per-actor")?;
        files.push(written.display().to_string());
    }
    files.extend(
        options
            .profile
            .iter()
            .map(|path| path.display().to_string()),
    );
    let summary = Summary::new(options, &described, &report, &totals, &observed, files);
    tell(&console, options, &observed, &summary);
    Ok(match report.outcome {
        Outcome::Completed => ExitCode::SUCCESS,
        Outcome::Cut => ExitCode::from(interrupt::EXIT_CODE),
    })
}

/// The file of every actor's totals, begun before the run, and the names of the actors.
struct PerActor {
    file: Replacement,
    names: Vec<String>,
}

impl PerActor {
    fn begin(options: &ArchOptions, topology: &Topology) -> Result<Option<PerActor>> {
        let begin = |path: &PathBuf| -> Result<PerActor> {
            let file = Replacement::begin(path)?;
            let names = topology.actor_names().collect();
            Ok(PerActor { file, names })
        };
        options.per_actor.as_ref().map(begin).transpose()
    }

    /// Puts the file in its place, and says where that is.
    fn write(self, report: &Report) -> Result<PathBuf> {
        let path = self.file.path().to_owned();
        per_actor::write(self.file, self.names.iter(), &report.per_actor)?;
        Ok(path)
    }
}

/// What the summary says of the topology, which the run takes.
struct Described {
    instances: u32,
    services: Vec<String>,
    regions: u32,
}

impl Described {
    fn new(topology: &Topology) -> Described {
        let services = topology.services.iter();
        Described {
            instances: topology.len(),
            services: services.map(|service| service.name.clone()).collect(),
            regions: topology.regions,
        }
    }
}

/// What is to be written about the run.
fn settings(options: &ArchOptions, args: &str, topology: &Topology) -> Result<Settings> {
    let clock = match options.executor {
        Executor::Virtual => Clock::Virtual(options.config.progress.clone()),
        _ => Clock::Wall,
    };
    let mut settings = Settings::new(topology.arch.clone(), clock);
    settings.step = options.step;
    settings.args = args.to_owned();
    settings.kinds = KINDS;
    settings.out.clone_from(&options.out);
    settings.epoch = options.epoch.unwrap_or(match options.executor {
        Executor::Virtual => Timestamp::UNIX_EPOCH,
        _ => Timestamp::now(),
    });
    if options.graph_json {
        settings.graphs.push(GraphFormat::Json);
    }
    if options.graph_ml {
        settings
            .graphs
            .extend([GraphFormat::GraphMl, GraphFormat::Gexf]);
    }
    if options.neo4j {
        settings.neo4j = Some(observed::neo4j()?);
    }
    settings.flows.clone_from(&options.flows);
    settings.times = options.collect;
    settings.guesses = topology.guesses();
    settings.kafka.clone_from(&options.kafka);
    settings.otlp.clone_from(&options.otlp);
    settings.zipkin.clone_from(&options.zipkin);
    settings.metrics = options.metrics;
    settings.cut = Some(options.config.cut.clone());
    if options.messages {
        settings.messages = Some(Box::new(Stdout::new()));
    }
    Ok(settings)
}

/// Stdout, whose reader may leave: what is written from then on is dropped, and the run goes on.
struct Stdout {
    out: Option<BufWriter<io::Stdout>>,
}

impl Stdout {
    fn new() -> Stdout {
        let out = Some(BufWriter::with_capacity(1 << 16, io::stdout()));
        Stdout { out }
    }

    fn when_open<T>(
        &mut self,
        nothing: T,
        act: impl FnOnce(&mut BufWriter<io::Stdout>) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(out) = &mut self.out else {
            return Ok(nothing);
        };
        match act(out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // What is still buffered must not be tried again.
                if let Some(out) = self.out.take() {
                    drop(out.into_parts());
                }
                Ok(nothing)
            }
            other => other,
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.when_open(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.when_open((), Write::flush)
    }
}

/// The flag that asked for what cannot be written or reached.
fn blame(options: &ArchOptions, error: ObserveError) -> anyhow::Error {
    let flag = match &error {
        ObserveError::File(_) if options.graph_json && !options.collect => "-j",
        ObserveError::File(_) if options.collect && !options.graph_json => "-c",
        ObserveError::Messages(_) => "-m",
        ObserveError::Metrics { .. } => "--metrics",
        error => observed::flag_of(error).unwrap_or_default(),
    };
    let error = anyhow!(error);
    match flag {
        "" => error,
        flag => error.context(flag),
    }
}

/// How a run failed, as an error. What it had done is told first.
fn failed(error: SimulateError, console: &Console) -> anyhow::Error {
    match &error {
        SimulateError::Chat(_) => return anyhow!("-kv: {error}"),
        SimulateError::Poll(_) => return anyhow!("-u: {error}"),
        SimulateError::Run(run) => {
            if let Some(report) = run.report() {
                console.line(format_args!(
                    "corsair: failed at {} after {} messages",
                    report.time,
                    report.delivered()
                ));
            }
        }
        _ => {}
    }
    anyhow!("{}", error.to_string().trim_end())
}

/// Prints the summary, and the times of all services if they were asked for.
fn tell(console: &Console, options: &ArchOptions, observed: &Observed, summary: &Summary) {
    if options.json {
        console.print(|out| {
            serde_json::to_writer(&mut *out, summary).map_err(io::Error::from)?;
            writeln!(out)
        });
        return;
    }
    if options.collect {
        let table = corsair_observe::percentile_table(&observed.times);
        console.print(|out| write!(out, "{table}"));
    }
    console.print(|out| write!(out, "{summary}"));
}

/// Adds the flag to an error about its value.
fn of_flag<T, E: std::fmt::Display>(flag: &'static str, result: Result<T, E>) -> Result<T> {
    result.map_err(|error| anyhow!("{error}")).context(flag)
}
