//! Where a topology comes from: a definition, a step of the migration, or a graph file.

use super::of_flag;
use super::options::ArchOptions;
use anyhow::Result;
use corsair_arch::{Geography, Scale, Topology};
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
        let (checked, scale) = of_flag("-s", corsair_arch::step(step, scale))?;
        return of_flag("-p", Topology::new(&checked, scale));
    }
    let checked = of_flag("-a", corsair_arch::read(arch, directory))?;
    let flag = if (1..=corsair_arch::MAX_REGIONS).contains(&scale.regions) {
        "-p"
    } else {
        "-w"
    };
    let mut topology = of_flag(flag, Topology::new(&checked, scale))?;
    // Names begin with what the command calls the architecture, as spigo's do.
    if !arch.ends_with(".json") {
        topology.arch = corsair_arch::first_part(arch);
    }
    Ok(topology)
}
