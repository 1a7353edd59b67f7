//! Common benchmarks of simulators, in virtual time on one worker and on two:
//!
//! - `phold`: every actor has a message in flight; an actor that receives one sends the next to a random actor, after
//!   the latency and a delay from an exponential distribution. Measured with latencies of 50 ms and of 1 s.
//! - `ring`: a thousand actors and one message in flight. Windows have one event each, so this measures the cost of a
//!   window, and of a second worker that has nothing to do.
//! - `send`, `send_self`, `timer`, `timer_handle`, `cancel`: one actor performs this operation 160,000 times in one
//!   event, and the resulting events are handled. Operations that return a handle should cost at most twice as much as
//!   operations without a handle.
//! - `queue`: customers arrive at a server and wait for their service; both times are exponentially distributed
//!   (M/M/1).
//!
//! Rates count events. Each benchmark checks that both numbers of workers give the same digest.

use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Executor, Flow, Latency, Message, Report,
    Scenario, Spawn, Token,
};
use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use std::num::NonZeroUsize;
use std::time::Duration;

#[derive(Message)]
struct Job;

/// Draws an exponentially distributed duration with this mean.
fn exponential<C: Context<Job>>(cx: &mut C, mean: Duration) -> Duration {
    let uniform = ((cx.random() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    mean.mul_f64(-uniform.ln())
}

/// A logical process of PHOLD.
struct Particle {
    first: u32,
    count: u32,
    mean: Duration,
    left: u32,
}

impl Particle {
    fn pass_on<C: Context<Job>>(&mut self, cx: &mut C) {
        let to = Addr::from_u32(self.first + cx.below(self.count));
        let delay = exponential(cx, self.mean);
        cx.send_after(delay, to, Job);
    }
}

impl Actor<Job> for Particle {
    fn start<C: Context<Job>>(&mut self, cx: &mut C) {
        // The particles' addresses begin with the page after that of their parent.
        self.first = cx.parent().as_u32() + 256;
        self.pass_on(cx);
    }

    fn on<C: Context<Job>>(&mut self, _: Event<Job>, cx: &mut C) -> Flow {
        if self.left > 0 {
            self.left -= 1;
            self.pass_on(cx);
        }
        Flow::Continue
    }
}

/// A model in which each of `count` actors passes on at most `rounds` messages.
struct Phold {
    count: u32,
    rounds: u32,
    latency: Duration,
}

impl Scenario<Job> for Phold {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        let Phold {
            count,
            rounds,
            latency,
        } = self;
        let spawn = Spawn::many(count, "particle", "");
        cx.spawn_actors(spawn, move |_| Particle {
            first: 0,
            count,
            mean: latency,
            left: rounds,
        })
        .await;
        cx.sleep(latency * rounds * 2).await;
    }
}

/// A model in which a message is passed around a ring.
struct Ring {
    count: u32,
    hops: u32,
}

struct Member {
    next: Addr,
    root: Addr,
    hops: u32,
}

impl Actor<Job> for Member {
    fn on<C: Context<Job>>(&mut self, _: Event<Job>, cx: &mut C) -> Flow {
        let to = if self.hops == 0 { self.root } else { self.next };
        self.hops = self.hops.saturating_sub(1);
        cx.send(to, Job);
        Flow::Continue
    }
}

impl Scenario<Job> for Ring {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        let Ring { count, hops } = self;
        let root = cx.me();
        let first = root.as_u32() + 256;
        let spawn = Spawn::many(count, "member", "");
        let members = cx
            .spawn_actors(spawn, move |index| Member {
                next: Addr::from_u32(first + (index + 1) % count),
                root,
                hops: hops / count,
            })
            .await;
        assert_eq!(members.get(0).as_u32(), first);
        cx.send(members.get(0), Job);
        cx.recv().await;
    }
}

/// A single server at 80 % utilisation.
struct Queue {
    customers: u32,
}

struct Server {
    waiting: u32,
    busy: bool,
}

const SERVICE: Duration = Duration::from_millis(8);
const ARRIVAL: Duration = Duration::from_millis(10);

impl Server {
    fn serve<C: Context<Job>>(&mut self, cx: &mut C) {
        self.busy = self.waiting > 0;
        if self.busy {
            self.waiting -= 1;
            let service = exponential(cx, SERVICE);
            cx.timer(service, Token::new(0));
        }
    }
}

