//! The core's promises as tests: what every executor does the same, and what virtual time adds.
//!
//! A package of its own, so that the core is optimised and hundreds of scenarios are not: each of
//! them is four executors to compile. `cargo test -p corsair-conformance --test suite wall::faults`
//! runs some of them, `cargo run -p corsair-conformance --example fuzz` looks for new ones.
