//! The boxed body of an actor, which executors poll. Because it is boxed, the code of an actor is compiled once for all
//! wall-clock executors.

use std::pin::Pin;

/// The life of an actor, from its first poll to its end.
pub(super) type Life = Pin<Box<dyn Future<Output = ()> + Send>>;
