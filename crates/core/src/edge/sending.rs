//! The collecting end of the flavours made of a channel: in which order it looks at the abort, sends,
//! and does what the policy says. What differs is how the channel is called, by its [`Carrier`].

use super::abort::Abort;
use super::channel::{Channel, Mark, Waits};
use super::meter::Source;
use super::{Meter, Overflow, State, TryCollectError};
use std::sync::Arc;

/// A channel that carries an edge: what both its ends share.
pub(super) trait Carrier: Abort + Source + Send + Sync + Sized + 'static {
    type Message: Send + 'static;

    /// The sending end of the channel.
    type Sender;

    fn channel(&self) -> &Channel;

    /// Takes the oldest message out of the channel.
    fn take_oldest(&self) -> Option<Self::Message>;

    /// Takes everything out of the channel, for the collector that has found the edge aborted.
    fn take_all(&self) -> Vec<Self::Message>;

    /// Sends if there is room.
    ///
    /// # Errors
    /// With the message, if there is none, or no receiver.
    fn try_send(
        sender: &Self::Sender,
        message: Self::Message,
    ) -> Result<(), TryCollectError<Self::Message>>;
}

/// What came of sending; the message comes back if it was not sent.
type Sent<M> = Result<(), TryCollectError<M>>;

/// The collecting end of an edge that a channel carries.
pub(super) struct Sending<C: Carrier> {
    pub(super) shared: Arc<C>,
    /// `None` once it is closed.
    pub(super) sender: Option<C::Sender>,
    mark: Mark,
    pub(super) waits: Waits,
}

impl<C: Carrier> Sending<C> {
    pub(super) fn new(shared: Arc<C>, sender: C::Sender) -> Sending<C> {
        Sending {
            shared,
            sender: Some(sender),
            mark: Mark::default(),
            waits: Waits::default(),
        }
    }

    pub(super) fn channel(&self) -> &Channel {
        self.shared.channel()
    }

    pub(super) fn try_collect(&mut self, message: C::Message) -> Sent<C::Message> {
        match self.send(message, |_, sender, _, message| {
            C::try_send(sender, message)
        }) {
            Err(TryCollectError::Full(message)) => self.overflow(message),
            result => result,
        }
    }

    /// Sends by this function, which returns the message if it could not.
    #[inline]
    pub(super) fn send(
        &mut self,
        message: C::Message,
        send: impl FnOnce(&Channel, &C::Sender, &mut Waits, C::Message) -> Sent<C::Message>,
    ) -> Sent<C::Message> {
        let Some(sender) = &self.sender else {
            return Err(TryCollectError::Aborted(message));
        };
        let channel = self.shared.channel();
        if !channel.begin_sending() {
            self.shared.abort();
            return Err(TryCollectError::Aborted(message));
        }
        let result = send(channel, sender, &mut self.waits, message);
        if channel.end_sending() {
            return self.give_back(result);
        }
        if result.is_ok() {
            self.mark.collected(channel);
        }
        result
    }

    /// The edge was aborted while this end was sending: empties the channel.
    #[cold]
    fn give_back(&mut self, result: Sent<C::Message>) -> Sent<C::Message> {
        let mut left = self.shared.take_all();
        let result = match (result, left.pop()) {
            (Ok(()), Some(own)) => Err(TryCollectError::Aborted(own)),
            // The emitter had it before the abort, or has found it aborted.
            (Ok(()), None) => {
                self.mark.collected(self.shared.channel());
                Ok(())
            }
            (Err(refused), last) => {
                left.extend(last);
                Err(TryCollectError::Aborted(refused.into_inner()))
            }
        };
        self.channel().drop_aborted(left);
        result
    }

    /// There was no room. Does what the policy says.
    #[cold]
    fn overflow(&mut self, message: C::Message) -> Sent<C::Message> {
        match self.channel().overflow {
            Overflow::Block => Err(TryCollectError::Full(message)),
            Overflow::DropNewest => {
                self.mark.dropped(self.shared.channel());
                Ok(())
            }
            Overflow::DropOldest => {
                if self.shared.take_oldest().is_some() && self.channel().statistics {
                    self.channel().collected.dropped.add(1);
                }
                self.try_collect(message)
            }
            Overflow::Abort => {
                self.shared.abort();
                Err(TryCollectError::Aborted(message))
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.channel().close();
        self.sender = None;
    }

    pub(super) fn state(&self) -> State {
        self.channel().state()
    }

    pub(super) fn meter(&self) -> Meter {
        Meter::new(Arc::clone(&self.shared) as _)
    }
}

impl<C: Carrier> Drop for Sending<C> {
    fn drop(&mut self) {
        self.close();
    }
}
