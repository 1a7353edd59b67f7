//! A run whose actors are in several processes, with the result of one process.
//!
//! All processes run the same program with the same configuration. Each [runs its part](run_part), in which a
//! [`Carrier`] takes what workers of different processes have for each other, and tells the first process how
//! it ended, which [puts the parts together](conclude_parts). How processes find each other and what carries the
//! bytes is not this library's affair; the crate `corsair-cluster` does both.
//!
//! All actors are spawned [by kind](crate::Kind), and messages can be serialized.

pub use crate::virtual_time::{
    Beginning, Carrier, Lost, Part, SavedPart, Saving, conclude_parts, course, run_part,
};
