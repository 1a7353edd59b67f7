//! That the ends of a ring keep to the contract of all flavours.

use super::weigh::Weigh;
use super::{Collector, Emitter};
use crate::edge::contract::{BlockingCollect, BlockingEmit, Collect, Emit, TryCollect, TryEmit};
use crate::edge::park::block_on;
use crate::edge::{Aborted, Meter, State, TryCollectError, TryEmitError};
use std::fmt;
use std::task::{Context, Poll};

impl<T: Send + 'static, W: Weigh<T>> fmt::Debug for Collector<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static, W: Weigh<T>> TryCollect for Collector<T, W> {
    type Message = T;

    fn try_collect(&mut self, message: T) -> Result<(), TryCollectError<T>> {
        self.try_collect(message)
    }

    fn close(&mut self) {
        self.close();
    }

    fn abort(&self) {
        self.abort();
    }

    fn state(&self) -> State {
        self.state()
    }

    fn meter(&self) -> Meter {
        self.meter()
    }
}

impl<T: Send + 'static, W: Weigh<T>> Collect for Collector<T, W> {
    fn collect(&mut self, message: T) -> impl Future<Output = Result<(), Aborted<T>>> + Send {
        self.collect(message)
    }

    fn ready(&mut self) -> impl Future<Output = Result<(), Aborted<()>>> + Send {
        self.ready()
    }
}

impl<T: Send + 'static, W: Weigh<T>> BlockingCollect for Collector<T, W> {
    fn collect_blocking(&mut self, message: T) -> Result<(), Aborted<T>> {
        self.collect_blocking(message)
    }
}

impl<T: Send + 'static, W: Weigh<T>> fmt::Debug for Emitter<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter")
            .field("state", &self.state())
            .field("buffered", &self.buffered())
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static, W: Weigh<T>> TryEmit for Emitter<T, W> {
    type Message = T;

    fn try_emit(&mut self) -> Result<T, TryEmitError> {
        self.try_emit()
    }

    fn abort(&self) {
        self.abort();
    }

    fn state(&self) -> State {
        self.state()
    }

    fn meter(&self) -> Meter {
        self.meter()
    }
}

impl<T: Send + 'static, W: Weigh<T>> Emit for Emitter<T, W> {
    fn poll_emit(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_emit(context)
    }

    fn emit(&mut self) -> impl Future<Output = Option<T>> + Send {
        self.emit()
    }

    fn rest(&mut self) {
        self.rest();
    }
}

impl<T: Send + 'static, W: Weigh<T>> BlockingEmit for Emitter<T, W> {
    fn emit_blocking(&mut self) -> Option<T> {
        self.emit_blocking()
    }

    fn wait_any(emitters: &mut [Self]) {
        block_on(|context| {
            let mut ready = emitters.is_empty();
            for emitter in emitters.iter_mut() {
                ready |= emitter.poll_some(context);
            }
            if ready {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        emitters.iter_mut().for_each(Emitter::rest);
    }
}
