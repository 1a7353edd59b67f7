//! The edge of tokio tasks: a tokio channel for the messages and others for the abort. Its ends wait
//! in `async` code.
//!
//! How an abort wins is said in `channel`. As several may have to empty the channel, its receiver lies
//! behind a lock, which is held for a moment only.

use super::abort::Abort;
use super::channel::{BlockedGuard, Channel, Waits};
use super::contract::{Collect, Emit, TryCollect, TryEmit};
use super::meter::Source;
use super::sending::{Carrier, Sending};
use super::{
    Aborted, EdgeStatistics, Meter, Options, Overflow, State, TryCollectError, TryEmitError,
};
use crate::sync::lock;
use ::tokio::select;
use ::tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use ::tokio::sync::mpsc::{Receiver, Sender, channel};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

/// Makes an edge of tokio channels.
pub fn tokio<T: Send + 'static>(options: Options) -> (Collector<T>, Emitter<T>) {
    let (data, messages) = channel(options.capacity());
    let (stop_collector, collector_stopped) = channel(1);
    let (stop_emitter, emitter_stopped) = channel(1);
    let shared = Arc::new(TokioChannel {
        channel: Channel::new(&options),
        messages: Mutex::new(messages),
        stop: Mutex::new(Some([stop_collector, stop_emitter])),
    });
    for handle in options.handles() {
        handle.attach(&shared);
    }
    let collector = Collector {
        sending: Sending::new(Arc::clone(&shared), data),
        stopped: collector_stopped,
    };
    let emitter = Emitter {
        shared,
        stopped: emitter_stopped,
        waits: Waits::default(),
    };
    (collector, emitter)
}

struct TokioChannel<T> {
    channel: Channel,
    messages: Mutex<Receiver<T>>,
    /// Dropped at the abort, which both ends see.
    stop: Mutex<Option<[Sender<Infallible>; 2]>>,
}

impl<T> TokioChannel<T> {
    /// The receiver. Nothing panics with the lock held, so it is never poisoned.
    fn messages(&self) -> MutexGuard<'_, Receiver<T>> {
        lock(&self.messages)
    }

    /// Drops what is buffered in an aborted edge. If another thread has the receiver at this moment, that one
    /// does it afterwards.
    #[cold]
    fn drain(&self) {
        let mut left = Vec::new();
        if let Ok(mut messages) = self.messages.try_lock() {
            left.extend(std::iter::from_fn(|| messages.try_recv().ok()));
        }
        self.channel.drop_aborted(left);
    }

    /// Uses the receiver, and drops what is buffered if the edge is aborted by then.
    #[inline]
    fn with<R>(&self, receive: impl FnOnce(&mut Receiver<T>) -> R) -> R {
        let result = receive(&mut self.messages());
        if self.channel.is_to_be_emptied() {
            self.drain();
        }
        result
    }
}

impl<T: Send> Abort for TokioChannel<T> {
    fn abort(&self) {
        // If another thread has the receiver, it is about to find out itself whether it was the end.
        let is_empty = || {
            self.messages
                .try_lock()
                .is_ok_and(|messages| messages.is_empty())
        };
        if self.channel.abort(is_empty) {
            drop(lock(&self.stop).take());
        }
        if self.channel.is_to_be_emptied() {
            self.drain();
        }
    }
}

impl<T: Send> Source for TokioChannel<T> {
    fn read(&self) -> EdgeStatistics {
        self.channel.read(self.messages().len())
    }
}

impl<T: Send + 'static> Carrier for TokioChannel<T> {
    type Message = T;
    type Sender = Sender<T>;

    fn channel(&self) -> &Channel {
        &self.channel
    }

    fn take_oldest(&self) -> Option<T> {
        self.with(Receiver::try_recv).ok()
    }

    fn take_all(&self) -> Vec<T> {
        let mut messages = self.messages();
        std::iter::from_fn(|| messages.try_recv().ok()).collect()
    }

    #[inline]
    fn try_send(sender: &Sender<T>, message: T) -> Result<(), TryCollectError<T>> {
        sender.try_send(message).map_err(|refused| match refused {
            TrySendError::Full(message) => TryCollectError::Full(message),
            TrySendError::Closed(message) => TryCollectError::Aborted(message),
        })
    }
}

