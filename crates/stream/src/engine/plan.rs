//! Builds edges and nodes from a pipeline.

use super::command::{Plan, Ready};
use super::entrance::{Entrance, TaskBytes};
use super::options::TaskOptions;
use super::saved::SavedTask;
use super::state::EngineState;
use super::task::{EdgeParts, NodeParts, Task, TaskOrigin};
use crate::node::body::Inputs;
use crate::node::definition::{Context, Delivery, Work};
use crate::node::faults::Faults;
use crate::pending::{Element, Points, Receiver, Sender};
use crate::pipeline::{Node, Pipeline};
use corsair::edge::{self, AbortHandle};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// Builds the edges and nodes of a pipeline.
pub(super) fn plan(
    shared: &EngineState,
    name: &str,
    pipeline: Pipeline,
    options: &TaskOptions,
    origin: &TaskOrigin,
    mut saved: Option<SavedTask>,
) -> (Arc<Task>, Plan) {
    let created = saved.as_ref().map_or(origin.created, |saved| saved.created);
    let since = Arc::new(AtomicU64::new(origin.since));
    let name: Arc<str> = name.into();
    let held = TaskBytes::default();
    let nodes = pipeline.nodes();
    let (windows, regrouped) = (pipeline.windows(), regrouped(nodes));
    let abort = AbortHandle::new();
    let connect = || {
        edge::ring_weighed::<Element, Points>(
            edge::Options::new(options.capacity.get())
                .overflow(options.overflow)
                .abort_handle(abort.clone()),
        )
    };
    let mut parts = Vec::with_capacity(nodes.len());
    let mut work = Vec::with_capacity(nodes.len());
    let mut inputs: Vec<Vec<Receiver>> = Vec::with_capacity(nodes.len());
    let mut outputs: Vec<Vec<Sender>> = nodes.iter().map(|_| Vec::new()).collect();
    let mut edges = Vec::new();
    let mut entrances = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let faults = Faults::new(format!("{name}:{}", node.name));
        let context = Context {
            task: name.clone(),
            created,
            file_lengths: &origin.files,
            name: format!("{name}:{}", node.name),
            inputs: node
                .inputs
                .iter()
                .map(|&input| &nodes[input].what)
                .collect(),
            of_windows: node.inputs.iter().any(|&input| windows[input]),
            regrouped: regrouped[at],
            limits: shared.options.limits(),
            faults: faults.clone(),
            delivery: Delivery {
                timeout: shared.options.post_timeout,
                memory: shared.options.sink_memory,
                overflow: options.overflow,
                log: &shared.log,
                log_overflow: shared.options.log_overflow,
                endpoints: &shared.options.endpoints,
                disk: shared.options.sink_disk.as_ref(),
            },
            io: &shared.io,
        };
        let mut built = node.what.definition().build(&context);
        if let Some(state) = saved.as_mut().and_then(|saved| saved.take(at)) {
            match &mut built.work {
                Work::Operate(operator) => operator.restore(&state),
                Work::Deliver(sink) => sink.restore(&state),
            }
        }
        let mut node_parts = NodeParts {
            counters: built.counters,
            faults: matches!(built.work, Work::Operate(_)).then_some(faults),
            latest: built.latest,
            queues: built.queues,
        };
        work.push(built.work);
        let mut feeding = Vec::new();
        if let Some(wanted) = node.what.definition().subscription() {
            let (sender, receiver) = connect();
            edges.push(EdgeParts {
                from: None,
                to: at,
                meter: receiver.meter(),
            });
            let entrance = Entrance::new(
                wanted.selection(),
                name.clone(),
                sender,
                options.overflow,
                held.clone(),
                shared.options.task_memory,
                since.clone(),
            );
            let over_memory = entrance.over_memory.clone();
            node_parts.counters.push(("over_task_memory", over_memory));
            entrances.push(Arc::new(entrance));
            feeding.push(receiver);
        }
        for &from in &node.inputs {
            let (sender, receiver) = connect();
            edges.push(EdgeParts {
                from: Some(from),
                to: at,
                meter: receiver.meter(),
            });
            outputs[from].push(sender);
            feeding.push(receiver);
        }
        inputs.push(feeding);
        parts.push(node_parts);
    }
    let running = AtomicUsize::new(nodes.len());
    let task = Arc::new(Task {
        name,
        origin: TaskOrigin {
            created,
            ..origin.clone()
        },
        since,
        kept: Mutex::new(Vec::new()),
        pipeline,
        nodes: parts,
        edges,
        abort,
        log: shared.log.clone(),
        running,
        failure: OnceLock::new(),
        end: Notify::new(),
        entrances,
    });
    let nodes = work.into_iter().zip(inputs).zip(outputs);
    let plan = Plan {
        task: task.clone(),
        nodes: nodes
            .map(|((work, inputs), outputs)| Ready {
                work,
                inputs: Inputs::new(inputs),
                outputs: outputs.into_iter().collect(),
            })
            .collect(),
    };
    (task, plan)
}

/// Returns, for each node, true if a node that groups points follows it.
fn regrouped(nodes: &[Node]) -> Vec<bool> {
    let mut regrouped = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let groups = regrouped[at] || node.what.definition().regroups();
        for &input in &node.inputs {
            regrouped[input] |= groups;
        }
    }
    regrouped
}
