//! Processes that find each other, and what ends them.

mod cluster;
mod digest;
#[cfg(target_os = "linux")]
mod local;
mod pirates;
mod rendezvous;
mod saving;
mod supervision;
