//! The implementation of [`Kind`] for the root, and the list of all actor kinds of an architecture.

use super::{AnyActor, Farewell, Scene, Stage};
use crate::message::Msg;
use crate::model::Model;
use crate::totals::Totals;
use corsair::{AddrRange, Kind, Kinds, ProcessState};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The parameters of the root, besides the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SceneParameters {
    /// The duration of the load.
    pub(crate) duration: Duration,
    /// The time after the end of the load in which requests in progress may still be answered.
    pub(crate) drain: Duration,
    /// The time between requests of each entry point.
    pub(crate) chat: Duration,
    /// True if graphs show services instead of their instances.
    pub(crate) collapse: bool,
}

/// The saved state of the root.
#[derive(Serialize, Deserialize)]
struct SavedScene {
    parameters: SceneParameters,
    actors: AddrRange,
    stage: Stage,
    farewell: Farewell,
}

/// The totals of the actors that have ended in one process, and the number of messages lost in that process.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedIn {
    totals: Totals,
    dropped: u64,
}

impl ProcessState for Model {
    type Snapshot = HandedIn;

    fn save(&self) -> HandedIn {
        HandedIn {
            totals: self.totals.lock().clone(),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    fn add(&self, saved: HandedIn) {
        self.totals.lock().merge(saved.totals);
        self.dropped.fetch_add(saved.dropped, Ordering::Relaxed);
    }
}

impl Kind for Scene {
    const NAME: &'static str = "corsair.arch.scene";
    type Parameters = SceneParameters;
    type Local = Arc<Model>;

    fn make(parameters: &SceneParameters, model: &Arc<Model>, _: u32) -> Scene {
        Scene::new(Arc::clone(model), parameters.clone())
    }

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let saved = SavedScene {
            parameters: self.parameters.clone(),
            actors: self.actors,
            stage: self.stage,
            farewell: self.farewell.clone(),
        };
        saved.serialize(to)
    }

    fn restore<'de, D: Deserializer<'de>>(from: D, model: &Arc<Model>) -> Result<Scene, D::Error> {
        let saved = SavedScene::deserialize(from)?;
        if !saved.actors.is_empty() {
            let _ = model.first.set(saved.actors.get(0).as_u32());
        }
        Ok(Scene {
            model: Arc::clone(model),
            parameters: saved.parameters,
            actors: saved.actors,
            stage: saved.stage,
            farewell: saved.farewell,
        })
    }
}

/// Returns the kinds of an architecture, whose actors share a model.
pub(crate) fn kinds(model: &Arc<Model>) -> Kinds<Msg> {
    Kinds::plain()
        .with_script::<Scene>(Arc::clone(model))
        .with::<AnyActor>(Arc::clone(model))
        .with_state(Arc::clone(model))
}
