//! The source of a topology: a definition, a step of the migration, or a graph file.

use crate::options::{Options, ServiceOptions};
use anyhow::{Context, Result, anyhow};
use corsair_arch::{
    CheckedDefinition, DefinitionText, Geography, MigrationError, PlacesDefinition, Scale,
    ScaleError, Setting, Topology,
};
use corsair_observe::graph;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Returns the topology of the options.
///
/// # Errors
/// Returns the fault, with its flag.
pub fn topology(options: &Options, services: &ServiceOptions) -> Result<Topology> {
    let mut topology = match &options.reload {
        Some(file) => reloaded(&options.arch, file, &services.places)?,
        None => defined(
            &options.arch,
            &services.directory,
            options.step,
            services.scale,
            &services.places,
        )?,
    };
    flags(services, &mut topology)?;
    Ok(topology)
}

/// Returns the topology that the options request, with some fields of the definition changed.
///
/// # Errors
/// If a field, or the definition with the changed fields, is invalid.
pub fn changed(
    options: &Options,
    services: &ServiceOptions,
    fields: &[Setting],
) -> Result<Topology> {
    if options.reload.is_some() || options.arch == "migration" {
        return Err(anyhow!(
            "{} has no fields to set; give --set load=N% or --seed-from-here",
            options.arch
        ));
    }
    let text = of_flag(
        "-a",
        DefinitionText::find(&options.arch, &services.directory),
    )?;
    let checked = text.with(fields).map_err(|error| anyhow!("{error}"))?;
    let checked = match services.places.is_empty() {
        true => checked,
        false => of_flag("-a", checked.with_places(&services.places))?,
    };
    let mut topology = named(&options.arch, scaled(&checked, services.scale)?);
    flags(services, &mut topology)?;
    Ok(topology)
}

/// Applies flags to a topology.
fn flags(services: &ServiceOptions, topology: &mut Topology) -> Result<()> {
    if services.sized {
        topology.add_sizes();
    }
    if let Some(latency) = &services.latency {
        topology.geography = Geography::same_everywhere(latency);
    }
    if let Some(load) = &services.load {
        of_flag("--load", load.apply(topology))?;
    }
    Ok(())
}

/// Returns the topology of a graph file.
fn reloaded(arch: &str, file: &Path, places: &PlacesDefinition) -> Result<Topology> {
    let graph = of_flag("-r", graph::read(file))?;
    let places = Arc::new(of_flag("--region-names", places.places())?);
    let topology = Topology::from_graph(arch, &graph, &places);
    of_flag(
        "-r",
        topology.map_err(|error| format!("{}: {error}", file.display())),
    )
}

/// Adds the flag to an error about the flag's value.
fn of_flag<T, E: fmt::Display>(flag: &'static str, result: Result<T, E>) -> Result<T> {
    result.map_err(|error| anyhow!("{error}")).context(flag)
}

/// Checks that the architecture has entry points or pirates, which send requests.
///
/// # Errors
/// If it has none, because all results of a run would be 0.
pub fn check_load(topology: &Topology) -> Result<()> {
    if topology.has_load() {
        return Ok(());
    }
    Err(anyhow!(
        "{} has no entry point, so no requests are sent; add a service of package denominator, or give -d 0 to write only the graph",
        topology.arch
    ))
}

/// Returns the error of a command that simulates services but is given the pirates.
pub fn no_services(arch: &str) -> anyhow::Error {
    anyhow!("{arch} is not an architecture of services; give one, for example -a netflixoss")
}

/// Returns the topology of a definition at a scale. `places`, if given, replace the definition's regions and zones.
///
/// # Errors
/// Returns the fault, with its flag.
pub fn defined(
    arch: &str,
    directory: &Path,
    step: u32,
    scale: Scale,
    places: &PlacesDefinition,
) -> Result<Topology> {
    let placed = |checked: CheckedDefinition| match places.is_empty() {
        true => Ok(checked),
        false => of_flag("-a", checked.with_places(places)),
    };
    if arch == "migration" {
        let (checked, scale) = corsair_arch::step(step, scale).map_err(|error| {
            let flag = match &error {
                MigrationError::Step(_) | MigrationError::Text(_) => "-s",
                MigrationError::Scale(_) | MigrationError::Definition(_) => "-p",
            };
            anyhow!("{error}").context(flag)
        })?;
        return scaled(&placed(checked)?, scale);
    }
    let checked = placed(of_flag("-a", corsair_arch::read(arch, directory))?)?;
    Ok(named(arch, scaled(&checked, scale)?))
}

/// Returns true if this name refers to a built-in architecture: a step of the migration, or an architecture that no
/// file replaces.
pub fn is_built_in(arch: &str, directory: &Path) -> bool {
    let text = DefinitionText::find(arch, directory);
    arch == "migration" || text.is_ok_and(|text| text.is_built_in())
}

/// Gives the topology the name that the user has typed, as spigo does. Names of actors begin with this name.
fn named(arch: &str, mut topology: Topology) -> Topology {
    if !arch.ends_with(".json") {
        topology.arch = corsair_arch::first_part(arch);
    }
    topology
}

/// Returns the topology of a definition at a scale. Errors name the flag whose value is too large.
pub fn scaled(checked: &CheckedDefinition, scale: Scale) -> Result<Topology> {
    Topology::new(checked, scale).map_err(|error| of_scale(&error))
}

/// Returns an error about the scale, with the flag whose value is too large.
pub fn of_scale(error: &ScaleError) -> anyhow::Error {
    let flag = match error {
        ScaleError::Regions { .. } | ScaleError::ServiceRegions { .. } => "-w",
        ScaleError::Nothing { .. } | ScaleError::TooMany(_) => "-p",
    };
    anyhow!("{error}").context(flag)
}
