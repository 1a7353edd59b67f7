//! Processes that find each other, and what ends them.

mod cluster;
mod digest;
mod rendezvous;
mod saving;
mod supervision;
