//! Small scenarios in virtual time that execute all of the engine's unsafe code: chunks of events, actors in pages,
//! shards that one thread borrows and returns, unwinding, and values that are dropped early. They exist for miri
//! (`ci/miri.sh`), which detects undefined behaviour. The engine's constants are smaller under miri, so that a few
//! events fill several chunks.

use corsair::{
    Actor, Addr, AsyncContext, CancelToken, Config, Context, DeadLetters, Event, Executor, Flow,
    Latency, Message, Outcome, Panics, Report, RunError, Scenario, Simulation, Spawn, Time, Token,
    run,
};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// A message that owns memory. A few dozen messages fill a chunk of 8 KiB.
#[derive(Message)]
enum Cargo {
    Crate(#[message(skip)] Box<[u64; 2]>, #[message(skip)] [u64; 16]),
    Request(u32),
    Answer(u32),
}

fn cargo(number: u64) -> Cargo {
    Cargo::Crate(Box::new([number, !number]), [number; 16])
}

fn intact(cargo: &Cargo) -> bool {
    match cargo {
        Cargo::Crate(inner, outer) => inner[0] == !inner[1] && outer.iter().all(|n| *n == inner[0]),
        Cargo::Request(_) | Cargo::Answer(_) => true,
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);

fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).expect("at least one worker"),
        latency: Latency::constant(MILLISECOND),
        panics: Panics::EndActor,
        dead_letters: DeadLetters::ToRoot,
        ..Config::default()
    }
}

/// Returns the report of a run with one worker, after checking that runs with two and three workers have equal results.
fn same_for_all<S: Scenario<Cargo>>(make: impl Fn() -> S) -> Report {
    let one = run(Executor::Virtual, &config(1), make()).expect("one worker");
    for workers in [2, 3] {
        let report = run(Executor::Virtual, &config(workers), make()).expect("more workers");
        assert_eq!(report.digest, one.digest, "{workers} workers");
        assert_eq!(report.dead(), one.dead());
    }
    one
}

/// Passes each crate on to its neighbour. After `left` times it sends crates to the root.
struct Porter {
    next: Addr,
    root: Addr,
    left: u32,
}

impl Actor<Cargo> for Porter {
    fn on<C: Context<Cargo>>(&mut self, event: Event<Cargo>, cx: &mut C) -> Flow {
        let Event::Message { body, .. } = event else {
            return Flow::Continue;
        };
        assert!(intact(&body));
        if let Cargo::Request(next) = body {
            self.next = Addr::from_u32(next);
            return Flow::Continue;
        }
        let to = if self.left == 0 { self.root } else { self.next };
        self.left = self.left.saturating_sub(1);
        cx.send(to, body);
        Flow::Continue
    }
}

/// One crate circulates (sparse windows: one thread runs all shards), then many (dense windows: each thread runs its
/// own shard), then one again.
struct Tide {
    rounds: u32,
    flood: u64,
}

impl Scenario<Cargo> for Tide {
    async fn root<C: AsyncContext<Cargo>>(self, mut cx: C) {
        let root = cx.me();
        let mut porters: Vec<Addr> = Vec::new();
        for _ in 0..3 {
            // Each spawn begins a page, and pages are assigned to the shards in turn.
            let next = porters.last().copied().unwrap_or(root);
            let left = self.rounds;
            let porter = Spawn::one("porter");
            let porter = cx.spawn_actors(porter, move |_| Porter { next, root, left });
            porters.push(porter.await.get(0));
        }
        let last = porters[2];
        // Closes the ring of porters.
        cx.send(porters[0], Cargo::Request(last.as_u32()));
        for flood in [1, self.flood, self.flood, 1] {
            for number in 0..flood {
                cx.send(last, cargo(number));
            }
            for _ in 0..flood {
                let event = cx.recv().await;
                assert!(matches!(event, Event::Message { body, .. } if intact(&body)));
            }
        }
    }
}

#[test]
fn loops_are_lent_and_given_back_as_windows_get_thin_and_thick() {
    let (rounds, flood) = if cfg!(miri) { (20, 8) } else { (4000, 300) };
    let report = same_for_all(|| Tide { rounds, flood });
    assert_eq!(report.dead(), 0);
}

/// An actor that skips and stashes events, answers requests, sets timers within the window, and panics on request.
async fn clerk<C: AsyncContext<Cargo>>(mut cx: C, index: u32) {
    // The first timer is due within this window, the second one far beyond the ring of windows.
    cx.timer(Duration::from_nanos(3), Token::new(1));
    cx.timer(Duration::from_secs(1), Token::new(2));
    cx.send_self(cargo(7));
    let first = cx.recv_if(|event| matches!(event, Event::Timer(token) if *token == Token::new(1)));
    assert!(matches!(first.await, Event::Timer(_)));
    loop {
        match cx.recv().await {
            Event::Message {
                body: Cargo::Request(n),
                ..
            } => {
                let reply_handle = cx.envelope().reply_handle();
                cx.sleep(Duration::from_micros(10)).await;
                cx.reply(reply_handle, Cargo::Answer(n + index));
            }
            Event::Message {
                body: Cargo::Answer(_),
                ..
            } => panic!("on request"),
            Event::Message { body, .. } => assert!(intact(&body)),
            _ => {}
        }
    }
}

