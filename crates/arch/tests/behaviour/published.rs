//! Compares with the graphs that spigo's authors have published: the same command gives as many nodes and edges.

use crate::scene::{plan, run_with_graph};
use corsair_arch::{Plan, Scale, Topology, connections, read, step};
use std::path::Path;
use std::time::Duration;

/// The architecture, its step, `-p`, `-w`, nodes and edges.
type Published = (&'static str, u32, u32, u32, u32, u64);

const PUBLISHED: [Published; 50] = [
    ("aws_ac_ra_web", 0, 100, 1, 25, 47),
    ("cassandra", 0, 100, 1, 32, 121),
    ("cassandra", 2, 200, 1, 62, 481),
    ("cassandra", 3, 400, 1, 122, 1921),
    ("cassandra", 4, 100, 2, 63, 386),
    ("cassandra", 5, 100, 3, 94, 795),
    ("cassandra", 6, 100, 4, 125, 1348),
    ("cassandra", 7, 100, 5, 156, 2045),
    ("cassandra", 8, 100, 6, 187, 2886),
    ("cassandra", 9, 200, 6, 367, 11526),
    ("container", 1, 100, 1, 22, 51),
    ("container", 2, 200, 1, 42, 199),
    ("container", 3, 150, 2, 59, 204),
    ("lamp", 1, 100, 1, 23, 73),
    ("lamp", 2, 200, 1, 44, 253),
    ("lamp", 3, 300, 1, 65, 541),
    ("lamp", 4, 300, 2, 129, 1082),
    ("lamp", 5, 300, 3, 193, 1623),
    ("lamp", 6, 200, 4, 173, 1012),
    ("lamp", 7, 200, 5, 216, 1265),
    ("lamp", 8, 200, 6, 259, 1518),
    ("migration", 0, 100, 1, 13, 30),
    ("migration", 1, 100, 1, 14, 39),
    ("migration", 2, 100, 1, 23, 66),
    ("migration", 3, 100, 1, 31, 87),
    ("migration", 4, 100, 1, 40, 132),
    ("migration", 5, 100, 1, 52, 336),
    ("migration", 6, 100, 1, 50, 322),
    ("migration", 7, 100, 2, 99, 644),
    ("migration", 8, 100, 2, 99, 1076),
    ("migration", 9, 100, 3, 148, 2262),
    ("netflix", 0, 100, 1, 98, 371),
    ("netflix", 1, 200, 1, 192, 1502),
    ("netflix", 2, 300, 1, 286, 3395),
    ("netflix", 3, 100, 2, 194, 1066),
    ("netflix", 4, 100, 3, 290, 2085),
    ("netflix", 6, 100, 6, 578, 7086),
    ("netflixoss", 0, 100, 1, 65, 259),
    ("netflixoss", 1, 200, 1, 128, 1033),
    ("netflixoss", 2, 100, 2, 129, 662),
    ("netflixoss", 3, 100, 3, 193, 1209),
    ("netflixoss", 4, 100, 4, 257, 1900),
    ("netflixoss", 5, 100, 5, 321, 2735),
    ("netflixoss", 6, 100, 6, 385, 3714),
    ("netflixoss", 7, 200, 6, 763, 14838),
    ("riak", 0, 100, 1, 51, 165),
    ("riak", 1, 100, 2, 99, 474),
    ("riak", 2, 200, 2, 189, 1842),
    ("storage", 0, 100, 1, 6, 5),
    ("storage", 1, 200, 1, 10, 16),
];

/// Published graphs that were made with `-f`.
const COLLAPSED: [Published; 3] = [
    ("container", 0, 100, 1, 16, 33),
    ("lamp", 9, 100, 6, 43, 78),
    ("netflixoss", 9, 400, 6, 115, 798),
];

fn topology(&(name, number, percent, regions, ..): &Published) -> Topology {
    let scale = Scale { regions, percent };
    if name == "migration" {
        let (checked, scale) = step(number, scale).unwrap();
        return Topology::new(&checked, scale).unwrap();
    }
    let checked = read(name, Path::new("nowhere")).unwrap();
    Topology::new(&checked, scale).unwrap()
}

// Guarantee: arch-2.
#[test]
fn published_graphs_have_as_many_nodes_and_edges_as_ours() {
    let differing: Vec<_> = PUBLISHED
        .iter()
        .map(|published| {
            let topology = topology(published);
            (published, topology.len(), connections(&topology))
        })
        .filter(|(published, nodes, edges)| (published.4, published.5) != (*nodes, *edges))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn published_graphs_of_services_have_as_many_nodes_and_edges_as_ours() {
    let short = Plan {
        collapse: true,
        duration: Duration::ZERO,
        ..plan()
    };
    for published in &COLLAPSED {
        let (_, _, graph) = run_with_graph(topology(published), &short);
        let counts = (graph.nodes.len() as u32, graph.edges.len() as u64);
        assert_eq!(counts, (published.4, published.5), "{published:?}");
    }
}
