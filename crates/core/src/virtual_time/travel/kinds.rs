//! The kinds of actors in a program.

use super::{Codec, CodecError, Input, Wire, get, put};
use crate::contract::{Actor, EachKind, Kind, Message, Plain, ProcessState, Script};
use crate::virtual_time::context::{handlers, read_parameters, scripts};
use crate::virtual_time::multicast::Bodies;
use crate::virtual_time::population::Blueprint;
use crate::virtual_time::shard::{Shard, read_bodies};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

type AnyBlueprint<M> = Arc<dyn Blueprint<M, Shard<M>>>;
/// A function that reads the parameters of actors, and returns the description of their population.
type ReadBlueprint<M> =
    Arc<dyn Fn(&mut Input<'_>) -> Result<AnyBlueprint<M>, CodecError> + Send + Sync>;

type AnyBodies<M> = Arc<dyn Bodies<Shard<M>>>;
/// Reads the parameters of multicasts.
type ReadBodies<M> = fn(&mut Input<'_>) -> Result<AnyBodies<M>, CodecError>;

/// The kinds of actors that a program knows, with the values that this process provides for each kind. With them, the
/// process can restore a run that another process has saved.
///
/// ```
/// use corsair::{Actor, Context, Event, Flow, Kind, Kinds, Message};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Message, Serialize, Deserialize)]
/// struct Coin;
///
/// #[derive(Clone, Serialize, Deserialize, Kind)]
/// #[kind(name = "purse")]
/// struct Purse { coins: u32 }
///
/// impl Actor<Coin> for Purse {
///     fn on<C: Context<Coin>>(&mut self, _: Event<Coin>, _: &mut C) -> Flow {
///         self.coins += 1;
///         Flow::Continue
///     }
/// }
///
/// let kinds = Kinds::<Coin>::new().with::<Purse>(());
/// assert_eq!(kinds.names().collect::<Vec<_>>(), ["purse"]);
/// ```
pub struct Kinds<M: Message> {
    codec: Codec<M>,
    wire: Wire<M>,
    known: BTreeMap<&'static str, ReadBlueprint<M>>,
    each: BTreeMap<&'static str, ReadBodies<M>>,
    state: Option<Arc<dyn AnyState>>,
}

/// The object-safe form of [`ProcessState`], with its state as bytes.
trait AnyState: Send + Sync {
    fn save(&self, to: &mut Vec<u8>) -> Result<(), CodecError>;
    fn add(&self, from: &mut Input<'_>) -> Result<(), CodecError>;
}

impl<S: ProcessState> AnyState for S {
    fn save(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        put(to, &ProcessState::save(self))
    }

    fn add(&self, from: &mut Input<'_>) -> Result<(), CodecError> {
        ProcessState::add(self, get(from)?);
        Ok(())
    }
}

impl<M: Message> Clone for Kinds<M> {
    fn clone(&self) -> Kinds<M> {
        Kinds {
            codec: self.codec,
            wire: self.wire,
            known: self.known.clone(),
            each: self.each.clone(),
            state: self.state.clone(),
        }
    }
}

impl<M: Message> fmt::Debug for Kinds<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.known.keys()).finish()
    }
}

impl<M: Message + Serialize + DeserializeOwned> Default for Kinds<M> {
    fn default() -> Kinds<M> {
        Kinds::new()
    }
}

impl<M: Message + Serialize + DeserializeOwned> Kinds<M> {
    /// Creates an empty registry for messages that are serialized.
    pub fn new() -> Kinds<M> {
        Kinds {
            codec: Codec::new(),
            wire: Wire::serialized(),
            known: BTreeMap::new(),
            each: BTreeMap::new(),
            state: None,
        }
    }

    /// Creates an empty registry for plain messages, which are sent to other processes without a serializer. The format
    /// of snapshots is the same.
    pub fn plain() -> Kinds<M>
    where
        M: Plain,
    {
        let wire = Wire::plain();
        Kinds {
            wire,
            ..Kinds::new()
        }
    }
}

