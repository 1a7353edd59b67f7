//! The actor of a node: reads its edges, and sends results to the following nodes.

use super::clock::Clock;
use super::operator::Operator;
use super::sink::Sink;
use super::state::State;
use crate::batch::{Flow, Watermark};
use crate::checkpoint::Barrier;
use crate::pending::{Element, FlowElement, Load, PendingWrite, Points, Receiver};
use corsair::edge::{FanOut, Overflow, Ring};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

/// The maximum number of flows that are taken from an edge at once.
const TAKEN: usize = 64;

/// The inputs of a node.
pub(crate) struct Inputs {
    /// The inputs: one, or several for a join or union. `None` for an input that has ended.
    edges: Vec<Option<Receiver>>,
    /// Received elements of one input that have not been handled, in reverse order.
    arrived: Vec<Element>,
    /// The input on which the received elements arrived.
    from: usize,
    /// The index of the edge that is polled first.
    turn: usize,
    alignment: Alignment,
}

/// A barrier that has not been received from all inputs of a node.
#[derive(Default)]
struct Alignment {
    barrier: Option<Barrier>,
    /// True for each input from which the barrier has been received.
    blocked: Vec<bool>,
    /// Elements received after the barrier, with their input, in reverse order.
    deferred: Vec<(usize, Vec<Element>)>,
    /// The elements received after the last barrier, which has arrived on all inputs.
    released: Vec<(usize, Vec<Element>)>,
}

/// An element that a node has received.
enum Arrival {
    /// Points or windows of an input.
    FlowElement(usize, FlowElement),
    /// A watermark of the only input.
    Watermark(Watermark),
    /// A barrier, from all inputs that have not ended.
    Barrier(Barrier),
    /// The end of all inputs.
    Ended,
}

impl Inputs {
    pub(crate) fn new(edges: Vec<Receiver>) -> Inputs {
        Inputs {
            arrived: Vec::new(),
            from: 0,
            turn: 0,
            alignment: Alignment {
                blocked: vec![false; edges.len()],
                ..Alignment::default()
            },
            edges: edges.into_iter().map(Some).collect(),
        }
    }

    /// Waits for the next arrival. Dropping the future before it is ready loses nothing.
    async fn next(&mut self) -> Arrival {
        loop {
            match self.arrived.pop() {
                Some(Element::Flow(sent)) => return Arrival::FlowElement(self.from, sent),
                Some(Element::Watermark(watermark)) if self.edges.len() == 1 => {
                    return Arrival::Watermark(watermark);
                }
                // Another input may still have older points.
                Some(Element::Watermark(_)) => {}
                Some(Element::Barrier(barrier)) if self.edges.len() == 1 => {
                    return Arrival::Barrier(barrier);
                }
                Some(Element::Barrier(barrier)) => {
                    let rest = std::mem::take(&mut self.arrived);
                    self.alignment.block(self.from, barrier, rest);
                }
                None => {}
            }
            if !self.arrived.is_empty() {
                continue;
            }
            if let Some(barrier) = self.alignment.complete(&self.edges) {
                return Arrival::Barrier(barrier);
            }
            if let Some((input, parcels)) = self.alignment.released.pop() {
                (self.from, self.arrived) = (input, parcels);
                continue;
            }
            self.fill().await;
            if self.arrived.is_empty() && self.edges.iter().all(Option::is_none) {
                match self.alignment.barrier.is_some() {
                    true => continue,
                    false => return Arrival::Ended,
                }
            }
        }
    }

