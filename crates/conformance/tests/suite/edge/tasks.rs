//! Edges in `async` code: futures that are dropped before completion, batches, and tasks under load.

use super::flavour::{Drops, Flavour, many, once, wait};
use corsair::edge::{AbortHandle, Options, Overflow, State, TryRecvError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Creates a test for both flavours from each listed function.
macro_rules! on_every_async_flavour {
    ($($name:ident)*) => {
        mod over_ring { $(#[test] fn $name() { super::$name::<crate::edge::flavour::RingAsync>(); })* }
        mod over_queue { $(#[test] fn $name() { super::$name::<crate::edge::flavour::QueueAsync>(); })* }
    };
}

on_every_async_flavour! {
    // Guarantee: core-103.
    a_recv_that_is_dropped_takes_nothing
    // Guarantee: core-103.
    a_send_that_is_dropped_drops_its_message
    // Guarantee: core-103.
    room_that_was_waited_for_is_there
    ready_ends_with_the_edge
    // Guarantee: core-100.
    tasks_lose_nothing_when_an_abort_comes
    // Guarantee: core-100.
    batches_of_tasks_lose_nothing_when_an_abort_comes
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .expect("a runtime")
}

fn a_recv_that_is_dropped_takes_nothing<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(2));
    for number in 0..5 {
        assert!(once(rx.recv()).is_pending());
        tx.try_send(drops.message(number)).expect("there is room");
        assert_eq!(wait(rx.recv()).map(|it| it.number), Some(number));
    }
    assert_eq!(rx.try_recv().err(), Some(TryRecvError::Empty));
}

fn a_send_that_is_dropped_drops_its_message<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(1));
    wait(tx.send(drops.message(0))).expect("there is room");
    assert!(once(tx.send(drops.message(1))).is_pending());
    assert_eq!(drops.count(), 1);
    assert_eq!(tx.meter().read().sent, 1);
    assert_eq!(wait(rx.recv()).map(|it| it.number), Some(0));
    assert_eq!(rx.try_recv().err(), Some(TryRecvError::Empty));
}

fn room_that_was_waited_for_is_there<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(1));
    wait(tx.ready()).expect("it is open");
    tx.try_send(drops.message(0)).expect("there is room");
    assert!(once(tx.ready()).is_pending());
    drop(rx.try_recv());
    wait(tx.ready()).expect("it is open");
    tx.try_send(drops.message(1)).expect("there is room");
}

fn ready_ends_with_the_edge<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, rx) = F::edge(Options::new(1));
    tx.try_send(drops.message(0)).expect("there is room");
    rx.abort();
    assert!(wait(tx.ready()).is_err());
    let (mut tx, _rx) = F::edge(Options::new(1));
    tx.close();
    assert!(wait(tx.ready()).is_err());
}

fn tasks_lose_nothing_when_an_abort_comes<F: Flavour>() {
    let runtime = runtime();
    for (round, policy) in (0..many(40)).zip(Overflow::ALL.into_iter().cycle()) {
        let drops = Drops::default();
        let handle = AbortHandle::new();
        let options = Options::new(1 + round % 5).overflow(policy);
        let (mut tx, mut rx) = F::edge(options.abort_handle(handle.clone()));
        let meter = tx.meter();
        let made = runtime.block_on(async {
            let made = drops.clone();
            let sender = tokio::spawn(async move {
                for number in 0..many(20_000) {
                    if tx.send(made.message(number)).await.is_err() {
                        return number + 1;
                    }
                }
                many(20_000)
            });
            let receiver = tokio::spawn(async move {
                let mut last = None;
                while let Some(message) = rx.recv().await {
                    assert!(last < Some(message.number), "older ones do not come later");
                    last = Some(message.number);
                }
            });
            tokio::task::yield_now().await;
            std::thread::sleep(Duration::from_micros(50 * round as u64));
            handle.abort();
            receiver.await.expect("it does not panic");
            sender.await.expect("it does not panic")
        });
        assert_eq!(drops.count(), made, "every message is dropped once");
        let read = meter.read();
        assert_eq!(
            read.sent,
            read.received + read.dropped_by_abort + read.dropped_by_overflow,
            "{read:?}"
        );
    }
}

fn batches_of_tasks_lose_nothing_when_an_abort_comes<F: Flavour>() {
    let runtime = runtime();
    for round in 0..many(40) {
        let drops = Drops::default();
        let (mut tx, mut rx) = F::edge(Options::new(1 + round % 20));
        let meter = tx.meter();
        let handle = AbortHandle::new();
        let until = many(5_000) * (round % 3 + 1) / 3;
        let (given_back, received) = runtime.block_on(async {
            let made = drops.clone();
            let sender = tokio::spawn(async move {
                let mut batch = Vec::new();
                for number in 0..many(10_000) {
                    batch.push(made.message(number));
                    if number % 13 == round % 13 && tx.send_all(&mut batch).await.is_err() {
                        return (number + 1, batch.len());
                    }
                }
                tx.send_all(&mut batch)
                    .await
                    .expect_err("the receiver goes before");
                (many(10_000), batch.len())
            });
            let receiver = tokio::spawn(async move {
                let mut batch = Vec::new();
                let mut expected = 0;
                while expected < until && rx.recv_many(&mut batch, 7).await > 0 {
                    for message in batch.drain(..) {
                        assert_eq!(message.number, expected);
                        expected += 1;
                    }
                }
                expected
            });
            let received = receiver.await.expect("it does not panic");
            handle.abort();
            let (made, left) = sender.await.expect("it does not panic");
            assert_eq!(drops.count(), made);
            (made - left, received)
        });
        let read = meter.read();
        assert_eq!(read.state, State::Aborted);
        assert_eq!(read.sent as usize, given_back);
        assert_eq!(read.received as usize, received);
        assert_eq!(read.sent, read.received + read.dropped_by_abort);
    }
}
