//! Builds topologies from graph files. Such a topology has exactly the instances and edges that exist at the end of the
//! file.
//!
//! Names contain the location of an instance: `arch.region.zone.instance`, with more parts for containers, or
//! `arch.region.zone.service.package.instance` in older files.

use crate::geography::{Geography, Places, Zone};
use crate::nearest::did_you_mean;
use crate::package::Package;
use crate::script::Endpoints;
use crate::topology::{Costs, Instance, Service, Topology};
use corsair_observe::graph::{GraphFile, GraphNode};
use std::collections::HashMap;
use std::sync::Arc;

/// An error that prevents running a graph as an architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The name of a node has too few parts.
    #[error(
        "the node {0} has no region, zone and instance in its name; write arch.region.zone.instance"
    )]
    Name(String),
    /// A node has an unknown package.
    #[error("the node {node} has the unknown package '{package}'{meant}")]
    Package {
        /// The name of the node.
        node: String,
        /// The unknown package.
        package: String,
        /// The nearest valid name, as the end of a sentence.
        meant: String,
    },
    /// A node is in an unknown region or zone.
    #[error("the node {node} is in '{place}', which is not a {kind}{meant}")]
    Place {
        /// The name of the node.
        node: String,
        /// The unknown region or zone in the name of the node.
        place: String,
        /// The word "region" or "zone".
        kind: &'static str,
        /// The nearest valid name, as the end of a sentence.
        meant: String,
    },
    /// Instances of one service have different packages.
    #[error(
        "the service {service} has the packages {first} and {second}; rename some of its instances"
    )]
    Packages {
        /// The name of the service.
        service: String,
        /// The package of the service's first instance.
        first: Package,
        /// The different package of another instance.
        second: Package,
    },
    /// The graph shows services instead of instances.
    #[error(
        "the node {0} is a complete service, because the graph was written with -f; write it without -f, and reload that graph"
    )]
    Collapsed(String),
    /// The graph does not contain the script of a service.
    #[error(
        "the node {0} has the package service, whose scripts are not in graphs; run its definition"
    )]
    Script(String),
}

/// The parts of a name.
struct Parsed<'a> {
    at: Zone,
    service: &'a str,
    number: Option<u32>,
    package: Package,
    machine: &'a str,
    container: &'a str,
}

impl Topology {
    /// Builds the topology that a graph describes, with its instances in the regions and zones of `places`. A graph
    /// contains neither costs nor faults, so the topology has none.
    ///
    /// # Errors
    /// See [`ReloadError`].
    pub fn from_graph(
        arch: &str,
        graph: &GraphFile,
        places: &Arc<Places>,
    ) -> Result<Topology, ReloadError> {
        let parsed = graph.nodes.iter().map(|node| parse(node, places));
        let parsed: Vec<Parsed<'_>> = parsed.collect::<Result<_, _>>()?;
        // The services in the order of their first instances, each with its instances.
        let mut order: Vec<(&str, Package, Vec<usize>)> = Vec::new();
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        for (node, name) in parsed.iter().enumerate() {
            let place = *by_name.entry(name.service).or_insert(order.len());
            match order.get_mut(place) {
                None => order.push((name.service, name.package, vec![node])),
                Some((_, package, nodes)) if *package == name.package => nodes.push(node),
                Some((service, first, _)) => {
                    return Err(ReloadError::Packages {
                        service: (*service).to_owned(),
                        first: *first,
                        second: name.package,
                    });
                }
            }
        }
        let mut topology = Topology {
            arch: crate::topology::first_part(arch),
            places: Arc::clone(places),
            regions: 1,
            services: Vec::new(),
            instances: Vec::new(),
            edges: None,
            geography: Geography::new(None, places),
            victim: None,
            endpoints: Endpoints::default(),
            faults: Vec::new(),
            links: Vec::new(),
        };
        let mut index: HashMap<&str, u32> = HashMap::new();
        for (name, package, nodes) in order {
            let first = topology.instances.len() as u32;
            let service = topology.services.len() as u32;
            let (mut machine, mut container) = ("", "");
            for node in nodes {
                let name = &parsed[node];
                index.insert(&graph.nodes[node].name, topology.instances.len() as u32);
                (machine, container) = (name.machine, name.container);
                let regions = u32::from(name.at.region.unwrap_or(0)) + 1;
                topology.regions = topology.regions.max(regions);
                topology.instances.push(Instance {
                    service,
                    number: name.number,
                    at: name.at,
                });
            }
            topology.services.push(Service {
                name: name.to_owned(),
                package,
                container: None,
                named_container: (machine.to_owned(), container.to_owned()),
                instances: first..topology.instances.len() as u32,
                spare: 0,
                dependencies: Vec::new(),
                all_regions: package.is_ring(),
                costs: Costs::default(),
                faults: Vec::new(),
                load: None,
                script: None,
                policies: Vec::new(),
                scaler: None,
                health_check: None,
                guess: None,
            });
        }
        let edges = graph.edges.iter();
        let edges = edges.filter_map(|(a, b)| Some((*index.get(&**a)?, *index.get(&**b)?)));
        topology.edges = Some(edges.collect());
        Ok(topology)
    }
}

