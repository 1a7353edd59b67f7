//! Operations on whole slices and ranges, built on [`join`].
//!
//! The operations divide their input down to single items. A fork costs little more than a call, so there is no block
//! size to choose. Results do not depend on the distribution of work.
#![allow(
    unsafe_code,
    reason = "results are written to the spare capacity of a vector"
)]

use super::closures::join;
use std::mem::MaybeUninit;
use std::ops::Range;

/// A sequence of items that can be divided: a slice or a range of integers.
pub trait Divisible: Sized + Send {
    /// The type of the items.
    type Item;

    /// Returns the number of items.
    fn count(&self) -> usize;

    /// Returns the first `at` items and the rest; `at` is at most the count.
    fn divide(self, at: usize) -> (Self, Self);

    /// Returns the first item, if there is one.
    fn first(self) -> Option<Self::Item>;
}

impl<'a, T: Sync> Divisible for &'a [T] {
    type Item = &'a T;

    fn count(&self) -> usize {
        self.len()
    }

    fn divide(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }

    fn first(self) -> Option<&'a T> {
        <[T]>::first(self)
    }
}

impl<'a, T: Send> Divisible for &'a mut [T] {
    type Item = &'a mut T;

    fn count(&self) -> usize {
        self.len()
    }

    fn divide(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }

    fn first(self) -> Option<&'a mut T> {
        self.first_mut()
    }
}

macro_rules! divisible_range {
    ($($integer:ty => $unsigned:ty),*) => {$(
        impl Divisible for Range<$integer> {
            type Item = $integer;

            fn count(&self) -> usize {
                if self.is_empty() {
                    return 0;
                }
                self.end.wrapping_sub(self.start) as $unsigned as usize
            }

            fn divide(self, at: usize) -> (Self, Self) {
                let middle = self.start.wrapping_add(at as $integer);
                (self.start..middle, middle..self.end)
            }

            fn first(mut self) -> Option<$integer> {
                self.next()
            }
        }
    )*};
}

divisible_range!(u32 => u32, i32 => u32, u64 => u64, i64 => u64, usize => usize, isize => usize);

/// Calls `body` with every item, in parallel.
///
/// ```
/// let mut numbers = [1, 2, 3];
/// corsair::fork_join::for_each(&mut numbers[..], |number| *number *= 2);
/// assert_eq!(numbers, [2, 4, 6]);
/// ```
///
/// # Panics
/// If `body` panics, after all items are done.
pub fn for_each<D: Divisible>(items: D, body: impl Fn(D::Item) + Sync) {
    halve(items, &body);
}

fn halve<D: Divisible>(items: D, body: &(impl Fn(D::Item) + Sync)) {
    let count = items.count();
    if count > 1 {
        let (low, high) = items.divide(count / 2);
        join(|| halve(low, body), || halve(high, body));
    } else if let Some(item) = items.first() {
        body(item);
    }
}

/// Calls `body` for every item, and returns the results in the order of the items.
///
/// ```
/// assert_eq!(corsair::fork_join::map(0..4, |number| number * number), [0, 1, 4, 9]);
/// ```
///
/// # Panics
/// If `body` panics, after all items are done (the results are then leaked); or if there are more items than a vector
/// can hold.
pub fn map<D: Divisible, R: Send>(items: D, body: impl Fn(D::Item) -> R + Sync) -> Vec<R> {
    let count = items.count();
    let mut results = Vec::with_capacity(count);
    fill(items, &mut results.spare_capacity_mut()[..count], &body);
    // SAFETY: `fill` has returned, so it has written as many results as there are items.
    unsafe { results.set_len(count) };
    results
}

/// Writes the result for each item to its place. If the function returns without a panic, all places are written.
fn fill<D: Divisible, R: Send>(
    items: D,
    results: &mut [MaybeUninit<R>],
    body: &(impl Fn(D::Item) -> R + Sync),
) {
    if let [result] = results {
        let item = items.first().expect("as many items as places for results");
        result.write(body(item));
    } else if !results.is_empty() {
        let half = results.len() / 2;
        let (low, high) = items.divide(half);
        let (low_results, high_results) = results.split_at_mut(half);
        join(
            || fill(low, low_results, body),
            || fill(high, high_results, body),
        );
    }
}

/// Calls `body` for all items and combines the results pairwise; `None` if there are no items.
///
/// `combine` gets neighbouring results in order. It must be associative, so that the result does not depend on where
/// the items were divided.
///
/// ```
/// use corsair::fork_join::reduce;
/// assert_eq!(reduce(1..11u64, |number| number, |a, b| a + b), Some(55));
/// ```
///
/// # Panics
/// If `body` or `combine` panics, after all halves are over.
pub fn reduce<D: Divisible, R: Send>(
    items: D,
    body: impl Fn(D::Item) -> R + Sync,
    combine: impl Fn(R, R) -> R + Sync,
) -> Option<R> {
    fold(items, &body, &combine)
}

fn fold<D: Divisible, R: Send>(
    items: D,
    body: &(impl Fn(D::Item) -> R + Sync),
    combine: &(impl Fn(R, R) -> R + Sync),
) -> Option<R> {
    let count = items.count();
    if count <= 1 {
        return items.first().map(body);
    }
    let (low, high) = items.divide(count / 2);
    let (low, high) = join(|| fold(low, body, combine), || fold(high, body, combine));
    Some(combine(low?, high?))
}
