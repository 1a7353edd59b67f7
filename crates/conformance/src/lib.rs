//! Tests of the core's guarantees: the behaviour that all executors share, and the additional guarantees of virtual
//! time.
//!
//! The tests are a separate package so that the core is compiled with optimisations, but the hundreds of scenarios,
//! each compiled for four executors, are not. `cargo test -p corsair-conformance --test suite wall::faults` runs some
//! of them, `cargo run -p corsair-conformance --example fuzz` searches for new ones.
