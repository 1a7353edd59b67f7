//! The fixed part of an architecture: positions, and possible connections.

use super::targets::place;
use crate::layout::{Layout, LayoutNode, layout};
use crate::world::{Mark, Scene, SceneArea, SceneNode};
use corsair_arch::live::Live;
use std::collections::BTreeMap;

/// The number of edges above which only edges with traffic are shown.
const MOST_QUIET: usize = 10_000;

/// Returns the scene of an architecture, its layout, and for each instance the groups to whose measurements it
/// contributes: its service and its zone.
pub(super) fn scene(live: &Live) -> (Scene, Layout, Vec<(usize, usize)>) {
    let topology = live.topology();
    let places: Vec<LayoutNode> = (topology.instances.iter())
        .map(|instance| LayoutNode {
            service: instance.service,
            region: instance.at.region,
            zone: instance.at.zone,
        })
        .collect();
    let layout = layout(&places, &calls(live));
    let node = |instance: u32, name: String, (x, y): (f32, f32), count: u32, size: f32| {
        let service = topology.service_of(instance);
        let at = topology.instances[instance as usize].at;
        SceneNode {
            name,
            x,
            y,
            service: service.name.clone(),
            package: service.package.name().to_owned(),
            region: at.region_name(&topology.places).to_owned(),
            zone: at.zone_name(&topology.places).to_owned(),
            count,
            size,
            slots: service.costs.concurrency.map_or(0, u32::from),
        }
    };
    let nodes = (0..topology.len())
        .map(|i| {
            node(
                i,
                topology.label(i),
                layout.nodes[i as usize],
                1,
                layout.sizes[i as usize],
            )
        })
        .collect();
    let mut counts = vec![0; layout.groups.len()];
    for &group in &layout.groups_of {
        counts[group as usize] += 1;
    }
    let folded = layout.groups.iter().zip(&counts);
    let folded = folded.map(|(&(instance, at), &count)| {
        let name = topology.service_of(instance).name.clone();
        node(instance, name, at, count, 1.0)
    });
    // The group of everything, then a group for each service, then one for each zone.
    let mut groups = vec!["all".to_owned()];
    groups.extend(topology.services.iter().map(|service| service.name.clone()));
    let mut zones = BTreeMap::new();
    for instance in &topology.instances {
        zones.entry(instance.at).or_insert(0);
    }
    for (at, group) in &mut zones {
        *group = groups.len();
        groups.push(place(topology, *at));
    }
    let measured = (topology.instances.iter())
        .map(|instance| (1 + instance.service as usize, zones[&instance.at]))
        .collect();
    let areas = layout.areas.iter().map(|area| {
        let zone = area.zone.map(|zone| topology.places.zone(Some(zone)));
        SceneArea::new(area, topology.places.region(Some(area.region)), zone)
    });
    let (begins, ends) = live.load();
    let seconds = |time: corsair::Time| time.elapsed().as_secs_f64();
    let faults = topology.fault_times(ends.since(begins)).into_iter();
    let marks = faults.map(|(after, name)| Mark {
        at: seconds(begins.after(after)),
        name,
        ..Mark::default()
    });
    let scene = Scene {
        kind: "services",
        arch: topology.arch.clone(),
        groups,
        nodes,
        folded: folded.collect(),
        edges: quiet_edges(live).unwrap_or_default(),
        folded_edges: folded_edges(live, &layout),
        areas: areas.collect(),
        width: layout.width,
        height: layout.height,
        total: topology.len().into(),
        load: Some((seconds(begins), seconds(ends))),
        marks: marks.collect(),
        actions: vec![
            "kill",
            "revive",
            "pause",
            "resume",
            "slow",
            "partition",
            "rejoin",
            "scale",
            "load",
            "send",
        ],
    };
    (scene, layout, measured)
}

/// Returns the services that each service calls.
fn calls(live: &Live) -> Vec<Vec<u32>> {
    let topology = live.topology();
    let mut calls: Vec<Vec<u32>> = (topology.services.iter())
        .map(|service| service.dependencies.clone())
        .collect();
    for &(from, to) in topology.edges.iter().flatten() {
        let [from, to] = [from, to].map(|i| topology.instances[i as usize].service);
        let known = &mut calls[from as usize];
        if !known.contains(&to) {
            known.push(to);
        }
    }
    for (service, called) in calls.iter_mut().enumerate() {
        called.retain(|&to| to as usize != service);
    }
    calls
}

/// Returns all possible calls, or `None` if there are too many to show calls without traffic.
fn quiet_edges(live: &Live) -> Option<Vec<(u32, u32)>> {
    let topology = live.topology();
    if let Some(edges) = &topology.edges {
        return (edges.len() <= MOST_QUIET).then(|| edges.clone());
    }
    let mut edges = Vec::new();
    for from in 0..topology.len() {
        for &service in &topology.service_of(from).dependencies {
            for to in topology.services[service as usize].instances.clone() {
                if live.may_call(from, to) {
                    edges.push((from, to));
                }
            }
            if edges.len() > MOST_QUIET {
                return None;
            }
        }
    }
    Some(edges)
}

fn folded_edges(live: &Live, layout: &Layout) -> Vec<(u32, u32)> {
    let topology = live.topology();
    let mut edges = Vec::new();
    if let Some(known) = &topology.edges {
        let group = |node: u32| layout.groups_of[node as usize];
        edges.extend(known.iter().map(|&(from, to)| (group(from), group(to))));
        edges.sort_unstable();
        edges.dedup();
        return edges;
    }
    for (a, &(from, _)) in (0..).zip(&layout.groups) {
        let dependencies = &topology.service_of(from).dependencies;
        for (b, &(to, _)) in (0..).zip(&layout.groups) {
            let service = topology.instances[to as usize].service;
            if dependencies.contains(&service) && live.may_call(from, to) {
                edges.push((a, b));
            }
        }
    }
    edges
}
