//! Senders as sinks, for tasks.

use super::error::Aborted;
use super::flavour::{Flavour, Ring};
use super::sender::Sender;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A sender as a [`Sink`](futures_sink::Sink). Created by [`Sender::into_sink`].
///
/// The sink stores one message, from `start_send` until the edge accepts the message; `flush` waits until it is
/// accepted. A message that the sink still stores when it is dropped is not sent;
/// [`into_parts`](SenderSink::into_parts) returns such a message.
pub struct SenderSink<T: Send + 'static, F: Flavour<T> = Ring> {
    sender: Sender<T, F>,
    /// The message that the sink has accepted and not yet sent; `None` while the message is in the edge as an offer.
    message: Option<T>,
    /// True if the last poll of the message was pending.
    pending: bool,
}

impl<T: Send + 'static, F: Flavour<T>> Sender<T, F> {
    /// Converts the sender to a [`Sink`](futures_sink::Sink), for example for [`forward`]. Closing the sink
    /// closes the edge.
    ///
    /// [`forward`]: https://docs.rs/futures-util/latest/futures_util/stream/trait.StreamExt.html#method.forward
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// use futures_util::{SinkExt, StreamExt};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let (tx, rx) = edge::ring(Options::new(4));
    /// let (out, end) = edge::ring(Options::new(4));
    /// let mut sink = tx.into_sink();
    /// sink.send(1).await.expect("the edge is open");
    /// sink.send(2).await.expect("the edge is open");
    /// sink.close().await.expect("the edge is open");
    /// rx.map(|number| Ok(10 * number)).forward(out.into_sink()).await.expect("the edge is open");
    /// assert_eq!(end.collect::<Vec<_>>().await, [10, 20]);
    /// # });
    /// ```
    pub fn into_sink(self) -> SenderSink<T, F> {
        SenderSink {
            sender: self,
            message: None,
            pending: false,
        }
    }
}

impl<T: Send + 'static, F: Flavour<T>> SenderSink<T, F> {
    /// Returns the sender, and the message that the sink has not sent yet.
    ///
    /// ```
    /// use corsair::edge::{self, Options};
    /// use futures_util::{FutureExt, SinkExt};
    /// let (tx, _rx) = edge::ring(Options::new(1));
    /// let mut sink = tx.into_sink();
    /// assert_eq!(sink.send(1).now_or_never(), Some(Ok(())));
    /// assert!(sink.send(2).now_or_never().is_none(), "the edge is full");
    /// let (tx, message) = sink.into_parts();
    /// assert_eq!((tx.buffered(), message), (1, Some(2)));
    /// ```
    pub fn into_parts(mut self) -> (Sender<T, F>, Option<T>) {
        if self.pending {
            self.sender.withdraw(&mut self.message);
        }
        (self.sender, self.message)
    }

    /// Polls the send of the message that the sink has accepted.
    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Aborted<()>>> {
        if self.message.is_none() && !self.pending {
            return Poll::Ready(Ok(()));
        }
        let result = self.sender.poll_send(&mut self.message, context);
        self.pending = result.is_pending();
        result.map_err(|Aborted(message)| {
            self.message = Some(message);
            Aborted(())
        })
    }
}

// The message is never pinned.
impl<T: Send + 'static, F: Flavour<T>> Unpin for SenderSink<T, F> {}

impl<T: Send + 'static, F: Flavour<T>> futures_sink::Sink<T> for SenderSink<T, F> {
    type Error = Aborted<()>;

    fn poll_ready(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        self.get_mut().poll_sent(context)
    }

    fn start_send(self: Pin<&mut Self>, message: T) -> Result<(), Aborted<()>> {
        self.get_mut().message = Some(message);
        Ok(())
    }

    fn poll_flush(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        self.get_mut().poll_sent(context)
    }

    fn poll_close(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Aborted<()>>> {
        let this = self.get_mut();
        let result = this.poll_sent(context);
        if result == Poll::Ready(Ok(())) {
            this.sender.close();
        }
        result
    }
}

impl<T: Send + 'static, F: Flavour<T>> fmt::Debug for SenderSink<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SenderSink")
            .field("sender", &self.sender)
            .field("holds", &(self.message.is_some() || self.pending))
            .finish()
    }
}
