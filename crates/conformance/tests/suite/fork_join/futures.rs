//! The asynchronous form: results, waiting, panics, depth, cancelling, other executors.

#![allow(
    clippy::manual_async_fn,
    reason = "a recursive `async fn` that must be `Send` does not compile"
)]

use corsair::fork_join::{Pool, PoolDropped, fork_join, join};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;

fn pool(workers: usize) -> Pool {
    Pool::new(workers).expect("the system gives a few threads")
}

fn sum(low: u64, high: u64) -> impl Future<Output = u64> + Send {
    async move {
        if low == high {
            return low;
        }
        let mid = low + (high - low) / 2;
        let (a, b) = fork_join(sum(low, mid), sum(mid + 1, high)).await;
        a + b
    }
}

/// A future that is pending at its first poll and ready at its second.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A sum in which each leaf is pending once.
fn waiting_sum(low: u64, high: u64) -> impl Future<Output = u64> + Send {
    async move {
        if low == high {
            Yield(false).await;
            return low;
        }
        let mid = low + (high - low) / 2;
        let (a, b) = fork_join(waiting_sum(low, mid), waiting_sum(mid + 1, high)).await;
        a + b
    }
}

/// Increments a counter of live values, and decrements it when dropped.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Alive {
        count.fetch_add(1, Ordering::Relaxed);
        Alive(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .expect("the tests panic with string literals")
}

// Guarantee: core-87.
#[test]
fn halving_down_to_single_numbers_sums_them_on_any_number_of_workers() {
    for workers in 1..=4 {
        assert_eq!(pool(workers).block_on(sum(0, 1_000_000)), 500_000_500_000);
    }
}

#[test]
fn every_leaf_may_wait() {
    for workers in 1..=3 {
        let pool = pool(workers);
        for _ in 0..5 {
            assert_eq!(pool.block_on(waiting_sum(0, 50_000)), 1_250_025_000);
        }
    }
}

// Guarantee: core-91.
#[test]
fn a_half_may_wait_for_the_other() {
    for workers in 1..=3 {
        let pool = pool(workers);
        for _ in 0..200 {
            let (to_a, from_b) = oneshot::channel();
            let (to_b, from_a) = oneshot::channel();
            let (a, b) = pool.block_on(async {
                fork_join(
                    async move {
                        to_b.send(1).expect("b waits for it");
                        from_b.await.expect("b sends it")
                    },
                    async move {
                        let one: u32 = from_a.await.expect("a sends it");
                        to_a.send(one + 1).expect("a waits for it");
                        one
                    },
                )
                .await
            });
            assert_eq!((a, b), (2, 1));
        }
    }
}

#[test]
fn a_wake_from_a_foreign_thread_is_enough() {
    let pool = pool(2);
    let (send, receive) = oneshot::channel();
    let spawned = pool.spawn(async move { fork_join(receive, sum(0, 100)).await });
    let sender = std::thread::spawn(move || send.send(7).expect("the half waits"));
    let (received, sum) = pool.block_on(spawned).expect("the pool is there");
    sender.join().expect("it has sent");
    assert_eq!((received, sum), (Ok(7), 5050));
}

#[test]
fn a_panic_comes_out_when_the_other_half_is_over() {
    let pool = pool(2);
    for first_panics in [true, false] {
        let over = Arc::new(AtomicUsize::new(0));
        let other = Arc::clone(&over);
        let bad = async {
            Yield(false).await;
            panic!("half");
        };
        let good = async move {
            for _ in 0..10 {
                Yield(false).await;
            }
            other.fetch_add(1, Ordering::Relaxed);
        };
        let panic = catch_unwind(AssertUnwindSafe(|| {
            pool.block_on(async move {
                if first_panics {
                    fork_join(bad, good).await;
                } else {
                    fork_join(good, bad).await;
                }
            });
        }))
        .expect_err("a half panics");
        assert_eq!(message(&*panic), "half");
        assert_eq!(
            over.load(Ordering::Relaxed),
            1,
            "first panics: {first_panics}"
        );
    }
}