fn parse<'a>(node: &'a GraphNode, places: &Places) -> Result<Parsed<'a>, ReloadError> {
    let name = node.name.as_str();
    let package = Package::named(&node.package).filter(|package| package.is_for_services());
    let package = package.ok_or_else(|| ReloadError::Package {
        node: name.to_owned(),
        package: node.package.clone(),
        meant: did_you_mean(&node.package, Package::ALL.map(Package::name)),
    })?;
    if package == Package::Service {
        return Err(ReloadError::Script(name.to_owned()));
    }
    let parts: Vec<&str> = name.split('.').collect();
    let [_, region, zone, rest @ ..] = parts.as_slice() else {
        return Err(ReloadError::Name(name.to_owned()));
    };
    let (machine, instance, container) = match *rest {
        [instance] => ("", instance, ""),
        [machine, instance, container, _] | [machine, instance, container, _, _, _] => {
            (machine, instance, container)
        }
        [_, named] if named == node.package => {
            return Err(ReloadError::Collapsed(name.to_owned()));
        }
        [.., instance] => ("", instance, ""),
        [] => return Err(ReloadError::Name(name.to_owned())),
    };
    let place = |kind, place: &str, among: &[String]| ReloadError::Place {
        node: name.to_owned(),
        place: place.to_owned(),
        kind,
        meant: did_you_mean(place, among.iter().map(String::as_str)),
    };
    if Zone::named(places, region, "*").is_none() {
        return Err(place("region", region, places.regions()));
    }
    let at = Zone::named(places, region, zone);
    let at = at.ok_or_else(|| place("zone", zone, places.zones()))?;
    let (service, number) = numbered(instance);
    Ok(Parsed {
        at,
        service,
        number,
        package,
        machine,
        container,
    })
}

/// Splits the name of an instance into the service and the number; without a number the complete name is the service.
fn numbered(instance: &str) -> (&str, Option<u32>) {
    let digits = instance.len()
        - instance
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .len();
    let (service, number) = instance.split_at(instance.len() - digits);
    match number.parse::<u32>() {
        Ok(parsed) if !service.is_empty() && format!("{parsed:02}") == number => {
            (service, Some(parsed))
        }
        _ => (instance, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, package: &str) -> GraphNode {
        GraphNode {
            name: name.to_owned(),
            package: package.to_owned(),
        }
    }

    fn graph(nodes: &[(&str, &str)], edges: &[(&str, &str)]) -> GraphFile {
        GraphFile {
            nodes: nodes
                .iter()
                .map(|(name, package)| node(name, package))
                .collect(),
            edges: edges
                .iter()
                .map(|&(a, b)| (a.to_owned(), b.to_owned()))
                .collect(),
            ..GraphFile::default()
        }
    }

    fn topology(graph: &GraphFile) -> Result<Topology, ReloadError> {
        Topology::from_graph("x", graph, &Arc::default())
    }

    fn refusal(name: &str, package: &str) -> String {
        let graph = graph(&[(name, package)], &[]);
        topology(&graph).unwrap_err().to_string()
    }

    #[test]
    fn names_of_both_versions_and_of_containers_come_back_as_they_were() {
        let nodes = [
            ("x.us-east-1.zoneA.web00", "karyon"),
            ("x.us-west-2.zoneB.web01", "karyon"),
            ("x.*.*.www00", "denominator"),
            ("x.eu-west-1.*.elb00", "elb"),
            ("x.us-east-1.zoneA.ecs:1.app100.node:4.monolith", "monolith"),
            ("x.us-east-1.zoneC.db", "store"),
        ];
        let edges = [("x.*.*.www00", "x.eu-west-1.*.elb00")];
        let reloaded = topology(&graph(&nodes, &edges)).unwrap();
        let names: Vec<String> = (0..6).map(|node| reloaded.short_name(node)).collect();
        let mut expected = nodes.map(|(name, _)| name);
        expected[4] = "x.us-east-1.zoneA.app100";
        assert_eq!(names, expected);
        let full = reloaded.full_name(4);
        assert_eq!(full, "x.us-east-1.zoneA.ecs:1.app100.node:4..app.monolith");
        assert_eq!(reloaded.regions, 3);
        assert_eq!(reloaded.services[0].instances, 0..2);
        assert_eq!(reloaded.edges, Some(vec![(2, 3)]));
        let old = graph(
            &[(
                "x.us-east-1.zoneC.cass.priamCassandra.cass11",
                "priamCassandra",
            )],
            &[],
        );
        let reloaded = topology(&old).unwrap();
        assert_eq!(reloaded.short_name(0), "x.us-east-1.zoneC.cass11");
    }

    #[test]
    fn graphs_that_are_no_architecture_are_refused_in_a_sentence() {
        assert_eq!(
            refusal("web00", "karyon"),
            "the node web00 has no region, zone and instance in its name; write arch.region.zone.instance"
        );
        assert_eq!(
            refusal("x.us-east-1.zoneA.web00", "karyom"),
            "the node x.us-east-1.zoneA.web00 has the unknown package 'karyom'; did you mean karyon?"
        );
        assert_eq!(
            refusal("x.us-est-1.zoneA.web00", "karyon"),
            "the node x.us-est-1.zoneA.web00 is in 'us-est-1', which is not a region; did you mean us-east-1?"
        );
        assert_eq!(
            refusal("x.us-east-1.zoneD.web00", "karyon"),
            "the node x.us-east-1.zoneD.web00 is in 'zoneD', which is not a zone; did you mean zoneA?"
        );
        assert_eq!(
            refusal("x.us-east-1.zoneA.web.karyon", "karyon"),
            "the node x.us-east-1.zoneA.web.karyon is a complete service, because the graph was written with -f; write it without -f, and reload that graph"
        );
        let two = graph(
            &[
                ("x.us-east-1.zoneA.web00", "karyon"),
                ("x.us-east-1.zoneA.web03", "zuul"),
            ],
            &[],
        );
        assert_eq!(
            topology(&two).unwrap_err().to_string(),
            "the service web has the packages karyon and zuul; rename some of its instances"
        );
    }
}
