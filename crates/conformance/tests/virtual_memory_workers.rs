//! What a run in virtual time holds in memory with one worker and with two. A program of its own,
//! because it looks at the whole process.

use corsair::{
    Actor, AsyncContext, Config, Context, Event, Executor, Flow, Latency, Message, Scenario, Spawn,
};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[derive(Message)]
enum Note {
    Number(u32),
}

/// Bytes of this process in memory now; 0 where the system does not tell.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split_whitespace().nth(1).map(str::parse::<u64>);
    pages.map_or(0, |pages| pages.unwrap_or(0) * 4096)
}

fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    }
}

/// Most memory that was seen in the first tenth of a run, and afterwards.
#[derive(Clone, Default)]
struct Peaks(Arc<Mutex<(u64, u64)>>);

impl Peaks {
    /// Looks at the memory, `done` parts of `all` into the run.
    fn look(&self, done: u64, all: u64) {
        let now = resident();
        let mut peaks = self.0.lock().unwrap();
        if done * 10 <= all {
            peaks.0 = peaks.0.max(now);
        } else {
            peaks.1 = peaks.1.max(now);
        }
    }

    /// By how many bytes the later peak is higher.
    fn growth(&self) -> u64 {
        let (early, late) = *self.0.lock().unwrap();
        assert!(early > 0 && late > 0 || !cfg!(target_os = "linux"));
        late.saturating_sub(early)
    }
}

/// The standard load of parallel simulators: every message that is received is sent on, to anyone,
/// after a random while.
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

#[test]
fn two_workers_need_little_more_memory_than_one_and_it_does_not_grow() {
    let before = resident();
    let run = |workers| {
        let peaks = Peaks::default();
        let scenario = Phold {
            count: 200_000,
            rounds: 120,
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
