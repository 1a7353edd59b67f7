//! The file that describes a simulation, as TOML or JSON.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A duration as text, for example `250us` or `2s`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Span, String> {
        let wrong = || {
            format!(
                "'{text}' is not a duration; expected a number with a unit, for example 250us or 2s"
            )
        };
        let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
        Duration::try_from(span).map(Span).map_err(|_| wrong())
    }
}

/// The description of a simulation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The virtual time at which the simulation ends.
    pub until: Span,
    /// The first seed.
    #[serde(default = "one")]
    pub seed: u64,
    /// The number of seeds to run.
    #[serde(default = "one")]
    pub seeds: u64,
    /// The number of calls, out of 1,000, before which another thread of the program runs.
    #[serde(default)]
    pub preemption: u32,
    /// The network between all hosts.
    pub network: Option<Link>,
    #[serde(rename = "host")]
    pub hosts: Vec<Host>,
    #[serde(default, rename = "link")]
    pub links: Vec<Between>,
    #[serde(default, rename = "fault")]
    pub faults: Vec<FaultAt>,
}

fn one() -> u64 {
    1
}

/// The properties of a network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The shortest and the longest latency.
    pub latency: [Span; 2],
    /// The share of packets that are lost, from 0 to 1.
    #[serde(default)]
    pub loss: f64,
}

/// The network between two hosts.
#[derive(Debug, Deserialize)]
pub struct Between {
    pub between: [String; 2],
    #[serde(flatten)]
    pub link: Link,
}

/// A host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: String,
    /// The program and its arguments. A relative path starts at the directory of the file.
    pub run: Vec<String>,
    /// Files and directories of this machine that the program may read.
    #[serde(default)]
    pub read: Vec<PathBuf>,
    /// Files on the host's disk: their paths, and the paths from which they are copied.
    #[serde(default)]
    pub files: BTreeMap<String, PathBuf>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A fault and its time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultAt {
    pub at: Span,
    pub kill: Option<String>,
    pub power_loss: Option<String>,
    pub start: Option<String>,
    /// The host whose program receives SIGTERM.
    pub terminate: Option<String>,
    /// The host whose program is suspended until `resume`.
    pub pause: Option<String>,
    pub resume: Option<String>,
    /// The host whose wall clock is stepped, and by how much.
    pub clock_forward: Option<(String, Span)>,
    pub clock_back: Option<(String, Span)>,
    /// The host whose clocks run at another speed, and by how many millionths they are faster.
    pub clock_rate: Option<(String, i32)>,
    /// The host on which look-ups of names fail until `names_work`.
    pub names_fail: Option<String>,
    pub names_work: Option<String>,
    /// The two groups of hosts that a partition separates.
    pub partition: Option<[Vec<String>; 2]>,
    /// The group of hosts whose packets to the second group are lost.
    pub partition_one_way: Option<[Vec<String>; 2]>,
    pub heal: Option<[Vec<String>; 2]>,
}

/// The maximum size of a file in bytes.
const LARGEST: u64 = 16 << 20;

/// Reads the description of a simulation from a file.
pub fn read(path: &Path) -> Result<File, String> {
    let name = path.display();
    let size = path.metadata().map_or(0, |metadata| metadata.len());
    if size > LARGEST {
        return Err(format!("{name} has {size} bytes; the maximum is {LARGEST}"));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => toml::from_str(&text).map_err(|error| format!("{name}: {error}")),
        Some("json") => serde_json::from_str(&text).map_err(|error| format!("{name}: {error}")),
        _ => Err(format!("{name} is neither a .toml nor a .json file")),
    }
}