/// Clerks, both in separate pages and in shared ones, receive requests, are stopped, panic, and end before some
/// messages to them are delivered.
struct Office {
    clerks: u32,
    cancel: Option<CancelToken>,
}

impl Scenario<Cargo> for Office {
    async fn root<C: AsyncContext<Cargo>>(self, mut cx: C) {
        let few = cx.spawn(Spawn::many(4, "clerk", "").watched(), clerk).await;
        let many = Spawn::many(self.clerks, "temp", "").on_demand();
        let many = cx.spawn(many, clerk).await;
        let far = many.get(self.clerks - 1);
        for to in [few.get(0), few.get(1), many.get(0), far] {
            let asked = cx.ask(to, Cargo::Request(5), MILLISECOND * 10).await;
            assert!(matches!(asked, Ok(Cargo::Answer(5..))));
            cx.send(to, cargo(1));
            cx.send_after(MILLISECOND * 200, to, cargo(2));
        }
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
        cx.send(few.get(0), Cargo::Answer(0));
        cx.send(far, Cargo::Answer(0));
        cx.stop(few.get(1));
        cx.stop(many.get(1));
        let mut left = 4;
        while left > 0 {
            match cx.recv().await {
                Event::Down { .. } => left -= 1,
                Event::DeadLetter { body, .. } => assert!(intact(&body)),
                _ => {}
            }
            if left == 1 {
                // Messages to ended actors come back, some of them late.
                cx.sleep(MILLISECOND * 300).await;
                left = 0;
            }
        }
        // No actor has or will get this address.
        cx.send(Addr::from_u32(9_999_999), cargo(3));
        cx.settle().await;
    }
}

const TEMPS: u32 = if cfg!(miri) { 130 } else { 700 };

#[test]
fn actors_that_keep_ask_panic_and_are_stopped_leave_nothing_behind() {
    let report = same_for_all(|| Office {
        clerks: TEMPS,
        cancel: None,
    });
    assert_eq!(report.panics.len(), 2);
}

#[test]
fn a_cancelled_run_drops_messages_in_flight_once() {
    for workers in 1..=3 {
        let config = config(workers);
        let cancel = Some(config.cancel.clone());
        let office = Office {
            clerks: TEMPS,
            cancel,
        };
        let report =
            run(Executor::Virtual, &config, office).expect("a cancellation is not an error");
        assert_eq!(report.outcome, Outcome::Cancelled);
    }
}

/// Fails while other actors have events in flight.
struct Failing;

impl Scenario<Cargo> for Failing {
    async fn root<C: AsyncContext<Cargo>>(self, mut cx: C) {
        let clerks = cx.spawn(Spawn::many(3, "clerk", ""), clerk).await;
        for number in 0..30 {
            cx.send(clerks.get(number as u32 % 3), cargo(number));
        }
        cx.send(clerks.get(1), Cargo::Answer(0));
        cx.settle().await;
    }
}

#[test]
fn a_panic_that_ends_the_run_drops_every_body_and_message_once() {
    for workers in 1..=3 {
        let config = Config {
            panics: Panics::EndRun,
            ..config(workers)
        };
        let failed = run(Executor::Virtual, &config, Failing);
        assert!(matches!(failed, Err(RunError::Panicked { .. })));
    }
}

#[test]
fn a_simulation_is_paused_injected_into_and_dropped_half_way() {
    for workers in 1..=3 {
        let tide = Tide {
            rounds: 30,
            flood: 5,
        };
        let mut simulation = Simulation::new(&config(workers), tide).expect("it begins");
        let until = |nanos| Time::ZERO.after(Duration::from_nanos(nanos));
        simulation.run_until(until(2_345_678));
        let actors = simulation.actors();
        simulation
            .inject(until(4_000_000), actors[0], cargo(4))
            .expect("it is still to come");
        simulation.step_actor(actors[0]);
        assert!(simulation.run_until(until(20_000_000)));
        let porter = simulation.find("porter").expect("it lives");
        let seen = simulation.inspect(porter, |porter: &Porter| porter.left);
        assert!(seen.is_ok());
    }
}

/// Spawns short-lived actors one after the other, so that pages and addresses are reused.
struct Churn {
    spawns: u32,
    mark: Arc<()>,
}

impl Scenario<Cargo> for Churn {
    async fn root<C: AsyncContext<Cargo>>(self, mut cx: C) {
        for number in 0..self.spawns {
            let mark = Arc::clone(&self.mark);
            let name = format!("child {number}");
            let child = cx.spawn_one(name, |mut cx: C| async move {
                let _mark = mark;
                cx.recv().await;
            });
            let child = child.await;
            cx.send(child, cargo(number.into()));
        }
        cx.settle().await;
    }
}

#[test]
fn memory_of_ended_actors_is_used_again() {
    let mark = Arc::new(());
    same_for_all(|| Churn {
        spawns: if cfg!(miri) { 12 } else { 1000 },
        mark: Arc::clone(&mark),
    });
    assert_eq!(Arc::strong_count(&mark), 1);
}
