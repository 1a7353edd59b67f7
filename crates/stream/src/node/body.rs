//! Makes an actor of an operator: reads its edges, and sends what it makes to those who follow.

use super::sink::HttpPost;
use super::{NodeError, Operator};
use crate::batch::Flow;
use crate::passage::{Collector, Emitter, Parcel, Passage};
use corsair::edge::FanOut;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::JoinError;

/// So many flows are taken from an edge at once.
const TAKEN: usize = 64;

/// What a node reads from.
pub(crate) struct Inputs {
    /// One, or the two of a join. `None`: it has ended.
    edges: Vec<Option<Emitter>>,
    /// What has arrived and not been looked at, by edge.
    arrived: Vec<Vec<Parcel>>,
}

impl Inputs {
    pub(crate) fn new(edges: Vec<Emitter>) -> Inputs {
        Inputs {
            arrived: edges.iter().map(|_| Vec::new()).collect(),
            edges: edges.into_iter().map(Some).collect(),
        }
    }

    /// The input on which something has arrived, and what; `None`: all have ended.
    async fn next(&mut self) -> Option<(usize, std::vec::Drain<'_, Parcel>)> {
        loop {
            let (input, count) = match (&mut self.edges[..], &mut self.arrived[..]) {
                ([Some(edge)], [arrived]) => (0, edge.emit_many(arrived, TAKEN).await),
                ([Some(a), Some(b)], [arrived_a, arrived_b]) => tokio::select! {
                    count = a.emit_many(arrived_a, TAKEN) => (0, count),
                    count = b.emit_many(arrived_b, TAKEN) => (1, count),
                },
                ([Some(a), None], [arrived, _]) => (0, a.emit_many(arrived, TAKEN).await),
                ([None, Some(b)], [_, arrived]) => (1, b.emit_many(arrived, TAKEN).await),
                _ => return None,
            };
            if count > 0 {
                return Some((input, self.arrived[input].drain(..)));
            }
            self.edges[input] = None;
        }
    }
}

/// Whom a node feeds.
pub(crate) type Outputs = FanOut<Collector>;

/// Sends everything to all of them, in order. The edges of a task are aborted together: a node whose
/// followers are gone finds that out at its own inputs.
async fn send(out: &mut Vec<Flow>, passage: &Passage, outputs: &mut Outputs) {
    for flow in out.drain(..) {
        let passage = passage.clone();
        let _ = outputs.collect(Parcel { flow, passage }).await;
    }
}

/// Runs an operator until its inputs have ended. `last` is the passage of what it makes then.
pub(crate) async fn operate(
    mut operator: Box<dyn Operator>,
    mut inputs: Inputs,
    mut outputs: Outputs,
    aborted: impl Fn() -> bool,
    last: impl FnOnce() -> Passage,
) -> Result<(), NodeError> {
    let mut out = Vec::new();
    while let Some((input, parcels)) = inputs.next().await {
        for Parcel { flow, passage } in parcels {
            operator.take(input, flow, &mut out)?;
            send(&mut out, &passage, &mut outputs).await;
        }
    }
    // What an abort has cut short has no end to tell of.
    if !aborted() {
        operator.finish(&mut out)?;
        send(&mut out, &last(), &mut outputs).await;
    }
    Ok(())
}

/// Runs a node that posts, on threads of `io` that may block.
pub(crate) async fn post(
    poster: HttpPost,
    mut inputs: Inputs,
    mut outputs: Outputs,
    io: Handle,
) -> Result<(), JoinError> {
    let poster = Arc::new(poster);
    let mut out = Vec::new();
    while let Some((_, parcels)) = inputs.next().await {
        for Parcel { flow, passage } in parcels {
            let (poster, posted) = (poster.clone(), flow.clone());
            io.spawn_blocking(move || poster.post(&posted)).await?;
            out.push(flow);
            send(&mut out, &passage, &mut outputs).await;
        }
    }
    Ok(())
}
