//! How the runs of a sweep or a comparison are made of a definition.

use crate::load::LoadText;
use crate::plan::Plan;
use crate::topology::{Scale, ScaleError, Topology};
use crate::variant::{DefinitionText, Setting};
use std::time::Duration;

/// How a definition is run, whatever its fields are.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How large it is made.
    pub scale: Scale,
    /// How long each run lasts.
    pub duration: Duration,
    /// The first part of it that is not counted; a tenth of it if left out.
    pub warm_up: Option<Duration>,
    /// What comes in, instead of what the definition says.
    pub load: Option<String>,
}

/// Why a definition cannot be run so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// What is wrong with the definition, or with a field that is set.
    #[error("{0}")]
    Definition(String),
    /// It does not go into this number of regions or instances.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// What is wrong with the load.
    #[error("{0}")]
    Load(String),
    /// All of the run is warm-up.
    #[error("a warm-up of {warm_up:?} leaves nothing of {duration:?} to be measured")]
    WarmUp {
        /// The warm-up.
        warm_up: Duration,
        /// The run.
        duration: Duration,
    },
}

impl Setup {
    /// The topology of a definition with some fields set; `load` goes before the one of all runs.
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
        if let Some(load) = load.or(self.load.as_deref()) {
            let load = LoadText::read(load).map_err(|error| SetupError::Load(error.to_string()))?;
            let applied = load.apply(&mut topology);
            applied.map_err(|error| SetupError::Load(error.to_string()))?;
        }
        Ok(topology)
    }

    /// The plan of a run.
    ///
    /// # Errors
    /// [`SetupError::WarmUp`].
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

    /// What the results of a run depend on beside the definition, its fields and the seed.
    pub(crate) fn described(&self) -> String {
        let Setup {
            scale,
            duration,
            warm_up,
            load,
        } = self;
        let Scale { regions, percent } = scale;
        format!("{percent} {regions} {duration:?} {warm_up:?} {load:?}")
    }
}
