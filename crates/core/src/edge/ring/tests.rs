//! Small tests of all code that accesses memory by hand, for miri.
#![allow(unsafe_code, reason = "a leaked message is freed")]

use crate::edge::park::block_on;
use crate::edge::{
    AbortHandle, Aborted, Options, Overflow, Receiver, Sender, State, TryRecvError, TrySendError,
    ring,
};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

/// The number of messages that go through an edge between threads.
const MANY: usize = if cfg!(miri) { 60 } else { 100_000 };

/// A message that counts its drops and owns memory.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>, Box<usize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn wait<R>(future: impl Future<Output = R>) -> R {
    let mut future = pin!(future);
    block_on(|context| future.as_mut().poll(context))
}

/// Polls once, with a waker that does nothing.
fn once<R>(future: impl Future<Output = R>) -> Poll<R> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn policies() -> impl Iterator<Item = Options> {
    Overflow::ALL
        .into_iter()
        .map(|policy| Options::new(4).overflow(policy))
}

#[test]
fn messages_come_out_in_order_around_the_ring() {
    for options in policies() {
        let (mut tx, mut rx) = ring::<Box<usize>>(options.clone());
        let mut next = 0;
        for round in 0..20 {
            let many = round % 5;
            for message in next..next + many {
                tx.try_send(Box::new(message))
                    .expect("the edge has capacity");
            }
            for message in next..next + many {
                assert_eq!(rx.try_recv().as_deref(), Ok(&message), "{options:?}");
            }
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            next += many;
        }
    }
}

#[test]
fn batches_go_through_whole_and_in_order() {
    for options in policies() {
        let (mut tx, mut rx) = ring::<Box<usize>>(options);
        let mut next = 0;
        for round in 0..20 {
            let mut batch: Vec<_> = (next..next + round % 5).map(Box::new).collect();
            next += batch.len();
            tx.send_all_blocking(&mut batch)
                .expect("the edge has capacity");
            assert!(batch.is_empty());
            let mut out = Vec::new();
            while rx.try_recv_many(&mut out, 3).is_ok() {}
            assert!(out.iter().map(|it| **it).eq(next - out.len()..next));
        }
    }
}

// Guarantee: core-103.
#[test]
fn a_batch_longer_than_the_edge_goes_through_in_parts() {
    let (mut tx, mut rx) = ring::<Box<usize>>(Options::new(3));
    let mut batch: Vec<_> = (0..10).map(Box::new).collect();
    assert!(once(tx.send_all(&mut batch)).is_pending());
    assert_eq!(
        batch.len(),
        7,
        "unsent messages remain when the future is dropped"
    );
    assert!(batch.iter().map(|it| **it).eq(3..10));
    let sender = thread::spawn(move || tx.send_all_blocking(&mut batch));
    let mut out = Vec::new();
    while rx.recv_many_blocking(&mut out, 2) > 0 {}
    assert!(out.iter().map(|it| **it).eq(0..10));
    assert_eq!(sender.join().expect("it does not panic"), Ok(()));
    assert_eq!(rx.state(), State::Closed);
}

#[test]
fn a_leaked_batch_has_no_message_twice() {
    let (mut tx, mut rx) = ring::<Box<usize>>(Options::new(2));
    let mut messages: Vec<_> = (0..5).map(Box::new).collect();
    let mut future = Box::pin(tx.send_all(&mut messages));
    let poll = future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending());
    let rest = Box::leak(Box::new(future));
    assert_eq!(rx.try_recv().as_deref(), Ok(&0));
    assert!(rx.try_recv().is_ok());
    // Frees the message, so that miri finds no leak.
    // SAFETY: the pointer comes from the leak above.
    drop(unsafe { Box::from_raw(rest) });
    assert_eq!(messages.len(), 3);
}

