//! PHOLD, the benchmark of parallel simulators (Fujimoto 1990): every event causes one event at a random actor, after a
//! random time. According to theory, the number of pending events is constant, so events happen at a known rate. The
//! run is the same with any number of workers.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    Actor, AsyncContext, Config, Context, Distribution, Event, Executor, Experiment, Flow, Latency,
    Message, RunError, Spawn, Time, measure,
};
use std::num::NonZeroUsize;
use std::time::Duration;

const PLACES: u32 = 4_096;
/// The minimum time from one event to the event that it causes, and the mean of the additional random time.
const LOOKAHEAD: Duration = Duration::from_millis(100);
const MEAN: f64 = 0.9;
const UNTIL: Duration = Duration::from_secs(30);

#[derive(Message)]
struct Ball;

struct Place {
    first: u32,
    delay: Distribution,
}

impl Place {
    fn throw<C: Context<Ball>>(&self, cx: &mut C) {
        let to = corsair::Addr::from_u32(self.first + cx.below(PLACES));
        let delay = cx.sample_time(&self.delay);
        cx.send_after(delay, to, Ball);
    }
}

impl Actor<Ball> for Place {
    fn start<C: Context<Ball>>(&mut self, cx: &mut C) {
        self.throw(cx);
    }

    fn on<C: Context<Ball>>(&mut self, _: Event<Ball>, cx: &mut C) -> Flow {
        self.throw(cx);
        Flow::Continue
    }
}

struct Phold;

impl Experiment<Ball> for Phold {
    type Value = (Time, Time);

    async fn root<C: AsyncContext<Ball>>(self, mut cx: C) -> (Time, Time) {
        let delay = Distribution::exponential(MEAN).expect("a mean is positive");
        // Actors that are spawned together have consecutive addresses, and a large spawn begins at a page.
        let place = move |_| Place {
            first: 256,
            delay: delay.clone(),
        };
        let places = cx
            .spawn_actors(Spawn::many(PLACES, "place", ""), place)
            .await;
        assert_eq!(places.get(0).as_u32(), 256, "the second page of addresses");
        let begun = cx.now();
        cx.sleep(UNTIL).await;
        (begun, cx.now())
    }
}

fn main() -> Result<(), RunError> {
    let run = |workers: usize| {
        let config = Config {
            latency: Latency::constant(LOOKAHEAD),
            workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
            ..Config::default()
        };
        measure(Executor::Virtual, &config, Phold)
    };
    let ((begun, over), report) = run(1)?;
    assert_eq!(report.digest, run(3)?.1.digest);
    // Each actor's events form a renewal process; its central limit theorem gives the variance of the number of events
    // in a time.
    let (time, cycle) = (
        over.since(begun) + LOOKAHEAD,
        LOOKAHEAD.as_secs_f64() + MEAN,
    );
    let expected = f64::from(PLACES)
        * (time.as_secs_f64() / cycle + (MEAN * MEAN / (cycle * cycle) - 1.0) / 2.0);
    let deviation = (expected * MEAN * MEAN / (cycle * cycle)).sqrt();
    println!(
        "{} events; theory: {expected:.0} ± {deviation:.0}",
        report.delivered()
    );
    assert!((report.delivered() as f64 - expected).abs() < 5.0 * deviation);
    Ok(())
}
