//! The memory of a run with one worker and with two.

mod peaks;

use corsair::{
    Actor, AsyncContext, Config, Context, Event, Executor, Flow, Latency, Scenario, Spawn,
};
use peaks::{Note, Peaks, config, resident};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// PHOLD, the standard benchmark of parallel simulators: every received message is sent on to a random actor after a
/// random delay.
struct Hold {
    first: u32,
    count: u32,
}

impl Actor<Note> for Hold {
    fn start<C: Context<Note>>(&mut self, cx: &mut C) {
        self.first = cx.me().as_u32() - self.first;
        self.send_on(cx);
    }
    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        if let Event::Message { .. } = event {
            self.send_on(cx);
        }
        Flow::Continue
    }
}

impl Hold {
    fn send_on<C: Context<Note>>(&self, cx: &mut C) {
        let to = corsair::Addr::from_u32(self.first + cx.below(self.count));
        let number = cx.below(50_000);
        cx.send_after(
            Duration::from_micros(number.into()),
            to,
            Note::Number(number),
        );
    }
}

struct Phold {
    count: u32,
    rounds: u64,
    peaks: Peaks,
}

impl Scenario<Note> for Phold {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let count = self.count;
        cx.spawn_actors(Spawn::many(count, "hold", ""), move |first| Hold {
            first,
            count,
        })
        .await;
        for round in 0..self.rounds {
            cx.sleep(10 * MS).await;
            self.peaks.look(round, self.rounds);
        }
    }
}

// Guarantee: core-23.
#[test]
fn two_workers_need_little_more_memory_than_one_and_it_does_not_grow() {
    let before = resident();
    let run = |workers| {
        let peaks = Peaks::default();
        let scenario = Phold {
            count: 200_000,
            rounds: 60,
            peaks: peaks.clone(),
        };
        let config = Config {
            latency: Latency::constant(MS),
            ..config(workers)
        };
        let report = corsair::run(Executor::Virtual, &config, scenario).unwrap();
        let (early, late) = *peaks.0.lock().unwrap();
        let most = early.max(late).saturating_sub(before);
        (report.digest, most, peaks.growth())
    };
    let (alone, one, _) = run(1);
    let (together, two, growth) = run(2);
    assert_eq!(alone, together);
    assert!(
        growth < one / 5,
        "{growth} bytes more than in the first tenth"
    );
    assert!(two * 10 <= one * 13, "one worker {one} bytes, two {two}");
}
