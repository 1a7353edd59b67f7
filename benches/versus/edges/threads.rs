//! Contenders whose ends are threads that block while they wait.

use crate::{BATCH, CAPACITY, Check, Point, group, share};
use corsair::edge::{self, Options, Queue, Ring};
use criterion::BenchmarkGroup;
use criterion::Criterion;
use criterion::measurement::WallTime;
use std::sync::mpsc;
use std::thread;

/// A bounded channel whose ends block their threads.
trait Channel {
    type Sender: Send;
    type Receiver;

    fn open() -> (Self::Sender, Self::Receiver);

    /// Returns another sender of the same channel.
    fn another(sender: &Self::Sender) -> Self::Sender;

    fn send(sender: &mut Self::Sender, point: Point);

    /// Receives a point; returns `None` when all senders have been dropped.
    fn receive(receiver: &mut Self::Receiver) -> Option<Point>;

    /// Sends all points of the batch, which is then empty.
    fn send_all(sender: &mut Self::Sender, batch: &mut Vec<Point>) {
        batch.drain(..).for_each(|point| Self::send(sender, point));
    }

    /// Appends received points: at least one, or none if all senders have been dropped.
    fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>);
}

fn one_by_one<C: Channel>(senders: u64) -> Check {
    let (first, mut receiver) = C::open();
    let more: Vec<_> = (1..senders).map(|_| C::another(&first)).collect();
    thread::scope(|scope| {
        for (number, mut sender) in (0..).zip(std::iter::once(first).chain(more)) {
            scope.spawn(move || {
                share(number, senders).for_each(|point| C::send(&mut sender, point));
            });
        }
        let mut check = Check::default();
        while let Some(point) = C::receive(&mut receiver) {
            check.add(point);
        }
        check
    })
}

fn in_batches<C: Channel>(senders: u64) -> Check {
    let (first, mut receiver) = C::open();
    let more: Vec<_> = (1..senders).map(|_| C::another(&first)).collect();
    thread::scope(|scope| {
        for (number, mut sender) in (0..).zip(std::iter::once(first).chain(more)) {
            scope.spawn(move || {
                let (mut points, mut batch) = (share(number, senders), Vec::new());
                loop {
                    batch.extend(points.by_ref().take(BATCH));
                    if batch.is_empty() {
                        return;
                    }
                    C::send_all(&mut sender, &mut batch);
                }
            });
        }
        let (mut check, mut batch) = (Check::default(), Vec::with_capacity(BATCH));
        loop {
            C::receive_many(&mut receiver, &mut batch);
            if batch.is_empty() {
                return check;
            }
            batch.drain(..).for_each(|point| check.add(point));
        }
    })
}

impl Channel for Ring {
    type Sender = edge::Sender<Point>;
    type Receiver = edge::Receiver<Point>;

    fn open() -> (Self::Sender, Self::Receiver) {
        edge::ring(Options::new(CAPACITY))
    }

    fn another(_: &Self::Sender) -> Self::Sender {
        unreachable!("a ring has one sender")
    }

    fn send(sender: &mut Self::Sender, point: Point) {
        sender.send_blocking(point).expect("the receiver lives");
    }

    fn receive(receiver: &mut Self::Receiver) -> Option<Point> {
        receiver.recv_blocking()
    }

    fn send_all(sender: &mut Self::Sender, batch: &mut Vec<Point>) {
        sender.send_all_blocking(batch).expect("the receiver lives");
    }

    fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>) {
        receiver.recv_many_blocking(batch, BATCH);
    }
}

impl Channel for Queue {
    type Sender = edge::Sender<Point, Queue>;
    type Receiver = edge::Receiver<Point, Queue>;

    fn open() -> (Self::Sender, Self::Receiver) {
        edge::queue(Options::new(CAPACITY))
    }

    fn another(sender: &Self::Sender) -> Self::Sender {
        sender.clone()
    }

    fn send(sender: &mut Self::Sender, point: Point) {
        sender.send_blocking(point).expect("the receiver lives");
    }

    fn receive(receiver: &mut Self::Receiver) -> Option<Point> {
        receiver.recv_blocking()
    }

    fn send_all(sender: &mut Self::Sender, batch: &mut Vec<Point>) {
        sender.send_all_blocking(batch).expect("the receiver lives");
    }

    fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>) {
        receiver.recv_many_blocking(batch, BATCH);
    }
}

/// A channel whose receiver has `recv` and `try_recv`.
macro_rules! channel {
    ($name:ident: $sender:ty, $receiver:ty = $open:expr, $send:ident) => {
        struct $name;

        impl Channel for $name {
            type Sender = $sender;
            type Receiver = $receiver;

            fn open() -> (Self::Sender, Self::Receiver) {
                $open
            }

            fn another(sender: &Self::Sender) -> Self::Sender {
                sender.clone()
            }

            fn send(sender: &mut Self::Sender, point: Point) {
                sender.$send(point).expect("the receiver lives");
            }

            fn receive(receiver: &mut Self::Receiver) -> Option<Point> {
                Receive::one(receiver)
            }

            fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>) {
                batch.extend(Receive::one(receiver));
                Receive::rest(receiver, batch);
            }
        }
    };
}

/// The operations for which the contenders' receivers have different names.
trait Receive {
    fn one(&mut self) -> Option<Point>;
    /// Appends the buffered points, up to [`BATCH`] points in all.
    fn rest(&mut self, batch: &mut Vec<Point>);
}

macro_rules! receive {
    ($receiver:ty, $one:ident, $rest:ident) => {
        impl Receive for $receiver {
            fn one(&mut self) -> Option<Point> {
                self.$one().ok()
            }

            fn rest(&mut self, batch: &mut Vec<Point>) {
                batch.extend(self.$rest().take(BATCH - 1));
            }
        }
    };
}

receive!(mpsc::Receiver<Point>, recv, try_iter);
receive!(crossbeam_channel::Receiver<Point>, recv, try_iter);
receive!(flume::Receiver<Point>, recv, try_iter);

impl Receive for kanal::Receiver<Point> {
    fn one(&mut self) -> Option<Point> {
        self.recv().ok()
    }

    fn rest(&mut self, batch: &mut Vec<Point>) {
        let _ = self.drain_into(batch);
    }
}

impl Receive for async_channel::Receiver<Point> {
    fn one(&mut self) -> Option<Point> {
        self.recv_blocking().ok()
    }

    fn rest(&mut self, batch: &mut Vec<Point>) {
        batch.extend(std::iter::from_fn(|| self.try_recv().ok()).take(BATCH - 1));
    }
}

channel!(Std: mpsc::SyncSender<Point>, mpsc::Receiver<Point> = mpsc::sync_channel(CAPACITY), send);
channel!(Crossbeam: crossbeam_channel::Sender<Point>, crossbeam_channel::Receiver<Point> =
    crossbeam_channel::bounded(CAPACITY), send);
channel!(Flume: flume::Sender<Point>, flume::Receiver<Point> = flume::bounded(CAPACITY), send);
channel!(Kanal: kanal::Sender<Point>, kanal::Receiver<Point> = kanal::bounded(CAPACITY), send);
channel!(Async: async_channel::Sender<Point>, async_channel::Receiver<Point> =
    async_channel::bounded(CAPACITY), send_blocking);

fn both<C: Channel>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    senders: u64,
    batches: bool,
) {
    group.bench_function(name, |bencher| {
        bencher.iter(|| match batches {
            true => in_batches::<C>(senders).all(),
            false => one_by_one::<C>(senders).all(),
        });
    });
}

pub(crate) fn benches(criterion: &mut Criterion) {
    for (senders, to_one) in [(1, "one_to_one"), (4, "four_to_one")] {
        for (batches, how) in [(false, "threads"), (true, "threads_in_batches")] {
            let mut group = group(criterion, &format!("{to_one}/{how}"));
            if senders == 1 {
                both::<Ring>(&mut group, "corsair_ring", senders, batches);
            }
            both::<Queue>(&mut group, "corsair_queue", senders, batches);
            both::<Std>(&mut group, "std_mpsc", senders, batches);
            both::<Crossbeam>(&mut group, "crossbeam", senders, batches);
            both::<Flume>(&mut group, "flume", senders, batches);
            both::<Kanal>(&mut group, "kanal", senders, batches);
            both::<Async>(&mut group, "async_channel", senders, batches);
        }
    }
}
