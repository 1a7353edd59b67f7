//! The edge of OS threads: a crossbeam channel for the messages and another for the abort, joined by
//! `select!`. Its ends block their threads.
//!
//! `select!` picks at random among what is ready, so an abort alone would not win; how it does is
//! said in `channel`.

use super::abort::Abort;
use super::channel::{Channel, Mark, Waiting, Waits};
use super::contract::{BlockingCollect, BlockingEmit, TryCollect, TryEmit};
use super::meter::Source;
use super::{
    Aborted, EdgeStatistics, Meter, Options, Overflow, State, TryCollectError, TryEmitError,
};
use crossbeam_channel::{Receiver, Select, Sender, TryRecvError, TrySendError, bounded, select};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes an edge of crossbeam channels. O(capacity).
pub fn crossbeam<T: Send + 'static>(options: Options) -> (Collector<T>, Emitter<T>) {
    let (data, messages) = bounded(options.capacity());
    let (stop, stopped) = bounded(0);
    let shared = Arc::new(Shared {
        channel: Channel::new(&options),
        messages: messages.clone(),
        stop: Mutex::new(Some(stop)),
    });
    for handle in options.handles() {
        handle.attach(&shared);
    }
    let collector = Collector {
        shared: Arc::clone(&shared),
        data: Some(data),
        stopped: stopped.clone(),
        mark: Mark::default(),
        waits: Waits::default(),
    };
    let emitter = Emitter {
        shared,
        messages,
        stopped,
        waits: Waits::default(),
    };
    (collector, emitter)
}

struct Shared<T> {
    channel: Channel,
    /// For whoever drops what is buffered.
    messages: Receiver<T>,
    /// Dropped at the abort, which everybody who waits for it sees.
    stop: Mutex<Option<Sender<Infallible>>>,
}

impl<T: Send> Abort for Shared<T> {
    fn abort(&self) {
        if self.channel.abort(|| self.messages.is_empty()) {
            drop(
                self.stop
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        }
        if self.channel.is_to_be_emptied() {
            self.channel
                .drop_aborted(self.messages.try_iter().collect());
        }
    }
}

impl<T: Send> Source for Shared<T> {
    fn read(&self) -> EdgeStatistics {
        self.channel.read(self.messages.len())
    }
}

/// The collecting end of [`crossbeam()`]. Dropping it closes the edge.
pub struct Collector<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    /// `None` once it is closed.
    data: Option<Sender<T>>,
    stopped: Receiver<Infallible>,
    mark: Mark,
    waits: Waits,
}

impl<T: Send + 'static> Collector<T> {
    /// Sends by this function, which returns the message if it could not.
    #[inline]
    fn send(
        &mut self,
        message: T,
        send: impl FnOnce(&mut Self, T) -> Result<(), TryCollectError<T>>,
    ) -> Result<(), TryCollectError<T>> {
        if self.data.is_none() {
            return Err(TryCollectError::Aborted(message));
        }
        if !self.shared.channel.begin_sending() {
            self.shared.abort();
            return Err(TryCollectError::Aborted(message));
        }
        let result = send(self, message);
        if self.shared.channel.end_sending() {
            return self.give_back(result);
        }
        if result.is_ok() {
            self.mark.collected(&self.shared.channel);
        }
        result
    }

    /// The edge was aborted while this end was sending: empties the channel.
    #[cold]
    fn give_back(
        &mut self,
        result: Result<(), TryCollectError<T>>,
    ) -> Result<(), TryCollectError<T>> {
        let mut left: Vec<T> = self.shared.messages.try_iter().collect();
        let result = match (result, left.pop()) {
            (Ok(()), Some(own)) => Err(TryCollectError::Aborted(own)),
            // The emitter had it before the abort, or has found it aborted.
            (Ok(()), None) => {
                self.mark.collected(&self.shared.channel);
                Ok(())
            }
            (Err(error), last) => {
                left.extend(last);
                Err(TryCollectError::Aborted(error.into_inner()))
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
                if self.shared.messages.try_recv().is_ok() && self.shared.channel.statistics {
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
        let result = self.send(message, |this, message| match &this.data {
            Some(data) => data.try_send(message).map_err(|refused| match refused {
                TrySendError::Full(message) => TryCollectError::Full(message),
                TrySendError::Disconnected(message) => TryCollectError::Aborted(message),
            }),
            None => Err(TryCollectError::Aborted(message)),
        });
        match result {
            Err(TryCollectError::Full(message)) => self.overflow(message),
            result => result,
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

impl<T: Send + 'static> BlockingCollect for Collector<T> {
    fn collect_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        let message = match self.try_collect(message) {
            Ok(()) => return Ok(()),
            Err(TryCollectError::Aborted(message)) => return Err(Aborted(message)),
            Err(TryCollectError::Full(message)) => message,
        };
        let result = self.send(message, |this, message| {
            let Some(data) = &this.data else {
                return Err(TryCollectError::Aborted(message));
            };
            let channel = &this.shared.channel;
            let blocked = &channel.collected.0.blocked;
            let _waiting = Waiting::new(&mut this.waits, channel.statistics, blocked);
            select! {
                send(data, message) -> sent => {
                    sent.map_err(|refused| TryCollectError::Aborted(refused.0))
                }
                recv(this.stopped) -> _ => Err(TryCollectError::Aborted(message)),
            }
        });
        result.map_err(|refused| Aborted(refused.into_inner()))
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

/// The emitting end of [`crossbeam()`]. Dropping it aborts the edge, unless it was closed and
/// everything has been emitted.
pub struct Emitter<T: Send + 'static> {
    shared: Arc<Shared<T>>,
    messages: Receiver<T>,
    stopped: Receiver<Infallible>,
    waits: Waits,
}

impl<T: Send + 'static> TryEmit for Emitter<T> {
    type Message = T;

    fn try_emit(&mut self) -> Result<T, TryEmitError> {
        if self.shared.channel.is_aborted() {
            return Err(TryEmitError::Aborted);
        }
        match self.messages.try_recv() {
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

impl<T: Send + 'static> BlockingEmit for Emitter<T> {
    fn emit_blocking(&mut self) -> Option<T> {
        match self.try_emit() {
            Ok(message) => return Some(message),
            Err(TryEmitError::Empty) => {}
            Err(_) => return None,
        }
        let channel = &self.shared.channel;
        self.waits
            .begin(channel.statistics, &channel.emitted.0.blocked);
        let message = select! {
            recv(self.messages) -> message => message.ok(),
            recv(self.stopped) -> _ => None,
        };
        self.waits.end(&channel.emitted.0.blocked);
        channel.received(message?)
    }

    fn wait_any(emitters: &mut [Self]) {
        if emitters.is_empty() {
            return;
        }
        for emitter in &mut *emitters {
            let channel = &emitter.shared.channel;
            emitter
                .waits
                .begin(channel.statistics, &channel.emitted.0.blocked);
        }
        let mut select = Select::new();
        for emitter in &*emitters {
            select.recv(&emitter.messages);
            select.recv(&emitter.stopped);
        }
        select.ready();
        for emitter in emitters {
            let channel = &emitter.shared.channel;
            emitter.waits.end(&channel.emitted.0.blocked);
        }
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
