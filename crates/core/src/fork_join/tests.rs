//! Small runs for miri, which checks every access; the behaviour at full size is tested in
//! `tests/fork_join_*.rs`.

use super::{Pool, for_each, join, map, reduce, scope};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

fn pool(workers: usize) -> Pool {
    Pool::new(workers).expect("the system gives a few threads")
}

/// Forks with owned results, so that a half that is run twice or never shows.
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