impl Actor<Job> for Server {
    fn on<C: Context<Job>>(&mut self, event: Event<Job>, cx: &mut C) -> Flow {
        match event {
            Event::Message { .. } => {
                self.waiting += 1;
                if !self.busy {
                    self.serve(cx);
                }
            }
            _ => self.serve(cx),
        }
        Flow::Continue
    }
}

impl Scenario<Job> for Queue {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        // The root and the first actor that it spawns run on the same worker.
        let server = Spawn::one("server");
        let server = cx.spawn_actors(server, |_| Server {
            waiting: 0,
            busy: false,
        });
        let server = server.await.get(0);
        for _ in 0..self.customers {
            let pause = exponential(&mut cx, ARRIVAL);
            cx.sleep(pause).await;
            cx.send(server, Job);
        }
    }
}

/// An operation that one actor performs many times in one event.
#[derive(Clone, Copy)]
enum Step {
    Send,
    SendSelf,
    Timer,
    TimerHandle,
    Cancel,
}

/// A model in which an actor performs one operation many times in one event.
struct Steps {
    step: Step,
    times: u32,
}

impl Actor<Job> for Steps {
    fn start<C: Context<Job>>(&mut self, cx: &mut C) {
        let (me, token) = (cx.me(), Token::new(1));
        let after = |number: u32| Duration::from_nanos(2_000_000 + u64::from(number));
        for number in 0..self.times {
            match self.step {
                Step::Send => {
                    cx.send(me, Job);
                }
                Step::SendSelf => {
                    cx.send_self(Job);
                }
                Step::Timer => cx.timer(after(number), token),
                Step::TimerHandle => {
                    cx.timer_handle(after(number), token);
                }
                Step::Cancel => {}
            }
        }
        if let Step::Cancel = self.step {
            let timer = |number| cx.timer_handle(after(number), token);
            let handles: Vec<_> = (0..self.times).map(timer).collect();
            for handle in handles {
                assert!(cx.cancel(handle));
            }
        }
    }

    fn on<C: Context<Job>>(&mut self, _: Event<Job>, _: &mut C) -> Flow {
        Flow::Continue
    }
}

impl Scenario<Job> for Steps {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        let Steps { step, times } = self;
        let make = move |_| Steps { step, times };
        cx.spawn_actors(Spawn::one("busy"), make).await;
        cx.sleep(Duration::from_secs(1)).await;
    }
}

fn run(workers: usize, latency: Duration, scenario: impl Scenario<Job>) -> Report {
    let config = Config {
        workers: NonZeroUsize::new(workers).expect("at least one worker"),
        latency: Latency::constant(latency),
        traces: false,
        ..Config::default()
    };
    corsair::run(Executor::Virtual, &config, scenario).expect("the scenario runs to its end")
}

fn virtual_time(c: &mut Criterion) {
    let mut group = c.benchmark_group("virtual_time");
    group.sampling_mode(SamplingMode::Flat);
    let mut bench = |name: &str, size: u32, once: &dyn Fn(usize) -> Report| {
        let alone = once(1);
        group.throughput(Throughput::Elements(alone.delivered() + alone.timers));
        for workers in [1, 2] {
            assert_eq!(once(workers).digest, alone.digest);
            let id = BenchmarkId::new(format!("{name}-{workers}"), size);
            group.bench_function(id, |bencher| bencher.iter(|| once(workers)));
        }
    };
    for (name, latency) in [("phold-50ms", 50), ("phold-1s", 1000)] {
        let latency = Duration::from_millis(latency);
        for count in [10_000, 100_000] {
            bench(name, count, &|workers| {
                let rounds = 10;
                let phold = Phold {
                    count,
                    rounds,
                    latency,
                };
                run(workers, latency, phold)
            });
        }
    }
    bench("ring", 1000, &|workers| {
        let (count, hops) = (1000, 200_000);
        run(workers, Duration::from_millis(1), Ring { count, hops })
    });
    let steps = [
        ("send", Step::Send),
        ("send_self", Step::SendSelf),
        ("timer", Step::Timer),
        ("timer_handle", Step::TimerHandle),
        ("cancel", Step::Cancel),
    ];
    for (name, step) in steps {
        let times = 160_000;
        bench(name, times, &|workers| {
            run(workers, Duration::from_millis(1), Steps { step, times })
        });
    }
    bench("queue", 100_000, &|workers| {
        let customers = 100_000;
        run(workers, Duration::from_millis(1), Queue { customers })
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(10, Duration::from_secs(2));
    targets = virtual_time
}
criterion_main!(benches);
