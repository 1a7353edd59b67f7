//! Small tests for miri, which checks every memory access. The tests in `tests/fork_join_*.rs` run at full size.

#![allow(
    clippy::manual_async_fn,
    reason = "a recursive `async fn` that must be `Send` does not compile"
)]

use super::{Pool, for_each, fork_join, join, map, reduce, scope};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

fn pool(workers: usize) -> Pool {
    Pool::new(workers).expect("the system gives a few threads")
}

/// Forks with results on the heap, so that miri detects a half that runs twice or never.
fn digits(low: u32, high: u32) -> Box<u32> {
    if low == high {
        return Box::new(low);
    }
    let mid = low + (high - low) / 2;
    let middle = Box::new(mid);
    let (a, b) = join(|| digits(low, mid), move || digits(*middle + 1, high));
    Box::new(*a + *b)
}

#[test]
fn halves_are_taken_and_taken_back() {
    let pool = pool(2);
    for _ in 0..4 {
        assert_eq!(*pool.install(|| digits(0, 15)), 120);
    }
}

#[test]
fn halves_write_to_what_they_borrow() {
    fn double(numbers: &mut [Box<u32>]) {
        match numbers {
            [] => {}
            [number] => **number *= 2,
            _ => {
                let (low, high) = numbers.split_at_mut(numbers.len() / 2);
                join(|| double(low), || double(high));
            }
        }
    }
    let mut numbers: Vec<Box<u32>> = (0..16).map(Box::new).collect();
    pool(3).install(|| double(&mut numbers));
    assert!(
        numbers
            .iter()
            .enumerate()
            .all(|(index, number)| **number == 2 * index as u32)
    );
}

#[test]
fn panics_meet_halves_that_were_handed_out() {
    fn leaf(depth: u32, ran: &AtomicU32) {
        if depth > 0 {
            join(|| leaf(depth - 1, ran), || leaf(depth - 1, ran));
        } else if ran.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) {
            std::panic::resume_unwind(Box::new("leaf"));
        }
    }
    let pool = pool(2);
    let ran = AtomicU32::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| pool.install(|| leaf(3, &ran))));
    assert!(result.is_err_and(|panic| panic.is::<&str>()));
    assert_eq!(ran.into_inner(), 8);
}

#[test]
fn work_beside_the_caller_is_run_by_a_worker_or_taken_back() {
    let pool = pool(1);
    for _ in 0..6 {
        let (mut here, mut there) = (Box::new(1), Box::new(2));
        let (a, b) = pool.join_with_caller(
            || {
                *here += 1;
                here.to_string()
            },
            || {
                *there += 1;
                there.to_string()
            },
        );
        assert_eq!((a.as_str(), b.as_str()), ("2", "3"));
    }
}

#[test]
fn a_pool_may_go_with_an_offer_that_was_taken_back() {
    for _ in 0..4 {
        let text = Box::new(1);
        assert_eq!(pool(2).join_with_caller(|| (), || *text), ((), 1));
    }
}

#[test]
fn on_a_worker_work_beside_it_is_shared_or_taken_back() {
    let pool = pool(2);
    let count = AtomicU32::new(0);
    let add = || count.fetch_add(1, Ordering::Relaxed);
    pool.install(|| pool.join_with_caller(add, || pool.join_with_caller(add, add)));
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

#[test]
fn panics_beside_come_out_after_both_are_over() {
    let pool = pool(1);
    for (here, there) in [(true, false), (false, true), (true, true)] {
        let ran = AtomicU32::new(0);
        let run = |panics: bool, text: &'static str| {
            ran.fetch_add(1, Ordering::Relaxed);
            if panics {
                std::panic::resume_unwind(Box::new(text));
            }
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.join_with_caller(|| run(here, "here"), || run(there, "there"))
        }));
        let panic = result.expect_err("one of them panics");
        let first = if here { "here" } else { "there" };
        assert_eq!(panic.downcast_ref::<&str>(), Some(&first));
        assert_eq!(ran.into_inner(), 2);
    }
}

#[test]
fn spawns_of_a_scope_write_to_what_they_borrow() {
    let mut numbers = [0u32; 6];
    pool(2).install(|| {
        scope(|scope| {
            for number in &mut numbers {
                scope.spawn(move |scope| scope.spawn(move |_| *number = 1));
            }
        });
    });
    assert_eq!(numbers, [1; 6]);
}

#[test]
fn slices_and_ranges() {
    pool(2).install(|| {
        let mut texts = map(0..8u32, |n| n.to_string());
        for_each(&mut texts[..], |text| text.push('!'));
        let all = reduce(&texts[..], Clone::clone, |a, b| a + &b);
        assert_eq!(all.as_deref(), Some("0!1!2!3!4!5!6!7!"));
    });
}

