//! From a pipeline to edges and nodes that are ready to run.

use super::routes::{Entrance, Wants};
use super::task::{EdgeParts, NodeParts, Task};
use super::{Shared, TaskOptions};
use crate::node::aggregate::Aggregate;
use crate::node::alert::Alert;
use crate::node::body::{Inputs, Outputs};
use crate::node::derive::{Eval, From, Where};
use crate::node::group::GroupBy;
use crate::node::join::Join;
use crate::node::sink::{HttpOut, HttpPost, Latest, Log};
use crate::node::window::Window;
use crate::node::{Counter, Operator};
use crate::passage::{Collector, Emitter, Parcel, Points};
use crate::pipeline::{Node, Pipeline, What};
use corsair::edge::{self, AbortHandle};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, Notify};

/// A task whose nodes have yet to be started.
pub(super) struct Plan {
    pub(super) task: Arc<Task>,
    pub(super) nodes: Vec<Ready>,
}

/// A node that is ready to run.
pub(super) struct Ready {
    pub(super) work: Work,
    pub(super) inputs: Inputs,
    pub(super) outputs: Outputs,
}

/// What a node does.
pub(super) enum Work {
    Operate(Box<dyn Operator>),
    Post(HttpPost),
}

/// Makes the edges and nodes of a pipeline.
pub(super) fn plan(
    shared: &Shared,
    name: &str,
    pipeline: Pipeline,
    options: &TaskOptions,
) -> (Arc<Task>, Plan) {
    let nodes = pipeline.nodes();
    let abort = AbortHandle::new();
    let connect = || {
        edge::ring_weighed::<Parcel, Points>(
            edge::Options::new(options.capacity.get())
                .overflow(options.overflow)
                .abort_handle(abort.clone()),
        )
    };
    let mut parts = Vec::with_capacity(nodes.len());
    let mut work = Vec::with_capacity(nodes.len());
    let mut inputs: Vec<Vec<Emitter>> = Vec::with_capacity(nodes.len());
    let mut outputs: Vec<Vec<Collector>> = nodes.iter().map(|_| Vec::new()).collect();
    let mut edges = Vec::new();
    let mut entrances = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let (node_work, node_parts) = make(shared, name, node);
        work.push(node_work);
        parts.push(node_parts);
        let mut feeding = Vec::new();
        if let Some(wants) = Wants::of(&node.what) {
            let (collector, emitter) = connect();
            edges.push(EdgeParts {
                from: None,
                to: at,
                meter: emitter.meter(),
            });
            entrances.push(Arc::new(Entrance {
                wants,
                edge: Mutex::new(Some(collector)),
            }));
            feeding.push(emitter);
        }
        for &from in &node.inputs {
            let (collector, emitter) = connect();
            edges.push(EdgeParts {
                from: Some(from),
                to: at,
                meter: emitter.meter(),
            });
            outputs[from].push(collector);
            feeding.push(emitter);
        }
        inputs.push(feeding);
    }
    let running = AtomicUsize::new(nodes.len());
    let task = Arc::new(Task {
        name: name.into(),
        pipeline,
        nodes: parts,
        edges,
        abort,
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

/// A node's work, and what others see of it.
fn make(shared: &Shared, task: &str, node: &Node) -> (Work, NodeParts) {
    let mut latest = None;
    let operator: Box<dyn Operator> = match &node.what {
        What::From { .. } => Box::new(From),
        What::Where(condition) => Box::new(Where(condition.clone())),
        What::GroupBy(tags) => Box::new(GroupBy::new(tags.clone())),
        What::Window { period, every } => Box::new(Window::new(*period, *every)),
        What::Aggregate {
            function,
            field,
            into,
        } => Box::new(Aggregate {
            function: *function,
            field: field.clone(),
            into: into.clone(),
        }),
        What::Eval(expressions) => Box::new(Eval(expressions.clone())),
        What::Join {
            prefixes,
            tolerance,
        } => Box::new(Join::new(prefixes.clone(), *tolerance)),
        What::Alert(alert) => Box::new(Alert::new(alert, format!("{task}:{}", node.name))),
        What::Log { prefix } => Box::new(Log {
            prefix: match &**prefix {
                "" => format!("{task}:{} ", node.name),
                prefix => format!("{prefix} "),
            },
            target: shared.options.log.clone(),
            lost: Counter::default(),
        }),
        What::HttpOut { .. } => {
            let shown = latest.insert(Latest::default());
            Box::new(HttpOut(shown.clone()))
        }
        What::HttpPost { url } => {
            let poster = HttpPost::new(url.clone());
            let counters = poster.counters();
            return (Work::Post(poster), NodeParts { counters, latest });
        }
    };
    let counters = operator.counters();
    (Work::Operate(operator), NodeParts { counters, latest })
}
