//! Loom models of the two ends of a queue and an abort, checked in every order.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p corsair --release --lib edge::queue::loom`

use crate::edge::{
    AbortHandle, Aborted, Options, SendTimeoutError, State, TryRecvError, TrySendError, queue,
};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Explores all orders with at most `preemptions` preemptions.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}

/// Returns the options of a queue with a ring, and of a queue under a lock. Any limit by weight selects a queue under a
/// lock.
fn of_both_kinds(capacity: usize) -> [Options; 2] {
    let options = Options::new(capacity);
    [options.clone(), options.weight_limit(u64::MAX - 1)]
}

// Guarantee: core-97.
#[test]
fn nothing_is_sent_or_received_after_an_abort() {
    for options in of_both_kinds(2) {
        after_an_abort(options);
    }
}

fn after_an_abort(options: Options) {
    bounded(2).check(move || {
        let handle = AbortHandle::new();
        let (mut tx, mut rx) = queue(options.clone().abort_handle(handle.clone()));
        let meter = tx.meter();
        tx.try_send(0).expect("the edge has capacity");
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
            let known = Arc::clone(&known);
            thread::spawn(move || {
                let before = known.load(Ordering::Acquire);
                match tx.try_send(1) {
                    Ok(()) => assert!(!before, "sent after the abort"),
                    Err(TrySendError::Aborted(message)) => {
                        assert_eq!(message, 1);
                        known.store(true, Ordering::Release);
                    }
                    Err(TrySendError::Full(_)) => panic!("the edge has capacity"),
                }
            })
        };
        let mut received = 0;
        for _ in 0..2 {
            let before = known.load(Ordering::Acquire);
            match rx.try_recv() {
                Ok(message) => {
                    assert!(!before, "received after the abort");
                    assert_eq!(message, received);
                    received += 1;
                }
                Err(TryRecvError::Aborted) => known.store(true, Ordering::Release),
                // The sender was dropped.
                Err(TryRecvError::Empty | TryRecvError::Closed) => {}
            }
        }
        aborter.join().expect("it does not panic");
        sender.join().expect("it does not panic");
        let read = meter.read();
        assert_eq!(read.received, received);
        assert_eq!(read.sent, read.received + read.dropped_by_abort);
        assert_eq!(read.buffered, 0);
    });
}

// Guarantee: core-102.
#[test]
fn senders_that_wait_are_all_served() {
    for options in of_both_kinds(1) {
        all_are_served(options);
    }
}

fn all_are_served(options: Options) {
    bounded(2).check(move || {
        let (tx, mut rx) = queue::<u32>(options.clone());
        let senders = [1, 2].map(|number| {
            let mut tx = tx.clone();
            thread::spawn(move || tx.send_blocking(number))
        });
        drop(tx);
        let mut sum = 0;
        while let Some(number) = rx.recv_blocking() {
            sum += number;
        }
        assert_eq!((sum, rx.state()), (3, State::Closed));
        for sender in senders {
            assert_eq!(sender.join().expect("it does not panic"), Ok(()));
        }
    });
}

// Guarantee: core-109.
#[test]
fn at_a_rendezvous_a_message_has_been_received_when_send_ends() {
    bounded(3).check(|| {
        let (mut tx, mut rx) = queue::<u32>(Options::new(0));
        let received = Arc::new(AtomicBool::new(false));
        let sender = {
            let received = tx.meter();
            thread::spawn(move || {
                tx.send_blocking(1).expect("the edge is not aborted");
                assert_eq!(received.read().received, 1);
                tx.send_blocking(2).expect("the edge is not aborted");
            })
        };
        assert_eq!(rx.recv_blocking(), Some(1));
        received.store(true, Ordering::Relaxed);
        assert_eq!(rx.recv_blocking(), Some(2));
        assert_eq!(rx.recv_blocking(), None);
        sender.join().expect("it does not panic");
    });
}

// Guarantee: core-98.
#[test]
fn an_abort_gives_every_waiting_sender_its_own_message_back() {
    for options in of_both_kinds(1) {
        an_abort_gives_back(options);
    }
}

fn an_abort_gives_back(options: Options) {
    bounded(2).check(move || {
        let (mut tx, rx) = queue::<u32>(options.clone());
        tx.try_send(0).expect("the edge has capacity");
        let senders = [1, 2].map(|number| {
            let mut tx = tx.clone();
            thread::spawn(move || assert_eq!(tx.send_blocking(number), Err(Aborted(number))))
        });
        rx.abort();
        for sender in senders {
            sender.join().expect("it does not panic");
        }
        assert_eq!(tx.meter().read().dropped_by_abort, 1);
    });
}

