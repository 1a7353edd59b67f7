//! Where a topology comes from: a definition, a step of the migration, or a graph file.

use super::of_flag;
use super::options::ArchOptions;
use anyhow::{Result, anyhow};
use corsair_arch::{Checked, Geography, MigrationError, Scale, ScaleError, Topology};
use corsair_observe::graph;
use std::path::Path;

/// The topology that the options ask for.
///
/// # Errors
/// What is wrong with it, with the flag that says so.
pub fn topology(options: &ArchOptions) -> Result<Topology> {
    let mut topology = at_its_own_distances(options)?;
    if let Some(latency) = &options.latency {
        topology.geography = Geography::same_everywhere(latency);
    }
    if let Some(load) = &options.load {
        of_flag("--load", load.apply(&mut topology))?;
    }
    Ok(topology)
}

fn at_its_own_distances(options: &ArchOptions) -> Result<Topology> {
    let Some(file) = &options.reload else {
        return defined(
            &options.arch,
            &options.directory,
            options.step,
            options.scale,
        );
    };
    let graph = of_flag("-r", graph::read(file))?;
    let topology = Topology::from_graph(&options.arch, &graph);
    of_flag(
        "-r",
        topology.map_err(|error| format!("{}: {error}", file.display())),
    )
}

/// The topology of a definition at a scale.
///
/// # Errors
/// What is wrong with it, with the flag that says so.
pub fn defined(arch: &str, directory: &Path, step: u32, scale: Scale) -> Result<Topology> {
    if arch == "migration" {
        let (checked, scale) = corsair_arch::step(step, scale).map_err(|error| {
            let flag = match &error {
                MigrationError::Step(_) | MigrationError::Text(_) => "-s",
                MigrationError::Scale(_) | MigrationError::Definition(_) => "-p",
            };
            anyhow!("{error}").context(flag)
        })?;
        return scaled(&checked, scale);
    }
    let checked = of_flag("-a", corsair_arch::read(arch, directory))?;
    let mut topology = scaled(&checked, scale)?;
    // Names begin with what the command calls the architecture, as spigo's do.
    if !arch.ends_with(".json") {
        topology.arch = corsair_arch::first_part(arch);
    }
    Ok(topology)
}

/// The topology of a definition at a scale. Errors are blamed on the flag that asks for too much.
fn scaled(checked: &Checked, scale: Scale) -> Result<Topology> {
    Topology::new(checked, scale).map_err(|error| {
        let flag = match &error {
            ScaleError::Regions(_) | ScaleError::ServiceRegions { .. } => "-w",
            ScaleError::Nothing { .. } | ScaleError::TooMany(_) => "-p",
        };
        anyhow!("{error}").context(flag)
    })
}
