//! Writes the state of an actor when a run is saved, and restores it.
//!
//! Rules (policies, loads, sizes of queues) belong to the model and are not saved. To restore an actor, it is created
//! from the model and then receives its saved state. So the rules of the resumed run apply from then on. Work in progress on
//! shared processors is saved with its rules; a branch sends [`Command::Revise`](crate::Command::Revise) where it has others.

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// A type of which only some fields are saved. [`state!`] implements it.
pub(crate) trait State {
    /// The number of saved fields.
    const FIELDS: usize;

    /// Writes the saved fields in order. A human-readable format also gets the names of the fields.
    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// Reads the saved fields, and leaves all others unchanged.
    fn load<'de, A: SeqAccess<'de>>(&mut self, from: &mut A) -> Result<(), A::Error>;
}

/// Declares the saved fields of a type. Fields after `ruled` contain rules, which are kept when the state is restored:
/// see [`RestoreState`].
macro_rules! state {
    ($type:ty { $($field:ident),* $(,)? } $(ruled { $($ruled:ident),* $(,)? })?) => {
        impl $crate::saved::State for $type {
            const FIELDS: usize = [$(stringify!($field),)* $($(stringify!($ruled),)*)?].len();

            fn save<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde::ser::{SerializeMap as _, SerializeTuple as _};
                if to.is_human_readable() {
                    let mut to = to.serialize_map(Some(<Self as $crate::saved::State>::FIELDS))?;
                    $(to.serialize_entry(stringify!($field), &self.$field)?;)*
                    $($(to.serialize_entry(stringify!($ruled), &self.$ruled)?;)*)?
                    return to.end();
                }
                let mut to = to.serialize_tuple(<Self as $crate::saved::State>::FIELDS)?;
                $(to.serialize_element(&self.$field)?;)*
                $($(to.serialize_element(&self.$ruled)?;)*)?
                to.end()
            }

            fn load<'de, A: serde::de::SeqAccess<'de>>(
                &mut self,
                from: &mut A,
            ) -> Result<(), A::Error> {
                $(self.$field = $crate::saved::next(from)?;)*
                $($($crate::saved::RestoreState::take_over(&mut self.$ruled, $crate::saved::next(from)?);)*)?
                Ok(())
            }
        }
    };
}
pub(crate) use state;

/// Reads the next field.
pub(crate) fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
    from: &mut A,
) -> Result<T, A::Error> {
    let next = from.next_element()?;
    next.ok_or_else(too_little)
}

/// Loads the next field into a value.
pub(crate) fn load_next<'de, T: State, A: SeqAccess<'de>>(
    from: &mut A,
    into: &mut T,
) -> Result<(), A::Error> {
    let loaded = from.next_element_seed(Loading(into))?;
    loaded.ok_or_else(too_little)
}

fn too_little<E: serde::de::Error>() -> E {
    E::custom("the saved state is too short")
}

/// Serializes the state of a value.
pub(crate) struct Saving<'a, T>(pub(crate) &'a T);

impl<T: State> Serialize for Saving<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.save(to)
    }
}

/// Deserializes the state of a value in place.
struct Loading<'a, T>(&'a mut T);

impl<'de, T: State> DeserializeSeed<'de> for Loading<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_tuple(T::FIELDS, Fields(self.0, PhantomData))
    }
}

struct Fields<'a, T>(&'a mut T, PhantomData<T>);

impl<'de, T: State> Visitor<'de> for Fields<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} fields", T::FIELDS)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
        self.0.load(&mut from)
    }
}

/// A value that consists of rules, which come from the model, and of state, which is saved.
pub(crate) trait RestoreState {
    /// Replaces the state with the saved state, and keeps the rules of `self`.
    fn take_over(&mut self, saved: Self);
}

/// A saved value without a current rule is dropped, and a value with a new rule starts without state.
impl<T: RestoreState> RestoreState for Option<T> {
    fn take_over(&mut self, saved: Option<T>) {
        if let (Some(own), Some(saved)) = (self, saved) {
            own.take_over(saved);
        }
    }
}

impl<T: RestoreState> RestoreState for Box<T> {
    fn take_over(&mut self, saved: Box<T>) {
        (**self).take_over(*saved);
    }
}

/// Values correspond by position. Additional values start without state.
impl<T: RestoreState> RestoreState for Vec<T> {
    fn take_over(&mut self, saved: Vec<T>) {
        for (own, saved) in self.iter_mut().zip(saved) {
            own.take_over(saved);
        }
    }
}

/// Serializes a map as a list of pairs, because JSON objects have only strings as keys.
pub(crate) mod pairs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K, V, D>(from: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::deserialize(from)?.into_iter().collect())
    }
}
