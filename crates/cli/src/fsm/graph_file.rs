//! The graph of a run as a file, and a file's graph as a network to start from.

use super::names::Names;
use super::record::{Change, What};
use anyhow::{Context, Result, anyhow, bail};
use corsair::fsm::Network;
use corsair_observe::graph::{self, GraphWriter, Header};
use corsair_observe::{Addresses, Exit, Replacement};
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::Path;

/// What the nodes of the FSM's graphs are.
pub(super) const PIRATE: &str = "pirate";

/// Writes the changes of a run, which began at the date in the header. Returns how many there are.
///
/// # Errors
/// If the file cannot be written.
pub fn write(
    mut file: Replacement,
    header: &Header<'_>,
    names: &Names,
    changes: &[Change],
) -> Result<u64> {
    let written = (|| {
        let mut graph = GraphWriter::begin(file.writer(), header)?;
        let mut addresses = Addresses::default();
        let mut edges = 0;
        for change in changes {
            let date = date(header.date, change);
            let pirate = names.pirate(change.pirate);
            match change.what {
                What::Began => {
                    graph.node(date, pirate, PIRATE.into(), addresses.next("", ""))?;
                }
                What::Met(buddy) => {
                    edges += 1;
                    graph.edge(date, edges, pirate, names.pirate(buddy))?;
                }
                What::Ended => graph.done(date, pirate, Exit::Normal)?,
            }
        }
        graph.end()
    })();
    let events = written.map_err(|error| file.failed(error))?;
    file.finish()?;
    Ok(events)
}

/// The date of a change; the last possible one for times beyond the calendar.
fn date(epoch: Timestamp, change: &Change) -> Timestamp {
    epoch
        .checked_add(change.at.elapsed())
        .unwrap_or(Timestamp::MAX)
}

/// Reads a network of pirates.
///
/// # Errors
/// If the file is no graph, or none of pirates.
pub fn network(path: &Path) -> Result<Network> {
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
        bail!("-r: {shown} has one pirate, {alone}, who has nobody to talk to; give at least 2");
    }
    let index: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
    let edges: Vec<(u32, u32)> = graph
        .edges
        .iter()
        .map(|(a, b)| (index[a.as_str()], index[b.as_str()]))
        .collect();
    Network::new(names.into(), edges).map_err(|wrong| anyhow!("-r: {shown}: {wrong}"))
}
