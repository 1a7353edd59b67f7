//! The counting allocator.

use corsair_testing::allocations::{Count, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// The only test of this program, because counts cover the whole process and tests of one program run concurrently.
#[test]
fn counts_allocations_and_growth_of_all_threads_but_only_while_counting() {
    let _ = Count::start().stop();
    drop(std::hint::black_box(vec![0_u8; 50]));
    let total = Count::start().stop();
    assert_eq!((total.allocations, total.bytes), (0, 0));

    let count = Count::start();
    let mut block = std::hint::black_box(Vec::<u8>::with_capacity(64));
    block.reserve_exact(128);
    std::thread::scope(|scope| {
        scope.spawn(|| drop(std::hint::black_box(vec![0_u8; 1 << 20])));
    });
    let total = count.stop();
    assert!(total.allocations >= 3, "{total:?}");
    assert!(total.bytes >= 64 + 128 + (1 << 20), "{total:?}");
    assert!((1 << 20..1 << 21).contains(&total.peak), "{total:?}");

    let count = Count::start();
    for _ in 0..100 {
        drop(std::hint::black_box(vec![0_u8; 1 << 16]));
    }
    let total = count.stop();
    assert!(
        total.bytes >= 100 << 16 && total.peak < 1 << 18,
        "{total:?}"
    );
}
