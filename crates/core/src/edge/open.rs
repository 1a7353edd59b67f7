//! The functions that create edges.

use super::flavour::{Queue, Ring};
use super::options::Options;
use super::queue::ends as queue_ends;
use super::receiver::Receiver;
use super::ring::ends as ring_ends;
use super::sender::Sender;
use super::weigh::{One, Weigh};

/// Creates a lock-free edge with one sender and one receiver. Its minimum capacity is 1. O(capacity), because
/// its memory is allocated at once.
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (mut tx, mut rx) = edge::ring(Options::new(16));
/// let reader = thread::spawn(move || rx.iter().sum::<u32>());
/// for number in 1..=100 {
///     tx.send_blocking(number)?;
/// }
/// drop(tx); // closes: what is buffered is still received
/// assert_eq!(reader.join().unwrap(), 5050);
/// # Ok::<(), edge::Aborted<u32>>(())
/// ```
pub fn ring<T: Send + 'static>(options: Options) -> (Sender<T>, Receiver<T>) {
    ring_weighed::<T, One>(options)
}

/// Creates an edge like [`ring()`], but for messages with weights.
///
/// ```
/// use corsair::edge::{self, Options, Weigh};
///
/// struct Points;
/// impl Weigh<Vec<f64>> for Points {
///     fn weight(batch: &Vec<f64>) -> u64 {
///         batch.len() as u64
///     }
/// }
///
/// let (mut tx, rx) = edge::ring_weighed::<Vec<f64>, Points>(Options::new(8));
/// tx.try_send(vec![1.0, 2.0, 3.0]).expect("the edge has capacity");
/// let statistics = rx.meter().read();
/// assert_eq!((statistics.sent, statistics.buffered), (3, 1));
/// ```
pub fn ring_weighed<T: Send + 'static, W: Weigh<T>>(
    options: Options,
) -> (Sender<T, Ring<W>>, Receiver<T, Ring<W>>) {
    let (sending, receiving) = ring_ends::<T, W>(&options);
    (Sender::new(sending), Receiver::new(receiving))
}

/// Creates an edge whose senders can be cloned. Waiting senders are served in order. O(capacity) if it blocks when full
/// and has no limit by weight; the memory of all other queues grows as needed.
///
/// With capacity 0 it is a rendezvous: `send` returns when the message has been received.
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (mut tx, mut rx) = edge::queue(Options::new(0));
/// let sender = thread::spawn(move || {
///     tx.send_blocking("hello").expect("the receiver lives");
///     // Here it is certain that the other thread has it.
/// });
/// assert_eq!(rx.recv_blocking(), Some("hello"));
/// sender.join().unwrap();
/// ```
pub fn queue<T: Send + 'static>(options: Options) -> (Sender<T, Queue>, Receiver<T, Queue>) {
    queue_weighed::<T, One>(options)
}

/// Creates an edge like [`queue()`], but for messages with weights.
///
/// ```
/// use corsair::edge::{self, Bytes, Options};
/// let options = Options::new(1_000).weight_limit(1 << 20);
/// let (tx, _rx) = edge::queue_weighed::<Vec<u8>, Bytes>(options);
/// let mut other = tx.clone();
/// other.try_send(vec![0; 1 << 20]).expect("1 MiB");
/// assert!(other.try_send(vec![0]).is_err(), "a byte more is too much");
/// ```
pub fn queue_weighed<T: Send + 'static, W: Weigh<T>>(
    options: Options,
) -> (Sender<T, Queue<W>>, Receiver<T, Queue<W>>) {
    let (sending, receiving) = queue_ends::<T, W>(&options);
    (Sender::new(sending), Receiver::new(receiving))
}
