//! The life of an actor as what polls it knows it. It comes in a box, so the code of an actor is compiled
//! once for the wall clock, and not once for each executor.

use std::pin::Pin;

/// The life of an actor, from its first poll to its end.
pub(super) type Life = Pin<Box<dyn Future<Output = ()> + Send>>;
