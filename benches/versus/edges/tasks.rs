//! Contenders whose ends are tasks that wait in `async` code, on a runtime with two threads.

use crate::{BATCH, CAPACITY, Check, Point, group, share};
use corsair::edge::{self, Options, Queue, Ring};
use criterion::BenchmarkGroup;
use criterion::Criterion;
use criterion::measurement::WallTime;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// A bounded channel whose ends wait in `async` code.
trait Channel: 'static {
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    fn open() -> (Self::Sender, Self::Receiver);

    /// Returns another sender of the same channel.
    fn another(sender: &Self::Sender) -> Self::Sender;

    fn send(sender: &mut Self::Sender, point: Point) -> impl Future<Output = ()> + Send;

    /// Receives a point; returns `None` when all senders have been dropped.
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = Option<Point>> + Send;

    /// Sends all points of the batch, which is then empty.
    fn send_all(
        sender: &mut Self::Sender,
        batch: &mut Vec<Point>,
    ) -> impl Future<Output = ()> + Send {
        async {
            for point in batch.drain(..) {
                Self::send(sender, point).await;
            }
        }
    }

    /// Appends received points: at least one, or none if all senders have been dropped.
    fn receive_many(
        receiver: &mut Self::Receiver,
        batch: &mut Vec<Point>,
    ) -> impl Future<Output = ()> + Send;
}

async fn one_by_one<C: Channel>(senders: u64) -> Check {
    let (first, mut receiver) = C::open();
    let more: Vec<_> = (1..senders).map(|_| C::another(&first)).collect();
    for (number, mut sender) in (0..).zip(std::iter::once(first).chain(more)) {
        tokio::spawn(async move {
            for point in share(number, senders) {
                C::send(&mut sender, point).await;
            }
        });
    }
    let check = tokio::spawn(async move {
        let mut check = Check::default();
        while let Some(point) = C::receive(&mut receiver).await {
            check.add(point);
        }
        check
    });
    check.await.expect("it does not panic")
}

async fn in_batches<C: Channel>(senders: u64) -> Check {
    let (first, mut receiver) = C::open();
    let more: Vec<_> = (1..senders).map(|_| C::another(&first)).collect();
    for (number, mut sender) in (0..).zip(std::iter::once(first).chain(more)) {
        tokio::spawn(async move {
            let (mut points, mut batch) = (share(number, senders), Vec::new());
            loop {
                batch.extend(points.by_ref().take(BATCH));
                if batch.is_empty() {
                    return;
                }
                C::send_all(&mut sender, &mut batch).await;
            }
        });
    }
    let check = tokio::spawn(async move {
        let (mut check, mut batch) = (Check::default(), Vec::with_capacity(BATCH));
        loop {
            C::receive_many(&mut receiver, &mut batch).await;
            if batch.is_empty() {
                return check;
            }
            batch.drain(..).for_each(|point| check.add(point));
        }
    });
    check.await.expect("it does not panic")
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

    async fn send(sender: &mut Self::Sender, point: Point) {
        sender.send(point).await.expect("the receiver lives");
    }

    async fn receive(receiver: &mut Self::Receiver) -> Option<Point> {
        receiver.recv().await
    }

    async fn send_all(sender: &mut Self::Sender, batch: &mut Vec<Point>) {
        sender.send_all(batch).await.expect("the receiver lives");
    }

    async fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>) {
        receiver.recv_many(batch, BATCH).await;
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

    async fn send(sender: &mut Self::Sender, point: Point) {
        sender.send(point).await.expect("the receiver lives");
    }

    async fn receive(receiver: &mut Self::Receiver) -> Option<Point> {
        receiver.recv().await
    }

    async fn send_all(sender: &mut Self::Sender, batch: &mut Vec<Point>) {
        sender.send_all(batch).await.expect("the receiver lives");
    }

    async fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>) {
        receiver.recv_many(batch, BATCH).await;
    }
}

