//! What every strategy guarantees, one file per kind of behaviour.

mod each;
mod failures;
mod formats;
mod identity;
mod output;
