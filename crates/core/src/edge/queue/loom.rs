//! Models of what the ends of a queue and an abort do to each other, checked in every order.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p corsair --release --lib edge::queue::loom`

use crate::edge::{
    AbortHandle, Aborted, CollectTimeoutError, Options, State, TryCollectError, TryEmitError, queue,
};
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// All orders with at most this many forced changes of thread.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder
}

/// Of a queue with a ring, and of one under a lock: any limit by weight makes it one.
fn of_both_kinds(capacity: usize) -> [Options; 2] {
    let options = Options::new(capacity);
    [options.clone(), options.weight_limit(u64::MAX - 1)]
}

// Guarantee: core-97.
#[test]
fn nothing_is_collected_or_emitted_after_an_abort() {
    for options in of_both_kinds(2) {
        after_an_abort(options);
    }
}

fn after_an_abort(options: Options) {
    bounded(2).check(move || {
        let handle = AbortHandle::new();
        let (mut tx, mut rx) = queue(options.clone().abort_handle(handle.clone()));
        let meter = tx.meter();
        tx.try_collect(0).expect("there is room");
        // Some thread knows of the abort.
        let known = Arc::new(AtomicBool::new(false));
        let aborter = {
            let known = Arc::clone(&known);
            thread::spawn(move || {
                handle.abort();
                known.store(true, Ordering::Release);
            })
        };
        let collector = {
            let known = Arc::clone(&known);
            thread::spawn(move || {
                let before = known.load(Ordering::Acquire);
                match tx.try_collect(1) {
                    Ok(()) => assert!(!before, "collected after the abort"),
                    Err(TryCollectError::Aborted(message)) => {
                        assert_eq!(message, 1);
                        known.store(true, Ordering::Release);
                    }
                    Err(TryCollectError::Full(_)) => panic!("there is room"),
                }
            })
        };
        let mut emitted = 0;
        for _ in 0..2 {
            let before = known.load(Ordering::Acquire);
            match rx.try_emit() {
                Ok(message) => {
                    assert!(!before, "emitted after the abort");
                    assert_eq!(message, emitted);
                    emitted += 1;
                }
                Err(TryEmitError::Aborted) => known.store(true, Ordering::Release),
                // The collector is gone.
                Err(TryEmitError::Empty | TryEmitError::Closed) => {}
            }
        }
        aborter.join().expect("it does not panic");
        collector.join().expect("it does not panic");
        let read = meter.read();
        assert_eq!(read.emitted, emitted);
        assert_eq!(read.collected, read.emitted + read.dropped_by_abort);
        assert_eq!(read.buffered, 0);
    });
}

// Guarantee: core-102.
#[test]
fn collectors_that_wait_are_all_served() {
    for options in of_both_kinds(1) {
        all_are_served(options);
    }
}

fn all_are_served(options: Options) {
    bounded(2).check(move || {
        let (tx, mut rx) = queue::<u32>(options.clone());
        let collectors = [1, 2].map(|number| {
            let mut tx = tx.clone();
            thread::spawn(move || tx.collect_blocking(number))
        });
        drop(tx);
        let mut sum = 0;
        while let Some(number) = rx.emit_blocking() {
            sum += number;
        }
        assert_eq!((sum, rx.state()), (3, State::Closed));
        for collector in collectors {
            assert_eq!(collector.join().expect("it does not panic"), Ok(()));
        }
    });
}

// Guarantee: core-109.
#[test]
fn at_a_rendezvous_a_message_has_been_emitted_when_collect_ends() {
    bounded(3).check(|| {
        let (mut tx, mut rx) = queue::<u32>(Options::new(0));
        let emitted = Arc::new(AtomicBool::new(false));
        let collector = {
            let emitted = tx.meter();
            thread::spawn(move || {
                tx.collect_blocking(1).expect("the edge is not aborted");
                assert_eq!(emitted.read().emitted, 1);
                tx.collect_blocking(2).expect("the edge is not aborted");
            })
        };
        assert_eq!(rx.emit_blocking(), Some(1));
        emitted.store(true, Ordering::Relaxed);
        assert_eq!(rx.emit_blocking(), Some(2));
        assert_eq!(rx.emit_blocking(), None);
        collector.join().expect("it does not panic");
    });
}

// Guarantee: core-98.
#[test]
fn an_abort_gives_every_waiting_collector_its_own_message_back() {
    for options in of_both_kinds(1) {
        an_abort_gives_back(options);
    }
}

