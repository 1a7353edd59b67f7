//! The handler form of an actor, and how it becomes a body.

use super::async_context::AsyncContext;
use super::context::Context;
use super::event::Event;
use super::message::Message;

/// Whether an actor continues after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Wait for the next event.
    Continue,
    /// End: the handler is dropped, later messages to it are dead letters.
    Stop,
}

/// An actor as a state and a function of an event: the form for the fastest path, and for states
/// that are plain data.
///
/// The other form is an `async fn` over an [`AsyncContext`]. Both run on every executor, and
/// [`drive`] turns this one into the other.
pub trait Actor<M: Message>: Send + Sized + 'static {
    /// Called once, before the first event; for an actor spawned
    /// [`on_demand`](crate::Spawn::on_demand) this is when its first event has arrived.
    fn start<C: Context<M>>(&mut self, cx: &mut C) {
        let _ = cx;
    }

    /// Handles one event. It runs to its end without waiting; the messages that it sends leave at the time of
    /// the event.
    fn on<C: Context<M>>(&mut self, event: Event<M>, cx: &mut C) -> Flow;

    /// Returns the actor's state for [`Simulation::inspect_value`](crate::Simulation::inspect_value), which
    /// does not know its type. The default is `None`: the state is not shown.
    #[cfg(feature = "serde")]
    fn state(&self) -> Option<serde_json::Value> {
        None
    }

    /// Called once at the end of the run if the actor is alive, to record measurements or hand in
    /// [`Results`](crate::Results). Messages that it sends do not arrive. The time is the end of the run.
    ///
    /// It is called for actors that were spawned in handler form, after any end of the run except a panic.
    fn finish<C: Context<M>>(&mut self, cx: &mut C) {
        let _ = cx;
    }
}

/// The async body that does what the handler does.
pub async fn drive<M: Message, A: Actor<M>, C: AsyncContext<M>>(mut actor: A, mut cx: C) {
    actor.start(&mut cx);
    loop {
        let event = cx.recv().await;
        if actor.on(event, &mut cx) == Flow::Stop {
            return;
        }
    }
}
