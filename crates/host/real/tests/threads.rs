//! Programs that use only threads: rayon's pool and crossbeam's channels.

use corsair_host::{Sim, SimError};
use rayon::prelude::*;
use std::time::Duration;

/// Sorts and sums on a pool of two threads, whose idle threads spin and then sleep.
fn rayon_program() {
    let mut numbers: Vec<u64> = (0..20_000)
        .map(|n: u64| n.wrapping_mul(0x9e37_79b9) % 10_007)
        .collect();
    numbers.par_sort();
    let total: u64 = numbers.par_iter().map(|n| n * n).sum();
    let (left, right) = rayon::join(|| fibonacci(15), || fibonacci(14));
    println!(
        "{total} {left} {right} on {} threads",
        rayon::current_num_threads()
    );
}

fn fibonacci(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, other) = rayon::join(|| fibonacci(n - 1), || fibonacci(n - 2));
    one + other
}

/// Producers and consumers over bounded, unbounded and timed channels.
fn crossbeam_program() {
    let (send, receive) = crossbeam_channel::bounded::<u64>(3);
    let (done, finished) = crossbeam_channel::unbounded();
    std::thread::scope(|scope| {
        for producer in 0..3 {
            let send = send.clone();
            scope.spawn(move || (0..100).for_each(|n| send.send(producer * 1000 + n).unwrap()));
        }
        drop(send);
        for _ in 0..2 {
            let (receive, done) = (receive.clone(), done.clone());
            scope.spawn(move || {
                let tick = crossbeam_channel::tick(Duration::from_micros(100));
                loop {
                    crossbeam_channel::select! {
                        recv(receive) -> number => match number {
                            Ok(number) => done.send(number).unwrap(),
                            Err(_) => break,
                        },
                        recv(tick) -> _ => {}
                    }
                }
            });
        }
        drop(done);
        let order: Vec<u64> = finished.iter().collect();
        println!(
            "{} {} {:?}",
            order.len(),
            order.iter().sum::<u64>(),
            &order[..20]
        );
        assert_eq!(order.len(), 300);
    });
}

#[corsair_host::test(seeds = 5, deterministic = true)]
fn rayon_repeats(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(30);
    sim.hosts("host", 2, |_| rayon_program());
    sim.run_until(Duration::from_secs(60))
}

#[corsair_host::test(seeds = 5, deterministic = true)]
fn crossbeam_repeats(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(30);
    sim.hosts("host", 2, |_| crossbeam_program());
    sim.run_until(Duration::from_secs(60))
}
