//! The options of services.

use crate::flags::refusal::not_one_of;
use crate::flags::values::Values;
use crate::text;
use anyhow::Result;
use corsair::Config;
use corsair_arch::{Distribution, LEAST_TRAVEL, LoadText, PlacesDefinition, PlacesError, Scale};
use corsair_observe::FlowFormat;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The options of services.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// The directory of definitions.
    pub directory: PathBuf,
    /// The scale of the architecture.
    pub scale: Scale,
    /// Names and addresses of regions and zones that replace those in the definition.
    pub places: PlacesDefinition,
    /// The load of entry points, which replaces the load in the definition.
    pub load: Option<LoadText>,
    /// True if services without times and slots get illustrative sizes.
    pub sized: bool,
    /// The interval at which instances query their registry.
    pub poll: Duration,
    /// True if graphs show services instead of instances.
    pub collapse: bool,
    /// The latency of all messages, which replaces the latencies between locations.
    pub latency: Option<Distribution>,
    /// True if times are measured and written to files.
    pub collect: bool,
    /// The formats in which flows are written.
    pub flows: Vec<FlowFormat>,
    /// The Kafka broker to which flows are sent.
    pub kafka: Option<String>,
    /// The collector to which flows are sent by OTLP.
    pub otlp: Option<String>,
    /// The Zipkin server to which flows are sent.
    pub zipkin: Option<String>,
    /// The address at which times are served during the run.
    pub metrics: Option<SocketAddr>,
    /// The files to which timelines are written.
    pub timelines: Vec<PathBuf>,
    /// The length of a timeline's intervals.
    pub interval: Option<Duration>,
}

impl ServiceOptions {
    /// Reads the values. `config` has the flags of the run.
    ///
    /// # Errors
    /// Returns the first value that is invalid, or inconsistent with another.
    pub fn read(values: &Values, config: &Config) -> Result<ServiceOptions> {
        let number = |text: &str| text::whole(text, 0, u32::MAX.into());
        let percent = values.read("population", number)?;
        let regions = values.read("regions", number)?;
        let collect = values.switch("collect")?;
        Ok(ServiceOptions {
            directory: PathBuf::from(values.text("arch-dir")),
            scale: Scale {
                regions: regions.unwrap_or(1) as u32,
                percent: percent.unwrap_or(100) as u32,
            },
            places: places(values)?,
            load: values.read("load", |text| {
                LoadText::read(text).map_err(|e| e.to_string())
            })?,
            sized: values.switch("sized")?,
            poll: values
                .read("eurekapoll", text::duration)?
                .unwrap_or_default(),
            collapse: values.switch("filter")?,
            latency: latency(values, config)?,
            flows: flows(values, collect)?,
            collect,
            kafka: values.given("kafka").map(str::to_owned),
            otlp: values.given("otlp").map(str::to_owned),
            zipkin: values.given("zipkin").map(str::to_owned),
            metrics: values.read("metrics", address)?,
            timelines: values.read("timeline", pictures)?.unwrap_or_default(),
            interval: interval(values)?,
        })
    }
}

/// Returns the names of regions and zones, and the address ranges.
fn places(values: &Values) -> Result<PlacesDefinition> {
    let list = |text: &str| text.split(',').map(str::to_owned).collect();
    let regions = values.given("region-names").map(list).unwrap_or_default();
    let zones = values.given("zone-names").map(list).unwrap_or_default();
    let ranges = values.given("ip-ranges").unwrap_or_default();
    let addresses = ranges.split(';').filter(|_| !ranges.is_empty()).map(list);
    let places = PlacesDefinition {
        regions,
        zones,
        addresses: addresses.collect(),
    };
    match places.places() {
        Ok(_) => Ok(places),
        Err(error) => Err(values.wrong(flag_of(&error), error)),
    }
}

/// Returns the flag with the invalid regions, zones or ranges.
fn flag_of(error: &PlacesError) -> &'static str {
    match error {
        PlacesError::Name { kind: "zone", .. }
        | PlacesError::Long { kind: "zone", .. }
        | PlacesError::Twice { kind: "zone", .. } => "zone-names",
        PlacesError::Name { .. }
        | PlacesError::Long { .. }
        | PlacesError::Twice { .. }
        | PlacesError::TooMany { .. } => "region-names",
        _ => "ip-ranges",
    }
}

/// Returns the latency, if it is set; it replaces the definition's network.
fn latency(values: &Values, config: &Config) -> Result<Option<Distribution>> {
    if values.given("latency").is_none() {
        return Ok(None);
    }
    let (min, max) = (config.latency.min(), config.latency.max());
    let least = Duration::from_nanos(LEAST_TRAVEL);
    if min < least {
        let short = format!("{min:?} is too short; services need a latency of at least {least:?}");
        return Err(values.wrong("latency", short));
    }
    Ok(Some(Distribution::uniform(min, max)))
}

/// Returns the requested formats of flows, or spigo's format if flows are collected and no format
/// is named.
fn flows(values: &Values, collect: bool) -> Result<Vec<FlowFormat>> {
    let named = |word: &str| match (word, FlowFormat::named(word)) {
        ("all", _) => Ok(FlowFormat::ALL.to_vec()),
        (_, Some(format)) => Ok(vec![format]),
        (_, None) => {
            let mut words = FlowFormat::ALL.map(FlowFormat::name).to_vec();
            words.push("all");
            Err(not_one_of(word, &words))
        }
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

/// Parses the paths of tables and pictures, which are separated by commas.
fn pictures(text: &str) -> Result<Vec<PathBuf>, String> {
    let file = |name: &str| match name.rsplit_once('.') {
        Some((_, "csv" | "svg")) => Ok(PathBuf::from(name)),
        _ => Err(format!(
            "'{name}' is neither a table nor a chart; give a name that ends in .csv or .svg"
        )),
    };
    text.split(',').map(file).collect()
}

/// Returns the length of the slices of a timeline.
fn interval(values: &Values) -> Result<Option<Duration>> {
    let interval = values.read("interval", |text| match text::duration(text)? {
        Duration::ZERO => Err("the interval is zero; give 1ms or more".to_owned()),
        interval => Ok(interval),
    })?;
    if interval.is_some() && values.given("timeline").is_none() {
        return Err(values.wrong("interval", "the flag needs --timeline; add --timeline FILE"));
    }
    Ok(interval)
}

/// Parses `127.0.0.1:9090`, or `:9090` for this machine only.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.replace("localhost:", "127.0.0.1:"),
    };
    full.parse()
        .map_err(|_| format!("'{text}' is not an address; write for example 127.0.0.1:9090"))
}
