//! The form of an actor: the operations of its type.

use super::delivery::{MessageDelivery, TimerDelivery};
use super::shard::ShardCell;
#[cfg(feature = "serde")]
use super::travel::CodecError;
use crate::contract::{Flow, Message};

/// The operations of an actor's type.
pub(super) trait Form<M>: Send + Sync + 'static {
    /// The type in the slot.
    type Actor: 'static;

    /// True if an actor may take further messages of the same instant itself while it handles one. This is faster for
    /// bodies, because resuming a body costs more than handling a message.
    const TAKES_ROWS: bool = false;

    /// Creates the actor with this index.
    fn make(&self, shard: ShardCell<M>, index: u32) -> Self::Actor;

    /// Runs the actor's work before its first event. For this function and the functions below, the actor is in its
    /// slot.
    fn begin(actor: &mut Self::Actor, shard: ShardCell<M>);

    /// Lets the actor handle the current event. If there is no event, the actor has just begun.
    fn handle(actor: &mut Self::Actor, shard: ShardCell<M>) -> Flow;

    /// Lets a started actor handle a message.
    #[inline(always)]
    fn receive(actor: &mut Self::Actor, shard: ShardCell<M>, message: MessageDelivery<M>) -> Flow
    where
        M: Message,
    {
        shard.with(|shard| shard.turn.arrival = Some(message.into_unread()));
        Self::handle(actor, shard)
    }

    /// Lets a started actor handle one of its timers.
    #[inline(always)]
    fn due(actor: &mut Self::Actor, shard: ShardCell<M>, timer: TimerDelivery<M>) -> Flow
    where
        M: Message,
    {
        shard.with(|shard| shard.turn.arrival = Some(timer.into_unread()));
        Self::handle(actor, shard)
    }

    /// The name of the kind of the form's actors, if there is one.
    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = None;

    /// Writes the parameters from which actors of this spawn are created later.
    #[cfg(feature = "serde")]
    fn parameters(&self, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// Writes an actor.
    #[cfg(feature = "serde")]
    fn save(_: &Self::Actor, _: &mut Vec<u8>) -> Result<(), CodecError> {
        Err(CodecError::NoKind)
    }

    /// Reads an actor that [`Form::save`] has written.
    #[cfg(feature = "serde")]
    fn load(&self, _: &mut &[u8]) -> Result<Self::Actor, CodecError> {
        Err(CodecError::NoKind)
    }

    /// Returns the actor's state as a JSON value, if it implements [`Actor::state`](crate::Actor::state).
    #[cfg(feature = "serde")]
    fn state(actor: &Self::Actor) -> Option<serde_json::Value>;

    /// Calls the actor's `finish` at the end of the run.
    fn finish(actor: &mut Self::Actor, shard: ShardCell<M>);

    /// Makes the actor record the reason of its wait in the shard's `waiting`.
    fn ask(actor: &mut Self::Actor, shard: ShardCell<M>);
}
