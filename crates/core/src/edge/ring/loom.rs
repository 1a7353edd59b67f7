//! Loom models of the two ends of a ring and an abort, checked in every order.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p corsair --release --lib edge::ring::loom`

use crate::edge::{AbortHandle, Options, Overflow, State, TryRecvError, TrySendError, ring};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};

/// A message that counts its live instances; the counter is not part of the model.
struct Counted(u32, Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        assert!(self.1.fetch_sub(1, Relaxed) > 0, "dropped twice");
    }
}

#[derive(Clone)]
struct Alive(Arc<AtomicU32>);

impl Alive {
    fn new() -> Alive {
        Alive(Arc::new(AtomicU32::new(0)))
    }

    fn message(&self, number: u32) -> Counted {
        self.0.fetch_add(1, Relaxed);
        Counted(number, Arc::clone(&self.0))
    }

    /// Checks that no instance is left after both ends were dropped.
    fn none(&self) {
        assert_eq!(self.0.load(Relaxed), 0, "some message was not dropped");
    }
}

/// Explores all orders with at most `preemptions` preemptions.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}

// Guarantee: core-97.
#[test]
fn nothing_is_sent_or_received_after_an_abort() {
    bounded(3).check(|| {
        let alive = Alive::new();
        let handle = AbortHandle::new();
        let (mut tx, mut rx) = ring(Options::new(2).abort_handle(handle.clone()));
        tx.try_send(alive.message(0))
            .expect("the edge has capacity");
        // True once a thread has observed the abort.
        let known = Arc::new(AtomicBool::new(false));
        let aborter = {
            let known = Arc::clone(&known);
            thread::spawn(move || {
                handle.abort();
                known.store(true, Ordering::Release);
            })
        };
        let sender = {
            let (known, message) = (Arc::clone(&known), alive.message(1));
            thread::spawn(move || {
                let before = known.load(Ordering::Acquire);
                match tx.try_send(message) {
                    Ok(()) => assert!(!before, "sent after the abort"),
                    Err(TrySendError::Aborted(message)) => {
                        assert_eq!(message.0, 1);
                        known.store(true, Ordering::Release);
                    }
                    Err(TrySendError::Full(_)) => panic!("the edge has capacity"),
                }
                tx
            })
        };
        let mut received = 0;
        for _ in 0..2 {
            let before = known.load(Ordering::Acquire);
            match rx.try_recv() {
                Ok(message) => {
                    assert!(!before, "received after the abort");
                    assert_eq!(message.0, received);
                    received += 1;
                }
                Err(TryRecvError::Empty) => assert!(!before),
                Err(TryRecvError::Aborted) => known.store(true, Ordering::Release),
                Err(TryRecvError::Closed) => panic!("the edge is not closed"),
            }
        }
        aborter.join().expect("it does not panic");
        let tx = sender.join().expect("it does not panic");
        let read = rx.meter().read();
        assert_eq!(read.state, State::Aborted);
        assert_eq!(read.received, u64::from(received));
        assert_eq!(read.sent, read.received + read.dropped_by_abort);
        alive.none();
        drop((tx, rx));
        alive.none();
    });
}

// Guarantee: core-97.
#[test]
fn a_batch_is_sent_whole_or_given_back_whole_at_an_abort() {
    loom::model(|| {
        let alive = Alive::new();
        let (mut tx, mut rx) = ring(Options::new(2));
        let sender = {
            let mut batch = vec![alive.message(0), alive.message(1)];
            thread::spawn(move || {
                let result = tx.send_all_blocking(&mut batch);
                assert_eq!(batch.len(), if result.is_ok() { 0 } else { 2 });
            })
        };
        let mut batch = Vec::new();
        let received = rx.try_recv_many(&mut batch, 2).unwrap_or(0);
        rx.abort();
        assert!(received == 0 || received == 2);
        assert_eq!(
            rx.try_recv().err(),
            if received == 2 && rx.state() == State::Closed {
                Some(TryRecvError::Closed)
            } else {
                Some(TryRecvError::Aborted)
            }
        );
        sender.join().expect("it does not panic");
        drop(batch);
        drop(rx);
        alive.none();
    });
}

// Guarantee: core-102.
#[test]
fn a_receiver_that_waits_is_woken_by_a_message_and_by_the_close() {
    bounded(3).check(|| {
        let (mut tx, mut rx) = ring::<u32>(Options::new(2));
        let sender = thread::spawn(move || {
            tx.try_send(1).expect("the edge has capacity");
        });
        assert_eq!(rx.recv_blocking(), Some(1));
        assert_eq!(rx.recv_blocking(), None);
        assert_eq!(rx.state(), State::Closed);
        sender.join().expect("it does not panic");
    });
}

