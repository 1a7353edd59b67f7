//! A fixed pool of OS threads that runs any number of actors.
//!
//! Actors that are ready are in one run queue, each at most once. A worker takes an actor from the queue, polls it
//! until it waits, and takes the next one. The actor's [`Turn`] decides who may queue it.

mod turn;

use super::boxed::Life;
use crate::sync::lock;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Wake, Waker};
use std::thread::{Builder, JoinHandle};
use turn::Turn;

/// The handle by which an actor can be ended: its job in a pool; empty on other executors.
pub(super) type Handle = OnceLock<Arc<Job>>;

/// The sending side of the run queue, for actors that become ready.
pub(super) struct Pool {
    ready: Sender<Work>,
}

/// The workers of a pool.
pub(super) struct Crew {
    workers: Vec<JoinHandle<()>>,
    ready: Sender<Work>,
    queue: Receiver<Work>,
    quit: Arc<AtomicBool>,
}

/// An entry of the run queue.
enum Work {
    Poll(Arc<Job>),
    /// Contains no job, but makes a worker check whether it must end.
    Recheck,
}

/// An actor's life in the pool.
pub(super) struct Job {
    turn: Turn,
    /// `None` when the actor has ended. Only the worker that has taken the job from the queue locks this field.
    life: Mutex<Option<Life>>,
    ready: Arc<Sender<Work>>,
}

/// Starts lives. The lives of a group share one sending side of the run queue, so that workers do not all update the
/// same counter.
pub(super) struct Starter(Arc<Sender<Work>>);

impl Starter {
    /// Queues a life, and stores its job in the handle.
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
    /// Starts `workers` threads with stacks of `stack` bytes.
    pub(super) fn begin(workers: NonZeroUsize, stack: usize) -> io::Result<(Pool, Crew)> {
        let (ready, queue) = unbounded();
        let pool = Pool {
            ready: ready.clone(),
        };
        let mut crew = Crew {
            workers: Vec::new(),
            ready,
            queue,
            quit: Arc::default(),
        };
        for number in 0..workers.get() {
            if let Err(error) = crew.add(number, stack) {
                crew.dismiss();
                return Err(error);
            }
        }
        Ok((pool, crew))
    }

    /// Returns a starter, which can start many lives.
    pub(super) fn starter(&self) -> Starter {
        Starter(Arc::new(self.ready.clone()))
    }
}

impl Crew {
    fn add(&mut self, number: usize, stack: usize) -> io::Result<()> {
        let (queue, quit) = (self.queue.clone(), self.quit.clone());
        let work = move || {
            for work in queue {
                if quit.load(Relaxed) {
                    return;
                }
                if let Work::Poll(job) = work {
                    job.poll();
                }
            }
        };
        let thread = Builder::new()
            .name(format!("corsair-{number}"))
            .stack_size(stack);
        self.workers.push(thread.spawn(work)?);
        Ok(())
    }

    /// Lets the workers finish their current jobs, and drops the queued ones.
    pub(super) fn dismiss(self) {
        self.quit.store(true, Relaxed);
        for _ in &self.workers {
            // An error is impossible, because this thread holds a receiver.
            let _ = self.ready.send(Work::Recheck);
        }
        for worker in self.workers {
            // A worker catches the panics of actors, and has no panics of its own.
            let _ = worker.join();
        }
        self.queue.try_iter().for_each(drop);
    }
}

impl Job {
    /// Polls the life once. Only the worker that took the job out of the queue may call it.
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

    /// Drops the life. All workers have ended.
    pub(super) fn abandon(&self) {
        let life = lock(&self.life).take();
        drop(life);
    }

    fn queue(self: &Arc<Job>) {
        // An error means that the run is over.
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
