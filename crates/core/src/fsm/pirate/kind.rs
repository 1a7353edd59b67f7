//! The serialized form of a pirate, which contains only the buddies in use, and stores small numbers in few bytes.

use super::{MAX_BUDDIES, Pirate};
use crate::fsm::PirateWatch;
use crate::{Addr, Kind};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::num::NonZeroU16;

#[derive(Serialize)]
struct PirateState<'a> {
    buddies: &'a [Addr],
    given: &'a [u32],
    given_by_others: u32,
    booty: u32,
    name: u32,
    period_ms: Option<NonZeroU16>,
}

#[derive(Deserialize)]
struct SavedPirate {
    buddies: Vec<Addr>,
    given: Vec<u32>,
    given_by_others: u32,
    booty: u32,
    name: u32,
    period_ms: Option<NonZeroU16>,
}

impl<W: PirateWatch> Kind for Pirate<W> {
    const NAME: &'static str = "corsair.pirate";
    type Parameters = ();
    type Local = W;

    #[inline]
    fn make((): &(), watch: &W, index: u32) -> Pirate<W> {
        Pirate::new(index, watch.clone())
    }

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let known = usize::from(self.known);
        let saved = PirateState {
            buddies: &self.buddies[..known],
            given: &self.given[..known],
            given_by_others: self.given_by_others,
            booty: self.booty,
            name: self.name,
            period_ms: self.period_ms,
        };
        saved.serialize(to)
    }

    fn restore<'de, D: Deserializer<'de>>(from: D, watch: &W) -> Result<Pirate<W>, D::Error> {
        let saved = SavedPirate::deserialize(from)?;
        let known = saved.buddies.len();
        if known > MAX_BUDDIES || saved.given.len() != known {
            return Err(D::Error::custom("invalid buddies of a pirate"));
        }
        let mut pirate = Pirate::new(saved.name, watch.clone());
        pirate.buddies[..known].copy_from_slice(&saved.buddies);
        pirate.given[..known].copy_from_slice(&saved.given);
        pirate.known = known as u8;
        pirate.given_by_others = saved.given_by_others;
        pirate.booty = saved.booty;
        pirate.period_ms = saved.period_ms;
        Ok(pirate)
    }
}