/// A future that is not ready the first time; it wakes itself at once, or stores its waker for the test.
struct Wait(Option<Arc<Mutex<Vec<Waker>>>>, bool);

impl Future for Wait {
    type Output = Box<u32>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Box<u32>> {
        if std::mem::replace(&mut self.1, true) {
            return Poll::Ready(Box::new(1));
        }
        match &self.0 {
            Some(wakers) => {
                wakers
                    .lock()
                    .expect("the lock is not poisoned")
                    .push(context.waker().clone());
            }
            None => context.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}

fn leaves(depth: u32, wait: bool) -> impl Future<Output = Box<u32>> + Send {
    async move {
        if depth == 0 {
            return if wait {
                Wait(None, false).await
            } else {
                Box::new(1)
            };
        }
        let (a, b) = fork_join(leaves(depth - 1, wait), leaves(depth - 1, !wait)).await;
        Box::new(*a + *b)
    }
}

#[test]
fn futures_end_in_the_call_or_on_their_own() {
    let pool = pool(2);
    for wait in [false, true] {
        assert_eq!(*pool.block_on(leaves(3, wait)), 8);
    }
}

// Guarantee: core-88.
#[test]
fn futures_are_dropped_in_every_state() {
    let pool = pool(2);
    for _ in 0..3 {
        drop(pool.spawn(leaves(3, true)));
    }
    let spawned = pool.spawn(leaves(3, true));
    drop(pool);
    drop(spawned);
}

#[test]
fn wakers_outlive_what_they_wake() {
    let wakers = Arc::new(Mutex::new(Vec::new()));
    let pool = pool(2);
    let wait = || Wait(Some(Arc::clone(&wakers)), false);
    let (a, b) = (wait(), wait());
    let spawned = pool.spawn(async { fork_join(fork_join(a, async {}), b).await });
    while wakers.lock().expect("the lock is not poisoned").len() < 2 {
        thread::yield_now();
    }
    let taken = std::mem::take(&mut *wakers.lock().expect("the lock is not poisoned"));
    let waker = thread::spawn(move || {
        taken.iter().for_each(Waker::wake_by_ref);
        taken
    });
    let ((one, ()), other) = pool.block_on(spawned).expect("the pool is there");
    assert_eq!((*one, *other), (1, 1));
    drop(pool);
    waker
        .join()
        .expect("waking does not panic")
        .into_iter()
        .for_each(Waker::wake);
}

// Guarantee: core-91.
#[test]
fn what_one_half_wakes_runs_while_it_is_busy() {
    // One half wakes the other and spins until that half has continued, so another worker must run it.
    let pool = pool(2);
    let wakers = Arc::new(Mutex::new(Vec::new()));
    let gone_on = Arc::new(AtomicU32::new(0));
    for round in 1..=4 {
        let wait = Wait(Some(Arc::clone(&wakers)), false);
        let waits = {
            let gone_on = Arc::clone(&gone_on);
            async move {
                wait.await;
                gone_on.fetch_add(1, Ordering::Release);
            }
        };
        let (wakers, gone_on) = (Arc::clone(&wakers), Arc::clone(&gone_on));
        let wakes = async move {
            let waker = loop {
                if let Some(waker) = wakers.lock().expect("the lock is not poisoned").pop() {
                    break waker;
                }
                thread::yield_now();
            };
            Waker::wake(waker);
            while gone_on.load(Ordering::Acquire) < round {
                thread::yield_now();
            }
        };
        // In this order only the woken half is left for the other worker.
        let both = async { fork_join(waits, wakes).await };
        assert_eq!(pool.block_on(both), ((), ()));
    }
}

#[test]
fn panics_meet_halves_that_wait() {
    let pool = pool(2);
    for first in [true, false] {
        let bad = async {
            Wait(None, false).await;
            std::panic::resume_unwind(Box::new("half"));
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.block_on(async move {
                if first {
                    fork_join(bad, leaves(1, true)).await;
                } else {
                    fork_join(leaves(1, true), bad).await;
                }
            });
        }));
        assert!(result.is_err_and(|panic| panic.is::<&str>()));
    }
}

#[test]
fn a_join_is_dropped_while_its_halves_run() {
    let pool = pool(3);
    for _ in 0..4 {
        pool.block_on(async {
            let mut join = fork_join(leaves(2, true), leaves(2, true));
            let _ = Pin::new(&mut join).poll(&mut Context::from_waker(Waker::noop()));
            drop(join);
            Wait(None, false).await;
        });
    }
}

#[test]
fn outside_a_pool_futures_run_in_place() {
    let mut join = std::pin::pin!(fork_join(leaves(1, true), leaves(1, false)));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready((a, b)) = join.as_mut().poll(&mut context) {
            assert_eq!((*a, *b), (2, 2));
            break;
        }
    }
}
