//! The FSM as a kind: the parameters of a run of pirates, and the saved state of the FSM.

use super::{Farewell, Gifts, Monster, Stage, TallyCell};
use crate::fsm::{Form, Fsm, Network, Tally, Watch};
use crate::sync::lock;
use crate::{AddrRange, Kind};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The parameters of a run of pirates, equal in all processes. They match the fields of [`Fsm`], without the watch.
/// Pirates are always in handler form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FsmParameters {
    /// The first part of the pirates' names.
    pub arch: String,
    /// The number of pirates, unless there is a network.
    pub population: u32,
    /// The duration of the talk.
    pub talk: Duration,
    /// The initial buddies of each pirate.
    pub network: Option<Network>,
    /// The chat period of each pirate.
    pub chat: Option<Duration>,
}

impl<W: Watch> From<&Fsm<W>> for FsmParameters {
    fn from(fsm: &Fsm<W>) -> FsmParameters {
        FsmParameters {
            arch: fsm.arch.clone(),
            population: fsm.population,
            talk: fsm.talk,
            network: fsm.network.clone(),
            chat: fsm.chat,
        }
    }
}

/// The FSM's values in each process: the observer, and the cell for its tally.
#[derive(Clone)]
pub struct FsmLocal<W: Watch = ()> {
    watch: W,
    tally: TallyCell,
}

impl<W: Watch> FsmLocal<W> {
    /// Creates values with this watch.
    pub fn new(watch: W) -> FsmLocal<W> {
        FsmLocal {
            watch,
            tally: TallyCell::default(),
        }
    }

    /// Returns the tally, if the FSM has ended in this process.
    pub fn tally(&self) -> Option<Tally> {
        *lock(&self.tally)
    }

    /// Returns the observer of the run.
    pub fn watch(&self) -> &W {
        &self.watch
    }
}

impl<W: Watch> fmt::Debug for FsmLocal<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FsmLocal")
            .field("tally", &self.tally())
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct MonsterState<'a> {
    arch: &'a str,
    population: u32,
    talk: Duration,
    network: Option<&'a Network>,
    pirates: AddrRange,
    gifts: &'a Gifts,
    sent: u64,
    stage: Stage,
    farewell: &'a Farewell,
}

#[derive(Deserialize)]
struct SavedMonster {
    arch: String,
    population: u32,
    talk: Duration,
    network: Option<Network>,
    pirates: AddrRange,
    gifts: Gifts,
    sent: u64,
    stage: Stage,
    farewell: Farewell,
}

impl<W: Watch> Kind for Monster<W> {
    const NAME: &'static str = "corsair.fsm";
    type Parameters = FsmParameters;
    type Local = FsmLocal<W>;

    fn make(parameters: &FsmParameters, local: &FsmLocal<W>, _: u32) -> Monster<W> {
        let parameters = parameters.clone();
        let fsm = Fsm {
            arch: parameters.arch,
            population: parameters.population,
            talk: parameters.talk,
            form: Form::Handler,
            network: parameters.network,
            chat: parameters.chat,
            watch: local.watch.clone(),
        };
        Monster::new(fsm, Arc::clone(&local.tally))
    }

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let saved = MonsterState {
            arch: &self.arch,
            population: self.population,
            talk: self.talk,
            network: self.network.as_deref(),
            pirates: self.pirates,
            gifts: &self.gifts,
            sent: self.sent,
            stage: self.stage,
            farewell: &self.farewell,
        };
        saved.serialize(to)
    }

    fn restore<'de, D: Deserializer<'de>>(
        from: D,
        local: &FsmLocal<W>,
    ) -> Result<Monster<W>, D::Error> {
        let saved = SavedMonster::deserialize(from)?;
        if saved
            .network
            .as_ref()
            .is_some_and(|network| network.len() != saved.population)
        {
            return Err(D::Error::custom("the network has another size"));
        }
        Ok(Monster {
            arch: saved.arch,
            population: saved.population,
            talk: saved.talk,
            network: saved.network.map(Arc::new),
            pirates: saved.pirates,
            gifts: saved.gifts,
            sent: saved.sent,
            stage: saved.stage,
            farewell: saved.farewell,
            recorder: local.watch.pirate(),
            watch: local.watch.clone(),
            tally: Arc::clone(&local.tally),
        })
    }
}
