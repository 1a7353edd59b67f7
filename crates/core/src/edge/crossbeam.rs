//! The edge of OS threads: a crossbeam channel for the messages and another for the abort, joined by
//! `select!`. Its ends block their threads.
//!
//! `select!` picks at random among what is ready, so an abort alone would not win; how it does is
//! said in `channel`.

use super::abort::Abort;
use super::channel::{BlockedGuard, Channel, Waits};
use super::contract::{BlockingCollect, BlockingEmit, TryCollect, TryEmit};
use super::meter::Source;
use super::sending::{Carrier, Sending};
use super::{Aborted, EdgeStatistics, Meter, Options, State, TryCollectError, TryEmitError};
use crate::sync::lock;
use crossbeam_channel::{Receiver, Select, Sender, TryRecvError, TrySendError, bounded, select};
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Makes an edge of crossbeam channels. O(capacity).
pub fn crossbeam<T: Send + 'static>(options: Options) -> (Collector<T>, Emitter<T>) {
    let (data, messages) = bounded(options.capacity());
    let (stop, stopped) = bounded(0);
    let shared = Arc::new(CrossbeamChannel {
        channel: Channel::new(&options),
        messages: messages.clone(),
        stop: Mutex::new(Some(stop)),
    });
    for handle in options.handles() {
        handle.attach(&shared);
    }
    let collector = Collector {
        sending: Sending::new(Arc::clone(&shared), data),
        stopped: stopped.clone(),
    };
    let emitter = Emitter {
        shared,
        messages,
        stopped,
        waits: Waits::default(),
    };
    (collector, emitter)
}

struct CrossbeamChannel<T> {
    channel: Channel,
    /// For the thread that drops what is buffered.
    messages: Receiver<T>,
    /// Dropped at the abort, which everybody who waits for it sees.
    stop: Mutex<Option<Sender<Infallible>>>,
}

impl<T: Send> Abort for CrossbeamChannel<T> {
    fn abort(&self) {
        if self.channel.abort(|| self.messages.is_empty()) {
            drop(lock(&self.stop).take());
        }
        if self.channel.is_to_be_emptied() {
            self.channel
                .drop_aborted(self.messages.try_iter().collect());
        }
    }
}

impl<T: Send> Source for CrossbeamChannel<T> {
    fn read(&self) -> EdgeStatistics {
        self.channel.read(self.messages.len())
    }
}

impl<T: Send + 'static> Carrier for CrossbeamChannel<T> {
    type Message = T;
    type Sender = Sender<T>;

    fn channel(&self) -> &Channel {
        &self.channel
    }

    fn take_oldest(&self) -> Option<T> {
        self.messages.try_recv().ok()
    }

    fn take_all(&self) -> Vec<T> {
        self.messages.try_iter().collect()
    }

    #[inline]
    fn try_send(sender: &Sender<T>, message: T) -> Result<(), TryCollectError<T>> {
        sender.try_send(message).map_err(|refused| match refused {
            TrySendError::Full(message) => TryCollectError::Full(message),
            TrySendError::Disconnected(message) => TryCollectError::Aborted(message),
        })
    }
}

/// The collecting end of [`crossbeam()`]. Dropping it closes the edge.
pub struct Collector<T: Send + 'static> {
    sending: Sending<CrossbeamChannel<T>>,
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

impl<T: Send + 'static> BlockingCollect for Collector<T> {
    fn collect_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        let message = match self.try_collect(message) {
            Ok(()) => return Ok(()),
            Err(TryCollectError::Aborted(message)) => return Err(Aborted(message)),
            Err(TryCollectError::Full(message)) => message,
        };
        let stopped = &self.stopped;
        let result = self
            .sending
            .send(message, |channel, sender, waits, message| {
                let blocked = &channel.collected.blocked;
                let _waiting = BlockedGuard::new(waits, channel.statistics, blocked);
                select! {
                    send(sender, message) -> sent => {
                        sent.map_err(|refused| TryCollectError::Aborted(refused.0))
                    }
                    recv(stopped) -> _ => Err(TryCollectError::Aborted(message)),
                }
            });
        result.map_err(|refused| Aborted(refused.into_inner()))
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
    shared: Arc<CrossbeamChannel<T>>,
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
            .begin(channel.statistics, &channel.emitted.blocked);
        let message = select! {
            recv(self.messages) -> message => message.ok(),
            recv(self.stopped) -> _ => None,
        };
        self.waits.end(&channel.emitted.blocked);
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
                .begin(channel.statistics, &channel.emitted.blocked);
        }
        let mut select = Select::new();
        for emitter in &*emitters {
            select.recv(&emitter.messages);
            select.recv(&emitter.stopped);
        }
        select.ready();
        for emitter in emitters {
            let channel = &emitter.shared.channel;
            emitter.waits.end(&channel.emitted.blocked);
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
