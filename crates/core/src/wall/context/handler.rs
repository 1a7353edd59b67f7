//! The body of an actor in handler form, which finishes the handler when the run is over.

use super::WallContext;
use crate::contract::{Actor, AsyncContext, Flow, Message};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A handler with its context. If the end of the run drops both, the handler finishes.
struct Handler<A: Actor<M>, M: Message> {
    actor: A,
    cx: WallContext<M>,
    /// True if the handler has ended or is handling an event.
    busy: bool,
}

/// Runs a handler like [`drive`](crate::drive), and finishes it. This function is not an `async fn`, because the future
/// of an `async fn` would store the arguments twice.
pub(super) fn handle<A: Actor<M>, M: Message>(
    actor: A,
    cx: WallContext<M>,
) -> impl Future<Output = ()> + Send {
    let mut life = Handler {
        actor,
        cx,
        busy: true,
    };
    async move {
        life.actor.start(&mut life.cx);
        loop {
            life.busy = false;
            let event = life.cx.recv().await;
            life.busy = true;
            if life.actor.on(event, &mut life.cx) == Flow::Stop {
                return;
            }
        }
    }
}

impl<A: Actor<M>, M: Message> Drop for Handler<A, M> {
    fn drop(&mut self) {
        let system = &self.cx.system;
        let over = system.is_ending() && !self.busy && system.ends_without_panic();
        if over && !self.cx.cell.is_stopping() {
            self.cx.now = self.cx.system.clock.now();
            let finish = AssertUnwindSafe(|| self.actor.finish(&mut self.cx));
            if let Err(panic) = catch_unwind(finish) {
                self.cx.system.note_late_panic(self.cx.me, panic);
            }
        }
    }
}
