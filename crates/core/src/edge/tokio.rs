//! The edge of tokio tasks: a tokio channel for the messages and others for the abort. Its ends wait
//! in `async` code.
//!
//! How an abort wins is said in `channel`. As several may have to empty the channel, its receiver lies
//! behind a lock, which is held for a moment only.

use super::abort::Abort;
use super::channel::{Channel, Mark, Waiting, Waits};
use super::contract::{Collect, Emit, TryCollect, TryEmit};
use super::meter::Source;
use super::{
    Aborted, EdgeStatistics, Meter, Options, Overflow, State, TryCollectError, TryEmitError,
};
use ::tokio::select;
use ::tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use ::tokio::sync::mpsc::{Receiver, Sender, channel};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Makes an edge of tokio channels.
pub fn tokio<T: Send + 'static>(options: Options) -> (Collector<T>, Emitter<T>) {
    let (data, messages) = channel(options.capacity());
    let (stop_collector, collector_stopped) = channel(1);
    let (stop_emitter, emitter_stopped) = channel(1);
    let shared = Arc::new(Shared {
        channel: Channel::new(&options),
        messages: Mutex::new(messages),
        stop: Mutex::new(Some([stop_collector, stop_emitter])),
    });
    for handle in options.handles() {
        handle.attach(&shared);
    }
    let collector = Collector {
        shared: Arc::clone(&shared),
        data: Some(data),
        stopped: collector_stopped,
        mark: Mark::default(),
        waits: Waits::default(),
    };
    let emitter = Emitter {
        shared,
        stopped: emitter_stopped,
        waits: Waits::default(),
    };
    (collector, emitter)
}

struct Shared<T> {
    channel: Channel,
    messages: Mutex<Receiver<T>>,
    /// Dropped at the abort, which both ends see.
    stop: Mutex<Option<[Sender<Infallible>; 2]>>,
}

impl<T> Shared<T> {
    /// The receiver. Nothing panics with the lock held, so it is never poisoned.
    fn messages(&self) -> MutexGuard<'_, Receiver<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what is buffered in an aborted edge. If somebody has the receiver at this moment, that one
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

impl<T: Send> Abort for Shared<T> {
    fn abort(&self) {
        // If somebody has the receiver, it is about to find out itself whether it was the end.
        let is_empty = || {
            self.messages
                .try_lock()
                .is_ok_and(|messages| messages.is_empty())
        };
        if self.channel.abort(is_empty) {
            drop(
                self.stop
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        }
        if self.channel.is_to_be_emptied() {
            self.drain();
        }
    }
}

impl<T: Send> Source for Shared<T> {
    fn read(&self) -> EdgeStatistics {
        self.channel.read(self.messages().len())
    }
}

/// The collecting end of [`tokio()`]. Dropping it closes the edge.
pub struct Collector<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    /// `None` once it is closed.
    data: Option<Sender<T>>,
    stopped: Receiver<Infallible>,
    mark: Mark,
    waits: Waits,
}

impl<T: Send + 'static> Collector<T> {
    /// The edge was aborted while this end was sending: empties the channel.
    #[cold]
    fn give_back(&mut self, result: Result<(), TrySendError<T>>) -> Result<(), TryCollectError<T>> {
        let mut left: Vec<T> = {
            let mut messages = self.shared.messages();
            std::iter::from_fn(|| messages.try_recv().ok()).collect()
        };
        let result = match (result, left.pop()) {
            (Ok(()), Some(own)) => Err(TryCollectError::Aborted(own)),
            // The emitter had it before the abort, or has found it aborted.
            (Ok(()), None) => {
                self.mark.collected(&self.shared.channel);
                Ok(())
            }
            (Err(refused), last) => {
                left.extend(last);
                Err(TryCollectError::Aborted(refused.into_inner()))
            }
        };
        self.shared.channel.drop_aborted(left);
        result
    }

    /// There was no room. Does what the policy says.
    #[cold]
    fn overflow(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        match self.shared.channel.overflow {
            Overflow::Block => Err(TryCollectError::Full(message)),
            Overflow::DropNewest => {
                self.mark.dropped(&self.shared.channel);
                Ok(())
            }
            Overflow::DropOldest => {
                if self.shared.with(Receiver::try_recv).is_ok() && self.shared.channel.statistics {
                    self.shared.channel.collected.0.dropped.add(1);
                }
                self.try_collect(message)
            }
            Overflow::Abort => {
                self.shared.abort();
                Err(TryCollectError::Aborted(message))
            }
        }
    }
}

impl<T: Send + 'static> TryCollect for Collector<T> {
    type Message = T;

    fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        let channel = &self.shared.channel;
        let Some(data) = &self.data else {
            return Err(TryCollectError::Aborted(message));
        };
        if !channel.begin_sending() {
            self.shared.abort();
            return Err(TryCollectError::Aborted(message));
        }
        let result = data.try_send(message);
        if channel.end_sending() {
            return self.give_back(result);
        }
        match result {
            Ok(()) => {
                self.mark.collected(channel);
                Ok(())
            }
            Err(TrySendError::Full(message)) => self.overflow(message),
            Err(TrySendError::Closed(message)) => Err(TryCollectError::Aborted(message)),
        }
    }

    fn close(&mut self) {
        self.shared.channel.close();
        self.data = None;
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
        let channel = &self.shared.channel;
        let Some(data) = self.data.as_ref().filter(|_| !channel.is_aborted()) else {
            return Err(Aborted(()));
        };
        if channel.overflow != Overflow::Block || data.capacity() > 0 {
            return Ok(());
        }
        let blocked = &channel.collected.0.blocked;
        let _waiting = Waiting::new(&mut self.waits, channel.statistics, blocked);
        select! {
            biased;
            _ = self.stopped.recv() => Err(Aborted(())),
            permit = data.reserve() => permit.map(drop).map_err(|_| Aborted(())),
        }
    }
}

impl<T: Send + 'static> Drop for Collector<T> {
    fn drop(&mut self) {
        self.close();
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
    shared: Arc<Shared<T>>,
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
                    .begin(channel.statistics, &channel.emitted.0.blocked);
                return Poll::Pending;
            }
        };
        self.rest();
        Poll::Ready(message)
    }

    fn rest(&mut self) {
        let blocked = &self.shared.channel.emitted.0.blocked;
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
