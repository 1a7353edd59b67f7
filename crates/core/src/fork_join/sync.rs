//! What the protocols that loom checks are made of: the standard atomics and lock, or loom's.

#[cfg(loom)]
pub(super) use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, fence},
};
#[cfg(not(loom))]
pub(super) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, fence},
};
