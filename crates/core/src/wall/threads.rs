//! One OS thread and one mailbox for each actor, for as many actors as the system has threads.
//!
//! A thread polls its actor's body, and parks while the actor waits. Stacks are small ([`STACK`]), and only the used
//! part of a stack takes memory.

use super::boxed::Life;
use super::limit;
use super::stack;
use crate::sync::lock;
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The size of an actor's stack in bytes, if its messages and its body are small.
const STACK: usize = 256 * 1024;

pub(super) struct Threads {
    running: Arc<Running>,
    limit: u64,
    /// The stack size of a thread without its body.
    stack: usize,
}

/// The number of running threads.
#[derive(Default)]
pub(super) struct Running {
    count: Mutex<u64>,
    none: Condvar,
}

impl Running {
    fn add(&self, change: i64) {
        let mut count = lock(&self.count);
        *count = count.saturating_add_signed(change);
        if *count == 0 {
            self.none.notify_all();
        }
    }

    /// Calls `wake`, and waits for up to `patience` until all threads have ended. Returns true if they have.
    pub(super) fn wait(&self, patience: Duration, wake: impl FnOnce()) -> bool {
        wake();
        let count = lock(&self.count);
        let waiting = |count: &mut u64| *count > 0;
        match self.none.wait_timeout_while(count, patience, waiting) {
            Ok((count, _)) => *count == 0,
            Err(poisoned) => *poisoned.into_inner().0 == 0,
        }
    }
}

/// Counts a thread as running until it is dropped.
struct RunningGuard(Arc<Running>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

impl Threads {
    /// Creates the runtime. Each thread's stack has `for_messages` additional bytes for messages.
    pub(super) fn new(for_messages: usize) -> Threads {
        Threads {
            running: Arc::default(),
            limit: limit::threads(),
            stack: STACK + for_messages,
        }
    }

    /// Returns the counter of running threads.
    pub(super) fn running(&self) -> Arc<Running> {
        self.running.clone()
    }

    /// Returns the maximum number of threads.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Starts a life on a thread with this name.
    pub(super) fn start(&self, name: String, life: Life) -> io::Result<()> {
        self.running.add(1);
        let counted = RunningGuard(self.running.clone());
        // A thread's name must not contain a zero byte.
        let name = name.replace('\0', "?");
        let stack = self.stack + stack::for_life(size_of_val(&*life));
        let body = move || {
            run_to_end(life);
            drop(counted);
        };
        thread::Builder::new()
            .name(name)
            .stack_size(stack)
            .spawn(body)
            .map(drop)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    /// The time at which this thread's actor is woken, with its waker.
    static ALARM: RefCell<Option<(Instant, Waker)>> = const { RefCell::new(None) };
}

/// Polls a life to its end, parking the thread while it waits.
fn run_to_end(mut life: Life) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut task = Context::from_waker(&waker);
    while life.as_mut().poll(&mut task).is_pending() {
        let Some(due) = ALARM.with_borrow(|alarm| alarm.as_ref().map(|(due, _)| *due)) else {
            thread::park();
            continue;
        };
        thread::park_timeout(due.saturating_duration_since(Instant::now()));
        if Instant::now() >= due
            && let Some((_, waker)) = ALARM.take()
        {
            waker.wake();
        }
    }
}

/// Makes the actor's own thread wake at this time.
pub(super) fn wake_at(due: Instant, task: Waker) {
    ALARM.set(Some((due, task)));
}
