//! Tests that runs of a program with mimalloc are repeatable.

mod common;
#[path = "common/work.rs"]
mod work;

use corsair_host::{Sim, SimError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[corsair_host::test(seeds = 3, deterministic = true)]
fn a_program_with_an_allocator_of_its_own_repeats(sim: &mut Sim) -> Result<(), SimError> {
    common::scenario(sim)
}

#[corsair_host::test(seeds = 3, deterministic = true)]
fn the_time_before_a_simulation_does_not_enter_it(sim: &mut Sim) -> Result<(), SimError> {
    work::scenario(sim)
}
