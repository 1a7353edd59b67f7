//! The neighbours that `broadcast` offers to nodes.

use serde_json::{Map, Value as Json};
use std::str::FromStr;

/// The shape of the topology message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topology {
    /// Nodes are arranged in rows and columns; each has at most four neighbours.
    #[default]
    Grid,
    /// Nodes in a row.
    Line,
    /// Every node is a neighbour of every other node.
    Total,
    /// A tree in which each node has up to this many children.
    Tree(u32),
}

/// The names of topologies.
pub const TOPOLOGIES: [&str; 7] = ["line", "grid", "tree", "tree2", "tree3", "tree4", "total"];

impl FromStr for Topology {
    type Err = String;

    fn from_str(name: &str) -> Result<Topology, String> {
        match name {
            "grid" => Ok(Topology::Grid),
            "line" => Ok(Topology::Line),
            "total" => Ok(Topology::Total),
            "tree" | "tree2" => Ok(Topology::Tree(2)),
            "tree3" => Ok(Topology::Tree(3)),
            "tree4" => Ok(Topology::Tree(4)),
            other => Err(format!(
                "'{other}' is not a topology; expected {}",
                TOPOLOGIES.join(", ")
            )),
        }
    }
}

impl Topology {
    /// True if two of `nodes` nodes are neighbours.
    fn joins(self, nodes: u32, one: u32, other: u32) -> bool {
        let (low, high) = (one.min(other), one.max(other));
        match self {
            _ if low == high => false,
            Topology::Total => true,
            Topology::Line => high - low == 1,
            Topology::Grid => {
                let side = (1..=nodes).find(|side| side * side >= nodes).unwrap_or(1);
                let is_beside = high - low == 1 && high % side != 0;
                is_beside || high - low == side
            }
            Topology::Tree(children) => (high - 1) / children == low,
        }
    }

    /// Returns the neighbours of each node by name, in the format of the `topology` message.
    pub(crate) fn neighbours(self, nodes: u32) -> Json {
        let of = |node| {
            let others = (0..nodes).filter(move |other| self.joins(nodes, node, *other));
            others.map(|other| format!("n{other}")).collect::<Json>()
        };
        let entries = (0..nodes).map(|node| (format!("n{node}"), of(node)));
        Json::Object(entries.collect::<Map<_, _>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn topologies_are_as_their_names_say() {
        let of = |name: &str, nodes| name.parse::<Topology>().unwrap().neighbours(nodes);
        assert_eq!(
            of("line", 3),
            json!({"n0": ["n1"], "n1": ["n0", "n2"], "n2": ["n1"]})
        );
        let grid = of("grid", 5);
        assert_eq!(grid["n1"], json!(["n0", "n2", "n4"]));
        assert_eq!(grid["n2"], json!(["n1"]));
        let tree = of("tree3", 6);
        assert_eq!(tree["n0"], json!(["n1", "n2", "n3"]));
        assert_eq!(tree["n1"], json!(["n0", "n4", "n5"]));
        assert_eq!(of("total", 3)["n1"], json!(["n0", "n2"]));
        assert_eq!(of("grid", 1), json!({"n0": []}));
        assert!(
            "ring"
                .parse::<Topology>()
                .unwrap_err()
                .contains("line, grid")
        );
    }
}
