//! The life of an actor: its body is made, polled until it ends, and what it leaves is settled.
//!
//! **Foreign wakers.** A deadlock must not be reported while an actor waits for something outside
//! of the run, a socket say. So a body is polled with a waker of its own, the relay. The contexts
//! of this module's executors recognise it and register the task's own waker instead; anything else
//! that will wake the actor has to keep a clone of the relay. If there is no clone after a poll, only
//! a letter or a timer can wake the actor.

use super::system::{Cell, End, ROOT, System};
use crate::contract::report::panic_text;
use crate::contract::{Addr, Message, PanicReport, Panics, Reason};
use crate::sync::lock;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

/// The waker that a body is polled with.
#[derive(Default)]
struct Relay {
    task: OnceLock<Waker>,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

/// How a body came to its end.
enum Exit {
    Returned,
    Stopped,
    Panicked(String),
    /// The run was over before.
    Abandoned,
}

/// Lives the life of an actor.
pub(crate) async fn live<M, B>(
    system: Arc<System<M>>,
    who: Addr,
    cell: Arc<Cell<M>>,
    make: impl FnOnce() -> B,
) where
    M: Message,
    B: Future<Output = ()>,
{
    let exit = {
        let mut body = pin!(None);
        // Made in its place: a body held twice would double the size of this future.
        match catch_unwind(AssertUnwindSafe(|| body.set(Some(make())))) {
            Ok(()) => {
                let exit = poll_to_end(&system, &cell, body.as_mut()).await;
                match catch_unwind(AssertUnwindSafe(|| body.set(None))) {
                    Ok(()) => exit,
                    Err(panic) => Exit::Panicked(said(panic)),
                }
            }
            Err(panic) => Exit::Panicked(said(panic)),
        }
    };
    let (reason, panic) = match exit {
        Exit::Returned => (Reason::Returned, None),
        Exit::Stopped => (Reason::Stopped, None),
        Exit::Panicked(message) => (Reason::Panicked, Some(message)),
        Exit::Abandoned => return,
    };
    let unfinished = lock(&system.unfinished).remove(&who).unwrap_or_default();
    let report = panic.map(|message| PanicReport {
        who,
        name: system.name(who),
        time: system.clock.now(),
        event: unfinished.handled,
        message,
    });
    if let Some(report) = &report {
        lock(&system.panics).push(report.clone());
    }
    if who == ROOT || report.is_some() && system.config.panics == Panics::EndRun {
        return system.finish(match report {
            Some(report) => End::Panicked(Box::new(report)),
            None => End::Completed,
        });
    }
    let closed = system.close(who, reason, unfinished.unread);
    system.tell_end(who, closed);
}

/// Polls a body until it ends, is stopped, or the run is over.
async fn poll_to_end<M: Message, B: Future<Output = ()>>(
    system: &Arc<System<M>>,
    cell: &Cell<M>,
    mut body: Pin<&mut Option<B>>,
) -> Exit {
    let relay = Arc::new(Relay::default());
    let waker = Waker::from(relay.clone());
    cell.relay.store(Arc::as_ptr(&relay) as usize, Relaxed);
    let mut idle = false;
    poll_fn(|task| {
        relay.task.get_or_init(|| {
            cell.mailbox.attach(task.waker());
            task.waker().clone()
        });
        if std::mem::take(&mut idle) {
            system.counters.busy();
        }
        if system.is_ending() {
            return Poll::Ready(Exit::Abandoned);
        }
        if cell.is_stopping() {
            return Poll::Ready(Exit::Stopped);
        }
        cell.idle.store(false, Relaxed);
        let Some(future) = body.as_mut().as_pin_mut() else {
            return Poll::Ready(Exit::Returned);
        };
        let mut relayed = Context::from_waker(&waker);
        cell.polled.store(true, Relaxed);
        let polled = catch_unwind(AssertUnwindSafe(|| future.poll(&mut relayed)));
        cell.polled.store(false, Relaxed);
        match polled {
            Ok(Poll::Ready(())) => Poll::Ready(Exit::Returned),
            Err(panic) => Poll::Ready(Exit::Panicked(said(panic))),
            Ok(Poll::Pending) if system.is_ending() => Poll::Ready(Exit::Abandoned),
            Ok(Poll::Pending) if cell.is_stopping() => Poll::Ready(Exit::Stopped),
            Ok(Poll::Pending) => {
                // Two of the references are those of this function.
                idle = cell.idle.load(Relaxed) && Arc::strong_count(&relay) == 2;
                if idle {
                    system.counters.idle();
                }
                Poll::Pending
            }
        }
    })
    .await
}

/// What a panic said.
fn said(panic: Box<dyn Any + Send>) -> String {
    let text = panic_text(&*panic);
    // Its own end may panic as well; that says nothing new.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    text
}
