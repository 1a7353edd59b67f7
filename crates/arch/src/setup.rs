//! The options with which a sweep or comparison runs a definition.

use crate::load::LoadText;
use crate::plan::Plan;
use crate::topology::{Scale, ScaleError, Topology};
use crate::variant::{DefinitionText, Setting};
use std::time::Duration;

/// The options of a run that are not fields of the definition.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The scale of the architecture.
    pub scale: Scale,
    /// The duration of each run.
    pub duration: Duration,
    /// The first part of each run, which is not counted; by default a tenth of the run.
    pub warm_up: Option<Duration>,
    /// The load, instead of the definition's.
    pub load: Option<String>,
    /// True if services of built-in architectures get illustrative sizes ([`Topology::add_sizes`]).
    pub sized: bool,
}

/// An error that prevents running a definition with these options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The definition, or a changed field, is invalid.
    #[error("{0}")]
    Definition(String),
    /// The scale is not possible.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The load is invalid.
    #[error("{0}")]
    Load(String),
    /// The warm-up is not shorter than the run.
    #[error("a warm-up of {warm_up:?} leaves no time to measure in a duration of {duration:?}")]
    WarmUp {
        /// The length of the warm-up.
        warm_up: Duration,
        /// The duration of the run.
        duration: Duration,
    },
}

impl Setup {
    /// Builds the topology of a definition with changed fields; `load`, if given, takes precedence over the load in
    /// these options.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn topology(
        &self,
        text: &DefinitionText,
        settings: &[Setting],
        load: Option<&str>,
    ) -> Result<Topology, SetupError> {
        let checked = text.with(settings).map_err(SetupError::Definition)?;
        let mut topology = Topology::new(&checked, self.scale)?;
        if self.sized && text.is_built_in() {
            topology.add_sizes();
        }
        if let Some(load) = load.or(self.load.as_deref()) {
            let load = LoadText::read(load).map_err(|error| SetupError::Load(error.to_string()))?;
            let applied = load.apply(&mut topology);
            applied.map_err(|error| SetupError::Load(error.to_string()))?;
        }
        Ok(topology)
    }

    /// Returns the plan of a run.
    ///
    /// # Errors
    /// [`SetupError::WarmUp`] if the warm-up is not shorter than the run.
    pub fn plan(&self) -> Result<Plan, SetupError> {
        let warm_up = self.warm_up.unwrap_or(self.duration / 10);
        if warm_up >= self.duration {
            return Err(SetupError::WarmUp {
                warm_up,
                duration: self.duration,
            });
        }
        Ok(Plan {
            duration: self.duration,
            warm_up,
            ..Plan::default()
        })
    }

    /// Describes everything on which results depend, except the definition, its fields and the seed.
    pub(crate) fn described(&self) -> String {
        let Setup {
            scale,
            duration,
            warm_up,
            load,
            sized,
        } = self;
        let Scale { regions, percent } = scale;
        let sized = if *sized { " sized" } else { "" };
        format!("{percent} {regions} {duration:?} {warm_up:?} {load:?}{sized}")
    }
}
