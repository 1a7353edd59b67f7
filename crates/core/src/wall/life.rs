//! The life of an actor: its body is created, polled until it ends, and its remains are handled.
//!
//! **Foreign wakers.** A deadlock must not be reported while an actor waits for something outside of the run, for
//! example a socket. So each body is polled with its own waker, the relay. The contexts of the wall-clock executors
//! recognise the relay and register the task's own waker instead. Any other future that will wake the actor has to keep
//! a clone of the relay. So if no clone exists after a poll, only a message or a timer can wake the actor.

use super::cell::Cell;
use super::run_handle::RunHandle;
use super::start_queue::StartQueue;
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

/// The way in which a body ended.
enum Exit {
    Returned,
    Stopped,
    Panicked {
        /// A description of the actor's last event, if its context does not know it.
        at: &'static str,
        message: String,
    },
    /// The run was over before the actor ended.
    Abandoned,
}

impl Exit {
    fn panicked(at: &'static str, panic: Panic) -> Exit {
        let message = text_of(panic);
        Exit::Panicked { at, message }
    }
}

/// Runs the life of an actor.
pub(crate) fn live<M, B>(
    system: RunHandle<M>,
    cell: Arc<Cell<M>>,
    who: Addr,
    make: impl FnOnce(Arc<Cell<M>>) -> B + Send,
) -> impl Future<Output = ()> + Send
where
    M: Message,
    B: Future<Output = ()> + Send,
{
    let whose = LivingActor { system, cell, who };
    // Not an `async fn`, which would store its arguments twice.
    async move {
        let exit = {
            // The body is created in place, because moving it would double the size of this future.
            let place = pin!(None);
            let mut body = Body::new(&whose, place);
            match body.make(make) {
                Ok(()) => {
                    let exit = poll_fn(|task| body.poll(task)).await;
                    match (body.end(), exit) {
                        (Ok(()), exit) => exit,
                        (Err(panic), Exit::Abandoned) => {
                            whose.system.note_late_panic(whose.who, panic);
                            Exit::Abandoned
                        }
                        (Err(panic), _) => Exit::panicked("its end", panic),
                    }
                }
                Err(panic) => Exit::panicked("making its body", panic),
            }
        };
        settle(&whose.system, whose.who, exit);
    }
}

/// The actor to which a life belongs.
struct LivingActor<M: Message> {
    system: RunHandle<M>,
    cell: Arc<Cell<M>>,
    who: Addr,
}

/// Records the end of an actor: stores its panic, closes its mailbox, and notifies its parent or ends the run.
fn settle<M: Message>(system: &Arc<System<M>>, who: Addr, exit: Exit) {
    let (reason, panic) = match exit {
        Exit::Returned => (Reason::Returned, None),
        Exit::Stopped => (Reason::Stopped, None),
        Exit::Panicked { at, message } => (Reason::Panicked, Some((at, message))),
        Exit::Abandoned => return,
    };
    let remains = lock(&system.remains).remove(&who).unwrap_or_default();
    let report = panic.map(|(at, message)| PanicReport {
        who,
        name: system.name(who),
        time: system.clock.now(),
        event: match remains.handled {
            handled if handled.is_empty() => at.to_owned(),
            handled => handled,
        },
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
    let closed = system.close(who, reason, remains.unread);
    system.report_end(who, closed);
}

/// A body that is polled until it ends, is stopped, or the run is over.
struct Body<'a, M: Message, B> {
    whose: &'a LivingActor<M>,
    /// `None` before the body is created and after it has ended.
    body: Pin<&'a mut Option<B>>,
    relay: Waker,
    /// True if the mailbox has the waker of the body's poller.
    attached: bool,
    /// True if the body is counted as idle.
    idle: bool,
}

impl<'a, M: Message, B> Body<'a, M, B> {
    fn new(whose: &'a LivingActor<M>, body: Pin<&'a mut Option<B>>) -> Body<'a, M, B> {
        Body {
            whose,
            body,
            relay: Waker::from(whose.cell.clone()),
            attached: false,
            idle: false,
        }
    }

    fn make(&mut self, make: impl FnOnce(Arc<Cell<M>>) -> B) -> Result<(), Panic> {
        let own = self.whose.cell.clone();
        catch_unwind(AssertUnwindSafe(|| self.body.set(Some(make(own)))))
    }

    fn end(&mut self) -> Result<(), Panic> {
        catch_unwind(AssertUnwindSafe(|| self.body.set(None)))
    }
}

/// Drops the actor's state and reports a panic of its destructor, because a runtime that ends may drop a body without
/// polling it again.
impl<M: Message, B> Drop for Body<'_, M, B> {
    fn drop(&mut self) {
        if self.body.is_some()
            && let Err(panic) = self.end()
        {
            self.whose.system.note_late_panic(self.whose.who, panic);
        }
    }
}

impl<M: Message, B: Future<Output = ()>> Body<'_, M, B> {
    fn poll(&mut self, task: &Context<'_>) -> Poll<Exit> {
        let LivingActor { system, cell, .. } = self.whose;
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
        let Some(future) = self.body.as_mut().as_pin_mut() else {
            return Poll::Ready(Exit::Returned);
        };
        let mut relayed = Context::from_waker(&self.relay);
        cell.polled.store(true, Relaxed);
        StartQueue::begin_step();
        let polled = catch_unwind(AssertUnwindSafe(|| future.poll(&mut relayed)));
        if let Some(queued) = system.start_queue.end_step() {
            system.begin(queued);
        }
        cell.polled.store(false, Relaxed);
        match polled {
            Ok(Poll::Ready(())) => Poll::Ready(Exit::Returned),
            Err(panic) => Poll::Ready(Exit::panicked("its body", panic)),
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

type Panic = Box<dyn Any + Send>;

/// Returns the text of a panic.
fn text_of(panic: Panic) -> String {
    let text = panic_text(&*panic);
    // The destructor of the payload may panic; that panic is ignored.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    text
}