    /// Waits until an element has arrived on an input, or an input has ended.
    async fn fill(&mut self) {
        if let [edge] = &mut self.edges[..] {
            let count = match edge {
                Some(edge) => edge.recv_many(&mut self.arrived, TAKEN).await,
                None => 0,
            };
            if count == 0 {
                *edge = None;
            }
            self.arrived.reverse();
            return;
        }
        let Inputs {
            edges,
            arrived,
            from,
            turn,
            alignment,
        } = self;
        poll_fn(|context| {
            let count = edges.len();
            let (mut open, mut ended) = (false, false);
            for at in (0..count).map(|after| (*turn + after) % count) {
                let Some(edge) = &mut edges[at] else { continue };
                if alignment.blocked[at] {
                    continue;
                }
                match edge.poll_recv(context) {
                    Poll::Ready(Some(parcel)) => {
                        arrived.push(parcel);
                        let _ = edge.try_recv_many(arrived, TAKEN - 1);
                        arrived.reverse();
                        (*from, *turn) = (at, at + 1);
                        return Poll::Ready(());
                    }
                    Poll::Ready(None) => {
                        edges[at] = None;
                        ended = true;
                    }
                    Poll::Pending => open = true,
                }
            }
            // The end of an input may complete a barrier.
            match open && !ended {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Alignment {
    /// Records that `barrier` was received from an input, and defers `rest`, the elements received after the barrier.
    fn block(&mut self, input: usize, barrier: Barrier, rest: Vec<Element>) {
        self.barrier = Some(barrier);
        self.blocked[input] = true;
        self.deferred.push((input, rest));
    }

    /// Returns the barrier, if it has arrived on all inputs that have not ended.
    fn complete(&mut self, edges: &[Option<Receiver>]) -> Option<Barrier> {
        self.barrier.as_ref()?;
        let mut inputs = edges.iter().zip(&self.blocked);
        if inputs.any(|(edge, blocked)| edge.is_some() && !blocked) {
            return None;
        }
        self.blocked.fill(false);
        self.released = std::mem::take(&mut self.deferred);
        self.barrier.take()
    }
}

/// The next action of a node.
enum NodeInput {
    /// An element was received.
    Arrived(Arrival),
    /// The node's clock has ticked at this time.
    Strike(i64),
}

async fn next(inputs: &mut Inputs, clock: Option<&mut Clock>) -> NodeInput {
    let arrived = inputs.next();
    let Some(clock) = clock else {
        return NodeInput::Arrived(arrived.await);
    };
    let mut arrived = pin!(arrived);
    poll_fn(|context| match clock.poll_strike(context) {
        Poll::Ready(time) => Poll::Ready(NodeInput::Strike(time)),
        Poll::Pending => arrived.as_mut().poll(context).map(NodeInput::Arrived),
    })
    .await
}

/// The edges to the following nodes.
pub(crate) type Outputs = FanOut<Element, Ring<Points>>;

/// The reason why the inputs of a node have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The stream has ended.
    Stream,
    /// The engine is suspended: the state of nodes is saved.
    Suspended,
    /// The task was aborted.
    Aborted,
}

/// Sends to all outputs, in order. The edges of a task are aborted together, so a node whose successors have ended
/// detects this at its own inputs.
async fn send(
    out: &mut Vec<Flow>,
    pending: &PendingWrite,
    load: Option<&Load>,
    outputs: &mut Outputs,
) {
    for flow in out.drain(..) {
        let (pending, load) = (pending.clone(), load.cloned());
        let parcel = Element::Flow(FlowElement {
            flow,
            pending,
            load,
        });
        let _ = outputs.send(parcel).await;
    }
}

/// Runs an operator until its inputs have ended, and returns its state if the engine is suspended. `begin` starts a
/// pending write for results that no write has caused. `report` reports the operator's state to a barrier.
pub(crate) async fn operate(
    mut operator: Box<dyn Operator>,
    mut inputs: Inputs,
    mut outputs: Outputs,
    ending: impl Fn() -> Ending,
    begin: impl Fn() -> PendingWrite,
    report: impl Fn(&Barrier, &dyn Fn() -> Option<State>),
) -> Option<State> {
    let mut out = Vec::new();
    let mut clock = operator.clock();
    let queues = operator.queues();
    loop {
        for queue in &queues {
            queue.has_room(|| ending() == Ending::Aborted).await;
        }
        match next(&mut inputs, clock.as_mut()).await {
            NodeInput::Arrived(Arrival::FlowElement(input, sent)) => {
                for part in parts(sent.flow, operator.most_rows()) {
                    operator.take(input, part, &mut out);
                    send(&mut out, &sent.pending, sent.load.as_ref(), &mut outputs).await;
                }
            }
            NodeInput::Arrived(Arrival::Watermark(watermark)) => {
                operator.watermark(&watermark, &mut out);
                if !out.is_empty() {
                    send(&mut out, &begin(), None, &mut outputs).await;
                }
                let _ = outputs.send(Element::Watermark(watermark)).await;
            }
            NodeInput::Arrived(Arrival::Barrier(barrier)) => {
                report(&barrier, &|| operator.save());
                let _ = outputs.send(Element::Barrier(barrier)).await;
            }
            NodeInput::Arrived(Arrival::Ended) => break,
            NodeInput::Strike(time) => {
                let begun = Instant::now();
                let watermarks = operator.strike(time, &mut out);
                send(&mut out, &begin(), None, &mut outputs).await;
                for watermark in watermarks {
                    let _ = outputs.send(Element::Watermark(watermark)).await;
                }
                if let Some(clock) = &mut clock {
                    clock.rest(begun.elapsed());
                }
            }
        }
    }
    if ending() != Ending::Aborted {
        for queue in &queues {
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
        // An aborted node does not report an end.
        Ending::Aborted => None,
    }
}

/// Splits points into batches of at most `most` rows. Windows are not split.
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

/// Runs a sink until its inputs have ended, and its own queue is delivered or saved. Passes all points on.
pub(crate) async fn deliver(
    mut sink: Sink,
    mut inputs: Inputs,
    mut outputs: Outputs,
    ending: impl Fn() -> Ending,
    abort: impl Fn(),
    report: impl Fn(&Barrier, &dyn Fn() -> Option<State>),
) -> Option<State> {
    let mut out = Vec::new();
    let aborted = || ending() == Ending::Aborted;
    loop {
        let sent = match inputs.next().await {
            Arrival::FlowElement(_, sent) => sent,
            Arrival::Watermark(watermark) => {
                let _ = outputs.send(Element::Watermark(watermark)).await;
                continue;
            }
            Arrival::Barrier(barrier) => {
                report(&barrier, &|| sink.save());
                let _ = outputs.send(Element::Barrier(barrier)).await;
                continue;
            }
            Arrival::Ended => break,
        };
        let mut body = sink.next(&sent.flow);
        body.pending = Some(sent.pending.clone());
        let taken = sink.queue.push(body, sink.overflow, aborted).await;
        if !taken && sink.overflow == Overflow::Abort {
            abort();
        }
        out.push(sent.flow);
        send(&mut out, &sent.pending, sent.load.as_ref(), &mut outputs).await;
    }
    let queue = sink.own_queue()?;
    if aborted() {
        queue.discard();
        return None;
    }
    // The following nodes need not wait for the sink's receiver.
    drop(outputs);
    queue.drained().await;
    sink.save()
}
