//! The values of all flags, read and checked. The first invalid value is reported in a sentence.

pub mod checkpoints;
mod services;
pub mod session;

use crate::console::{Console, complain};
use crate::flags::refusal::not_one_of;
use crate::flags::values::Values;
use crate::flags::{Value, named};
use crate::text;
use anyhow::{Result, anyhow, bail};
use corsair::fsm::Form;
use corsair::{Config, Executor, Latency, Overflow, RunError, Time};
use corsair_observe::Neo4j;
use jiff::Timestamp;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

pub use checkpoints::Checkpoints;
pub use services::ServiceOptions;
pub use session::SessionOptions;

/// The highest number that a run of an architecture can have.
const MOST_RUNS: u32 = 999_999;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The architecture: `fsm`, the name of another architecture, or the path of a definition.
    pub arch: String,
    /// The number after the architecture's name in file names; it is also the step of a migration.
    pub step: u32,
    /// The duration of the talk, or of the load.
    pub duration: Duration,
    /// The chat period of each pirate, or the time between requests of each entry point.
    pub chat: Option<Duration>,
    /// The graph file to start from.
    pub reload: Option<PathBuf>,
    /// The executor of the run.
    pub executor: Executor,
    /// The configuration of the run.
    pub config: Config,
    /// True if the number of workers is the default, one per core.
    pub any_workers: bool,
    /// The date of virtual time zero, if it was given.
    pub epoch: Option<Timestamp>,
    /// The directory that contains the written files.
    pub out: PathBuf,
    /// True to write GraphJSON.
    pub graph_json: bool,
    /// True to write GraphML and GEXF.
    pub graph_ml: bool,
    /// The Neo4j database to which the graph is written.
    pub neo4j: Option<Neo4j>,
    /// True to print every message.
    pub messages: bool,
    /// True to print one JSON object instead of lines.
    pub json: bool,
    /// The file to which the totals of each actor are written.
    pub per_actor: Option<PathBuf>,
    /// The file to which a CPU profile is written.
    pub profile: Option<PathBuf>,
    /// The options of the session that controls the run, if there is one.
    pub session: Option<SessionOptions>,
    /// The options of saving and resuming.
    pub checkpoints: Option<Checkpoints>,
    /// The workload to run.
    pub what: WorkloadOptions,
}

/// The workload to run, with its specific options.
#[derive(Clone, Debug)]
pub enum WorkloadOptions {
    /// The pirates: `-a fsm`.
    Pirates(PirateOptions),
    /// An architecture of services: any other value of `-a`.
    Services(Box<ServiceOptions>),
}

/// The options of pirates.
#[derive(Clone, Debug)]
pub struct PirateOptions {
    /// The number of pirates.
    pub population: u32,
    /// The form of the pirates: async functions or handlers.
    pub form: Form,
}

impl Options {
    /// Returns these options with the number of workers that `worthwhile` returns. If `--workers` is set or the run is
    /// not in virtual time, the options are unchanged.
    pub fn with_workers(&self, worthwhile: impl FnOnce() -> NonZeroUsize) -> Options {
        let mut options = self.clone();
        if options.any_workers && options.executor == Executor::Virtual {
            options.config.workers = worthwhile();
        }
        options
    }

