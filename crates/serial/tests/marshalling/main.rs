//! Tests of the guarantees of all strategies, one file per kind of behaviour.

mod each;
mod failures;
mod formats;
mod identity;
mod output;
