//! A fixed pool of OS threads that runs any number of actors.
//!
//! Actors that have something to do lie in one run queue, each at most once. A worker takes one,
//! polls it until it waits, and takes the next. Its [`Turn`] says who may queue it.

mod turn;

use super::runtime::{Handle, Life, Runtime};
use super::stack;
use super::system::System;
use super::{launch, nothing};
use crate::contract::{Addr, Config, Executor, Message, Report, RunError, Scenario};
use crate::sync::lock;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{Builder, JoinHandle};
use turn::Turn;

/// Runs a scenario on [`Config::workers`] threads. The calling thread waits until it is over.
pub(crate) fn run<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let (ready, queue) = unbounded();
    let pool = Pool {
        ready,
        quit: Arc::new(AtomicBool::new(false)),
    };
    let mut workers = Vec::new();
    for number in 0..config.workers.get() {
        match start_worker(
            number,
            stack::of_worker::<M>(),
            queue.clone(),
            pool.quit.clone(),
        ) {
            Ok(worker) => workers.push(worker),
            Err(source) => {
                pool.dismiss(workers, &queue);
                return Err(RunError::Thread {
                    source,
                    report: nothing(Executor::Pool, config),
                });
            }
        }
    }
    launch(
        Executor::Pool,
        config,
        Runtime::Pool(pool.clone()),
        scenario,
        |system: &Arc<System<M>>| {
            pool.dismiss(workers, &queue);
            for who in (0..system.spawned()).map(Addr) {
                let cell = system.cells.get(who.0);
                if let Some(job) = cell.and_then(|cell| cell.handle.get()) {
                    let life = lock(&job.life).take();
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(life))) {
                        system.note_late_panic(who, panic);
                    }
                }
            }
        },
    )
}

/// The run queue's end for actors that become ready.
#[derive(Clone)]
pub(super) struct Pool {
    ready: Sender<Work>,
    quit: Arc<AtomicBool>,
}

/// What a worker takes out of the run queue.
enum Work {
    Poll(Arc<Job>),
    /// Nothing; look whether to quit.
    Look,
}

/// An actor's life in the pool.
pub(super) struct Job {
    turn: Turn,
    /// `None` when it is over. Only the worker that has taken the job locks it.
    life: Mutex<Option<Life>>,
    ready: Arc<Sender<Work>>,
}

/// Begins lives. They share its end of the run queue, so that not every worker counts its actors in the
/// same place.
pub(super) struct Starter(Arc<Sender<Work>>);

impl Starter {
    /// Queues a life, and leaves its job in the handle.
    pub(super) fn start(&self, handle: &Handle, life: Life) {
        let job = Arc::new(Job {
            turn: Turn::queued(),
            life: Mutex::new(Some(life)),
            ready: self.0.clone(),
        });
        handle.get_or_init(|| job).queue();
    }
}

impl Pool {
    pub(super) fn starter(&self) -> Starter {
        Starter(Arc::new(self.ready.clone()))
    }

    /// Lets the workers finish what they are at, and forgets what was queued.
    fn dismiss(&self, workers: Vec<JoinHandle<()>>, queue: &Receiver<Work>) {
        self.quit.store(true, Relaxed);
        for _ in &workers {
            // Cannot fail: this thread holds a receiver.
            let _ = self.ready.send(Work::Look);
        }
        for worker in workers {
            // A worker catches the panics of actors and has none of its own.
            let _ = worker.join();
        }
        queue.try_iter().for_each(drop);
    }
}

fn start_worker(
    number: usize,
    stack: usize,
    queue: Receiver<Work>,
    quit: Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    Builder::new()
        .name(format!("corsair-{number}"))
        .stack_size(stack)
        .spawn(move || {
            for work in queue {
                if quit.load(Relaxed) {
                    return;
                }
                if let Work::Poll(job) = work {
                    job.poll();
                }
            }
        })
}

impl Job {
    /// Polls the life once. Only for who has taken the job out of the queue.
    fn poll(self: Arc<Job>) {
        self.turn.begin();
        let waker = Waker::from(self.clone());
        let mut life = lock(&self.life);
        let Some(future) = life.as_mut() else { return };
        if future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            *life = None;
            return;
        }
        drop(life);
        if self.turn.end() {
            self.queue();
        }
    }

    fn queue(self: &Arc<Job>) {
        // Fails only when the run is over.
        let _ = self.ready.send(Work::Poll(self.clone()));
    }
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.turn.wake() {
            self.queue();
        }
    }
}