/// The collecting end of [`tokio()`]. Dropping it closes the edge.
pub struct Collector<T: Send + 'static> {
    sending: Sending<TokioChannel<T>>,
    stopped: Receiver<Infallible>,
}

impl<T: Send + 'static> TryCollect for Collector<T> {
    type Message = T;

    fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        self.sending.try_collect(message)
    }

    fn close(&mut self) {
        self.sending.close();
    }

    fn abort(&self) {
        self.sending.shared.abort();
    }

    fn state(&self) -> State {
        self.sending.state()
    }

    fn meter(&self) -> Meter {
        self.sending.meter()
    }
}

impl<T: Send + 'static> Collect for Collector<T> {
    async fn collect(&mut self, message: T) -> Result<(), Aborted<T>> {
        let mut message = message;
        loop {
            message = match self.try_collect(message) {
                Ok(()) => return Ok(()),
                Err(TryCollectError::Aborted(message)) => return Err(Aborted(message)),
                Err(TryCollectError::Full(message)) => message,
            };
            if self.ready().await.is_err() {
                return Err(Aborted(message));
            }
        }
    }

    async fn ready(&mut self) -> Result<(), Aborted<()>> {
        let Sending {
            shared,
            sender,
            waits,
            ..
        } = &mut self.sending;
        let channel = shared.channel();
        let Some(sender) = sender.as_ref().filter(|_| !channel.is_aborted()) else {
            return Err(Aborted(()));
        };
        if channel.overflow != Overflow::Block || sender.capacity() > 0 {
            return Ok(());
        }
        let blocked = &channel.collected.blocked;
        let _waiting = BlockedGuard::new(waits, channel.statistics, blocked);
        select! {
            biased;
            _ = self.stopped.recv() => Err(Aborted(())),
            permit = sender.reserve() => permit.map(drop).map_err(|_| Aborted(())),
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Collector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// The emitting end of [`tokio()`]. Dropping it aborts the edge, unless it was closed and everything
/// has been emitted.
pub struct Emitter<T: Send + 'static> {
    shared: Arc<TokioChannel<T>>,
    stopped: Receiver<Infallible>,
    waits: Waits,
}

impl<T: Send + 'static> TryEmit for Emitter<T> {
    type Message = T;

    fn try_emit(&mut self) -> Result<T, TryEmitError> {
        if self.shared.channel.is_aborted() {
            return Err(TryEmitError::Aborted);
        }
        match self.shared.with(Receiver::try_recv) {
            Ok(message) => self
                .shared
                .channel
                .received(message)
                .ok_or(TryEmitError::Aborted),
            Err(_) if self.shared.channel.is_aborted() => Err(TryEmitError::Aborted),
            Err(TryRecvError::Empty) => Err(TryEmitError::Empty),
            Err(TryRecvError::Disconnected) => Err(TryEmitError::Closed),
        }
    }

    fn abort(&self) {
        self.shared.abort();
    }

    fn state(&self) -> State {
        self.shared.channel.state()
    }

    fn meter(&self) -> Meter {
        Meter::new(Arc::clone(&self.shared) as _)
    }
}

impl<T: Send + 'static> Emit for Emitter<T> {
    fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let channel = &self.shared.channel;
        if channel.is_aborted() {
            self.rest();
            return Poll::Ready(None);
        }
        let message = match self.shared.with(|messages| messages.poll_recv(context)) {
            Poll::Ready(message) => message.and_then(|message| channel.received(message)),
            Poll::Pending if self.stopped.poll_recv(context).is_ready() => None,
            Poll::Pending => {
                self.waits
                    .begin(channel.statistics, &channel.emitted.blocked);
                return Poll::Pending;
            }
        };
        self.rest();
        Poll::Ready(message)
    }

    fn rest(&mut self) {
        let blocked = &self.shared.channel.emitted.blocked;
        self.waits.end(blocked);
    }
}

impl<T: Send + 'static> Drop for Emitter<T> {
    fn drop(&mut self) {
        self.shared.abort();
    }
}

impl<T: Send + 'static> fmt::Debug for Emitter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
