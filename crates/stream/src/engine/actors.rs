//! The actors of an engine: the root, the gate by which it hears of the outside, and the nodes.

use super::plan::{Plan, Ready, Work};
use super::task::Task;
use super::{Shared, lock};
use crate::node::{NodeError, body};
use crate::passage::Passages;
use corsair::edge::{self, Collector, Emitter};
use corsair::{
    Addr, AsyncContext, Config, Event, Message, Reason, Report, RunError, Scenario, Spawn,
};
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex as Lock, Weak};
use std::thread::{self, JoinHandle};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// What the root is told from outside. There is no digest on the wall clock.
#[derive(Message)]
#[message(skip)]
pub(super) enum Command {
    /// Start the nodes of a task.
    Start(Plan),
    /// End the run. All tasks have ended.
    End,
}

/// The way to the root for anybody.
#[derive(Debug)]
pub(super) struct Commands(Mutex<Collector<Command>>);

impl Commands {
    /// Gives a command to the root. Does nothing when the run is over.
    pub(super) async fn give(&self, command: Command) {
        let _ = self.0.lock().await.collect(command).await;
    }
}

pub(super) fn commands() -> (Commands, Emitter<Command>) {
    let (collector, emitter) = edge::ring(edge::Options::new(64));
    (Commands(Mutex::new(collector)), emitter)
}

/// Starts the run on a thread of its own.
pub(super) fn run(
    shared: &Arc<Shared>,
    commands: Emitter<Command>,
) -> io::Result<JoinHandle<Result<Report, RunError>>> {
    let executor = shared.options.executor;
    let config = Config {
        workers: shared.options.workers,
        ..Config::default()
    };
    // The run does not keep the engine: dropped by everybody else, it ends the run.
    let engine = Arc::downgrade(shared);
    let scenario = Root {
        engine: engine.clone(),
        commands,
        io: shared.io.clone(),
        passages: shared.passages.clone(),
    };
    thread::Builder::new()
        .name("corsair-stream".into())
        .spawn(move || {
            let report = corsair::run(executor, &config, scenario);
            if let (Err(error), Some(engine)) = (&report, engine.upgrade()) {
                for task in engine.tasks() {
                    task.lost(&error.to_string());
                }
            }
            report
        })
}

struct Root {
    engine: Weak<Shared>,
    commands: Emitter<Command>,
    io: Handle,
    passages: Passages,
}

impl Scenario<Command> for Root {
    async fn root<C: AsyncContext<Command>>(self, mut cx: C) {
        let Root {
            engine,
            commands,
            io,
            passages,
        } = self;
        let root = cx.me();
        cx.spawn_one("gate", move |cx| gate(cx, root, commands))
            .await;
        // Which node of which task an actor is.
        let mut nodes: HashMap<Addr, (Arc<Task>, usize)> = HashMap::new();
        loop {
            match cx.recv().await {
                Event::Message {
                    body: Command::Start(Plan { task, nodes: ready }),
                    ..
                } => {
                    let (spawn, make) = bodies::<C>(&task, ready, io.clone(), passages.clone());
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

/// Hands what comes from outside to the root as messages, among which it also hears of its nodes.
async fn gate<C: AsyncContext<Command>>(mut cx: C, root: Addr, mut commands: Emitter<Command>) {
    while let Some(command) = commands.emit().await {
        cx.send(root, command);
        // Lets the message out before the next wait.
        cx.yield_now().await;
    }
    // The engine is gone.
    cx.send(root, Command::End);
}

/// The life of a node.
type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How to spawn the nodes of a task.
fn bodies<C: AsyncContext<Command>>(
    task: &Arc<Task>,
    ready: Vec<Ready>,
    io: Handle,
    passages: Passages,
) -> (Spawn, impl Fn(C, u32) -> Body + Send + Sync + 'static) {
    let names = task.pipeline.nodes().iter();
    let names: Vec<String> = names
        .map(|node| format!("{}:{}", task.name, node.name))
        .collect();
    let ready: Vec<Lock<Option<Ready>>> = ready.into_iter().map(|r| Lock::new(Some(r))).collect();
    let task = task.clone();
    let make = move |_: C, at: u32| {
        let at = at as usize;
        let ready = lock(&ready[at]).take().expect("each body is made once");
        let body = node(task.clone(), at, ready, io.clone(), passages.clone());
        Box::pin(body) as Body
    };
    (Spawn::named(names.into()).watched(), make)
}

/// The body of a node's actor.
async fn node(task: Arc<Task>, at: usize, ready: Ready, io: Handle, passages: Passages) {
    let Ready {
        work,
        inputs,
        outputs,
    } = ready;
    let done = match work {
        Work::Operate(operator) => {
            let aborted = || task.abort.is_aborted();
            body::operate(operator, inputs, outputs, aborted, || passages.begin()).await
        }
        Work::Post(poster) => {
            let done = body::post(poster, inputs, outputs, io).await;
            done.map_err(|_| NodeError::Panicked)
        }
    };
    if let Err(error) = done {
        task.fail(at, error);
    }
}
