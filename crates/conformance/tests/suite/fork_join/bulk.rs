//! Slices and ranges: each item is processed once, and results are in order.

use corsair::fork_join::{Divisible, for_each, map, reduce};
use proptest::prelude::*;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};

proptest! {
    #[test]
    fn map_keeps_the_order(numbers in prop::collection::vec(any::<i32>(), 0..200)) {
        let expected: Vec<i64> = numbers.iter().map(|n| i64::from(*n) * 2).collect();
        prop_assert_eq!(map(&numbers[..], |n| i64::from(*n) * 2), expected);
    }

    #[test]
    fn for_each_visits_every_number_of_a_range_once(low in -300i64..300, length in 0i64..200) {
        let visits: Vec<AtomicU32> = (0..length).map(|_| AtomicU32::new(0)).collect();
        for_each(low..low + length, |n| {
            visits[(n - low) as usize].fetch_add(1, Ordering::Relaxed);
        });
        prop_assert!(visits.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn reduce_combines_neighbours_in_order(words in prop::collection::vec("[a-z]{0,3}", 0..50)) {
        let expected = words.iter().cloned().reduce(|a, b| a + &b);
        prop_assert_eq!(reduce(&words[..], Clone::clone, |a, b| a + &b), expected);
    }
}

#[test]
fn for_each_lends_items_of_a_slice_for_writing() {
    let mut numbers: Vec<u64> = (0..10_000).collect();
    for_each(&mut numbers[..], |number| *number += 1);
    assert_eq!(numbers, (1..=10_000).collect::<Vec<_>>());
}

#[test]
fn empty_and_reversed_ranges_have_no_items() {
    assert_eq!(reduce(5..5u32, |n| n, |a, b| a + b), None);
    #[expect(clippy::reversed_empty_ranges, reason = "this is what is tested")]
    let reversed = 7..3i32;
    assert!(map(reversed, |n| n).is_empty());
}

#[test]
fn ranges_over_the_whole_of_a_type_are_counted_right() {
    assert_eq!(Divisible::count(&(i32::MIN..i32::MAX)), u32::MAX as usize);
    let (low, high) = (i64::MIN..i64::MAX).divide(1 << 63);
    assert_eq!((low, high), (i64::MIN..0, 0..i64::MAX));
}

#[test]
fn a_panic_in_the_body_comes_out() {
    let panic = catch_unwind(|| map(0..100u32, |n| assert_ne!(n, 30))).expect_err("30 panics");
    assert!(
        panic
            .downcast_ref::<String>()
            .is_some_and(|text| text.contains("30"))
    );
}
