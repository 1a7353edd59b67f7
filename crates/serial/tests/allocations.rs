//! The allocations of a run after its buffers have grown. This test has its own file, because the counts cover the
//! whole process.

use corsair_serial::{Batch, Chunked, Json, Pooled, Serial, Strategy};
use corsair_testing::allocations::{Count, Counting, Total};
use corsair_testing::people;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the minimum of the allocations of 20 runs, after 20 warm-up runs. The threads share the
/// values differently in every run, so on a busy machine a buffer may still grow in a late run. The
/// minimum leaves such runs out.
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
