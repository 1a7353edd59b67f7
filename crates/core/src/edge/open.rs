//! Edges are made here.

use super::collector::Collector;
use super::emitter::Emitter;
use super::flavour::{Queue, Ring};
use super::options::Options;
use super::queue::ends as queue_ends;
use super::ring::ends as ring_ends;
use super::weigh::{One, Weigh};

/// Makes an edge of one collector and one emitter, without locks. It holds at least one message.
/// O(capacity): its memory is there from the beginning.
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (mut tx, mut rx) = edge::ring(Options::new(16));
/// let reader = thread::spawn(move || rx.iter().sum::<u32>());
/// for number in 1..=100 {
///     tx.collect_blocking(number)?;
/// }
/// drop(tx); // closes: what is buffered is still emitted
/// assert_eq!(reader.join().unwrap(), 5050);
/// # Ok::<(), edge::Aborted<u32>>(())
/// ```
pub fn ring<T: Send + 'static>(options: Options) -> (Collector<T>, Emitter<T>) {
    ring_weighed::<T, One>(options)
}

/// As [`ring()`], of messages that are weighed.
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
/// tx.try_collect(vec![1.0, 2.0, 3.0]).expect("there is room");
/// let statistics = rx.meter().read();
/// assert_eq!((statistics.collected, statistics.buffered), (3, 1));
/// ```
pub fn ring_weighed<T: Send + 'static, W: Weigh<T>>(
    options: Options,
) -> (Collector<T, Ring<W>>, Emitter<T, Ring<W>>) {
    let (collecting, emitting) = ring_ends::<T, W>(&options);
    (Collector::new(collecting), Emitter::new(emitting))
}

/// Makes an edge whose collectors can be cloned. Those that wait are served in their order.
/// O(capacity) if it blocks when it is full, without a limit by weight; the memory of other queues grows with what
/// they hold.
///
/// With capacity 0 it is a rendezvous: `collect` ends when the message has been emitted.
///
/// ```
/// use corsair::edge::{self, Options};
/// use std::thread;
///
/// let (mut tx, mut rx) = edge::queue(Options::new(0));
/// let sender = thread::spawn(move || {
///     tx.collect_blocking("hello").expect("the emitter lives");
///     // Here it is certain that the other thread has it.
/// });
/// assert_eq!(rx.emit_blocking(), Some("hello"));
/// sender.join().unwrap();
/// ```
pub fn queue<T: Send + 'static>(options: Options) -> (Collector<T, Queue>, Emitter<T, Queue>) {
    queue_weighed::<T, One>(options)
}

/// As [`queue()`], of messages that are weighed.
///
/// ```
/// use corsair::edge::{self, Bytes, Options};
/// let options = Options::new(1_000).weight_limit(1 << 20);
/// let (tx, _rx) = edge::queue_weighed::<Vec<u8>, Bytes>(options);
/// let mut other = tx.clone();
/// other.try_collect(vec![0; 1 << 20]).expect("1 MiB");
/// assert!(other.try_collect(vec![0]).is_err(), "a byte more is too much");
/// ```
pub fn queue_weighed<T: Send + 'static, W: Weigh<T>>(
    options: Options,
) -> (Collector<T, Queue<W>>, Emitter<T, Queue<W>>) {
    let (collecting, emitting) = queue_ends::<T, W>(&options);
    (Collector::new(collecting), Emitter::new(emitting))
}
