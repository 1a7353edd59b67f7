//! `corsair capacity --find instances:web`: finds the number of instances that a load needs.

use super::{CapacityArgs, HEAD, busiest, cells, row, with};
use crate::arch::source;
use crate::console::Console;
use crate::format::Format;
use crate::style::{self, Cell};
use anyhow::{Result, anyhow, bail};
use corsair::Config;
use corsair_arch::summary::InstancesSummary;
use corsair_arch::{
    DefinitionText, LoadText, Plan, Scale, Search, Setting, Sized, Topology, instances, nearest,
};
use std::io;

/// The parameters of a search.
pub struct SizeSearch<'a> {
    pub args: &'a CapacityArgs,
    pub config: &'a Config,
    pub plan: &'a Plan,
    pub search: &'a Search,
    pub load: Option<&'a LoadText>,
    pub scale: Scale,
}

/// Searches for the smallest sufficient number of instances, and prints it.
///
/// # Errors
/// If the flags or the architecture are invalid.
pub fn run(run: &SizeSearch<'_>, find: &str, console: &Console) -> Result<()> {
    let args = run.args;
    let Some(service) = find.strip_prefix("instances:") else {
        bail!("--find: '{find}' cannot be searched for; write for example instances:web");
    };
    if args.arch == "migration" {
        bail!("--find: the steps of a migration fix its instances; give a definition with -a");
    }
    if !(1..=1_000_000).contains(&args.most) {
        bail!(
            "--most: {} instances are out of range; give 1 to 1000000",
            args.most
        );
    }
    let text = DefinitionText::find(&args.arch, &args.arch_dir);
    let text = text.map_err(|error| anyhow!("-a: {error}"))?;
    let checked = text.with(&[]).map_err(|what| anyhow!("-a: {what}"))?;
    let names: Vec<&str> = checked
        .services()
        .map(|(service, _)| &*service.name)
        .collect();
    if !names.contains(&service) {
        let meant = match nearest(service, names.iter().copied()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("expected one of {}", names.join(", ")),
        };
        bail!("--find: there is no service '{service}'; {meant}");
    }
    let has_load = run.load.is_some() || !checked.definition().load.is_empty();
    if !has_load {
        bail!(
            "--find: there is no load to size the service for; give --load, for example 'poisson 500/s'"
        );
    }
    let make = |count: u32| -> Result<Topology, String> {
        let checked = text.with(&[Setting {
            path: format!("services.{service}.count"),
            value: count.into(),
        }])?;
        let made = source::scaled(&checked, run.scale);
        let mut topology = made.map_err(|error| format!("{error:#}"))?;
        if text.is_built_in() {
            topology.add_sizes();
        }
        if let Some(load) = run.load {
            load.apply(&mut topology)
                .map_err(|error| error.to_string())?;
        }
        Ok(topology)
    };
    let mut head = vec![Cell::right("instances", 9, 0)];
    head.extend(cells(HEAD.map(str::to_owned)));
    console.line(style::row(&head, style::width()));
    let found = instances(
        run.config,
        run.plan,
        run.search,
        args.most,
        make,
        |count, point| {
            console.line(row(point, Some(Cell::right(count.to_string(), 9, 0))));
        },
    );
    let found = found.map_err(|error| anyhow!("{}", error.to_string().trim_end()))?;
    let topology = make(1).map_err(|what| anyhow!("{what}"))?;
    match args.format {
        Format::Text => print_size(run, service, &topology, &found, console),
        Format::Json => console.print(|out| {
            let found = InstancesSummary::new(&args.arch, service, run.search, &topology, &found);
            serde_json::to_writer(&mut *out, &found).map_err(io::Error::from)?;
            writeln!(out)
        }),
    }
    Ok(())
}

fn print_size(
    run: &SizeSearch<'_>,
    service: &str,
    topology: &Topology,
    found: &Sized,
    console: &Console,
) {
    let with = with(run.args, run.search);
    let Some(count) = found.instances else {
        let most = run.args.most;
        return console.line(format_args!(
            "corsair: not even {most} instances of {service} sustain this load {with}; another service may be the bottleneck"
        ));
    };
    console.line(format_args!(
        "corsair: {count} instance{} of {service} sustain this load {with}",
        crate::text::plural(count.into())
    ));
    let point = found.points.iter().find(|(tried, _)| *tried == count);
    if let Some(line) = point.and_then(|(_, point)| busiest(topology, point)) {
        console.line(line);
    }
}
