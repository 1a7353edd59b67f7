//! Reads a graph file as the initial network of the pirates.

use super::names::PIRATE;
use anyhow::{Context, Result, anyhow, bail};
use corsair::fsm::Network;
use corsair_observe::graph;
use std::collections::HashMap;
use std::path::Path;

/// Reads a network of pirates.
///
/// # Errors
/// If the file is not a graph of pirates.
pub fn read(path: &Path) -> Result<Network> {
    let graph = graph::read(path).context("-r")?;
    let shown = path.display();
    if let Some(other) = graph.nodes.iter().find(|node| node.package != PIRATE) {
        bail!(
            "-r: {shown} has {}, which is a {}; fsm runs pirates only",
            other.name,
            other.package
        );
    }
    let names: Vec<String> = graph.nodes.into_iter().map(|node| node.name).collect();
    if let [alone] = names.as_slice() {
        bail!("-r: {shown} has only one pirate, {alone}; pirates need at least 2");
    }
    let index: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let edges: Vec<(u32, u32)> = graph
        .edges
        .iter()
        .map(|(a, b)| (index[a.as_str()], index[b.as_str()]))
        .collect();
    Network::new(names.into(), edges).map_err(|wrong| anyhow!("-r: {shown}: {wrong}"))
}
