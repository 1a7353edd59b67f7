//! The part of a saved run that one shard writes.
//!
//! ```text
//! part     contents, one after the other, then the index, then its length (8 bytes) and its CRC-32 (4 bytes)
//! content  the actors of a page, or what else belongs to the pages of one number modulo `ROUND`
//! ```
//!
//! The index has the position of each content, with its length and its CRC-32. So a process that restores some shards
//! reads only the index and the contents for those shards, and verifies every byte that it uses.

use super::{CodecError, Input, expect_end, get, put};
use crate::contract::Spawn;
use crate::contract::spawn::Names;
use crate::virtual_time::actor_table::{NamedRange, ROUND, residue};
use crate::virtual_time::shard::{ActorRecords, Counters};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;

/// The number of bytes after the index.
const TRAILER: u64 = 12;

/// A part of a saved run that is stored outside memory, for example in a file.
pub trait StoredPart: Send + Sync {
    /// Returns the name for error messages.
    fn name(&self) -> String;

    /// Returns the number of bytes of the part.
    fn bytes(&self) -> u64;

    /// Reads bytes from this offset; fills all of `into`.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A part, in memory or in external storage.
#[derive(Clone)]
pub(super) enum AnyPart {
    Memory(Arc<Vec<u8>>),
    StoredEvent(Arc<dyn StoredPart>),
}

impl AnyPart {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            AnyPart::Memory(part) => part.len() as u64,
            AnyPart::StoredEvent(part) => part.bytes(),
        }
    }

    pub(super) fn into_bytes(self) -> Result<Vec<u8>, CodecError> {
        match self {
            AnyPart::Memory(part) => Ok(Arc::unwrap_or_clone(part)),
            AnyPart::StoredEvent(_) => {
                let mut bytes = Vec::new();
                self.read_at(0, self.bytes(), &mut bytes)?;
                Ok(bytes)
            }
        }
    }

    /// Reads `count` bytes from an offset into a buffer, if the part has that many.
    fn read_at(&self, at: u64, bytes: u64, into: &mut Vec<u8>) -> Result<(), CodecError> {
        let end = at.checked_add(bytes).filter(|&end| end <= self.bytes());
        let length = usize::try_from(bytes).ok();
        let (Some(_), Some(length)) = (end, length) else {
            return Err(self.changed());
        };
        into.clear();
        match self {
            AnyPart::Memory(part) => into.extend_from_slice(&part[at as usize..][..length]),
            AnyPart::StoredEvent(part) => {
                into.resize(length, 0);
                let failed = |error| CodecError::Unread(part.name(), error);
                part.read(at, into).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Creates the error of a checksum that does not match.
    fn changed(&self) -> CodecError {
        match self {
            AnyPart::Memory(_) => CodecError::Changed("it".to_owned()),
            AnyPart::StoredEvent(part) => CodecError::Changed(part.name()),
        }
    }

    fn check(&self, contents: &[u8], crc32: u32) -> Result<(), CodecError> {
        match crc32fast::hash(contents) == crc32 {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    /// Reads an extent and verifies its checksum.
    pub(super) fn read(&self, extent: &Extent, into: &mut Vec<u8>) -> Result<(), CodecError> {
        self.read_at(extent.at, extent.bytes, into)?;
        self.check(into, extent.crc32)
    }

    pub(super) fn index(&self) -> Result<Index, CodecError> {
        let mut bytes = Vec::new();
        let end = self.bytes().checked_sub(TRAILER);
        let end = end.ok_or_else(|| self.changed())?;
        self.read_at(end, TRAILER, &mut bytes)?;
        let (length, crc32) = bytes.split_at(8);
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        let crc32 = u32::from_le_bytes(crc32.try_into().unwrap_or_default());
        let at = end.checked_sub(length).ok_or_else(|| self.changed())?;
        self.read_at(at, length, &mut bytes)?;
        self.check(&bytes, crc32)?;
        let from: &mut Input<'_> = &mut bytes.as_slice();
        let index = get(from)?;
        expect_end(from, "end of an index").map(|()| index)
    }
}

/// A range of bytes in a part, with its CRC-32.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in super::super) struct Extent {
    at: u64,
    bytes: u64,
    crc32: u32,
}

impl Extent {
    /// Returns the extent of the bytes from `begin` on.
    pub(in super::super) fn since(begin: usize, to: &[u8]) -> Extent {
        let contents = &to[begin..];
        Extent {
            at: begin as u64,
            bytes: contents.len() as u64,
            crc32: crc32fast::hash(contents),
        }
    }
}

/// The index of a part.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct Index {
    pub(in super::super) data: PartData,
    pub(in super::super) groups: Vec<(SavedGroup, Vec<SavedPage>)>,
    pub(in super::super) page_data: Vec<SavedPageData>,
}

impl Index {
    /// Completes a part, whose contents are written, by appending its index.
    pub(in super::super) fn seal(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        let begin = to.len();
        put(to, self)?;
        let Extent { bytes, crc32, .. } = Extent::since(begin, to);
        to.extend_from_slice(&bytes.to_le_bytes());
        to.extend_from_slice(&crc32.to_le_bytes());
        Ok(())
    }
}

/// Small data of a part that does not belong to single pages.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct PartData {
    pub(in super::super) busy: bool,
    pub(in super::super) counters: Counters,
    pub(in super::super) actor_records: ActorRecords,
    /// The names of removed actors.
    pub(in super::super) names: Vec<NamedRange>,
    /// Pages that get no more actors.
    pub(in super::super) closed: Vec<u32>,
    /// The process state. Only one part of each process contains it.
    pub(in super::super) state: Vec<u8>,
}

/// The parameters of actors that were spawned together.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct SavedOrigin {
    /// The name of the actors' kind.
    pub(in super::super) kind: String,
    /// The time at which the actors that have not begun will exist.
    pub(in super::super) birth_time: u64,
    /// The parameters of the actors that have not begun, if there are any.
    pub(in super::super) parameters: Option<Vec<u8>>,
}

