//! What a run allocates once its buffers have grown. A file of its own, with one test: counts are
//! of the whole process.

use corsair_serial::{Batch, Chunked, Json, Pooled, Serial, Strategy};
use corsair_testing::allocations::{Count, Counting, Total};
use corsair_testing::people;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The least that one of 20 runs allocates, after 20 others. Which thread gets how much is not the same
/// in every run, so on a busy machine some buffer may have to grow even late; that is no steady state.
fn steady(strategy: &impl Strategy, people: &[people::Person]) -> Total {
    let mut batch = Batch::new();
    let mut run = || {
        let count = Count::start();
        strategy.marshal_into(&Json, people, &mut batch).unwrap();
        count.stop()
    };
    for _ in 0..10 {
        run();
    }
    let runs = std::iter::repeat_with(run).take(10);
    runs.min_by_key(|total| total.allocations).unwrap()
}

// Guarantee: serial-4.
#[test]
fn a_run_in_steady_state_allocates_at_most_5_times_whatever_the_values_and_workers() {
    let people = people::generate(500, 7);
    for count in [0, 1, 100, 500] {
        let people = &people[..count];
        assert_eq!(steady(&Serial, people), Total::default());
        for workers in [1, 2, 64] {
            for (name, total) in [
                ("chunked", steady(&Chunked::new(workers).unwrap(), people)),
                ("pooled", steady(&Pooled::new(workers).unwrap(), people)),
            ] {
                let what = format!("{name}, {workers} workers, {count} values: {total:?}");
                assert!(total.allocations <= 5, "{what}");
            }
        }
    }
}
