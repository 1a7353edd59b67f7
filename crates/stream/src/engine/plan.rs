//! From a pipeline to edges and nodes that are ready to run.

use super::entrance::Entrance;
use super::saved::SavedTask;
use super::task::{EdgeParts, NodeParts, Task};
use super::wants::Wants;
use super::{EngineState, TaskOptions};
use crate::node::aggregate::Aggregate;
use crate::node::alert::{Alert, Handler};
use crate::node::body::{Inputs, Outputs, Sink};
use crate::node::buffer::Buffer;
use crate::node::default::Default;
use crate::node::derivative::Derivative;
use crate::node::derive::{Eval, From, Where};
use crate::node::faults::Faults;
use crate::node::group::GroupBy;
use crate::node::http_out::{HttpOut, Latest};
use crate::node::http_post::HttpPost;
use crate::node::join::Join;
use crate::node::log::{self, Log};
use crate::node::queue::Counts;
use crate::node::stats::Stats;
use crate::node::union::Union;
use crate::node::window::Window;
use crate::node::{Kept, Operator};
use crate::pending::{Collector, Emitter, Parcel, Points};
use crate::pipeline::{self, Node, Pipeline, What};
use corsair::edge::{self, AbortHandle};
use parking_lot::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

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
    Sink(Sink),
}

