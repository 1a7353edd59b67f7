//! The names of actors, by address.

use crate::contract::Addr;
use crate::contract::spawn::Names;

/// The name of a batch, usually a literal of the program.
pub(super) enum BatchName {
    Static(&'static str),
    Other(Box<Names>),
}

impl BatchName {
    pub(super) fn new(names: Names) -> BatchName {
        match names {
            Names::One(std::borrow::Cow::Borrowed(name)) => BatchName::Static(name),
            other => BatchName::Other(Box::new(other)),
        }
    }

    pub(super) fn to_names(&self) -> Names {
        match self {
            BatchName::Static(name) => Names::One((*name).into()),
            BatchName::Other(names) => (**names).clone(),
        }
    }

    pub(super) fn into_names(self) -> Names {
        match self {
            BatchName::Static(name) => Names::One(name.into()),
            BatchName::Other(names) => *names,
        }
    }
}

/// The addresses and names of the actors of one spawn.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(in super::super) struct NamedRange {
    pub(in super::super) first: u32,
    pub(in super::super) count: u32,
    pub(in super::super) names: Names,
}

/// The addresses and names of spawns, for reports.
pub(in super::super) struct Directory {
    /// The named ranges, in the order of addresses.
    named: Vec<NamedRange>,
}

impl Directory {
    /// Creates a directory of the names that all shards know.
    pub(in super::super) fn new(mut named: Vec<NamedRange>) -> Directory {
        named.sort_by_key(|named| named.first);
        Directory { named }
    }

    /// Returns an actor's name; the address if the name is no longer stored, because all actors of its spawn have
    /// ended.
    pub(in super::super) fn name_of(&self, addr: u32) -> String {
        let after = self.named.partition_point(|named| named.first <= addr);
        match after.checked_sub(1).map(|index| &self.named[index]) {
            Some(named) if addr - named.first < named.count => named.names.get(addr - named.first),
            _ => Addr(addr).to_string(),
        }
    }
}
