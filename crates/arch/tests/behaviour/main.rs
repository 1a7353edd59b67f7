//! Tests of the behaviour and the failures of each package, with small architectures that are run and measured.

mod capacity;
mod commands;
mod costs;
mod digests;
mod faults;
mod learn;
mod learn_limits;
mod learn_pauses;
mod learn_policies;
mod learn_waits;
mod live;
mod load;
mod machines;
mod pirates;
mod published;
mod registry;
mod resilience;
mod runs;
mod saved;
mod scene;
mod self_calls;
mod service;
mod storage;
mod theory;
mod timeline;
mod traces;
