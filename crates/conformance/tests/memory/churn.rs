//! The memory of short-lived actors, and of idle actors. The tests run one after the other.

mod peaks;

use corsair::{Actor, AsyncContext, Context, Event, Executor, Flow, Scenario, Spawn, Token};
use peaks::{Note, Peaks, config, resident};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Prevents tests from running at the same time, because they measure the memory of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lives for one to two milliseconds.
struct Brief;

impl Actor<Note> for Brief {
    fn start<C: Context<Note>>(&mut self, cx: &mut C) {
        let micros = cx.below(1000).into();
        cx.timer(MS + Duration::from_micros(micros), Token::new(0));
    }
    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        if let Event::Timer(_) = event {
            let parent = cx.parent();
            cx.send(parent, Note::Number(1));
            return Flow::Stop;
        }
        Flow::Continue
    }
}

/// Spawns short-lived actors: `at_once` spawns at a time, each of `together` actors.
struct Churn {
    together: u32,
    at_once: u32,
    rounds: u64,
    peaks: Peaks,
}

impl Scenario<Note> for Churn {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        for round in 0..self.rounds {
            self.peaks.look(round, self.rounds);
            for spawn in 0..self.at_once {
                let mut how = Spawn::many(self.together, "brief", "");
                if spawn % 2 == 0 {
                    how = Spawn::many(self.together, String::from("one of many"), "");
                }
                cx.spawn_request(how, move |index| {
                    // The closure is dropped with the last of its actors.
                    let _ = spawn + index;
                    Brief
                });
            }
            let mut left = self.at_once * self.together;
            while left > 0 {
                if let Event::Message { .. } = cx.recv().await {
                    left -= 1;
                }
            }
        }
    }
}

// Guarantee: core-23.
#[test]
fn nothing_is_kept_of_actors_that_have_ended() {
    let _alone = alone();
    for (workers, together, at_once, rounds) in [
        (1, 1, 40, 4000),
        (2, 1, 200, 1000),
        (1, 90, 3, 1000),
        (2, 300, 2, 400),
        (2, 5000, 1, 60),
        (1, 70_000, 1, 20),
    ] {
        let peaks = Peaks::default();
        let scenario = Churn {
            together,
            at_once,
            rounds,
            peaks: peaks.clone(),
        };
        let report = corsair::run(Executor::Virtual, &config(workers), scenario).unwrap();
        let ended = u64::from(together) * u64::from(at_once) * rounds;
        assert_eq!((report.ended, report.waiting_total), (ended, 0));
        let growth = peaks.growth();
        let allowed = 1_500_000 + u64::from(together * at_once) * 200;
        assert!(
            growth < allowed,
            "{ended} actors by {together} left {growth} bytes, {workers} workers"
        );
    }
}

/// Never ends.
struct Idle {
    _state: [u32; 3],
}

impl Actor<Note> for Idle {
    fn on<C: Context<Note>>(&mut self, _: Event<Note>, _: &mut C) -> Flow {
        Flow::Continue
    }
}

/// Spawns actors one at a time that never end.
struct Settlers {
    rounds: u32,
    grown: Arc<Mutex<u64>>,
}

impl Settlers {
    const A_ROUND: u32 = 1000;
}

impl Scenario<Note> for Settlers {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let mut before = 0;
        for round in 0..self.rounds {
            if round == 2 {
                before = resident();
            }
            for index in 0..Settlers::A_ROUND {
                cx.spawn_request(Spawn::one("settler"), move |_| Idle { _state: [index; 3] });
            }
            for _ in 0..Settlers::A_ROUND {
                cx.recv_if(|event| matches!(event, Event::Spawned { .. }))
                    .await;
            }
        }
        cx.sleep(5 * MS).await;
        *self.grown.lock().unwrap() = resident().saturating_sub(before);
    }
}

// Guarantee: core-23.
#[test]
fn an_actor_that_was_spawned_by_itself_takes_at_most_a_hundred_bytes() {
    let _alone = alone();
    let grown = Arc::new(Mutex::new(0));
    let rounds = 300;
    let scenario = Settlers {
        rounds,
        grown: Arc::clone(&grown),
    };
    let report = corsair::run(Executor::Virtual, &config(1), scenario).unwrap();
    let actors = u64::from((rounds - 2) * Settlers::A_ROUND);
    assert!(report.waiting_total > actors);
    let grown = *grown.lock().unwrap();
    assert!(grown <= 100 * actors, "{} bytes each", grown / actors);
}
