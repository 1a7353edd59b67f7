//! The core's tests: one program, so that they are linked once. `cargo test -p corsair --test suite
//! wall::faults` runs some of them.

mod conformance;
mod edge;
mod fork_join;
mod fsm;
mod message;
mod progress;
mod virtual_space;
mod virtual_time;
mod wall;
