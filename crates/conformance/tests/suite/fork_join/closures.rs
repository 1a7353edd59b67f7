//! The closure form: results, borrows, panics, depth, pools.

use corsair::fork_join::{Pool, PoolError, join};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

fn pool(workers: usize) -> Pool {
    Pool::new(workers).expect("the system gives a few threads")
}

fn sum(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = low + (high - low) / 2;
    let (a, b) = join(|| sum(low, mid), || sum(mid + 1, high));
    a + b
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
        assert_eq!(pool(workers).install(|| sum(0, 1_000_000)), 500_000_500_000);
    }
}

// Guarantee: core-88.
#[test]
fn halves_may_borrow_and_write_to_what_they_borrow() {
    fn sort(numbers: &mut [u32]) {
        if numbers.len() < 2 {
            return;
        }
        let pivot = numbers.len() - 1;
        let mut smaller = 0;
        for index in 0..pivot {
            if numbers[index] < numbers[pivot] {
                numbers.swap(index, smaller);
                smaller += 1;
            }
        }
        numbers.swap(pivot, smaller);
        let (low, high) = numbers.split_at_mut(smaller);
        join(|| sort(low), || sort(&mut high[1..]));
    }
    let mut numbers: Vec<u32> = (0..50_000u32)
        .map(|n| n.wrapping_mul(2_654_435_761))
        .collect();
    let mut expected = numbers.clone();
    expected.sort_unstable();
    pool(2).install(|| sort(&mut numbers));
    assert_eq!(numbers, expected);
}

#[test]
fn halves_and_results_need_not_be_copies() {
    let text = String::from("second");
    let (a, b) = pool(2).install(|| join(|| vec![String::from("first")], move || Box::new(text)));
    assert_eq!(
        (a, *b),
        (vec![String::from("first")], String::from("second"))
    );
}

#[test]
fn work_reaches_every_worker() {
    fn visit(depth: u32, seen: &Mutex<HashSet<thread::ThreadId>>) {
        if depth == 0 {
            let id = thread::current().id();
            seen.lock().expect("no half panics here").insert(id);
        } else {
            join(|| visit(depth - 1, seen), || visit(depth - 1, seen));
        }
    }
    let seen = Mutex::default();
    let pool = pool(3);
    for _ in 0..10_000 {
        pool.install(|| visit(10, &seen));
        if seen.lock().expect("no half panics here").len() == 3 {
            return;
        }
    }
    panic!("some worker never got anything in 10,000 rounds");
}

// Guarantee: core-89.
#[test]
fn a_panic_in_the_first_half_comes_out_after_the_second_has_run() {
    let second = AtomicBool::new(false);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        pool(2).install(|| join(|| panic!("first"), || second.store(true, Ordering::Relaxed)))
    }))
    .expect_err("the first half panics");
    assert_eq!(message(&*panic), "first");
    assert!(second.into_inner());
}

#[test]
fn a_panic_in_the_second_half_comes_out_and_the_first_has_run() {
    let first = AtomicBool::new(false);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        pool(2).install(|| join(|| first.store(true, Ordering::Relaxed), || panic!("second")))
    }))
    .expect_err("the second half panics");
    assert_eq!(message(&*panic), "second");
    assert!(first.into_inner());
}

// Guarantee: core-89.
#[test]
fn of_two_panics_the_first_halfs_comes_out() {
    let panic = catch_unwind(|| {
        pool(2).install(|| join(|| panic!("first"), || panic!("second")));
    })
    .expect_err("both halves panic");
    assert_eq!(message(&*panic), "first");
}

#[test]
fn panics_deep_inside_leave_the_pool_whole() {
    fn count(depth: u32, leaves: &AtomicUsize) {
        if depth == 0 {
            if leaves.fetch_add(1, Ordering::Relaxed) % 64 == 7 {
                panic!("leaf");
            }
            return;
        }
        join(|| count(depth - 1, leaves), || count(depth - 1, leaves));
    }
    let pool = pool(2);
    for _ in 0..20 {
        let leaves = AtomicUsize::new(0);
        let panic = catch_unwind(AssertUnwindSafe(|| pool.install(|| count(10, &leaves))))
            .expect_err("a leaf panics");
        assert_eq!(message(&*panic), "leaf");
        assert_eq!(
            leaves.into_inner(),
            1024,
            "every leaf runs, whichever panics"
        );
    }
    assert_eq!(pool.install(|| sum(0, 1000)), 500_500);
}