impl<M: Message> Kinds<M> {
    /// Adds a kind of actors in handler form, with the value that this process provides for it.
    ///
    /// # Panics
    /// If there is already a kind with this name.
    #[must_use]
    pub fn with<K: Kind + Actor<M>>(self, local: K::Local) -> Kinds<M> {
        let read = move |from: &mut Input<'_>| {
            let parameters = read_parameters::<K>(from)?;
            Ok(Arc::new(handlers::<M, K>(parameters, local.clone())) as AnyBlueprint<M>)
        };
        self.add(K::NAME, Arc::new(read))
    }

    /// Adds a kind of script, with the value that this process provides for it.
    ///
    /// # Panics
    /// If there is already a kind with this name.
    #[must_use]
    pub fn with_script<K: Kind + Script<M>>(self, local: K::Local) -> Kinds<M> {
        let read = move |from: &mut Input<'_>| {
            let parameters = read_parameters::<K>(from)?;
            Ok(Arc::new(scripts::<M, K>(parameters, local.clone())) as AnyBlueprint<M>)
        };
        self.add(K::NAME, Arc::new(read))
    }

    /// Adds a kind of messages that are sent to each of many actors.
    ///
    /// # Panics
    /// If there is already a kind of messages with this name.
    #[must_use]
    pub fn with_each<K: EachKind<M, N>, const N: usize>(mut self) -> Kinds<M> {
        let before = self.each.insert(K::NAME, read_bodies::<M, K, N>);
        assert!(
            before.is_none(),
            "two kinds of messages are called `{}`",
            K::NAME
        );
        self
    }

    /// Adds a state that the actors of this process change together. It is saved and restored with them.
    #[must_use]
    pub fn with_state(self, state: Arc<impl ProcessState>) -> Kinds<M> {
        let state: Option<Arc<dyn AnyState>> = Some(state);
        Kinds { state, ..self }
    }

    fn add(mut self, name: &'static str, read: ReadBlueprint<M>) -> Kinds<M> {
        let before = self.known.insert(name, read);
        assert!(before.is_none(), "two kinds of actors are called `{name}`");
        self
    }

    /// Returns the names of the kinds, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.known.keys().copied()
    }

    /// Returns true if the actors of a process change a state together.
    pub(in super::super) fn has_state(&self) -> bool {
        self.state.is_some()
    }

    /// Returns the saved process state; empty if the kinds have none.
    pub(in super::super) fn save_state(&self) -> Result<Vec<u8>, CodecError> {
        let mut saved = Vec::new();
        match &self.state {
            Some(state) => state.save(&mut saved).map(|()| saved),
            None => Ok(saved),
        }
    }

    /// Adds the state that [`Kinds::save_state`] has written, if it has written any.
    pub(in super::super) fn add_state(&self, mut saved: Input<'_>) -> Result<(), CodecError> {
        match &self.state {
            Some(state) if !saved.is_empty() => state.add(&mut saved),
            _ => Ok(()),
        }
    }

    pub(in super::super) fn codec(&self) -> Codec<M> {
        self.codec
    }

    pub(in super::super) fn wire(&self) -> Wire<M> {
        self.wire
    }

    /// Reads the parameters of multicasts of a kind.
    pub(in super::super) fn bodies(
        &self,
        kind: &str,
        from: &mut Input<'_>,
    ) -> Result<AnyBodies<M>, CodecError> {
        let read = self.each.get(kind);
        read.ok_or_else(|| CodecError::UnknownKind(kind.to_owned()))?(from)
    }

    /// Reads the parameters of actors of a kind.
    pub(in super::super) fn blueprint(
        &self,
        kind: &str,
        from: &mut Input<'_>,
    ) -> Result<AnyBlueprint<M>, CodecError> {
        let read = self.known.get(kind);
        read.ok_or_else(|| CodecError::UnknownKind(kind.to_owned()))?(from)
    }
}