fn an_abort_gives_back(options: Options) {
    bounded(2).check(move || {
        let (mut tx, rx) = queue::<u32>(options.clone());
        tx.try_collect(0).expect("there is room");
        let collectors = [1, 2].map(|number| {
            let mut tx = tx.clone();
            thread::spawn(move || assert_eq!(tx.collect_blocking(number), Err(Aborted(number))))
        });
        rx.abort();
        for collector in collectors {
            collector.join().expect("it does not panic");
        }
        assert_eq!(tx.meter().read().dropped_by_abort, 1);
    });
}

// Guarantee: core-110.
#[test]
fn a_collect_that_gives_up_has_its_message_or_the_edge_has() {
    for options in of_both_kinds(1).into_iter().chain([Options::new(0)]) {
        bounded(3).check(move || {
            let (mut tx, mut rx) = queue::<u32>(options.clone());
            let capacity = options.capacity();
            if capacity > 0 {
                tx.try_collect(0).expect("there is room");
            }
            // In a model the time is over at once.
            let collector = thread::spawn(move || match tx.collect_timeout(1, Duration::ZERO) {
                Ok(()) => true,
                Err(CollectTimeoutError::TimedOut(message)) => {
                    assert_eq!(message, 1);
                    false
                }
                Err(CollectTimeoutError::Aborted(_)) => panic!("the edge is not aborted"),
            });
            let mut emitted = 0;
            for _ in 0..2 {
                emitted += u32::from(rx.try_emit().is_ok());
            }
            let collected = collector.join().expect("it does not panic");
            while rx.try_emit().is_ok() {
                emitted += 1;
            }
            assert_eq!(emitted, capacity as u32 + u32::from(collected));
        });
    }
}

// Guarantee: core-103.
#[test]
fn a_collect_that_is_dropped_lets_the_next_one_in() {
    for options in of_both_kinds(1) {
        the_next_one_gets_in(options);
    }
}

fn the_next_one_gets_in(options: Options) {
    bounded(2).check(move || {
        let (mut tx, mut rx) = queue::<u32>(options.clone());
        let mut other = tx.clone();
        tx.try_collect(0).expect("there is room");
        let first = thread::spawn(move || {
            let mut future = pin!(tx.collect(1));
            let mut context = Context::from_waker(Waker::noop());
            future.as_mut().poll(&mut context).is_ready()
        });
        let second = thread::spawn(move || other.collect_blocking(2));
        let mut emitted = Vec::new();
        while let Some(message) = rx.emit_blocking() {
            emitted.push(message);
        }
        let ready = first.join().expect("it does not panic");
        assert_eq!(second.join().expect("it does not panic"), Ok(()));
        assert!(emitted.contains(&0) && emitted.contains(&2));
        // One that was accepted between the poll and the drop is emitted, too.
        assert!(!ready || emitted.contains(&1));
    });
}

// Guarantee: core-102.
#[test]
fn an_emitter_polled_again_is_woken_by_its_last_waker() {
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
        let collector = thread::spawn(move || {
            tx.try_collect(1).expect("there is room");
            tx
        });
        let wakes = [(); 2].map(|()| Arc::new(Woken::default()));
        let mut pending = None;
        for (at, woken) in wakes.iter().enumerate() {
            let waker = Waker::from(Arc::clone(woken));
            pending = match rx.poll_emit(&mut Context::from_waker(&waker)) {
                Poll::Ready(message) => {
                    assert_eq!(message, Some(1));
                    break;
                }
                Poll::Pending => Some(at),
            };
        }
        let _tx = collector.join().expect("it does not panic");
        if let Some(at) = pending {
            let emitted = rx.try_emit().is_err();
            assert!(
                emitted || wakes[at].0.load(Relaxed) > 0,
                "the task would never be polled again"
            );
        }
    });
}

// Guarantee: core-102.
/// The emitter serves the line while another thread aborts: it finds room, and then that the tail is aborted.
#[test]
fn a_line_that_is_served_while_an_abort_comes_leaves_no_collector_waiting() {
    bounded(3).check(|| {
        let handle = AbortHandle::new();
        let (mut tx, mut rx) = queue::<u32>(Options::new(1).abort_handle(handle.clone()));
        let meter = tx.meter();
        tx.try_collect(0).expect("there is room");
        let waiting = thread::spawn(move || tx.collect_blocking(1));
        let aborter = thread::spawn(move || handle.abort());
        let emitted = u64::from(rx.try_emit().is_ok());
        aborter.join().expect("it does not panic");
        let collected = waiting.join().expect("it does not panic");
        assert!(matches!(collected, Ok(()) | Err(Aborted(1))));
        let read = meter.read();
        assert_eq!(read.collected, 1 + u64::from(collected.is_ok()));
        assert_eq!(read.emitted, emitted);
        assert_eq!(read.collected, read.emitted + read.dropped_by_abort);
    });
}
