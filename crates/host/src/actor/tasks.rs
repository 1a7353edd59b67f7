//! The futures of one actor: its body and the futures that it has spawned, polled in the order of spawning.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// The maximum number of polls of one actor at one instant.
const MOST_POLLS: u32 = 1_000_000;

/// The future of an actor's body. The output is `None`, or the reason of a failure.
pub(crate) type Running = Pin<Box<dyn Future<Output = Option<String>> + Send>>;

/// A future that the body has spawned.
pub(super) type Spawned = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The result of polling the futures.
pub(super) enum Progress {
    /// No future can make progress at this instant.
    Waits,
    /// The body has returned.
    Ended(Option<String>),
    /// A future wakes itself endlessly at one instant.
    Endless,
}

/// The flag that a waker sets when its future must be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

struct Task<F> {
    future: F,
    flag: Arc<Flag>,
    waker: Waker,
}

impl<F> Task<F> {
    fn new(future: F) -> Task<F> {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        Task {
            future,
            waker: Waker::from(Arc::clone(&flag)),
            flag,
        }
    }
}

impl<T> Task<Pin<Box<dyn Future<Output = T> + Send>>> {
    /// Polls the future if it was woken. Returns `None` if it was not.
    fn poll(&mut self) -> Option<Poll<T>> {
        let is_woken = self.flag.0.swap(false, Ordering::Acquire);
        is_woken.then(|| {
            let mut context = Context::from_waker(&self.waker);
            self.future.as_mut().poll(&mut context)
        })
    }
}

/// The futures of an actor.
#[derive(Default)]
pub(super) struct Tasks {
    body: Option<Task<Running>>,
    spawned: Vec<Task<Spawned>>,
}

impl Tasks {
    /// Adds the future of a body, which is polled first.
    pub(super) fn begin(&mut self, body: Running) {
        self.body = Some(Task::new(body));
    }

    /// Drops all futures.
    pub(super) fn clear(&mut self) {
        drop(self.body.take());
        while let Some(task) = self.spawned.pop() {
            drop(task);
        }
    }

    /// Polls futures until none is woken. `take_spawned` returns the futures that they have spawned.
    pub(super) fn run(&mut self, take_spawned: impl Fn() -> Vec<Spawned>) -> Progress {
        for _ in 0..MOST_POLLS {
            let Some(body) = &mut self.body else {
                return Progress::Waits;
            };
            let mut polled = false;
            match body.poll() {
                Some(Poll::Ready(outcome)) => return Progress::Ended(outcome),
                Some(Poll::Pending) => polled = true,
                None => {}
            }
            self.spawned.retain_mut(|task| match task.poll() {
                Some(Poll::Ready(())) => {
                    polled = true;
                    false
                }
                Some(Poll::Pending) => {
                    polled = true;
                    true
                }
                None => true,
            });
            let new = take_spawned();
            if new.is_empty() && !polled {
                return Progress::Waits;
            }
            self.spawned.extend(new.into_iter().map(Task::new));
        }
        Progress::Endless
    }
}
