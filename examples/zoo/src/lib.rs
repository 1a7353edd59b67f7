//! Distributed programs with one seeded bug each, and their fixed twins.
//!
//! Each is a type `Name<const BUG: bool>` in a file of its own, which cites the report that the bug
//! is from. A program states only its properties.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cache;
mod lease;
mod merge;
mod metastable;
mod ring;
mod transfer;
mod two_phase;
mod vote;
mod wal;

pub use cache::Cache;
pub use lease::Lease;
pub use merge::Merge;
pub use metastable::Metastable;
pub use ring::Ring;
pub use transfer::Transfer;
pub use two_phase::TwoPhase;
pub use vote::Vote;
pub use wal::Wal;

use corsair_hunt::Subject;
use std::sync::Arc;

/// All programs, with their bugs or without.
pub fn all<const BUG: bool>() -> Vec<Box<dyn Subject>> {
    vec![
        Box::new(Arc::new(Cache::<BUG>)),
        Box::new(Arc::new(Lease::<BUG>)),
        Box::new(Arc::new(Merge::<BUG>)),
        Box::new(Arc::new(Metastable::<BUG>)),
        Box::new(Arc::new(Ring::<BUG>)),
        Box::new(Arc::new(Transfer::<BUG>)),
        Box::new(Arc::new(TwoPhase::<BUG>)),
        Box::new(Arc::new(Vote::<BUG>)),
        Box::new(Arc::new(Wal::<BUG>)),
    ]
}
