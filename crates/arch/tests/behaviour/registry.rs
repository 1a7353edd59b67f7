//! Registries, and the log of nodes and edges.

use crate::scene::{lines, plan, run, run_with_graph, topology};
use corsair_arch::{Plan, Scale, Topology, read};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

fn built_in(name: &str) -> Topology {
    Topology::new(&read(name, Path::new("nowhere")).unwrap(), Scale::default()).unwrap()
}

// Guarantee: arch-8.
#[test]
fn a_requester_receives_only_what_has_changed_since_it_asked_last() {
    let mut often = built_in("netflixoss");
    often.victim = None;
    let depends: usize = (0..often.len())
        .map(|node| often.service_of(node).dependencies.len())
        .sum();
    let (ran, _, graph) = run_with_graph(often, &plan());
    // Each instance receives one message for each service that it depends on, and one for each instance of these
    // services. Twenty look-ups add no further messages.
    assert_eq!(
        ran.messages("NameDrop") as usize,
        depends + graph.edges.len()
    );
    assert_eq!(ran.messages("Forget"), 0);
    assert!(ran.messages("GetRequest") > 20 * 60);
}

#[test]
fn the_chaos_monkey_kills_one_instance_of_the_victim_half_way_and_it_is_forgotten() {
    let (ran, text, graph) = run_with_graph(built_in("netflixoss"), &plan());
    assert_eq!(lines(&text, "done", "\"exit\":\"killed\""), 1);
    let killed = text
        .lines()
        .find(|line| line.contains("\"killed\""))
        .unwrap();
    assert!(killed.contains("homepage"), "{killed}");
    assert_eq!(lines(&text, "done", "\"exit\":\"normal\""), 64);
    // Only the two proxies in the zone of the killed instance forget it, out of six proxies.
    assert_eq!(lines(&text, "forget", "homepage"), 2);
    assert!(graph.edges.len() > 100);
    // Until the next look-up some requests still reach the killed instance.
    assert!(ran.entry().errors < ran.entry().requests / 10);
}

// Guarantee: arch-9.
#[test]
fn a_run_that_starts_from_a_graph_has_exactly_its_nodes_and_edges() {
    let quiet = Plan {
        duration: Duration::ZERO,
        ..plan()
    };
    for name in ["lamp", "netflixoss", "container", "storage"] {
        let (_, _, graph) = run_with_graph(built_in(name), &quiet);
        let again = Topology::from_graph(name, &graph, &Default::default()).unwrap();
        let (ran, _, same) = run_with_graph(again, &plan());
        let set = |edges: &[(String, String)]| edges.iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!(set(&same.edges), set(&graph.edges), "{name}");
        let nodes = |graph: &corsair_observe::graph::GraphFile| {
            let names = graph
                .nodes
                .iter()
                .map(|node| (node.name.clone(), node.package.clone()));
            names.collect::<BTreeSet<_>>()
        };
        assert_eq!(nodes(&same), nodes(&graph), "{name}");
        assert!(
            ran.entry().requests > 100 && ran.entry().errors == 0,
            "{name}"
        );
    }
}

#[test]
fn collapsed_graphs_show_services_by_zone() {
    let collapsed = Plan {
        collapse: true,
        ..plan()
    };
    let (_, text, graph) = run_with_graph(built_in("netflixoss"), &collapsed);
    let names: BTreeSet<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names.len(), graph.nodes.len());
    assert!(names.contains("netflixoss.us-east-1.zoneC.homepage.karyon"));
    // Six services in three zones, the load balancer and the name service.
    assert_eq!(names.len(), 6 * 3 + 2);
    let edges: BTreeSet<_> = graph.edges.iter().collect();
    assert_eq!(edges.len(), graph.edges.len());
    assert_eq!(lines(&text, "node", ""), names.len());
}

#[test]
fn an_instance_killed_for_a_while_comes_back_to_those_who_call_it() {
    let services = r#"{"name": "db", "package": "store", "count": 3, "regions": 1,
            "faults": [{"kind": "kill", "at": "500ms", "for": "500ms", "share": 0.1}]},
        {"name": "app", "package": "monolith", "count": 3, "regions": 1, "dependencies": ["db"]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]}"#;
    let (ran, text, graph) = run_with_graph(topology(services, Scale::default()), &plan());
    assert_eq!(lines(&text, "forget", "db"), 3);
    assert_eq!(
        lines(&text, "edge", "\"target\":\"x.us-east-1.zone"),
        9 + 3 + 3
    );
    assert_eq!(graph.edges.len(), 12);
    let entry = ran.entry();
    assert!(
        entry.errors > 0 && entry.errors < entry.requests / 5,
        "{entry:?}"
    );
}

#[test]
fn no_load_and_too_much_of_it_are_refused() {
    let lonely = topology(r#"{"name": "db", "package": "store"}"#, Scale::default());
    let refused = |topology: Topology, plan: Plan| {
        let config = corsair::Config::default();
        corsair_arch::simulate(corsair::Executor::Virtual, &config, topology, &plan)
            .unwrap_err()
            .to_string()
    };
    let search = corsair_arch::Search::default();
    let config = corsair::Config::default();
    let found = corsair_arch::capacity(&config, &lonely, &plan(), &search, |_| ());
    assert_eq!(
        found.unwrap_err().to_string(),
        "architecture x has no denominator: nothing drives load to it; add a service of that package"
    );
    let often = Plan {
        chat: Duration::from_nanos(10),
        ..plan()
    };
    assert_eq!(
        refused(built_in("lamp"), often),
        "a request every 10ns is too often; give at least 1us"
    );
    let busy = Plan {
        poll: Duration::ZERO,
        ..plan()
    };
    assert_eq!(
        refused(built_in("lamp"), busy),
        "registries are asked every 0ns, which is too often; give at least 1ms"
    );
}

#[test]
fn a_run_without_time_ends_and_says_goodbye_to_all() {
    let none = Plan {
        duration: Duration::ZERO,
        ..plan()
    };
    let ran = run(built_in("lamp"), &none);
    assert_eq!(ran.entry().requests, 0);
    assert_eq!(ran.totals.goodbyes, 23);
    assert_eq!(ran.report.dead(), 0);
}

#[test]
fn an_architecture_without_an_entry_point_has_a_graph() {
    let services = r#"{"name": "db", "package": "store", "count": 1, "regions": 1},
        {"name": "app", "package": "monolith", "count": 2, "regions": 1, "dependencies": ["db"]}"#;
    let (ran, _, graph) = run_with_graph(topology(services, Scale::default()), &plan());
    assert_eq!((graph.nodes.len(), graph.edges.len()), (3, 2));
    assert_eq!((ran.totals.requests(), ran.totals.goodbyes), (0, 3));
}

// Guarantee: arch-5.
#[test]
fn requests_that_run_in_a_circle_end_and_others_get_through() {
    // Half of the calls of `b` return to `a`, so most requests leave the circle.
    let services = r#"{"name": "db", "package": "store", "count": 1, "regions": 1},
        {"name": "a", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["b"]},
        {"name": "b", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["a", "db"]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["a"]}"#;
    let ran = run(topology(services, Scale::default()), &plan());
    assert!(ran.service("a").requests > ran.entry().requests * 3 / 2);
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
    let services = services.replace(r#""a", "db""#, r#""a""#);
    let ran = run(topology(&services, Scale::default()), &plan());
    assert_eq!(ran.entry().errors, ran.entry().requests);
    assert_eq!(ran.entry().unanswered(), 0);
}
