//! Flags of commands that run an architecture many times, and definitions changed by `--set`.

use crate::arch::source;
use crate::text;
use anyhow::{Result, anyhow};
use clap::Args;
use corsair::Config;
use corsair_arch::{DefinitionText, Plan, Scale, Setting, Setup, SetupError, Topology};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// How each run is made.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where definitions are
    #[arg(long, value_name = "DIR", default_value = "json_arch")]
    arch_dir: PathBuf,
    /// How many per cent of the definition's instances there are
    #[arg(long, short, value_name = "PERCENT", default_value_t = 100)]
    pub population: u32,
    /// Into how many regions it goes
    #[arg(long, short = 'w', value_name = "N", default_value_t = 1)]
    regions: u32,
    /// How long each run lasts, in virtual seconds
    #[arg(long, short, value_name = "SECONDS", default_value = "10", value_parser = text::seconds)]
    pub duration: Duration,
    /// The first part of it that is not counted; a tenth of it if left out
    #[arg(long, value_name = "SECONDS", value_parser = text::seconds)]
    pub warm_up: Option<Duration>,
    /// What comes in, instead of what the definition says
    #[arg(long, value_name = "LOAD")]
    pub load: Option<String>,
    /// Where all random numbers come from; further seeds follow it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How many runs are made at once; one for each core if left out
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
}

impl RunArgs {
    /// The definition of this name.
    pub fn find(&self, arch: &str) -> Result<DefinitionText> {
        if ["fsm", "migration"].contains(&arch) {
            return Err(anyhow!(
                "{arch} has no definition whose fields could be set; give a file or a built-in architecture"
            ));
        }
        DefinitionText::find(arch, &self.arch_dir).map_err(|error| anyhow!("{error}"))
    }

    /// The topology of a definition with some fields set, under a load.
    pub fn topology(
        &self,
        text: &DefinitionText,
        settings: &[Setting],
        load: Option<&str>,
    ) -> Result<Topology> {
        let topology = self.setup().topology(text, settings, load);
        topology.map_err(flagged)
    }

    pub fn plan(&self) -> Result<Plan> {
        self.setup().plan().map_err(flagged)
    }

    /// How each run is made of a definition.
    pub fn setup(&self) -> Setup {
        Setup {
            scale: Scale {
                regions: self.regions,
                percent: self.population,
            },
            duration: self.duration,
            warm_up: self.warm_up,
            load: self.load.clone(),
        }
    }

    pub fn config(&self) -> Config {
        let mut config = Config {
            seed: self.seed,
            ..Config::default()
        };
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        config.workers = self.workers.unwrap_or(cores);
        config
    }
}

/// What is wrong, with the flag that says it.
pub fn flagged(error: SetupError) -> anyhow::Error {
    match error {
        SetupError::Scale(scale) => source::of_scale(&scale),
        SetupError::Load(_) => anyhow!(error).context("--load"),
        SetupError::WarmUp { .. } => anyhow!("{error}; give -d more"),
        _ => anyhow!("{error}"),
    }
}

/// Reads `services.web.count=4`.
pub fn setting(text: &str) -> Result<Setting, String> {
    let (path, value) = split(text)?;
    Ok(Setting {
        path: path.to_owned(),
        value: Setting::value(value),
    })
}

/// The path and the value of a setting.
pub fn split(text: &str) -> Result<(&str, &str), String> {
    text.split_once('=')
        .filter(|(path, _)| !path.is_empty())
        .ok_or_else(|| format!("'{text}' sets nothing; write it as services.web.count=4"))
}
