//! The trait of scenarios, with which a run starts.

use super::async_context::AsyncContext;
use super::message::Message;

/// The start of a run: the body of its root actor, for any executor.
///
/// The root spawns all other actors. When it returns, the run is over.
pub trait Scenario<M: Message>: Send + 'static {
    /// Runs as the body of the root.
    fn root<C: AsyncContext<M>>(self, cx: C) -> impl Future<Output = ()> + Send;
}
