//! The handler form of an actor, and its conversion to an async body.

use super::async_context::AsyncContext;
use super::context::Context;
use super::event::Event;
use super::message::Message;

/// The decision of an actor after an event: to continue or to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continues the actor, which then waits for its next event.
    Continue,
    /// Ends the actor: the handler is dropped, and later messages to it are dead letters.
    Stop,
}

/// The handler form of an actor: a state with a function that handles events. This is the fastest form of an actor, and
/// the form for states that are plain data.
///
/// The other form is an `async fn` over an [`AsyncContext`]. Both run on every executor; [`drive`] converts a handler
/// to an async body.
pub trait Actor<M: Message>: Send + Sized + 'static {
    /// Called once, before the first event. An actor spawned [`on_demand`](crate::Spawn::on_demand) starts when its
    /// first event arrives.
    fn start<C: Context<M>>(&mut self, cx: &mut C) {
        let _ = cx;
    }

    /// Handles one event, without waiting. Messages that the handler sends leave at the time of the event.
    fn on<C: Context<M>>(&mut self, event: Event<M>, cx: &mut C) -> Flow;

    /// Returns the actor's state as JSON, for tools that do not know the actor's type
    /// ([`Simulation::inspect_value`](crate::Simulation::inspect_value)). The default implementation returns `None`,
    /// and the state is not shown.
    #[cfg(feature = "serde")]
    fn state(&self) -> Option<serde_json::Value> {
        None
    }

    /// Called once at the end of the run if the actor is alive, to record measurements or add to
    /// [`Results`](crate::Results). Messages that it sends do not arrive. [`Context::now`] returns the end of the run.
    ///
    /// `finish` is called for actors that were spawned in handler form, after any end of the run except a panic.
    fn finish<C: Context<M>>(&mut self, cx: &mut C) {
        let _ = cx;
    }
}

/// Runs a handler as an async body.
pub async fn drive<M: Message, A: Actor<M>, C: AsyncContext<M>>(mut actor: A, mut cx: C) {
    actor.start(&mut cx);
    loop {
        let event = cx.recv().await;
        if actor.on(event, &mut cx) == Flow::Stop {
            return;
        }
    }
}
