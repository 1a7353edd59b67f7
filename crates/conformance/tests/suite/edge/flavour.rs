//! A trait for all flavours of edges, so that one test runs with each of them; and messages that count their drops.

use corsair::edge::{self, Aborted, Options, Queue, Receiver, Ring, Sender};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// A flavour of edge, with the blocking operations of a thread on it.
pub trait Flavour: 'static {
    type Edge: edge::Flavour<Message>;

    fn edge(options: Options) -> (Tx<Self>, Rx<Self>);
    fn send(tx: &mut Tx<Self>, message: Message) -> Result<(), Aborted<Message>>;
    fn recv(rx: &mut Rx<Self>) -> Option<Message>;
}

pub type Tx<F> = Sender<Message, <F as Flavour>::Edge>;
pub type Rx<F> = Receiver<Message, <F as Flavour>::Edge>;

/// A ring whose ends wait in `async` code.
pub struct RingAsync;
/// A ring whose ends block their threads.
pub struct RingBlocking;
/// A queue whose ends wait in `async` code.
pub struct QueueAsync;
/// A queue whose ends block their threads.
pub struct QueueBlocking;

/// Makes a type a [`Flavour`].
macro_rules! flavour {
    ($name:ident: $edge:ty = $open:path, $send:expr, $recv:expr) => {
        impl Flavour for $name {
            type Edge = $edge;

            fn edge(options: edge::Options) -> (Tx<Self>, Rx<Self>) {
                $open(options)
            }

            fn send(tx: &mut Tx<Self>, message: Message) -> Result<(), edge::Aborted<Message>> {
                ($send)(tx, message)
            }

            fn recv(rx: &mut Rx<Self>) -> Option<Message> {
                ($recv)(rx)
            }
        }
    };
}

flavour!(RingAsync: Ring = edge::ring,
    |tx: &mut Tx<Self>, message| wait(tx.send(message)), |rx: &mut Rx<Self>| wait(rx.recv()));
flavour!(RingBlocking: Ring = edge::ring,
    Sender::send_blocking, Receiver::recv_blocking);
flavour!(QueueAsync: Queue = edge::queue,
    |tx: &mut Tx<Self>, message| wait(tx.send(message)), |rx: &mut Rx<Self>| wait(rx.recv()));
flavour!(QueueBlocking: Queue = edge::queue,
    Sender::send_blocking, Receiver::recv_blocking);

/// Creates a test for every flavour from each listed function.
macro_rules! on_every_flavour {
    ($($name:ident)*) => {
        on_every_flavour!(ring_async RingAsync: $($name)*);
        on_every_flavour!(ring_blocking RingBlocking: $($name)*);
        on_every_flavour!(queue_async QueueAsync: $($name)*);
        on_every_flavour!(queue_blocking QueueBlocking: $($name)*);
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
    /// Owns memory, so that miri detects a double drop.
    _memory: Box<usize>,
}

impl Drop for Message {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Creates messages and counts dropped ones.
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

/// Polls a future to completion on this thread, which is parked between polls.
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

/// Waits until `happened` returns true.
pub fn until(happened: impl Fn() -> bool) {
    while !happened() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns `count`, or a smaller number under miri.
pub const fn many(count: usize) -> usize {
    if cfg!(miri) { count / 1_000 + 6 } else { count }
}
