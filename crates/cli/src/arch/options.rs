//! What the flags mean for an architecture.

use crate::flags::refusal::not_one_of;
use crate::flags::values::Values;
use crate::options;
use crate::text;
use anyhow::{Result, anyhow, bail};
use corsair::{Config, Executor};
use corsair_arch::{Distribution, LEAST_TRAVEL, LoadText, Scale};
use corsair_observe::FlowFormat;
use jiff::Timestamp;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Runs of an architecture have numbers up to this one.
const MOST_RUNS: u32 = 999_999;

/// What the flags ask for.
#[derive(Clone, Debug)]
pub struct ArchOptions {
    /// The name of the architecture, or the path of its definition.
    pub arch: String,
    /// Where definitions are.
    pub directory: PathBuf,
    /// The step of the migration, or the number of the run, by which files are named; 0: none.
    pub step: u32,
    /// How large it is made.
    pub scale: Scale,
    /// The graph file to start from.
    pub reload: Option<PathBuf>,
    /// How long the load lasts.
    pub duration: Duration,
    /// How often each entry point makes a request.
    pub chat: Option<Duration>,
    /// What comes in at entry points, if not what the definition says.
    pub load: Option<LoadText>,
    /// How often instances ask their registry.
    pub poll: Duration,
    /// Show services instead of instances.
    pub collapse: bool,
    /// How long messages travel wherever they go, if not by place.
    pub latency: Option<Distribution>,
    /// Who runs it.
    pub executor: Executor,
    /// How it runs.
    pub config: Config,
    /// The date of time zero, if one was given.
    pub epoch: Option<Timestamp>,
    /// Below which files are written.
    pub out: PathBuf,
    /// Write GraphJSON.
    pub graph_json: bool,
    /// Write GraphML and GEXF.
    pub graph_ml: bool,
    /// Write to Neo4j.
    pub neo4j: bool,
    /// Measure times, and write them.
    pub collect: bool,
    /// Write flows in these formats.
    pub flows: Vec<FlowFormat>,
    /// Send flows to Kafka.
    pub kafka: Option<String>,
    /// Send flows to a collector.
    pub otlp: Option<String>,
    /// Send flows to a Zipkin server.
    pub zipkin: Option<String>,
    /// Serve times.
    pub metrics: Option<SocketAddr>,
    /// Print every message.
    pub messages: bool,
    /// Write every actor's totals here.
    pub per_actor: Option<PathBuf>,
    /// One JSON object instead of lines.
    pub json: bool,
    /// Write a CPU profile here.
    pub profile: Option<PathBuf>,
}

impl ArchOptions {
    /// Reads the values.
    ///
    /// # Errors
    /// The first value that is wrong, or that does not go with another.
    pub fn read(values: &Values) -> Result<ArchOptions> {
        let arch = values.text("arch").to_owned();
        refuse_what_pirates_have(values)?;
        let step = step(values, &arch)?;
        let number = |most: u64| move |text: &str| text::whole(text, 0, most);
        let percent = values.read("population", number(u32::MAX.into()))?;
        let regions = values.read("regions", number(u32::MAX.into()))?;
        let json = options::word(values, "format")? == "json";
        let messages = values.switch("msglog")?;
        if json && messages {
            bail!(
                "-m prints lines and --format json prints nothing but one object; leave one of them out"
            );
        }
        let out = PathBuf::from(values.text("out"));
        let stem = match step {
            0 => arch.clone(),
            step => format!("{arch}{step}"),
        };
        let default = out.join("json").join(format!("{stem}.json"));
        let reload = options::reload(values)?.map(|file| file.unwrap_or(default));
        for flag in ["population", "regions"] {
            if reload.is_some() && values.given(flag).is_some() {
                let spelled = if flag == "regions" { "-w" } else { "-p" };
                bail!(
                    "{spelled} and -r do not go together: the graph file says how many instances there are, and where; leave one of them out"
                );
            }
        }
        let collect = values.switch("collect")?;
        let per_actor = values.given("per-actor").map(PathBuf::from);
        let config = options::config(values)?;
        Ok(ArchOptions {
            directory: PathBuf::from(values.text("arch-dir")),
            step,
            scale: Scale {
                regions: regions.unwrap_or(1) as u32,
                percent: percent.unwrap_or(100) as u32,
            },
            reload,
            duration: values.read("duration", text::seconds)?.unwrap_or_default(),
            chat: values.read("kv", options::chat)?,
            load: values.read("load", |text| {
                LoadText::read(text).map_err(|e| e.to_string())
            })?,
            poll: values
                .read("eurekapoll", text::duration)?
                .unwrap_or_default(),
            collapse: values.switch("filter")?,
            executor: options::executor(values)?,
            latency: latency(values, &config)?,
            config: Config {
                per_actor: per_actor.is_some(),
                ..config
            },
            epoch: values.read("epoch", options::epoch)?,
            out,
            graph_json: values.switch("graphjson")?,
            graph_ml: values.switch("graphml")?,
            neo4j: values.switch("neo4j")?,
            flows: flows(values, collect)?,
            collect,
            kafka: values.given("kafka").map(str::to_owned),
            otlp: values.given("otlp").map(str::to_owned),
            zipkin: values.given("zipkin").map(str::to_owned),
            metrics: values.read("metrics", address)?,
            messages,
            per_actor,
            json,
            profile: values.given("cpuprofile").map(PathBuf::from),
            arch,
        })
    }
}