// Guarantee: core-102.
#[test]
fn a_sender_that_waits_is_woken_when_there_is_room() {
    bounded(3).check(|| {
        let (mut tx, mut rx) = ring::<u32>(Options::new(1));
        let sender = thread::spawn(move || {
            tx.send_blocking(1).expect("the edge is not aborted");
            tx.send_blocking(2).expect("the edge is not aborted");
        });
        assert_eq!(rx.recv_blocking(), Some(1));
        assert_eq!(rx.recv_blocking(), Some(2));
        sender.join().expect("it does not panic");
    });
}

// Guarantee: core-98.
#[test]
fn ends_that_wait_are_woken_by_an_abort() {
    bounded(3).check(|| {
        let handle = AbortHandle::new();
        let options = Options::new(1).abort_handle(handle.clone());
        let (mut full, _rx) = ring::<u32>(options.clone());
        let (_tx, mut empty) = ring::<u32>(options);
        full.try_send(1).expect("the edge has capacity");
        let sender = thread::spawn(move || {
            let refused = full.send_blocking(2).expect_err("the edge is full");
            assert_eq!(refused.into_inner(), 2);
        });
        let aborter = thread::spawn(move || handle.abort());
        assert_eq!(empty.recv_blocking(), None);
        assert!(empty.is_aborted());
        aborter.join().expect("it does not panic");
        sender.join().expect("it does not panic");
    });
}

#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

// Guarantee: core-102.
#[test]
fn a_receiver_polled_again_is_woken_by_its_last_waker() {
    bounded(3).check(|| {
        let (mut tx, mut rx) = ring::<u32>(Options::new(2));
        let sender = thread::spawn(move || {
            tx.try_send(1).expect("the edge has capacity");
            tx.try_send(2).expect("the edge has capacity");
            tx
        });
        let wakes = [(); 3].map(|()| Arc::new(Woken::default()));
        let mut received = 0;
        let mut pending = None;
        for (at, woken) in wakes.iter().enumerate() {
            let waker = Waker::from(Arc::clone(woken));
            match rx.poll_recv(&mut Context::from_waker(&waker)) {
                Poll::Ready(message) => {
                    received += 1;
                    assert_eq!(message, Some(received));
                    pending = None;
                }
                Poll::Pending => pending = Some(at),
            }
        }
        let _tx = sender.join().expect("it does not panic");
        if let Some(at) = pending.filter(|_| received < 2) {
            assert!(
                wakes[at].0.load(Relaxed) > 0,
                "the task would never be polled again"
            );
        }
    });
}

// Guarantee: core-101.
#[test]
fn the_oldest_is_taken_by_one_end() {
    bounded(3).check(|| {
        let alive = Alive::new();
        let (mut tx, mut rx) = ring(Options::new(1).overflow(Overflow::DropOldest));
        let meter = tx.meter();
        // Makes the receiver return cells to the sender.
        tx.try_send(alive.message(0))
            .expect("the edge has capacity");
        let mut last = rx.try_recv().map(|message| message.0).ok();
        assert_eq!(last, Some(0));
        let sender = {
            let messages = [1, 2, 3].map(|number| alive.message(number));
            thread::spawn(move || {
                for message in messages {
                    assert!(tx.try_send(message).is_ok());
                }
            })
        };
        for _ in 0..2 {
            if let Ok(message) = rx.try_recv() {
                assert!(last < Some(message.0), "older ones do not come later");
                last = Some(message.0);
            }
        }
        sender.join().expect("it does not panic");
        let read = meter.read();
        assert_eq!(read.sent, 4);
        assert_eq!(
            read.received + read.dropped_by_overflow + read.buffered as u64,
            4
        );
        drop(rx);
        alive.none();
    });
}

#[test]
fn the_oldest_is_dropped_once_if_an_abort_comes() {
    bounded(3).check(|| {
        let alive = Alive::new();
        let handle = AbortHandle::new();
        let options = Options::new(1).abort_handle(handle.clone());
        let (mut tx, mut rx) = ring(options.overflow(Overflow::DropOldest));
        tx.try_send(alive.message(0))
            .expect("the edge has capacity");
        let sender = {
            let message = alive.message(1);
            thread::spawn(move || drop(tx.try_send(message)))
        };
        let aborter = thread::spawn(move || handle.abort());
        drop(rx.try_recv());
        sender.join().expect("it does not panic");
        aborter.join().expect("it does not panic");
        alive.none();
    });
}

// Guarantee: core-100.
#[test]
fn both_ends_may_go_at_once() {
    loom::model(|| {
        let alive = Alive::new();
        let (mut tx, rx) = ring(Options::new(2));
        let message = alive.message(0);
        let sender = thread::spawn(move || {
            drop(tx.try_send(message));
        });
        drop(rx);
        sender.join().expect("it does not panic");
        alive.none();
    });
}
