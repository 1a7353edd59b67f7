//! The workers of a simulation except the first, which is the caller's thread.

use crate::contract::{Config, Executor, Message, Report, RunError};
use crate::sync::lock;
use crate::virtual_time::engine::{End, PausableShard};
use crate::virtual_time::exchange::{Alone, Exchange, Matrix, Port, Reduction};
use crate::virtual_time::loans::Loan;
use crate::virtual_time::outbox::ShardBatch;
use crate::virtual_time::pause::Before;
use crate::virtual_time::shard::Shard;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

type Cargo<M> = ShardBatch<M, Shard<M>>;
type SharedPort<M> = Port<Cargo<M>, Arc<Matrix<Cargo<M>>>>;

/// The threads of workers; see the [module](self).
pub(super) struct WorkerThreads<M: Message> {
    meeting: FirstExchange<M>,
    workers: Vec<Worker>,
}

/// The first worker's side of the exchange.
enum FirstExchange<M> {
    Alone,
    Port(SharedPort<M>),
}

impl<M> Exchange<Cargo<M>> for FirstExchange<M> {
    fn exchange(
        &mut self,
        contribution: Reduction,
        out: &mut [Cargo<M>],
        inbox: &mut [Cargo<M>],
        idle: impl FnMut() -> bool,
    ) -> Reduction {
        match self {
            FirstExchange::Alone => Alone.exchange(contribution, out, inbox, idle),
            FirstExchange::Port(port) => port.exchange(contribution, out, inbox, idle),
        }
    }

    fn lend<E>(&mut self, mine: *mut E) -> Loan<E> {
        match self {
            FirstExchange::Alone => Exchange::<Cargo<M>>::lend(&mut Alone, mine),
            FirstExchange::Port(port) => port.lend(mine),
        }
    }

    fn give_back(&mut self) {
        match self {
            FirstExchange::Alone => {}
            FirstExchange::Port(port) => port.give_back(),
        }
    }
}

/// A thread that waits for the next time up to which it should run.
struct Worker {
    orders: Option<Sender<Before>>,
    ends: Receiver<End>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Dropping the sender ends the loop of the thread.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // An error means that the engine panicked; the panic hook has already printed the message.
            let _ = thread.join();
        }
    }
}

impl<M: Message> WorkerThreads<M> {
    /// Starts a thread for each shard but the first.
    pub(super) fn new(
        config: &Config,
        shards: &[Arc<Mutex<PausableShard<M>>>],
    ) -> Result<WorkerThreads<M>, RunError> {
        if shards.len() == 1 {
            return Ok(WorkerThreads {
                meeting: FirstExchange::Alone,
                workers: Vec::new(),
            });
        }
        let (seed, matrix) = (config.seed, Arc::new(Matrix::new(shards.len())));
        let mut workers = Vec::new();
        for (index, shard) in shards.iter().enumerate().skip(1) {
            let (orders, orders_receiver) = channel::<Before>();
            let (ends_sender, ends) = channel();
            let (shard, config) = (Arc::clone(shard), config.clone());
            let mut port = Port::new(Arc::clone(&matrix), index);
            let work = move || {
                for pause in orders_receiver {
                    let end = lock(&shard).go(&config, &mut port, pause);
                    if ends_sender.send(end).is_err() {
                        return;
                    }
                }
            };
            let thread = std::thread::Builder::new().name(format!("shard {index}"));
            match thread.spawn(work) {
                Ok(thread) => workers.push(Worker {
                    orders: Some(orders),
                    ends,
                    thread: Some(thread),
                }),
                Err(source) => {
                    let report = Box::new(Report {
                        executor: Executor::Virtual,
                        seed,
                        workers: index,
                        ..Report::default()
                    });
                    return Err(RunError::Thread { source, report });
                }
            }
        }
        Ok(WorkerThreads {
            meeting: FirstExchange::Port(Port::new(matrix, 0)),
            workers,
        })
    }

    /// Lets all workers run until the run ends or pauses.
    pub(super) fn go(
        &mut self,
        config: &Config,
        shards: &[Arc<Mutex<PausableShard<M>>>],
        pause: Before,
    ) -> End {
        for worker in &self.workers {
            if let Some(orders) = &worker.orders {
                // If the worker's thread is gone, the barrier is already abandoned, which ends the run.
                let _ = orders.send(pause);
            }
        }
        let end = lock(&shards[0]).go(config, &mut self.meeting, pause);
        for worker in &mut self.workers {
            if worker.ends.recv().is_err()
                && let Some(Err(panic)) = worker.thread.take().map(JoinHandle::join)
            {
                std::panic::resume_unwind(panic);
            }
        }
        end
    }
}