    /// Reads the values.
    ///
    /// # Errors
    /// Returns the first value that is invalid, does not fit another value, or requests a feature that the architecture
    /// does not have.
    pub fn read(values: &Values) -> Result<Options> {
        let arch = values.text("arch").to_owned();
        let pirates = arch == "fsm";
        if pirates {
            refuse_services_only(values, &arch)?;
            if values
                .given("regions")
                .is_some_and(|regions| regions != "1")
            {
                complain("pirates have no regions; -w is ignored");
            }
        } else if word(values, "form")? != "handler" {
            bail!("--form is for fsm: services are handlers; leave it out");
        }
        let json = word(values, "format")? == "json";
        let messages = values.switch("msglog")?;
        if json && messages {
            bail!(
                "-m prints lines, and --format json prints only one object; leave one of them out"
            );
        }
        let most = u64::from(match arch.as_str() {
            "migration" => corsair_arch::LAST_STEP,
            _ => MOST_RUNS,
        });
        let step = values.read("stopstep", |text| text::whole(text, 0, most))?;
        let step = step.unwrap_or_default() as u32;
        let out = PathBuf::from(values.text("out"));
        let file = match step {
            0 => format!("{arch}.json"),
            step => format!("{arch}{step}.json"),
        };
        let reload = reload(values)?;
        let reload = reload.map(|given| given.unwrap_or_else(|| out.join("json").join(file)));
        if let (Some(_), Some(flag)) = (&reload, given_with_reload(values)) {
            let what = if pirates {
                "the number of pirates"
            } else {
                "the instances and their locations"
            };
            bail!(
                "{flag} and -r do not go together: the graph file determines {what}; leave one of them out"
            );
        }
        let config = config(values)?;
        let per_actor = values.given("per-actor").map(PathBuf::from);
        let what = if pirates {
            WorkloadOptions::Pirates(PirateOptions {
                population: population(values)?,
                form: match word(values, "form")? {
                    "async" => Form::Async,
                    _ => Form::Handler,
                },
            })
        } else {
            WorkloadOptions::Services(Box::new(ServiceOptions::read(values, &config)?))
        };
        Ok(Options {
            arch,
            step,
            duration: values.read("duration", text::seconds)?.unwrap_or_default(),
            chat: values.read("kv", chat)?,
            reload,
            executor: executor(values)?,
            any_workers: workers(values)?.is_none(),
            config: Config {
                per_actor: per_actor.is_some(),
                ..config
            },
            epoch: values.read("epoch", epoch)?,
            graph_json: values.switch("graphjson")?,
            graph_ml: values.switch("graphml")?,
            neo4j: neo4j(values)?,
            out,
            messages,
            json,
            per_actor,
            profile: values.given("cpuprofile").map(PathBuf::from),
            session: None,
            checkpoints: None,
            what,
        })
    }
}

/// Returns the given flag that sets the size of the run, or `None`. Such a flag conflicts with a graph file.
fn given_with_reload(values: &Values) -> Option<&'static str> {
    [("population", "-p"), ("regions", "-w")]
        .into_iter()
        .find_map(|(name, spelled)| values.given(name).map(|_| spelled))
}

/// Returns the number of pirates.
fn population(values: &Values) -> Result<u32> {
    let read = |text: &str| match text::whole(text, 0, u32::MAX.into()) {
        Ok(0 | 1) => Err(format!(
            "{text} pirates cannot talk to each other; give at least 2"
        )),
        other => other,
    };
    Ok(values.read("population", read)?.unwrap_or_default() as u32)
}

/// Returns the error of a failed run, after printing how far the run came.
pub fn failed(error: &impl fmt::Display, run: &RunError, console: &Console) -> anyhow::Error {
    if let Some(report) = run.report() {
        console.line(format_args!(
            "corsair: failed at {} after {} messages",
            report.time,
            report.delivered()
        ));
    }
    anyhow!("{}", error.to_string().trim_end())
}

/// Returns an error if flags request a feature that only services have.
fn refuse_services_only(values: &Values, arch: &str) -> Result<()> {
    for (flag, text) in values.differing() {
        let asked = flag.value != Value::Switch || values.switch(flag.name)?;
        if let (Some(services_only), true) = (&flag.services_only, asked) {
            let shown = if flag.value == Value::Switch {
                String::new()
            } else {
                format!(" {text}")
            };
            bail!(
                "{}{shown} ({}) is for architectures of services, not for {arch}; {}",
                flag.spelled(),
                services_only.what,
                services_only.instead
            );
        }
    }
    Ok(())
}

/// Returns the value of a flag, if the value is one of the flag's words.
pub fn word<'a>(values: &'a Values, name: &str) -> Result<&'a str> {
    let word = values.text(name);
    match named(name).map(|flag| flag.value) {
        Some(Value::Word(words)) if !words.contains(&word) => {
            Err(values.wrong(name, not_one_of(word, words)))
        }
        _ => Ok(word),
    }
}

