//! The atomics of the protocols that loom checks: the standard ones, or loom's.

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr};
