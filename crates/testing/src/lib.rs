//! Test support that several crates share.
//!
//! - [`allocations`]: a global allocator that counts.
//! - [`people`]: generated records, for tests and measurements of marshalling.
//! - [`terminal`]: runs a program in a temporary directory and captures its output.
//!
//! `corsair marshal` also uses the first two modules. No other product code depends on this crate.

pub mod allocations;
pub mod people;
pub mod terminal;
