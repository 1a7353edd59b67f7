//! The actors of an engine: the root, the gate for messages from outside, and the nodes.

use super::command::{Command, Plan, Ready};
use super::state::EngineState;
use super::task::Task;
use crate::checkpoint::Barrier;
use crate::node::State;
use crate::node::body;
use crate::node::definition::Work;
use crate::node::operator::NodeError;
use crate::pending::PendingWrites;
use corsair::{Addr, AsyncContext, Config, Event, Reason, Report, RunError, Scenario, Spawn};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use tokio::sync::mpsc::UnboundedReceiver;

/// Starts the run on its own thread.
pub(super) fn run(
    shared: &Arc<EngineState>,
    commands: UnboundedReceiver<Command>,
) -> io::Result<JoinHandle<Result<Report, RunError>>> {
    let executor = shared.options.executor;
    let config = Config {
        workers: shared.options.workers,
        ..Config::default()
    };
    // The run does not keep the engine alive: when all other references are dropped, the run ends.
    let engine = Arc::downgrade(shared);
    let scenario = Root {
        engine: engine.clone(),
        commands,
        suspended: shared.suspended.clone(),
        pending_writes: shared.pending_writes.clone(),
    };
    thread::Builder::new()
        .name("corsair-stream".into())
        .spawn(move || {
            let report = corsair::run_on_wall_clock(executor, &config, scenario);
            if let (Err(error), Some(engine)) = (&report, engine.upgrade()) {
                for task in engine.tasks() {
                    task.lost(&error.to_string());
                }
            }
            report
        })
}

struct Root {
    engine: Weak<EngineState>,
    commands: UnboundedReceiver<Command>,
    suspended: Arc<AtomicBool>,
    pending_writes: PendingWrites,
}

impl Scenario<Command> for Root {
    async fn root<C: AsyncContext<Command>>(self, mut cx: C) {
        let Root {
            engine,
            commands,
            suspended,
            pending_writes,
        } = self;
        let root = cx.me();
        cx.spawn_one("gate", move |cx| gate(cx, root, commands))
            .await;
        // The task and the node index of each actor.
        let mut nodes: HashMap<Addr, (Arc<Task>, usize)> = HashMap::new();
        loop {
            match cx.recv().await {
                Event::Message {
                    body: Command::Start(Plan { task, nodes: ready }),
                    ..
                } => {
                    let (spawn, make) =
                        bodies::<C>(&task, ready, suspended.clone(), pending_writes.clone());
                    let actors = cx.spawn(spawn, make).await;
                    for at in 0..task.nodes.len() {
                        nodes.insert(actors.get(at as u32), (task.clone(), at));
                    }
                }
                Event::Message {
                    body: Command::End, ..
                } => return,
                Event::Down { who, reason } => {
                    let Some((task, at)) = nodes.remove(&who) else {
                        continue;
                    };
                    if reason == Reason::Panicked {
                        task.fail(at, NodeError::Panicked);
                    }
                    if task.node_ended()
                        && let Some(engine) = engine.upgrade()
                    {
                        engine.unsubscribe(&task);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Forwards commands to the root as messages.
async fn gate<C: AsyncContext<Command>>(
    mut cx: C,
    root: Addr,
    mut commands: UnboundedReceiver<Command>,
) {
    while let Some(command) = commands.recv().await {
        cx.send(root, command);
        // Sends the message before the next wait.
        cx.yield_now().await;
    }
    // The engine was dropped.
    cx.send(root, Command::End);
}

/// The future that runs a node.
type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns the bodies of a task's nodes, to be spawned together.
fn bodies<C: AsyncContext<Command>>(
    task: &Arc<Task>,
    ready: Vec<Ready>,
    suspended: Arc<AtomicBool>,
    pending_writes: PendingWrites,
) -> (Spawn, impl Fn(C, u32) -> Body + Send + Sync + 'static) {
    let names = task.pipeline.nodes().iter();
    let names: Vec<String> = names
        .map(|node| format!("{}:{}", task.name, node.name))
        .collect();
    let ready: Vec<Mutex<Option<Ready>>> = ready.into_iter().map(|r| Mutex::new(Some(r))).collect();
    let task = task.clone();
    let make = move |_: C, at: u32| {
        let at = at as usize;
        let ready = ready[at].lock().take().expect("each body is made once");
        let body = node(
            task.clone(),
            at,
            ready,
            suspended.clone(),
            pending_writes.clone(),
        );
        Box::pin(body) as Body
    };
    (Spawn::named(names.into()).watched(), make)
}

/// Runs as the body of a node's actor.
async fn node(
    task: Arc<Task>,
    at: usize,
    ready: Ready,
    suspended: Arc<AtomicBool>,
    pending_writes: PendingWrites,
) {
    let Ready {
        work,
        inputs,
        outputs,
    } = ready;
    let ending = || task.ending(suspended.load(Ordering::SeqCst));
    let report = |barrier: &Barrier, save: &dyn Fn() -> Option<State>| {
        barrier.report(&task.name, at, save);
    };
    let kept = match work {
        Work::Operate(operator) => {
            body::operate(
                operator,
                inputs,
                outputs,
                ending,
                || pending_writes.begin(),
                report,
            )
            .await
        }
        Work::Deliver(sink) => {
            body::deliver(sink, inputs, outputs, ending, || task.abort(), report).await
        }
    };
    if let Some(kept) = kept {
        task.kept.lock().push((at, kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Flow;
    use crate::engine::TaskOrigin;
    use crate::engine::{Engine, EngineOptions, TaskOptions, TaskState, Write, plan};
    use crate::language;
    use crate::line::Precision;
    use crate::node::Operator;

    struct Panics;

    impl Operator for Panics {
        fn take(&mut self, _: usize, _: Flow, _: &mut Vec<Flow>) {
            panic!("as the test wants it");
        }
    }

    // Guarantee: stream-6.
    #[tokio::test]
    async fn a_task_whose_node_panics_is_aborted_alone_with_the_reason() {
        let engine = Engine::start(EngineOptions::default()).unwrap();
        let text = "stream | from('m') | where(v > 0) | http_out('seen')";
        let options = TaskOptions::default();
        engine.add("good", text, options).await.unwrap();
        let shared = &engine.shared;
        let pipeline = language::parse(text).unwrap();
        let (task, mut plan) = plan::plan(
            shared,
            "bad",
            pipeline,
            &options,
            &TaskOrigin::default(),
            None,
        );
        plan.nodes[1].work = Work::Operate(Box::new(Panics));
        shared.tasks.write().insert("bad".into(), task.clone());
        shared.subscribe(&task);
        shared.commands.give(Command::Start(plan));
        let to = Write {
            database: "db".into(),
            policy: None,
            precision: Precision::Seconds,
        };
        engine.write(&to, b"m v=1 1\n").await.unwrap();
        task.ended().await;
        let state = engine.status("bad").unwrap().state;
        let TaskState::Failed { node, reason } = state else {
            panic!("it is {state:?}");
        };
        assert_eq!(node, "where1");
        assert!(reason.contains("panicked"), "{reason}");
        engine.write(&to, b"m v=2 2\n").await.unwrap();
        engine.drain().await;
        let good = engine.status("good").unwrap();
        assert_eq!(good.state, TaskState::Ended);
        assert_eq!(good.edges[2].statistics.received, 2);
        assert!(engine.close().await.unwrap().is_ok());
    }
}