// Guarantee: core-89.
#[test]
fn of_two_panics_the_first_halfs_comes_out() {
    let panic = catch_unwind(|| {
        pool(2).block_on(async {
            let first = async {
                Yield(false).await;
                panic!("first");
            };
            fork_join(first, async { panic!("second") }).await
        });
    })
    .expect_err("both panic");
    assert_eq!(message(&*panic), "first");
}

/// Returns a chain of `left` nested joins, in the first half if `first` is set and in the second otherwise.
fn chain(left: u64, first: bool, leaf: bool) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if left == 0 {
            if leaf {
                Yield(false).await;
            }
            return 0;
        }
        let below = chain(left - 1, first, leaf);
        let (a, b) = if first {
            fork_join(below, async { 1 }).await
        } else {
            fork_join(async { 1 }, below).await
        };
        a + b
    })
}

#[test]
fn recursion_goes_deeper_than_a_stack() {
    let pool = pool(2);
    for first in [true, false] {
        for leaf in [true, false] {
            assert_eq!(pool.block_on(chain(100_000, first, leaf)), 100_000);
        }
    }
}

// Guarantee: core-88.
#[test]
fn dropping_a_join_drops_halves_that_wait_before_it_returns() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (a, b) = (Alive::new(&alive), Alive::new(&alive));
    let counted = Arc::clone(&alive);
    let left = pool(1).block_on(async move {
        let join = fork_join(
            async move {
                std::future::pending::<()>().await;
                drop(a);
            },
            async move {
                std::future::pending::<()>().await;
                drop(b);
            },
        );
        let before = counted.load(Ordering::Relaxed);
        drop(join);
        (before, counted.load(Ordering::Relaxed))
    });
    assert_eq!(left, (2, 0));
}

/// A binary tree of joins in which every leaf waits for ever.
fn stuck(depth: u32, alive: Arc<AtomicUsize>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let me = Alive::new(&alive);
        if depth == 0 {
            std::future::pending::<()>().await;
        } else {
            let below = (
                stuck(depth - 1, Arc::clone(&alive)),
                stuck(depth - 1, alive),
            );
            fork_join(below.0, below.1).await;
        }
        drop(me);
    })
}

#[test]
fn dropping_what_was_spawned_drops_the_whole_tree() {
    let alive = Arc::new(AtomicUsize::new(0));
    for _ in 0..200 {
        let pool = pool(2);
        let spawned = pool.spawn(stuck(5, Arc::clone(&alive)));
        drop(spawned);
        drop(pool);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

// Guarantee: core-93.
#[test]
fn dropping_a_pool_drops_what_was_spawned_and_says_so() {
    for _ in 0..100 {
        let alive = Arc::new(AtomicUsize::new(0));
        let first = pool(2);
        let spawned = first.spawn(stuck(5, Arc::clone(&alive)));
        drop(first);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
        assert_eq!(pool(1).block_on(spawned), Err(PoolDropped));
    }
}

#[test]
fn a_waiting_chain_deeper_than_a_stack_can_be_dropped() {
    fn deep(left: u64, bottom: Arc<AtomicUsize>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if left == 0 {
                let _alive = Alive::new(&bottom);
                return std::future::pending().await;
            }
            fork_join(deep(left - 1, bottom), async {}).await;
        })
    }
    let bottom = Arc::new(AtomicUsize::new(0));
    let pool = pool(1);
    let spawned = pool.spawn(deep(200_000, Arc::clone(&bottom)));
    while bottom.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    drop(spawned);
    drop(pool);
    assert_eq!(bottom.load(Ordering::Relaxed), 0);
}

/// Pushes its waker to a list that the test reads, and is pending once.
struct KeepWaker(Arc<Mutex<Vec<Waker>>>, bool);

