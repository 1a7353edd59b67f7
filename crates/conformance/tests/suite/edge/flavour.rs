//! All flavours of edges behind one trait, so that one test runs over each; and messages that count.

use corsair::edge::{
    self, Aborted, BlockingCollect, BlockingEmit, Collect, Emit, Options, TryCollect, TryEmit,
};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// A flavour, and how a thread waits with it.
pub trait Flavour: 'static {
    type Tx: TryCollect<Message = Message> + Send + 'static;
    type Rx: TryEmit<Message = Message> + Send + 'static;

    fn edge(options: Options) -> (Self::Tx, Self::Rx);
    fn collect(tx: &mut Self::Tx, message: Message) -> Result<(), Aborted<Message>>;
    fn emit(rx: &mut Self::Rx) -> Option<Message>;
}

/// The ring, waited for in `async` code.
pub struct RingAsync;
/// The ring, blocking.
pub struct RingBlocking;
/// The edge of crossbeam channels.
pub struct Crossbeam;
/// The edge of tokio channels.
pub struct Tokio;

impl Flavour for RingAsync {
    type Tx = edge::Collector<Message>;
    type Rx = edge::Emitter<Message>;

    fn edge(options: Options) -> (Self::Tx, Self::Rx) {
        edge::ring(options)
    }

    fn collect(tx: &mut Self::Tx, message: Message) -> Result<(), Aborted<Message>> {
        wait(tx.collect(message))
    }

    fn emit(rx: &mut Self::Rx) -> Option<Message> {
        wait(rx.emit())
    }
}

impl Flavour for RingBlocking {
    type Tx = edge::Collector<Message>;
    type Rx = edge::Emitter<Message>;

    fn edge(options: Options) -> (Self::Tx, Self::Rx) {
        edge::ring(options)
    }

    fn collect(tx: &mut Self::Tx, message: Message) -> Result<(), Aborted<Message>> {
        tx.collect_blocking(message)
    }

    fn emit(rx: &mut Self::Rx) -> Option<Message> {
        rx.emit_blocking()
    }
}

impl Flavour for Crossbeam {
    type Tx = edge::crossbeam::Collector<Message>;
    type Rx = edge::crossbeam::Emitter<Message>;

    fn edge(options: Options) -> (Self::Tx, Self::Rx) {
        edge::crossbeam(options)
    }

    fn collect(tx: &mut Self::Tx, message: Message) -> Result<(), Aborted<Message>> {
        tx.collect_blocking(message)
    }

    fn emit(rx: &mut Self::Rx) -> Option<Message> {
        rx.emit_blocking()
    }
}

impl Flavour for Tokio {
    type Tx = edge::tokio::Collector<Message>;
    type Rx = edge::tokio::Emitter<Message>;

    fn edge(options: Options) -> (Self::Tx, Self::Rx) {
        edge::tokio(options)
    }

    fn collect(tx: &mut Self::Tx, message: Message) -> Result<(), Aborted<Message>> {
        wait(tx.collect(message))
    }

    fn emit(rx: &mut Self::Rx) -> Option<Message> {
        wait(rx.emit())
    }
}

/// A test of each of these functions on every flavour.
macro_rules! on_every_flavour {
    ($($name:ident)*) => {
        on_every_flavour!(ring_async RingAsync: $($name)*);
        on_every_flavour!(ring_blocking RingBlocking: $($name)*);
        on_every_flavour!(crossbeam Crossbeam: $($name)*);
        on_every_flavour!(tokio Tokio: $($name)*);
    };
    ($module:ident $flavour:ident: $($name:ident)*) => {
        mod $module {
            $(#[test] fn $name() { super::$name::<crate::edge::flavour::$flavour>(); })*
        }
    };
}

/// A message that counts its drops.
#[derive(Debug)]
pub struct Message {
    pub number: usize,
    drops: Arc<AtomicUsize>,
    /// So that miri sees a message dropped twice.
    _memory: Box<usize>,
}

impl Drop for Message {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes messages and counts how many of them have been dropped.
#[derive(Clone, Default)]
pub struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub fn message(&self, number: usize) -> Message {
        Message {
            number,
            drops: Arc::clone(&self.0),
            _memory: Box::new(number),
        }
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Polls a future on this thread, which sleeps in between.
pub fn wait<R>(future: impl Future<Output = R>) -> R {
    struct Sleeper(Thread);
    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls a future once and drops it.
pub fn once<R>(future: impl Future<Output = R>) -> Poll<R> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Waits until something has happened on another thread.
pub fn until(happened: impl Fn() -> bool) {
    while !happened() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Fewer under miri.
pub const fn many(count: usize) -> usize {
    if cfg!(miri) { count / 1_000 + 6 } else { count }
}