/// Makes the edges and nodes of a pipeline.
pub(super) fn plan(
    shared: &EngineState,
    name: &str,
    pipeline: Pipeline,
    options: &TaskOptions,
    mut saved: Option<SavedTask>,
) -> (Arc<Task>, Plan) {
    let name: Arc<str> = name.into();
    let held = Arc::new(AtomicUsize::new(0));
    let nodes = pipeline.nodes();
    let (windows, regrouped) = (pipeline.windows(), regrouped(nodes));
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
        let kept = saved.as_mut().and_then(|saved| saved.take(at));
        let place = Place {
            of_windows: node.inputs.iter().any(|&input| windows[input]),
            of_stats: node
                .inputs
                .iter()
                .any(|&input| matches!(nodes[input].what, What::Stats { .. })),
            regrouped: regrouped[at],
        };
        let (node_work, mut node_parts) = make(shared, &name, node, place, kept);
        work.push(node_work);
        let mut feeding = Vec::new();
        if let Some(wants) = Wants::of(&node.what) {
            let (collector, emitter) = connect();
            edges.push(EdgeParts {
                from: None,
                to: at,
                meter: emitter.meter(),
            });
            let entrance = Entrance::new(
                wants,
                name.clone(),
                collector,
                options.overflow,
                held.clone(),
                shared.options.task_memory,
            );
            let over_memory = entrance.over_memory.clone();
            node_parts.counters.push(("over_task_memory", over_memory));
            entrances.push(Arc::new(entrance));
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
        parts.push(node_parts);
    }
    let running = AtomicUsize::new(nodes.len());
    let task = Arc::new(Task {
        name,
        options: *options,
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

/// What a node must know of those before and behind it.
#[derive(Clone, Copy)]
struct Place {
    /// It is fed windows.
    of_windows: bool,
    /// It is fed counts of points.
    of_stats: bool,
    /// A `groupBy` follows somewhere.
    regrouped: bool,
}

/// Behind which nodes a `groupBy` follows somewhere.
fn regrouped(nodes: &[Node]) -> Vec<bool> {
    let mut regrouped = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let groups = regrouped[at] || matches!(node.what, What::GroupBy(_));
        for &input in &node.inputs {
            regrouped[input] |= groups;
        }
    }
    regrouped
}

/// A node's work, and what others see of it. It goes on from what was kept.
fn make(
    shared: &EngineState,
    task: &str,
    node: &Node,
    place: Place,
    kept: Option<Kept>,
) -> (Work, NodeParts) {
    let name = format!("{task}:{}", node.name);
    let limits = shared.options.limits();
    let faults = Faults::new(name.clone());
    let mut parts = NodeParts::new();
    let errors = |faults: &Faults| vec![("errors", faults.counter())];
    let mut operator: Box<dyn Operator> = match &node.what {
        What::From { .. } => Box::new(From),
        What::Where(condition) => {
            parts.counters = errors(&faults);
            Box::new(Where {
                condition: condition.clone(),
                faults: faults.clone(),
            })
        }
        What::GroupBy(by) => Box::new(GroupBy::new(by.clone(), place.regrouped, limits)),
        What::Window { period, every } => {
            let window = Window::new(*period, *every, limits);
            parts.counters = window.counters();
            Box::new(window)
        }
        What::Buffer(buffer) => {
            let buffer = Buffer::new(buffer, limits);
            parts.counters = buffer.counters();
            Box::new(buffer)
        }
        What::Aggregate {
            function,
            field,
            into,
            point_times,
        } => {
            let aggregate = Aggregate {
                function: *function,
                field: field.clone(),
                into: into.clone(),
                point_times: *point_times,
                faults: faults.clone(),
                moments: (!place.of_windows).then(|| Buffer::moments(limits)),
            };
            parts.counters = aggregate.counters();
            Box::new(aggregate)
        }
        What::Eval(eval) => {
            parts.counters = errors(&faults);
            Box::new(Eval {
                eval: eval.clone(),
                faults: faults.clone(),
            })
        }
        What::Default { fields, tags } => Box::new(Default {
            fields: fields.clone(),
            tags: tags.clone(),
        }),
        What::Derivative {
            field,
            into,
            unit,
            non_negative,
        } => {
            let names = (field.clone(), into.clone());
            let derivative = Derivative::new(
                names,
                *unit,
                *non_negative,
                !place.of_stats,
                limits,
                faults.clone(),
            );
            parts.counters = derivative.counters();
            Box::new(derivative)
        }
        What::Stats { interval, align } => {
            let stats = Stats::new(*interval, *align, limits, &shared.io);
            parts.counters = stats.counters();
            Box::new(stats)
        }
        What::Union { rename } => {
            let union = Union::new(rename.clone(), node.inputs.len(), limits);
            parts.counters = union.counters();
            Box::new(union)
        }
        What::Join(join) => {
            let join = Join::new(join.clone(), limits);
            parts.counters = join.counters();
            Box::new(join)
        }
        What::Alert(alert) => {
            let handlers = handlers(shared, &name, alert);
            parts.queues = handlers
                .iter()
                .map(|handler| handler.queue.clone())
                .collect();
            let alert = Alert::new(alert, task.into(), limits, handlers, faults.clone());
            parts.counters = alert.counters();
            Box::new(alert)
        }
        What::Log { prefix } => {
            let log = Log::new(match &**prefix {
                "" => format!("{name} "),
                prefix => format!("{prefix} "),
            });
            parts.counters = log.counters();
            let queue = shared.log.clone();
            let overflow = shared.options.log_overflow;
            let sink = Sink::Log {
                log,
                queue,
                overflow,
            };
            return (Work::Sink(sink), parts);
        }
        What::HttpOut { .. } => {
            let latest = parts.latest.insert(Latest::new(limits));
            parts.counters = latest.counters();
            Box::new(HttpOut(latest.clone()))
        }
        What::HttpPost { url } => {
            let options = &shared.options;
            let (timeout, memory) = (options.post_timeout, options.sink_memory);
            let poster = HttpPost::new(name, url.clone(), timeout, memory);
            parts.counters = poster.counters();
            parts.queues.push(poster.queue().clone());
            if let Some(kept) = kept {
                poster.restore(kept);
            }
            return (Work::Sink(Sink::Post(poster)), parts);
        }
    };
    parts.faults = Some(faults);
    if let Some(kept) = kept {
        operator.restore(kept);
    }
    (Work::Operate(operator), parts)
}

/// Where the alerts of a node go.
fn handlers(shared: &EngineState, name: &str, alert: &pipeline::Alert) -> Vec<Handler> {
    let options = &shared.options;
    let files = alert.logs.iter().map(|path| Handler {
        queue: log::file(name.into(), path.as_ref().into(), options.sink_memory),
        counts: Counts::default(),
    });
    let receivers = alert.posts.iter().map(|url| {
        let (timeout, memory) = (options.post_timeout, options.sink_memory);
        let poster = HttpPost::new(name.into(), url.clone(), timeout, memory);
        Handler {
            queue: poster.queue().clone(),
            counts: Counts::default(),
        }
    });
    files.chain(receivers).collect()
}