impl Future for KeepWaker {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0
            .lock()
            .expect("the lock is not poisoned")
            .push(context.waker().clone());
        if std::mem::replace(&mut self.1, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[test]
fn wakers_may_outlive_halves_joins_and_the_pool() {
    let wakers = Arc::new(Mutex::new(Vec::new()));
    let pool = pool(2);
    let (a, b) = (
        KeepWaker(Arc::clone(&wakers), true),
        KeepWaker(Arc::clone(&wakers), true),
    );
    pool.block_on(async { fork_join(a, b).await });
    let a = KeepWaker(Arc::clone(&wakers), false);
    let spawned = pool.spawn(async { fork_join(a, async {}).await });
    while wakers.lock().expect("the lock is not poisoned").len() < 3 {
        std::thread::yield_now();
    }
    wakers
        .lock()
        .expect("the lock is not poisoned")
        .iter()
        .for_each(Waker::wake_by_ref);
    assert_eq!(pool.block_on(spawned), Ok(((), ())));
    drop(pool);
    for waker in wakers.lock().expect("the lock is not poisoned").drain(..) {
        waker.wake_by_ref();
        let other = waker.clone();
        drop(waker);
        other.wake();
    }
}

#[test]
fn block_on_works_on_a_worker_and_in_the_closure_form() {
    let pool = Arc::new(pool(1));
    let inner = Arc::clone(&pool);
    let sums = pool.block_on(async move {
        let first = inner.block_on(waiting_sum(0, 1000));
        let (second, third) = join(|| inner.block_on(waiting_sum(0, 100)), || 7);
        (first, second, third)
    });
    assert_eq!(sums, (500_500, 5050, 7));
}

#[test]
fn a_join_made_outside_a_pool_begins_where_it_is_awaited() {
    assert_eq!(
        pool(2).block_on(fork_join(sum(0, 1000), waiting_sum(0, 100))),
        (500_500, 5050)
    );
}

fn tokio() -> tokio::runtime::Runtime {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    built.expect("a runtime without threads")
}

#[test]
fn in_a_tokio_task_halves_run_in_turn_and_may_use_its_timers() {
    let (a, b) = tokio().block_on(async {
        let (send, receive) = oneshot::channel();
        let sleep = async move {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            send.send(waiting_sum(0, 100).await)
                .expect("the other half waits");
            1
        };
        fork_join(sleep, receive).await
    });
    assert_eq!((a, b), (1, Ok(5050)));
}

#[test]
fn a_tokio_task_may_await_what_a_pool_runs() {
    let pool = pool(2);
    let sum = tokio().block_on(pool.spawn(waiting_sum(0, 10_000)));
    assert_eq!(sum, Ok(50_005_000));
}

#[test]
fn outside_a_pool_too_deep_a_recursion_is_a_panic_that_says_what_to_do() {
    let panic = catch_unwind(|| tokio().block_on(chain(10_000_000, true, true)))
        .expect_err("no test thread has such a stack");
    assert!(
        message(&*panic).contains("Pool::block_on"),
        "{}",
        message(&*panic)
    );
}

#[test]
fn outside_a_pool_both_halves_end_before_a_panic_comes_out() {
    let over = Arc::new(AtomicUsize::new(0));
    let other = Arc::clone(&over);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        tokio().block_on(fork_join(async { panic!("first") }, async move {
            Yield(false).await;
            other.fetch_add(1, Ordering::Relaxed);
        }));
    }))
    .expect_err("the first half panics");
    assert_eq!(message(&*panic), "first");
    assert_eq!(over.load(Ordering::Relaxed), 1);
}

#[test]
fn a_pool_may_be_dropped_by_what_runs_in_it() {
    let pool = Arc::new(pool(2));
    let inner = Arc::clone(&pool);
    let (send, receive) = std::sync::mpsc::channel();
    let spawned = pool.spawn(async move {
        Yield(false).await;
        send.send(()).expect("the test waits");
        while Arc::strong_count(&inner) > 1 {
            std::thread::yield_now();
        }
        drop(inner);
        waiting_sum(0, 100).await
    });
    receive.recv().expect("the half sends");
    drop(pool);
    let result = tokio().block_on(spawned);
    assert_eq!(
        result,
        Err(PoolDropped),
        "it was cancelled, and found out at its next wait"
    );
}
