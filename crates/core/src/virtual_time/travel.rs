//! Serialization of events, spawns and shards.
//!
//! Numbers are varints; bodies and states are serialized by postcard. The bytes do not depend on the number of shards
//! or on the width of windows: times are absolute, and all data of an actor is stored under its address.

mod codec;
mod error;
mod events;
mod kinds;
mod part;
mod shares;
mod snapshot;
mod wire;

pub(super) use codec::{Codec, CodecError, Input, expect_end, get, put, put_number};
pub use error::SnapshotError;
pub(super) use events::{read_multicast, read_spawn, write_multicast, write_spawn};
pub use kinds::Kinds;
pub use part::StoredPart;
pub(super) use part::{
    EncodedList, Extent, Index, PageDataBuffers, PartData, SavedBatch, SavedGroup, SavedOrigin,
    SavedPage,
};
pub(super) use shares::{GroupShare, Share, shares};
pub use snapshot::Snapshot;
pub(super) use snapshot::{Common, Head, encoded, settings};
pub(super) use wire::{Wire, take, take_u64};
