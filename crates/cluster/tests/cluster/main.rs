//! Processes that find each other, and what ends them.

mod cluster;
mod digest;
mod pirates;
mod rendezvous;
mod saving;
mod supervision;
