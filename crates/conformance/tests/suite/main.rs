//! All suites are one program, so that it is linked only once. `cargo test -p corsair-conformance --test suite
//! wall::faults` runs some of them.

#[macro_use]
mod everywhere;
#[macro_use]
mod scenario;

mod conformance;
mod edge;
mod fork_join;
mod fsm;
mod hand;
mod message;
mod network;
mod paused;
mod probes;
mod processes;
mod progress;
mod restarts;
mod results;
mod supervisor;
mod virtual_space;
mod virtual_time;
mod wall;
