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

    /// Handles one event. Runs to its end without waiting; what it sends leaves at the time of
    /// the event.
    fn on<C: Context<M>>(&mut self, event: Event<M>, cx: &mut C) -> Flow;

    /// The actor's state as a value, for [`Simulation::inspect_value`](crate::Simulation::inspect_value), which
    /// need not know its type; `None`, as it is by default: it is not shown.
    #[cfg(feature = "serde")]
    fn state(&self) -> Option<serde_json::Value> {
        None
    }

    /// Called once when the run is over, if the actor lives then: to record what it has measured, or
    /// hand in [`Results`](crate::Results). Nothing that it sends arrives. The time is that of the
    /// run's end.
    ///
    /// It is called for actors that were spawned in handler form, after a run that was completed or
    /// cancelled, ran dry or came to its end, not after one that failed by a panic.
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
