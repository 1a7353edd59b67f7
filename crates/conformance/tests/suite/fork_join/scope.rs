//! Scopes: all spawned work ends before the scope returns.

use corsair::fork_join::{Pool, Scope, join, scope};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

// Guarantee: core-88.
#[test]
fn everything_spawned_is_over_when_the_scope_returns() {
    for workers in [1, 2, 4] {
        let pool = Pool::new(workers).expect("the system gives a few threads");
        let mut squares = vec![0; 1000];
        pool.install(|| {
            scope(|scope| {
                for (index, square) in squares.iter_mut().enumerate() {
                    scope.spawn(move |_| *square = index * index);
                }
            });
        });
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(index, square)| *square == index * index)
        );
    }
}

#[test]
fn a_spawn_may_spawn_into_the_same_scope() {
    fn tree<'scope>(scope: &Scope<'scope>, depth: u32, leaves: &'scope AtomicUsize) {
        if depth == 0 {
            leaves.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for _ in 0..2 {
            scope.spawn(move |scope| tree(scope, depth - 1, leaves));
        }
    }
    let leaves = AtomicUsize::new(0);
    scope(|scope| tree(scope, 10, &leaves));
    assert_eq!(leaves.into_inner(), 1024);
}

#[test]
fn scopes_and_joins_nest() {
    fn count(depth: u32) -> usize {
        if depth == 0 {
            return 1;
        }
        let (mut a, mut b) = (0, 0);
        scope(|scope| {
            scope.spawn(|_| a = join(|| count(depth - 1), || 0).0);
            scope.spawn(|_| b = count(depth - 1));
        });
        a + b
    }
    let pool = Pool::new(2).expect("the system gives a few threads");
    assert_eq!(pool.install(|| count(10)), 1024);
}

#[test]
fn the_body_runs_at_once_and_returns_its_result() {
    assert_eq!(scope(|_| 7), 7);
}

#[test]
fn a_panic_of_a_spawn_comes_out_when_all_are_over() {
    let over = AtomicUsize::new(0);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        scope(|scope| {
            for index in 0..100 {
                let over = &over;
                scope.spawn(move |_| {
                    over.fetch_add(1, Ordering::Relaxed);
                    assert_ne!(index, 50, "this one");
                });
            }
        });
    }))
    .expect_err("one of them panics");
    assert!(
        panic
            .downcast_ref::<String>()
            .is_some_and(|text| text.contains("this one"))
    );
    assert_eq!(over.into_inner(), 100);
}

#[test]
fn recursion_through_scopes_goes_deeper_than_a_stack() {
    fn depth(left: u64) -> u64 {
        if left == 0 {
            return 0;
        }
        let mut below = 0;
        scope(|scope| scope.spawn(|_| below = depth(left - 1)));
        below + 1
    }
    let pool = Pool::new(1).expect("the system gives a thread");
    assert_eq!(pool.install(|| depth(200_000)), 200_000);
}