/// Refuses flags that say how pirates run.
fn refuse_what_pirates_have(values: &Values) -> Result<()> {
    if options::word(values, "form")? != "handler" {
        bail!("--form is for fsm: services are handlers; leave it out");
    }
    Ok(())
}

/// How long messages travel, if that was given: it takes the place of what the definition says of
/// the network.
fn latency(values: &Values, config: &Config) -> Result<Option<Distribution>> {
    if values.given("latency").is_none() {
        return Ok(None);
    }
    let (min, max) = (config.latency.min(), config.latency.max());
    let least = Duration::from_nanos(LEAST_TRAVEL);
    if min < least {
        let short = format!("{min:?} is too short: between services {least:?} is the least");
        return Err(values.wrong("latency", short));
    }
    Ok(Some(Distribution::uniform(min, max)))
}

/// The step of the migration, or the number of this run of another architecture, by which its
/// files are named.
fn step(values: &Values, arch: &str) -> Result<u32> {
    let most = if arch == "migration" {
        corsair_arch::LAST_STEP
    } else {
        MOST_RUNS
    };
    let step = values.read("stopstep", |text| text::whole(text, 0, most.into()))?;
    Ok(step.unwrap_or_default() as u32)
}

/// The formats of flows: those named, or spigo's if flows are collected.
fn flows(values: &Values, collect: bool) -> Result<Vec<FlowFormat>> {
    let named = |word: &str| match word {
        "zipkin1" => Ok(vec![FlowFormat::ZipkinV1]),
        "zipkin2" => Ok(vec![FlowFormat::ZipkinV2]),
        "otlp" => Ok(vec![FlowFormat::Otlp]),
        "all" => Ok(vec![
            FlowFormat::ZipkinV1,
            FlowFormat::ZipkinV2,
            FlowFormat::Otlp,
        ]),
        other => Err(not_one_of(other, &["zipkin1", "zipkin2", "otlp", "all"])),
    };
    let read = |text: &str| -> Result<Vec<FlowFormat>, String> {
        let mut formats = Vec::new();
        for word in text.split(',') {
            for format in named(word)? {
                if !formats.contains(&format) {
                    formats.push(format);
                }
            }
        }
        Ok(formats)
    };
    let given = values.read("flow-format", read)?;
    Ok(match given {
        Some(formats) => formats,
        None if collect => vec![FlowFormat::ZipkinV1],
        None => Vec::new(),
    })
}

/// `127.0.0.1:9090`, or `:9090` for this machine alone.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.replace("localhost:", "127.0.0.1:"),
    };
    full.parse()
        .map_err(|_| format!("'{text}' is no address; write one as 127.0.0.1:9090"))
}

/// How a definition is named in commands that only need that.
pub fn described(arch: &str) -> anyhow::Error {
    anyhow!("{arch} is no architecture of services; type for example -a netflixoss")
}
