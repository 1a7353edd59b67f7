//! Tests that runs of reqwest and axum under rustls are repeatable.

mod common;

use corsair_host::{Sim, SimError};

#[corsair_host::test(seeds = 3, deterministic = true)]
fn reqwest_and_axum_under_rustls_repeat(sim: &mut Sim) -> Result<(), SimError> {
    common::scenario(sim)
}
