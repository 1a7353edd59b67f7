//! The life of an actor: its body is made, polled until it ends, and what it leaves is settled.
//!
//! **Foreign wakers.** A deadlock must not be reported while an actor waits for something outside
//! of the run, a socket say. So a body is polled with a waker of its own, the relay. The contexts
//! of this module's executors recognise it and register the task's own waker instead; anything else
//! that will wake the actor has to keep a clone of the relay. If there is no clone after a poll, only
//! a letter or a timer can wake the actor.

use super::cell::Cell;
use super::hold::Hold;
use super::nursery::Nursery;
use super::system::{End, ROOT, System};
use crate::contract::report::panic_text;
use crate::contract::{Addr, Message, PanicReport, Panics, Reason};
use crate::sync::lock;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

/// How a body came to its end.
enum Exit {
    Returned,
    Stopped,
    Panicked(String),
    /// The run was over before.
    Abandoned,
}

/// Lives the life of an actor.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn would store its arguments twice"
)]
pub(crate) fn live<M, B>(
    system: Hold<M>,
    cell: Arc<Cell<M>>,
    who: Addr,
    make: impl FnOnce(Arc<Cell<M>>) -> B + Send,
) -> impl Future<Output = ()> + Send
where
    M: Message,
    B: Future<Output = ()> + Send,
{
    async move {
        let exit = {
            let mut body = pin!(None);
            // Made in its place: a body held twice would double the size of this future.
            let own = cell.clone();
            match catch_unwind(AssertUnwindSafe(|| body.set(Some(make(own))))) {
                Ok(()) => {
                    let mut polled = Polled::new(&cell);
                    let exit = poll_fn(|task| polled.poll(&system, &cell, body.as_mut(), task));
                    let exit = exit.await;
                    match catch_unwind(AssertUnwindSafe(|| body.set(None))) {
                        Ok(()) => exit,
                        Err(panic) => Exit::Panicked(said(panic)),
                    }
                }
                Err(panic) => Exit::Panicked(said(panic)),
            }
        };
        settle(&system, who, exit);
    }
}

/// Settles what an actor leaves.
fn settle<M: Message>(system: &Arc<System<M>>, who: Addr, exit: Exit) {
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

/// A body that is polled until it ends, is stopped, or the run is over.
struct Polled {
    relay: Waker,
    /// What polls it has been told to its mailbox.
    attached: bool,
    /// It is counted as idle.
    idle: bool,
}

impl Polled {
    fn new<M: Message>(cell: &Arc<Cell<M>>) -> Polled {
        Polled {
            relay: Waker::from(cell.clone()),
            attached: false,
            idle: false,
        }
    }

    fn poll<M: Message, B: Future<Output = ()>>(
        &mut self,
        system: &Arc<System<M>>,
        cell: &Arc<Cell<M>>,
        body: Pin<&mut Option<B>>,
        task: &Context<'_>,
    ) -> Poll<Exit> {
        if !std::mem::replace(&mut self.attached, true) {
            cell.mailbox.attach(task.waker());
        }
        if std::mem::take(&mut self.idle) {
            system.counters.busy();
        }
        if system.is_ending() {
            return Poll::Ready(Exit::Abandoned);
        }
        if cell.is_stopping() {
            return Poll::Ready(Exit::Stopped);
        }
        cell.idle.store(false, Relaxed);
        let Some(future) = body.as_pin_mut() else {
            return Poll::Ready(Exit::Returned);
        };
        let mut relayed = Context::from_waker(&self.relay);
        cell.polled.store(true, Relaxed);
        Nursery::begin_step();
        let polled = catch_unwind(AssertUnwindSafe(|| future.poll(&mut relayed)));
        if let Some(noted) = system.nursery.end_step() {
            system.begin(noted);
        }
        cell.polled.store(false, Relaxed);
        match polled {
            Ok(Poll::Ready(())) => Poll::Ready(Exit::Returned),
            Err(panic) => Poll::Ready(Exit::Panicked(said(panic))),
            Ok(Poll::Pending) if system.is_ending() => Poll::Ready(Exit::Abandoned),
            Ok(Poll::Pending) if cell.is_stopping() => Poll::Ready(Exit::Stopped),
            Ok(Poll::Pending) => {
                self.idle = cell.idle.load(Relaxed) && !cell.is_held();
                if self.idle {
                    system.counters.idle();
                }
                Poll::Pending
            }
        }
    }
}

/// What a panic said.
fn said(panic: Box<dyn Any + Send>) -> String {
    let text = panic_text(&*panic);
    // Its own end may panic as well; that says nothing new.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    text
}