// Guarantee: core-100.
#[test]
fn every_message_is_dropped_once_however_the_edge_ends() {
    type Ending = fn(&AbortHandle, &mut Sender<Counted>, &mut Receiver<Counted>);
    let endings: [Ending; 4] = [
        |handle, _, _| handle.abort(),
        |_, tx, _| tx.abort(),
        |_, _, rx| rx.abort(),
        |_, tx, _| tx.close(),
    ];
    for options in policies() {
        for end in endings {
            let drops = Arc::new(AtomicUsize::new(0));
            let handle = AbortHandle::new();
            let (mut tx, mut rx) = ring(options.clone().abort_handle(handle.clone()));
            let message = |number| Counted(Arc::clone(&drops), Box::new(number));
            for number in 0..3 {
                tx.try_send(message(number)).expect("the edge has capacity");
            }
            assert_eq!(*rx.try_recv().expect("there are three").1, 0);
            tx.try_send(message(3)).expect("the edge has capacity");
            end(&handle, &mut tx, &mut rx);
            let refused = tx.try_send(message(4));
            assert!(matches!(refused, Err(TrySendError::Aborted(_))));
            drop(refused);
            drop(rx);
            drop(tx);
            assert_eq!(drops.load(Ordering::Relaxed), 5, "{options:?}");
        }
    }
}

#[test]
fn the_oldest_make_room_while_the_receiver_reads() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (mut tx, mut rx) = ring(Options::new(3).overflow(Overflow::DropOldest));
    let meter = rx.meter();
    let receiver = thread::spawn(move || {
        let (mut last, mut count, mut batch) = (None, 0, Vec::new());
        loop {
            if count % 3 == 0 {
                batch.extend(rx.recv_blocking());
            } else {
                rx.recv_many_blocking(&mut batch, 2);
            }
            if batch.is_empty() {
                return count;
            }
            for Counted(_, number) in &batch {
                assert!(last < Some(**number), "older ones do not come later");
                last = Some(**number);
                count += 1;
            }
            batch.clear();
        }
    });
    for number in 0..MANY {
        tx.send_blocking(Counted(Arc::clone(&drops), Box::new(number)))
            .expect("the edge is not aborted");
    }
    drop(tx);
    let received = receiver.join().expect("it does not panic");
    assert_eq!(drops.load(Ordering::Relaxed), MANY);
    let statistics = meter.read();
    assert_eq!(statistics.received as usize, received);
    assert_eq!(
        statistics.dropped_by_overflow as usize,
        MANY - received,
        "{statistics:?}"
    );
}

#[test]
fn threads_exchange_messages_one_by_one_and_in_batches() {
    let (mut tx, mut rx) = ring::<Box<usize>>(Options::new(5));
    let sender = thread::spawn(move || {
        let mut batch = Vec::new();
        for number in 0..MANY {
            if number % 3 == 0 {
                tx.send_all_blocking(&mut batch)?;
                wait(tx.send(Box::new(number))).map_err(|_| Aborted(()))?;
            } else {
                batch.push(Box::new(number));
            }
        }
        tx.send_all_blocking(&mut batch)
    });
    let mut expected = 0;
    while let Some(message) = wait(rx.recv()) {
        assert_eq!(*message, expected);
        expected += 1;
        let mut many = Vec::new();
        if expected % 7 == 0 && wait(rx.recv_many(&mut many, 4)) > 0 {
            for message in many {
                assert_eq!(*message, expected);
                expected += 1;
            }
        }
    }
    assert_eq!(expected, MANY);
    assert_eq!(sender.join().expect("it does not panic"), Ok(()));
}

#[test]
fn one_thread_waits_for_several_rings() {
    let (mut tx, first) = ring::<u8>(Options::new(1));
    let (other, second) = ring::<u8>(Options::new(1));
    let mut both = [first, second];
    let sender = thread::spawn(move || tx.send_blocking(1));
    Receiver::wait_any(&mut both);
    assert_eq!(both[0].try_recv(), Ok(1));
    assert_eq!(sender.join().expect("it does not panic"), Ok(()));
    drop(other);
    Receiver::wait_any(&mut both[1..]);
    assert_eq!(both[1].try_recv(), Err(TryRecvError::Closed));
    Receiver::wait_any(&mut both[..0]);
}
