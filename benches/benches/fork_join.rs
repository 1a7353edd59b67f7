//! Measures the cost of a fork that does almost nothing.
//!
//! Every contender halves the same range down to single numbers, or computes the same Fibonacci number, without a
//! sequential cut-off for small inputs. The time per element is therefore the time per fork. Tokio tasks and OS
//! threads, which cost hundreds of times as much, get smaller ranges.

#![allow(
    clippy::manual_async_fn,
    reason = "a recursive `async fn` that must be `Send` does not compile"
)]

use corsair::fork_join::{Pool, fork_join, join};
use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

const WORKERS: [usize; 2] = [1, 2];

/// The number of forks in the sums of closures and futures.
const MANY: u64 = 1_000_000;
/// The number of forks in the sums of tokio tasks, and in sums whose leaves wait.
const SOME: u64 = 100_000;
/// The number of forks in the sum of OS threads.
const FEW: u64 = 200;

/// The index of the Fibonacci number, its value, and the number of forks to compute it.
const FIB: (u64, u64, u64) = (27, 196_418, 317_810);

fn middle(low: u64, high: u64) -> u64 {
    low + (high - low) / 2
}

/// Makes one real call for every node, as the lower bound.
#[inline(never)]
fn plain(low: u64, high: u64) -> u64 {
    if low == high {
        return black_box(low);
    }
    let mid = middle(low, high);
    plain(low, mid) + plain(mid + 1, high)
}

fn closures(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = middle(low, high);
    let (a, b) = join(|| closures(low, mid), || closures(mid + 1, high));
    a + b
}

fn futures(low: u64, high: u64) -> impl Future<Output = u64> + Send {
    async move {
        if low == high {
            return low;
        }
        let mid = middle(low, high);
        let (a, b) = fork_join(futures(low, mid), futures(mid + 1, high)).await;
        a + b
    }
}

/// Adds up a range like [`futures`], but each leaf returns `Pending` once.
fn waiting(low: u64, high: u64) -> impl Future<Output = u64> + Send {
    async move {
        if low == high {
            Yield(false).await;
            return low;
        }
        let mid = middle(low, high);
        let (a, b) = fork_join(waiting(low, mid), waiting(mid + 1, high)).await;
        a + b
    }
}

/// A future that is pending at its first poll and ready at its second.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

fn rayon_join(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = middle(low, high);
    let (a, b) = rayon::join(|| rayon_join(low, mid), || rayon_join(mid + 1, high));
    a + b
}

/// Forks with chili so that every fork is offered to other threads, as with the other contenders; by default, chili
/// offers every 64th fork.
fn chili_join(scope: &mut chili::Scope<'_>, low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = middle(low, high);
    let (a, b) = scope.join_with_heartbeat_every::<1, _, _, _, _>(
        |scope| chili_join(scope, low, mid),
        |scope| chili_join(scope, mid + 1, high),
    );
    a + b
}

fn tasks(low: u64, high: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if low == high {
            return low;
        }
        let mid = middle(low, high);
        let (a, b) = (
            tokio::spawn(tasks(low, mid)),
            tokio::spawn(tasks(mid + 1, high)),
        );
        a.await.expect("a sum does not panic") + b.await.expect("a sum does not panic")
    })
}

fn threads(low: u64, high: u64) -> u64 {
    if low == high {
        return low;
    }
    let mid = middle(low, high);
    thread::scope(|scope| {
        let a = scope.spawn(|| threads(low, mid));
        let b = scope.spawn(|| threads(mid + 1, high));
        a.join().expect("a sum does not panic") + b.join().expect("a sum does not panic")
    })
}

fn plain_fib(n: u64) -> u64 {
    if n < 2 {
        black_box(n)
    } else {
        plain_fib(n - 1) + plain_fib(n - 2)
    }
}

fn closures_fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| closures_fib(n - 1), || closures_fib(n - 2));
    a + b
}