struct Tokio;

impl Channel for Tokio {
    type Sender = mpsc::Sender<Point>;
    type Receiver = mpsc::Receiver<Point>;

    fn open() -> (Self::Sender, Self::Receiver) {
        mpsc::channel(CAPACITY)
    }

    fn another(sender: &Self::Sender) -> Self::Sender {
        sender.clone()
    }

    async fn send(sender: &mut Self::Sender, point: Point) {
        sender.send(point).await.expect("the receiver lives");
    }

    async fn receive(receiver: &mut Self::Receiver) -> Option<Point> {
        receiver.recv().await
    }

    async fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>) {
        receiver.recv_many(batch, BATCH).await;
    }
}

/// A channel whose receiver can wait for the next message in a future, and can return buffered messages at
/// once.
macro_rules! channel {
    ($name:ident: $sender:ty, $receiver:ty = $open:expr, $send:ident, $receive:ident, $rest:expr) => {
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

            async fn send(sender: &mut Self::Sender, point: Point) {
                let sent = sender.$send(point).await;
                assert!(sent.is_ok(), "the receiver lives");
            }

            async fn receive(receiver: &mut Self::Receiver) -> Option<Point> {
                receiver.$receive().await.ok()
            }

            async fn receive_many(receiver: &mut Self::Receiver, batch: &mut Vec<Point>) {
                batch.extend(receiver.$receive().await.ok());
                let rest: fn(&mut Self::Receiver, &mut Vec<Point>) = $rest;
                rest(receiver, batch);
            }
        }
    };
}

channel!(Flume: flume::Sender<Point>, flume::Receiver<Point> = flume::bounded(CAPACITY),
    send_async, recv_async, |receiver, batch| batch.extend(receiver.try_iter().take(BATCH - 1)));
channel!(Kanal: kanal::AsyncSender<Point>, kanal::AsyncReceiver<Point> =
kanal::bounded_async(CAPACITY), send, recv, |receiver, batch| {
    let _ = receiver.drain_into(batch);
});
channel!(Async: async_channel::Sender<Point>, async_channel::Receiver<Point> =
async_channel::bounded(CAPACITY), send, recv, |receiver, batch| {
    batch.extend(std::iter::from_fn(|| receiver.try_recv().ok()).take(BATCH - 1));
});
channel!(Tachyonix: tachyonix::Sender<Point>, tachyonix::Receiver<Point> =
tachyonix::channel(CAPACITY), send, recv, |receiver, batch| {
    batch.extend(std::iter::from_fn(|| receiver.try_recv().ok()).take(BATCH - 1));
});

fn both<C: Channel>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    runtime: &Runtime,
    name: &str,
    senders: u64,
    batches: bool,
) {
    group.bench_function(name, |bencher| {
        bencher.iter(|| match batches {
            true => runtime.block_on(in_batches::<C>(senders)).all(),
            false => runtime.block_on(one_by_one::<C>(senders)).all(),
        });
    });
}

pub(crate) fn benches(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .expect("a runtime");
    for (senders, to_one) in [(1, "one_to_one"), (4, "four_to_one")] {
        for (batches, how) in [(false, "tasks"), (true, "tasks_in_batches")] {
            let mut group = group(criterion, &format!("{to_one}/{how}"));
            if senders == 1 {
                both::<Ring>(&mut group, &runtime, "corsair_ring", senders, batches);
            }
            both::<Queue>(&mut group, &runtime, "corsair_queue", senders, batches);
            both::<Tokio>(&mut group, &runtime, "tokio_mpsc", senders, batches);
            both::<Flume>(&mut group, &runtime, "flume", senders, batches);
            both::<Kanal>(&mut group, &runtime, "kanal", senders, batches);
            both::<Async>(&mut group, &runtime, "async_channel", senders, batches);
            both::<Tachyonix>(&mut group, &runtime, "tachyonix", senders, batches);
        }
    }
}