/// Actors that occupy complete pages.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct SavedGroup {
    pub(in super::super) first: u32,
    pub(in super::super) parent: u32,
    pub(in super::super) spawn: Spawn,
    pub(in super::super) origin: SavedOrigin,
}

/// The actors of one page of a group.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(in super::super) struct SavedPage {
    pub(in super::super) page: u32,
    /// The number of actors that have not ended.
    pub(in super::super) living: u16,
    /// The number of living actors that have begun.
    pub(in super::super) live: u16,
    pub(in super::super) actors: Extent,
}

/// A few actors that share a page with others.
#[derive(Serialize, Deserialize)]
pub(in super::super) struct SavedBatch {
    pub(in super::super) first: u32,
    pub(in super::super) count: u8,
    pub(in super::super) living: u8,
    pub(in super::super) parent: u32,
    pub(in super::super) watched: bool,
    pub(in super::super) names: Names,
    pub(in super::super) origin: SavedOrigin,
}

/// The saved data of a group of pages, except for the actors' states.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(in super::super) struct SavedPageData {
    /// The remainder modulo [`ROUND`] that all page numbers have in common, because all pages belong to one shard.
    pub(in super::super) residue: u16,
    /// The number of actors in batches that have begun and not ended.
    pub(in super::super) live: u32,
    /// The counts and contents of batches, spawns, events, stashed events, and messages of actors to themselves.
    pub(in super::super) contents: Extent,
}

/// A list of values in sequence.
#[derive(Default)]
pub(in super::super) struct EncodedList {
    pub(in super::super) count: u64,
    pub(in super::super) bytes: Vec<u8>,
}

/// A [`SavedPageData`] that is being written.
#[derive(Default)]
pub(in super::super) struct PageDataBuffer {
    pub(in super::super) live: u32,
    pub(in super::super) batches: EncodedList,
    pub(in super::super) spawns: EncodedList,
    pub(in super::super) events: EncodedList,
    pub(in super::super) stashed: EncodedList,
    pub(in super::super) own: EncodedList,
}

/// The [`SavedPageData`] of each residue class of pages, while a part is being written.
pub(in super::super) struct PageDataBuffers(Vec<PageDataBuffer>);

impl PageDataBuffers {
    pub(in super::super) fn new() -> PageDataBuffers {
        PageDataBuffers((0..ROUND).map(|_| PageDataBuffer::default()).collect())
    }

    /// Returns the data of the pages to which an actor belongs.
    #[inline]
    pub(in super::super) fn of(&mut self, actor: u32) -> &mut PageDataBuffer {
        &mut self.0[residue(actor)]
    }

    /// Writes all data.
    pub(in super::super) fn write(self, to: &mut Vec<u8>) -> Vec<SavedPageData> {
        let mut saved = Vec::new();
        for (residue, data) in (0..).zip(self.0) {
            let PageDataBuffer { live, .. } = data;
            let begin = to.len();
            let all = [
                data.batches,
                data.spawns,
                data.events,
                data.stashed,
                data.own,
            ];
            if all.iter().all(|one| one.count == 0) {
                continue;
            }
            for one in all {
                super::put_number(to, one.count);
                to.extend_from_slice(&one.bytes);
            }
            let contents = Extent::since(begin, to);
            saved.push(SavedPageData {
                residue,
                live,
                contents,
            });
        }
        saved
    }
}
