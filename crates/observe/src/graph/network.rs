//! The current network: its nodes, and its edges with their numbers.
//!
//! Actors with the same name are one node. If several of them have the same edge, it is written once. Members of
//! populations have no entries here, because their numbers follow from their indices and each of their edges is
//! recorded only once.

use crate::ObserveError;
use crate::directory::ActorIdentity;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The nodes and edges of a run, numbered in the order in which they were recorded.
#[derive(Debug, Default)]
pub(crate) struct Network {
    nodes: FxHashMap<Arc<str>, NodeState>,
    /// The number of each population's first member.
    populations: Vec<u32>,
    nodes_made: u32,
    /// The edges of each node: the node at the other end, and the number of the edge.
    edges: FxHashMap<u32, FxHashMap<u32, u32>>,
    /// Edges shared by several pairs of actors, with the number of pairs in addition to the first.
    shared: FxHashMap<(u32, u32), u32>,
    edges_made: u32,
}

#[derive(Debug)]
struct NodeState {
    number: u32,
    /// The number of living actors with this name.
    alive: u32,
}

/// The serialized form of a network.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedNetwork {
    /// The name of each node, its number, and the number of actors with this name.
    nodes: Vec<(String, u32, u32)>,
    populations: Vec<u32>,
    nodes_made: u32,
    /// The ends of each edge between single nodes, and the number of the edge.
    edges: Vec<(u32, u32, u32)>,
    shared: Vec<((u32, u32), u32)>,
    edges_made: u32,
}

/// A recorded edge: its number, and the numbers of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// The number, from 1.
    pub(crate) number: u32,
    pub(crate) source: u32,
    pub(crate) target: u32,
}

impl Network {
    /// Adds an actor. Returns the number of its node if the node is new.
    pub(crate) fn node(&mut self, name: &Arc<str>) -> Option<u32> {
        if let Some(node) = self.nodes.get_mut(name) {
            node.alive += 1;
            return None;
        }
        let number = self.nodes_made;
        self.nodes_made += 1;
        let node = NodeState { number, alive: 1 };
        self.nodes.insert(Arc::clone(name), node);
        Some(number)
    }

    /// Adds the next population. Returns the number of its first member.
    pub(crate) fn population(&mut self, count: u32) -> u32 {
        let first = self.nodes_made;
        self.populations.push(first);
        self.nodes_made += count;
        first
    }

    /// Returns the number of an actor's node, if the node has appeared.
    pub(crate) fn number(&self, actor: &ActorIdentity) -> Option<u32> {
        match actor {
            ActorIdentity::Placed(placed) => self.nodes.get(&placed.name).map(|node| node.number),
            ActorIdentity::Member {
                population, index, ..
            } => Some(self.populations[*population] + index),
        }
    }

    /// Returns the serialized form.
    pub(crate) fn save(&self) -> SavedNetwork {
        let nodes = self.nodes.iter();
        let edges = self.edges.iter().flat_map(|(&source, edges)| {
            let edges = edges.iter();
            edges.map(move |(&target, &number)| (source, target, number))
        });
        let shared = self.shared.iter();
        SavedNetwork {
            nodes: nodes
                .map(|(name, node)| (name.to_string(), node.number, node.alive))
                .collect(),
            populations: self.populations.clone(),
            nodes_made: self.nodes_made,
            edges: edges.collect(),
            shared: shared.map(|(&ends, &more)| (ends, more)).collect(),
            edges_made: self.edges_made,
        }
    }

    /// Returns the network of a saved run.
    pub(crate) fn resume(saved: SavedNetwork) -> Network {
        let nodes = saved.nodes.into_iter();
        let mut edges: FxHashMap<u32, FxHashMap<u32, u32>> = FxHashMap::default();
        for (source, target, number) in saved.edges {
            edges.entry(source).or_default().insert(target, number);
        }
        Network {
            nodes: nodes
                .map(|(name, number, alive)| (name.into(), NodeState { number, alive }))
                .collect(),
            populations: saved.populations,
            nodes_made: saved.nodes_made,
            edges,
            shared: saved.shared.into_iter().collect(),
            edges_made: saved.edges_made,
        }
    }

    /// Returns the number of nodes so far.
    pub(crate) fn nodes(&self) -> u32 {
        self.nodes_made
    }

    /// Adds an edge. Returns the edge if it is new. If `once` is true, the caller guarantees that the edge is new.
    ///
    /// # Errors
    /// If no edge number is left.
    pub(crate) fn edge(
        &mut self,
        source: u32,
        target: u32,
        once: bool,
    ) -> Result<Option<Edge>, ObserveError> {
        let number = self.edges_made.checked_add(1).ok_or(ObserveError::Edges)?;
        if !once {
            let edges = self.edges.entry(source).or_default();
            if edges.contains_key(&target) {
                *self.shared.entry((source, target)).or_default() += 1;
                return Ok(None);
            }
            edges.insert(target, number);
        }
        self.edges_made = number;
        Ok(Some(Edge {
            number,
            source,
            target,
        }))
    }

    /// Removes an actor's edge. Returns the edge if no other actor shares it; removing an unknown edge does nothing.
    pub(crate) fn forget(&mut self, source: u32, target: u32) -> Option<Edge> {
        let edges = self.edges.get_mut(&source)?;
        let &number = edges.get(&target)?;
        if let Some(more) = self.shared.get_mut(&(source, target)) {
            *more -= 1;
            if *more == 0 {
                self.shared.remove(&(source, target));
            }
            return None;
        }
        edges.remove(&target);
        Some(Edge {
            number,
            source,
            target,
        })
    }

    /// Ends an actor. Returns the number of its node if it was the last living actor of that node.
    pub(crate) fn done(&mut self, actor: &ActorIdentity) -> Option<u32> {
        let ActorIdentity::Placed(placed) = actor else {
            return self.number(actor);
        };
        let node = self.nodes.get_mut(&placed.name)?;
        node.alive = node.alive.saturating_sub(1);
        (node.alive == 0).then_some(node.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(index: u32) -> ActorIdentity {
        let name = Arc::from(format!("pirate{index}"));
        ActorIdentity::Member {
            population: 0,
            index,
            name,
        }
    }

    #[test]
    fn an_edge_that_several_actors_have_is_one_until_the_last_forgets_it() {
        let mut network = Network::default();
        let first = network.edge(0, 1, false).unwrap();
        assert_eq!(first.map(|edge| edge.number), Some(1));
        assert_eq!(network.edge(0, 1, false).unwrap(), None);
        assert_eq!(network.edge(1, 0, false).unwrap().unwrap().number, 2);
        assert_eq!(network.forget(0, 1), None);
        assert_eq!(network.forget(0, 1), first);
        assert_eq!(network.forget(0, 1), None);
        assert_eq!(network.forget(7, 1), None);
        assert_eq!(network.edge(0, 1, false).unwrap().unwrap().number, 3);
    }

    #[test]
    fn members_have_consecutive_numbers_and_take_no_place() {
        let mut network = Network::default();
        assert_eq!(network.node(&"elb".into()), Some(0));
        assert_eq!(network.population(1_000_000), 1);
        assert_eq!(network.node(&"zuul".into()), Some(1_000_001));
        assert_eq!(network.number(&member(7)), Some(8));
        assert_eq!(network.done(&member(7)), Some(8));
        assert_eq!(network.edge(8, 9, true).unwrap().unwrap().number, 1);
        assert!(network.edges.is_empty() && network.nodes.len() == 2);
    }
}