// Guarantee: core-90.
#[test]
fn recursion_in_the_first_half_goes_deeper_than_a_stack() {
    fn depth(left: u64) -> u64 {
        if left == 0 {
            return 0;
        }
        let (below, one) = join(|| depth(left - 1), || 1);
        below + one
    }
    assert_eq!(pool(2).install(|| depth(1_000_000)), 1_000_000);
}

#[test]
fn recursion_in_the_second_half_goes_deeper_than_a_stack() {
    fn depth(left: u64) -> u64 {
        if left == 0 {
            return 0;
        }
        let (one, below) = join(|| 1, || depth(left - 1));
        below + one
    }
    assert_eq!(pool(2).install(|| depth(1_000_000)), 1_000_000);
}

#[test]
fn a_panic_crosses_stacks() {
    fn depth(left: u64) -> u64 {
        if left == 0 {
            panic!("bottom");
        }
        let (below, one) = join(|| depth(left - 1), || 1);
        below + one
    }
    let panic = catch_unwind(|| pool(1).install(|| depth(200_000))).expect_err("the bottom panics");
    assert_eq!(message(&*panic), "bottom");
}

#[test]
fn outside_a_pool_a_join_is_done_by_the_global_one() {
    let here = thread::current().id();
    let (a, b) = join(|| thread::current().id(), || sum(0, 1000));
    assert_ne!(a, here);
    assert_eq!(b, 500_500);
    let error = Pool::set_global(1).expect_err("the global pool is in use");
    assert!(matches!(error, PoolError::GlobalExists { .. }), "{error}");
}

#[test]
fn many_threads_may_use_one_pool_at_a_time() {
    let pool = pool(2);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(pool.install(|| sum(0, 20_000)), 200_010_000));
        }
    });
}

#[test]
fn a_pool_may_be_used_from_a_worker_of_another() {
    let (outer, inner) = (pool(2), pool(2));
    let (a, b) = outer.install(|| join(|| inner.install(|| sum(0, 1000)), || sum(0, 100)));
    assert_eq!((a, b), (500_500, 5_050));
}

#[test]
fn install_on_a_worker_of_the_pool_stays_there() {
    let pool = pool(2);
    let (outer, inner) = pool.install(|| {
        let outer = thread::current().id();
        (outer, pool.install(|| thread::current().id()))
    });
    assert_eq!(outer, inner);
}

#[test]
fn a_pool_has_between_one_worker_and_the_most() {
    let error = Pool::new(0).expect_err("no worker");
    assert_eq!(
        error.to_string(),
        "a pool of no workers does no work; give at least 1"
    );
    let error = Pool::new(1_000_000).expect_err("too many");
    assert!(
        matches!(error, PoolError::TooManyWorkers(1_000_000)),
        "{error}"
    );
    assert_eq!(pool(3).workers(), 3);
}

#[test]
#[ignore = "never ends well; run by the next test, with little memory"]
fn recursion_without_end() {
    fn depth(left: u64) -> u64 {
        if left == 0 {
            return 0;
        }
        let (below, one) = join(|| depth(left - 1), || 1);
        below + one
    }
    pool(1).install(|| depth(u64::MAX));
}

// Guarantee: core-90.
#[cfg(target_os = "linux")]
#[test]
fn where_memory_ends_there_is_a_panic_that_says_so_and_no_overflow() {
    let test = std::env::current_exe().expect("the test runs from a file");
    let script = "ulimit -v 450000; exec \"$0\" --exact fork_join::closures::recursion_without_end --ignored";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(test)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("the recursion is too deep"), "{said}");
    assert_eq!(
        output.status.code(),
        Some(101),
        "a failed test, not a crash: {said}"
    );
}