fn executor(values: &Values) -> Result<Executor> {
    Ok(match word(values, "executor")? {
        "tokio" => Executor::Tokio,
        "threads" => Executor::Threads,
        "pool" => Executor::Pool,
        _ => Executor::Virtual,
    })
}

/// Returns the database to which the graph is written, if there is one.
fn neo4j(values: &Values) -> Result<Option<Neo4j>> {
    let url = values.given("neo4jurl");
    if !values.switch("neo4j")? {
        let needless =
            url.map(|_| values.wrong("neo4jurl", "the flag has no effect without -n; add -n"));
        return needless.map_or(Ok(None), Err);
    }
    let mut database = Neo4j::from_environment();
    if let Some(url) = url {
        url.clone_into(&mut database.url);
    }
    Ok(Some(database))
}

/// Returns whether to start from a graph file, and the path of the file if it was given.
fn reload(values: &Values) -> Result<Option<Option<PathBuf>>> {
    match values.switch("reload") {
        Ok(reload) => Ok(reload.then_some(None)),
        Err(_) => Ok(Some(Some(PathBuf::from(values.text("reload"))))),
    }
}

/// Returns the configuration of the run.
fn config(values: &Values) -> Result<Config> {
    let default = Config::default();
    let count = |text: &str| text::whole(text, 1, u32::MAX.into()).map(|n| n as usize);
    let config = Config {
        seed: values
            .read("seed", |text| text::whole(text, 0, u64::MAX))?
            .unwrap_or(default.seed),
        workers: workers(values)?.unwrap_or(default.workers),
        latency: values.read("latency", latency)?.unwrap_or(default.latency),
        lookahead: values.read("lookahead", text::duration)?,
        end: values
            .read("end", text::duration)?
            .map(|end| Time::ZERO.after(end)),
        mailbox: values
            .read("mailbox", count)?
            .and_then(NonZeroUsize::new)
            .unwrap_or(default.mailbox),
        overflow: match word(values, "overflow")? {
            "drop_newest" => Overflow::DropNewest,
            "drop_oldest" => Overflow::DropOldest,
            "fail" => Overflow::Fail,
            _ => Overflow::Block,
        },
        strict: values.switch("strict")?,
        ..default
    };
    config.check().map_err(|wrong| anyhow!("{wrong}"))?;
    Ok(config)
}

/// Returns the number of workers, which two flags can set.
fn workers(values: &Values) -> Result<Option<NonZeroUsize>> {
    let count = |text: &str| text::whole(text, 1, u32::MAX.into()).map(|n| n as usize);
    let (cpus, workers) = (values.read("cpus", count)?, values.read("workers", count)?);
    if let (Some(cpus), Some(workers)) = (cpus, workers)
        && cpus != workers
    {
        bail!(
            "-cpus {cpus} and --workers {workers} are the same flag with different numbers; leave one of them out"
        );
    }
    Ok(workers.or(cpus).and_then(NonZeroUsize::new))
}

/// Parses a latency such as `2ms` or `1ms..5ms`.
pub fn latency(text: &str) -> Result<Latency, String> {
    match text.split_once("..") {
        Some((min, max)) => Latency::between(text::duration(min)?, text::duration(max)?)
            .map_err(|wrong| wrong.to_string()),
        None => text::duration(text).map(Latency::constant),
    }
}

/// Parses the value of `-kv`, for example `chat:10ms`.
pub fn chat(text: &str) -> Result<Duration, String> {
    match text.split_once(':') {
        Some(("chat", value)) => text::duration(value),
        Some((key, _)) => Err(format!(
            "'{key}' cannot be tuned; expected chat, for example chat:10ms"
        )),
        None => Err(format!(
            "'{text}' is not KEY:VALUE; write for example chat:10ms"
        )),
    }
}

/// Parses a date, or `now`.
fn epoch(text: &str) -> Result<Timestamp, String> {
    if text == "now" {
        return Ok(Timestamp::now());
    }
    text.parse().map_err(|_| {
        format!("'{text}' is not a date; write now, or a date such as 2016-04-17T13:38:45Z")
    })
}