fn futures_fib(n: u64) -> impl Future<Output = u64> + Send {
    async move {
        if n < 2 {
            return n;
        }
        let (a, b) = fork_join(futures_fib(n - 1), futures_fib(n - 2)).await;
        a + b
    }
}

fn rayon_fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(|| rayon_fib(n - 1), || rayon_fib(n - 2));
    a + b
}

/// Times one contender, and checks each of its results.
fn contend(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    workers: usize,
    (input, result, forks): (u64, u64, u64),
    mut run: impl FnMut(u64) -> u64,
) {
    group.throughput(Throughput::Elements(forks));
    group.bench_function(BenchmarkId::new(name, workers), |bencher| {
        bencher.iter(|| assert_eq!(run(black_box(input)), result));
    });
}

/// Returns `high`, the sum from 0 to `high`, and the number of forks of this sum.
const fn sum_to(high: u64) -> (u64, u64, u64) {
    (high, high * (high + 1) / 2, high)
}

fn sum(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fork_join/sum");
    contend(&mut group, "plain calls", 1, sum_to(MANY), |high| {
        plain(0, high)
    });
    contend(&mut group, "threads", 1, sum_to(FEW), |high| {
        threads(0, high)
    });
    for workers in WORKERS {
        let pool = Pool::new(workers).expect("the system gives a few threads");
        contend(&mut group, "closures", workers, sum_to(MANY), |high| {
            pool.install(|| closures(0, high))
        });
        contend(&mut group, "futures", workers, sum_to(MANY), |high| {
            pool.block_on(futures(0, high))
        });
        contend(
            &mut group,
            "futures, leaves wait",
            workers,
            sum_to(SOME),
            |high| pool.block_on(waiting(0, high)),
        );
        let rayon = rayon::ThreadPoolBuilder::new()
            .num_threads(workers)
            .build()
            .expect("the system gives a few threads");
        contend(&mut group, "rayon", workers, sum_to(MANY), |high| {
            rayon.install(|| rayon_join(0, high))
        });
        let chili = chili::ThreadPool::with_config(chili::Config {
            thread_count: NonZeroUsize::new(workers),
            ..chili::Config::default()
        });
        contend(&mut group, "chili", workers, sum_to(MANY), |high| {
            chili_join(&mut chili.scope(), 0, high)
        });
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .build()
            .expect("the system gives a few threads");
        contend(&mut group, "tokio", workers, sum_to(SOME), |high| {
            tokio.block_on(async { tokio::spawn(tasks(0, high)).await.expect("no panic") })
        });
    }
    group.finish();
}

fn fib(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fork_join/fib");
    contend(&mut group, "plain calls", 1, FIB, plain_fib);
    for workers in WORKERS {
        let pool = Pool::new(workers).expect("the system gives a few threads");
        contend(&mut group, "closures", workers, FIB, |n| {
            pool.install(|| closures_fib(n))
        });
        contend(&mut group, "futures", workers, FIB, |n| {
            pool.block_on(futures_fib(n))
        });
        let rayon = rayon::ThreadPoolBuilder::new()
            .num_threads(workers)
            .build()
            .expect("the system gives a few threads");
        contend(&mut group, "rayon", workers, FIB, |n| {
            rayon.install(|| rayon_fib(n))
        });
    }
    group.finish();
}

/// Measures consecutive forks that do almost nothing: the overhead of checking for idle workers.
fn shallow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fork_join/shallow");
    for workers in WORKERS {
        let pool = Pool::new(workers).expect("the system gives a few threads");
        contend(&mut group, "closures", workers, sum_to(MANY), |high| {
            pool.install(|| {
                let mut total = 0;
                for n in 0..high {
                    let (a, b) = join(|| black_box(n), || black_box(1));
                    total += a + b;
                }
                total
            })
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(10, Duration::from_secs(1));
    targets = sum, fib, shallow
}
criterion_main!(benches);
