//! Makes an actor of a node: reads its edges, and sends what it makes to those that follow.

use super::clock::Clock;
use super::operator::Operator;
use super::sink::Sink;
use super::state::State;
use crate::batch::Flow;
use crate::pending::{Emitter, Load, Parcel, PendingWrite, Points};
use corsair::edge::{FanOut, Overflow, Ring};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

/// Flows taken from an edge at once.
const TAKEN: usize = 64;

/// What a node reads from.
pub(crate) struct Inputs {
    /// One, or those of a join or union. `None`: it has ended.
    edges: Vec<Option<Emitter>>,
    /// What has arrived and not been looked at.
    arrived: Vec<Parcel>,
    /// The edge that is asked first.
    turn: usize,
}

impl Inputs {
    pub(crate) fn new(edges: Vec<Emitter>) -> Inputs {
        Inputs {
            arrived: Vec::new(),
            edges: edges.into_iter().map(Some).collect(),
            turn: 0,
        }
    }

    /// The input on which something has arrived, and what; `None`: all have ended.
    async fn next(&mut self) -> Option<(usize, std::vec::Drain<'_, Parcel>)> {
        if let [edge] = &mut self.edges[..] {
            let count = match edge {
                Some(edge) => edge.emit_many(&mut self.arrived, TAKEN).await,
                None => 0,
            };
            if count == 0 {
                *edge = None;
                return None;
            }
            return Some((0, self.arrived.drain(..)));
        }
        let Inputs {
            edges,
            arrived,
            turn,
        } = self;
        let input = poll_fn(|context| {
            let count = edges.len();
            let mut open = false;
            for at in (0..count).map(|after| (*turn + after) % count) {
                let Some(edge) = &mut edges[at] else { continue };
                match edge.poll_emit(context) {
                    Poll::Ready(Some(parcel)) => {
                        arrived.push(parcel);
                        let _ = edge.try_emit_many(arrived, TAKEN - 1);
                        *turn = at + 1;
                        return Poll::Ready(Some(at));
                    }
                    Poll::Ready(None) => edges[at] = None,
                    Poll::Pending => open = true,
                }
            }
            if open {
                Poll::Pending
            } else {
                Poll::Ready(None)
            }
        })
        .await?;
        Some((input, arrived.drain(..)))
    }
}

/// What a node does next.
enum Next<'i> {
    /// Takes what has arrived on an input.
    Arrived(usize, std::vec::Drain<'i, Parcel>),
    /// Its clock has struck.
    Strike(i64),
    /// All inputs have ended.
    Ended,
}

async fn next<'i>(inputs: &'i mut Inputs, clock: Option<&mut Clock>) -> Next<'i> {
    let arrived = inputs.next();
    let arrived = match clock {
        None => arrived.await,
        Some(clock) => {
            let mut arrived = pin!(arrived);
            let either = poll_fn(|context| match clock.poll_strike(context) {
                Poll::Ready(time) => Poll::Ready(Err(time)),
                Poll::Pending => arrived.as_mut().poll(context).map(Ok),
            });
            match either.await {
                Ok(arrived) => arrived,
                Err(time) => return Next::Strike(time),
            }
        }
    };
    match arrived {
        Some((input, parcels)) => Next::Arrived(input, parcels),
        None => Next::Ended,
    }
}

/// Whom a node feeds.
pub(crate) type Outputs = FanOut<Parcel, Ring<Points>>;

/// Why the inputs of a node have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing more was written.
    Stream,
    /// The engine is suspended: what a node keeps is saved.
    Suspended,
    /// The task was aborted.
    Aborted,
}

/// Sends everything to all of them, in order. The edges of a task are aborted together: a node whose
/// followers are gone finds that out at its own inputs.
async fn send(
    out: &mut Vec<Flow>,
    pending: &PendingWrite,
    load: Option<&Load>,
    outputs: &mut Outputs,
) {
    for flow in out.drain(..) {
        let (pending, load) = (pending.clone(), load.cloned());
        let parcel = Parcel {
            flow,
            pending,
            load,
        };
        let _ = outputs.collect(parcel).await;
    }
}

/// Runs an operator until its inputs have ended. `begin` begins the pending write of what it makes
/// without a write. What it keeps when the engine is suspended is returned.
pub(crate) async fn operate(
    mut operator: Box<dyn Operator>,
    mut inputs: Inputs,
    mut outputs: Outputs,
    ending: impl Fn() -> Ending,
    begin: impl Fn() -> PendingWrite,
) -> Option<State> {
    let mut out = Vec::new();
    let mut clock = operator.clock();
    loop {
        let (input, parcels) = match next(&mut inputs, clock.as_mut()).await {
            Next::Arrived(input, parcels) => (input, parcels),
            Next::Strike(time) => {
                let begun = Instant::now();
                operator.strike(time, &mut out);
                send(&mut out, &begin(), None, &mut outputs).await;
                if let Some(clock) = &mut clock {
                    clock.rest(begun.elapsed());
                }
                continue;
            }
            Next::Ended => break,
        };
        for parcel in parcels {
            let Parcel {
                flow,
                pending,
                load,
            } = parcel;
            for part in parts(flow, operator.most_rows()) {
                operator.take(input, part, &mut out);
                send(&mut out, &pending, load.as_ref(), &mut outputs).await;
            }
        }
    }
    if ending() != Ending::Aborted {
        for queue in operator.queues() {
            queue.drained().await;
        }
    }
    match ending() {
        Ending::Stream => {
            operator.finish(&mut out);
            send(&mut out, &begin(), None, &mut outputs).await;
            None
        }
        Ending::Suspended => operator.save(),
        // What an abort has cut short has no end to tell of.
        Ending::Aborted => None,
    }
}

/// The same points in batches of at most `most` rows. Windows stay whole.
fn parts(flow: Flow, most: usize) -> impl Iterator<Item = Flow> {
    let (whole, batch) = match flow {
        Flow::Points(batch) if batch.rows.len() > most => (None, Some(batch)),
        flow => (Some(flow), None),
    };
    let divided = batch.into_iter().flat_map(move |batch| {
        let rows = batch.rows.len();
        let begins = (0..rows).step_by(most);
        begins.map(move |from| {
            let part = batch.rows.slice(from, rows.min(from + most));
            Flow::Points(batch.with_rows(part))
        })
    });
    whole.into_iter().chain(divided)
}

/// Runs a sink until its inputs have ended, and what it has put into a queue of its own is delivered
/// or kept. Passes everything on.
pub(crate) async fn deliver(
    sink: Sink,
    mut inputs: Inputs,
    mut outputs: Outputs,
    ending: impl Fn() -> Ending,
    abort: impl Fn(),
) -> Option<State> {
    let mut out = Vec::new();
    let aborted = || ending() == Ending::Aborted;
    while let Some((_, parcels)) = inputs.next().await {
        for parcel in parcels {
            let mut body = (sink.body)(&parcel.flow);
            body.pending = Some(parcel.pending.clone());
            let taken = sink.queue.push(body, sink.overflow, aborted).await;
            if !taken && sink.overflow == Overflow::Abort {
                abort();
            }
            out.push(parcel.flow);
            send(
                &mut out,
                &parcel.pending,
                parcel.load.as_ref(),
                &mut outputs,
            )
            .await;
        }
    }
    let queue = sink.own_queue()?;
    if aborted() {
        queue.discard();
        return None;
    }
    // Its followers need not wait for the receiver.
    drop(outputs);
    queue.drained().await;
    let rest = queue.rest();
    (!rest.is_empty()).then(|| State::new(rest.len(), &rest))
}
