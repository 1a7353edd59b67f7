//! Estimates whether a population fits into memory before it is created.

use crate::text::bytes;
use anyhow::{Result, bail};
use corsair::{Executor, available_memory};

/// The memory of a pirate in virtual time: 200 bytes, of which 128 belong to the pirate and the rest to its timer and
/// its pending messages.
pub const PIRATE: u64 = 200;

/// Returns an error if the machine has too little memory for a population.
///
/// # Errors
/// Returns an error with the needed and the available memory, and the number of pirates that would fit.
pub fn check(executor: Executor, population: u32) -> Result<()> {
    match available_memory() {
        Some(available) => check_within(available, executor, population),
        None => Ok(()),
    }
}

fn check_within(available: u64, executor: Executor, population: u32) -> Result<()> {
    let (name, each) = match executor {
        Executor::Virtual => ("virtual", PIRATE),
        Executor::Tokio => ("tokio", 1_500),
        Executor::Pool => ("pool", 1_500),
        Executor::Threads => ("threads", 20_000),
    };
    let needed = each * u64::from(population);
    if needed > available {
        bail!(
            "{population} pirates need about {} ({} each on the {name} executor), and {} are available; at most {} fit",
            bytes(needed),
            bytes(each),
            bytes(available),
            available / each,
        );
    }
    Ok(())
}

/// Returns an error if the machine has too little memory for an architecture.
///
/// # Errors
/// Returns an error with the needed and the available memory.
pub fn check_architecture(instances: u32, connections: u64) -> Result<()> {
    match available_memory() {
        Some(available) => check_connections(available, instances, connections),
        None => Ok(()),
    }
}

fn check_connections(available: u64, instances: u32, connections: u64) -> Result<()> {
    let needed = corsair_arch::memory_needed(instances, connections);
    if needed > available {
        bail!(
            "{instances} instances with {connections} connections need about {}, and {} are available; reduce the population or the regions",
            bytes(needed),
            bytes(available)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_do_not_fit_are_refused() {
        let gigabyte = 1_000_000_000;
        assert!(check_connections(gigabyte, 6_300, 2_600_000).is_ok());
        let refused = check_connections(gigabyte, 63_000, 260_000_000).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("260000000 connections need about 39.3 GB"),
            "{said}"
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let gigabyte = 1_000_000_000;
        assert!(check_within(gigabyte, Executor::Virtual, 1_000_000).is_ok());
        let refused = check_within(gigabyte, Executor::Tokio, 1_000_000).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("1.5 GB") && said.contains("at most 666666 fit"),
            "{said}"
        );
    }
}
