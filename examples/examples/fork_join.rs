//! Fork-join: halving a problem without a cut-off, with closures, slices, scopes and futures.

#![allow(
    clippy::manual_async_fn,
    reason = "a recursive `async fn` that must be `Send` does not compile"
)]
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::fork_join::{Pool, PoolError, fork_join, join, map, reduce, scope};
use std::time::Instant;

/// Adds up a range. Both halves are forked, down to single numbers: two million forks cost a few
/// milliseconds.
fn sum(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = low + (high - low) / 2;
    let (a, b) = join(|| sum(low, mid), || sum(mid + 1, high));
    a + b
}

/// Sorts a slice. Both halves can write to the data that they borrow.
fn sort(numbers: &mut [u64]) {
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

/// Adds up a range with futures, each of which may wait. A recursive `async fn` does not compile
/// with `Send`, so the function returns `impl Future`.
fn sum_async(low: u64, high: u64) -> impl Future<Output = u64> + Send {
    async move {
        if low == high {
            return low;
        }
        let mid = low + (high - low) / 2;
        let (a, b) = fork_join(sum_async(low, mid), sum_async(mid + 1, high)).await;
        a + b
    }
}

fn main() -> Result<(), PoolError> {
    let pool = Pool::new(2)?;

    let begin = Instant::now();
    let total = pool.install(|| sum(0, 2_000_000));
    println!("closures: {total} in {:?}", begin.elapsed());
    assert_eq!(total, 2_000_001_000_000);

    let begin = Instant::now();
    let total = pool.block_on(sum_async(0, 2_000_000));
    println!("futures: {total} in {:?}", begin.elapsed());
    assert_eq!(total, 2_000_001_000_000);

    // Outside of a pool, the global pool does the work.
    let mut numbers: Vec<u64> = (0..100_000).map(|n| n * 7_919 % 100_003).collect();
    sort(&mut numbers);
    assert!(numbers.is_sorted());

    let squares = map(&numbers[..10], |number| number * number);
    let most = reduce(&squares[..], |square| *square, u64::max);
    println!("squares: {squares:?}, the largest {most:?}");
    assert_eq!(most, squares.iter().copied().max());

    let (mut shortest, mut longest) = (0, 0);
    scope(|scope| {
        scope.spawn(|_| shortest = numbers[0]);
        scope.spawn(|_| longest = numbers[numbers.len() - 1]);
    });
    println!("from {shortest} to {longest}");
    assert!(shortest < longest);
    Ok(())
}
