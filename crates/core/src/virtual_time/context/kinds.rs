//! The forms of actors of a kind: created from parameters, serialized, and restored.

use super::forms::{Handlers, Maker};
use super::scripts::Scripts;
use crate::contract::{Actor, Kind, Message, Script};
use crate::virtual_time::form::Form;
use crate::virtual_time::travel::{CodecError, get, put};
use serde::de::DeserializeSeed;
use serde::{Deserializer, Serialize, Serializer};
use std::marker::PhantomData;

/// Makes the actors of a kind.
pub(super) struct ByKind<K: Kind> {
    /// The parameters; `None` in a restored spawn whose actors have all begun.
    parameters: Option<K::Parameters>,
    local: K::Local,
}

impl<K: Kind> Maker<K> for ByKind<K> {
    #[inline(always)]
    fn make(&self, index: u32) -> K {
        let parameters = self.parameters.as_ref();
        K::make(
            parameters.expect("only actors that have not begun are created, from parameters"),
            &self.local,
            index,
        )
    }

    const KIND: Option<&'static str> = Some(K::NAME);

    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        put(to, &self.parameters)
    }

    fn save(actor: &K, to: &mut Vec<u8>) -> Result<(), CodecError> {
        put(to, &Saving(actor))
    }

    fn load(&self, from: &mut &[u8]) -> Result<K, CodecError> {
        let mut reader = postcard::Deserializer::from_bytes(from);
        let read = Restoring::<K>(&self.local).deserialize(&mut reader)?;
        *from = reader.finalize()?;
        Ok(read)
    }
}

struct Saving<'a, K>(&'a K);

impl<K: Kind> Serialize for Saving<'_, K> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.save(to)
    }
}

struct Restoring<'a, K: Kind>(&'a K::Local);

impl<'de, K: Kind> DeserializeSeed<'de> for Restoring<'_, K> {
    type Value = K;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<K, D::Error> {
        K::restore(from, self.0)
    }
}

/// Returns the form of actors that are handlers of a kind.
pub(in super::super) fn handlers<M: Message, K: Kind + Actor<M>>(
    parameters: Option<K::Parameters>,
    local: K::Local,
) -> impl Form<M> {
    Handlers {
        make: ByKind::<K> { parameters, local },
        _actor: PhantomData,
    }
}

/// Returns the form of actors that are scripts of a kind.
pub(in super::super) fn scripts<M: Message, K: Kind + Script<M>>(
    parameters: Option<K::Parameters>,
    local: K::Local,
) -> impl Form<M> {
    Scripts {
        make: ByKind::<K> { parameters, local },
        _script: PhantomData,
    }
}

/// Reads parameters that [`Maker::parameters`] has written.
pub(in super::super) fn read_parameters<K: Kind>(
    from: &mut &[u8],
) -> Result<Option<K::Parameters>, CodecError> {
    get(from)
}
