//! Flags of commands that run an architecture many times, and definitions changed by `--set`.

use crate::arch::source;
use crate::text;
use anyhow::{Result, anyhow};
use clap::Args;
use corsair::Config;
use corsair_arch::{DefinitionText, Plan, Scale, Setting, Setup, SetupError, Topology};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of each run.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Directory of definitions, NAME_arch.json
    #[arg(long, value_name = "DIR", default_value = "json_arch")]
    arch_dir: PathBuf,
    /// Percentage of the definition's instances to create
    #[arg(long, short, value_name = "PERCENT", default_value_t = 100)]
    pub population: u32,
    /// Number of regions
    #[arg(long, short = 'w', value_name = "N", default_value_t = 1)]
    regions: u32,
    /// Length of each run, in virtual seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "10", value_parser = text::seconds)]
    pub duration: Duration,
    /// Length of the warm-up, which is not counted [default: a tenth of the run]
    #[arg(long, value_name = "SECONDS", value_parser = text::seconds)]
    pub warm_up: Option<Duration>,
    /// Load at the entry points [default: the load of the definition]
    #[arg(long, value_name = "LOAD")]
    pub load: Option<String>,
    /// First seed of the random numbers; further runs use the following seeds
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Number of runs in parallel [default: one per core]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
}

impl RunArgs {
    /// Returns the definition with this name.
    pub fn find(&self, arch: &str) -> Result<DefinitionText> {
        find(arch, &self.arch_dir)
    }

    /// Returns the topology of a definition under a load, with some fields changed. If it is built in and `sized` is
    /// set, it gets sizes.
    pub fn topology(
        &self,
        text: &DefinitionText,
        settings: &[Setting],
        load: Option<&str>,
        sized: bool,
    ) -> Result<Topology> {
        let topology = self.setup(sized).topology(text, settings, load);
        let topology = topology.map_err(flagged)?;
        source::check_load(&topology)?;
        Ok(topology)
    }

    pub fn plan(&self) -> Result<Plan> {
        self.setup(false).plan().map_err(flagged)
    }

    /// Returns the options with which each run uses a definition. Built-in definitions get sizes if `sized` is set.
    pub fn setup(&self, sized: bool) -> Setup {
        Setup {
            scale: Scale {
                regions: self.regions,
                percent: self.population,
            },
            duration: self.duration,
            warm_up: self.warm_up,
            load: self.load.clone(),
            sized,
        }
    }

    pub fn config(&self) -> Config {
        seeded(self.seed, self.workers)
    }
}

/// Returns the definition with this name; its fields can be set.
pub fn find(arch: &str, directory: &Path) -> Result<DefinitionText> {
    if ["fsm", "migration"].contains(&arch) {
        return Err(anyhow!(
            "{arch} has no fields to set; give a definition file or a built-in architecture"
        ));
    }
    DefinitionText::find(arch, directory).map_err(|error| anyhow!("{error}"))
}

/// Returns the configuration of runs that begin with a seed. The default is one parallel run for each core.
pub fn seeded(seed: u64, workers: Option<NonZeroUsize>) -> Config {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Config {
        seed,
        workers: workers.unwrap_or(cores),
        ..Config::default()
    }
}

/// Returns an error with the flag that caused it.
pub fn flagged(error: SetupError) -> anyhow::Error {
    match error {
        SetupError::Scale(scale) => source::of_scale(&scale),
        SetupError::Load(_) => anyhow!(error).context("--load"),
        SetupError::WarmUp { .. } => anyhow!("{error}; increase -d"),
        _ => anyhow!("{error}"),
    }
}

/// Parses a setting such as `services.web.count=4`.
pub fn setting(text: &str) -> Result<Setting, String> {
    let (path, value) = split(text)?;
    Ok(Setting {
        path: path.to_owned(),
        value: Setting::value(value),
    })
}

/// Splits a setting into its path and its value.
pub fn split(text: &str) -> Result<(&str, &str), String> {
    text.split_once('=')
        .filter(|(path, _)| !path.is_empty())
        .ok_or_else(|| format!("'{text}' has no value; write for example services.web.count=4"))
}