// Guarantee: core-110.
#[test]
fn a_send_that_gives_up_has_its_message_or_the_edge_has() {
    for options in of_both_kinds(1).into_iter().chain([Options::new(0)]) {
        bounded(3).check(move || {
            let (mut tx, mut rx) = queue::<u32>(options.clone());
            let capacity = options.capacity();
            if capacity > 0 {
                tx.try_send(0).expect("the edge has capacity");
            }
            // In a model, a time-out passes at once.
            let sender = thread::spawn(move || match tx.send_timeout(1, Duration::ZERO) {
                Ok(()) => true,
                Err(SendTimeoutError::TimedOut(message)) => {
                    assert_eq!(message, 1);
                    false
                }
                Err(SendTimeoutError::Aborted(_)) => panic!("the edge is not aborted"),
            });
            let mut received = 0;
            for _ in 0..2 {
                received += u32::from(rx.try_recv().is_ok());
            }
            let sent = sender.join().expect("it does not panic");
            while rx.try_recv().is_ok() {
                received += 1;
            }
            assert_eq!(received, capacity as u32 + u32::from(sent));
        });
    }
}

// Guarantee: core-103.
#[test]
fn a_send_that_is_dropped_lets_the_next_one_in() {
    for options in of_both_kinds(1) {
        the_next_one_gets_in(options);
    }
}

fn the_next_one_gets_in(options: Options) {
    bounded(2).check(move || {
        let (mut tx, mut rx) = queue::<u32>(options.clone());
        let mut other = tx.clone();
        tx.try_send(0).expect("the edge has capacity");
        let first = thread::spawn(move || {
            let mut future = pin!(tx.send(1));
            let mut context = Context::from_waker(Waker::noop());
            future.as_mut().poll(&mut context).is_ready()
        });
        let second = thread::spawn(move || other.send_blocking(2));
        let mut received = Vec::new();
        while let Some(message) = rx.recv_blocking() {
            received.push(message);
        }
        let ready = first.join().expect("it does not panic");
        assert_eq!(second.join().expect("it does not panic"), Ok(()));
        assert!(received.contains(&0) && received.contains(&2));
        // A message that was accepted between the poll and the drop is received, too.
        assert!(!ready || received.contains(&1));
    });
}

// Guarantee: core-102.
#[test]
fn a_receiver_polled_again_is_woken_by_its_last_waker() {
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicU32);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    bounded(3).check(|| {
        let (mut tx, mut rx) = queue::<u32>(Options::new(2));
        let sender = thread::spawn(move || {
            tx.try_send(1).expect("the edge has capacity");
            tx
        });
        let wakes = [(); 2].map(|()| Arc::new(Woken::default()));
        let mut pending = None;
        for (at, woken) in wakes.iter().enumerate() {
            let waker = Waker::from(Arc::clone(woken));
            pending = match rx.poll_recv(&mut Context::from_waker(&waker)) {
                Poll::Ready(message) => {
                    assert_eq!(message, Some(1));
                    break;
                }
                Poll::Pending => Some(at),
            };
        }
        let _tx = sender.join().expect("it does not panic");
        if let Some(at) = pending {
            let received = rx.try_recv().is_err();
            assert!(
                received || wakes[at].0.load(Relaxed) > 0,
                "the task would never be polled again"
            );
        }
    });
}

// Guarantee: core-102.
/// The receiver serves the line while another thread aborts: the receiver finds capacity, but then finds that the tail
/// is aborted.
#[test]
fn a_line_that_is_served_while_an_abort_comes_leaves_no_sender_waiting() {
    bounded(3).check(|| {
        let handle = AbortHandle::new();
        let (mut tx, mut rx) = queue::<u32>(Options::new(1).abort_handle(handle.clone()));
        let meter = tx.meter();
        tx.try_send(0).expect("the edge has capacity");
        let waiting = thread::spawn(move || tx.send_blocking(1));
        let aborter = thread::spawn(move || handle.abort());
        let received = u64::from(rx.try_recv().is_ok());
        aborter.join().expect("it does not panic");
        let sent = waiting.join().expect("it does not panic");
        assert!(matches!(sent, Ok(()) | Err(Aborted(1))));
        let read = meter.read();
        assert_eq!(read.sent, 1 + u64::from(sent.is_ok()));
        assert_eq!(read.received, received);
        assert_eq!(read.sent, read.received + read.dropped_by_abort);
    });
}
