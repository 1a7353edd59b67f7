//! Small scenarios in virtual time that go through all of the engine's unsafe code: chunks of events, actors in
//! pages, loops that are lent to one thread and given back, unwinding, and what is dropped half-way. They
//! are here for miri (`ci/miri.sh`), which sees what no assertion does; the engine's own numbers are smaller
//! under it, so that a few events fill a chunk's worth of paths.

use corsair::{
    Actor, Addr, AsyncContext, CancelToken, Config, Context, DeadLetters, Event, Executor, Flow,
    Latency, Message, Outcome, Panics, Report, RunError, Scenario, Simulation, Spawn, Time, Token,
    run,
};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// A message that owns memory, and fills a chunk of 8 KiB with some dozens.
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

/// The report of a run with one worker, to which those with two and three are equal.
fn same_for_all<S: Scenario<Cargo>>(make: impl Fn() -> S) -> Report {
    let one = run(Executor::Virtual, &config(1), make()).expect("one worker");
    for workers in [2, 3] {
        let report = run(Executor::Virtual, &config(workers), make()).expect("more workers");
        assert_eq!(report.digest, one.digest, "{workers} workers");
        assert_eq!(report.dead(), one.dead());
    }
    one
}

/// Passes a crate on to its neighbour until it has done so `left` times; the last one notifies the root.
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

/// One crate goes round (thin windows, one thread runs all shards), then many (each runs its own), then
/// one again.
struct Tide {
    rounds: u32,
    flood: u64,
}

impl Scenario<Cargo> for Tide {
    async fn root<C: AsyncContext<Cargo>>(self, mut cx: C) {
        let root = cx.me();
        let mut porters: Vec<Addr> = Vec::new();
        for _ in 0..3 {
            // Each in a page of its own, so on all shards in turn.
            let next = porters.last().copied().unwrap_or(root);
            let left = self.rounds;
            let porter = Spawn::one("porter");
            let porter = cx.spawn_actors(porter, move |_| Porter { next, root, left });
            porters.push(porter.await.get(0));
        }
        let last = porters[2];
        // Round they go.
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

/// An actor that skips, stashes, asks, sets timers within the window, and panics on request.
async fn clerk<C: AsyncContext<Cargo>>(mut cx: C, index: u32) {
    // Due within this window, and far beyond the ring of windows.
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

/// Clerks in pages of their own and in shared ones are asked, stopped, made to panic, and outlived by what
/// was sent to them.
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
                // What was sent to actors that have ended comes back, some of it late.
                cx.sleep(MILLISECOND * 300).await;
                left = 0;
            }
        }
        // No actor has this address, or will.
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

/// Fails while others have events on their way.
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

/// Spawns one short-lived actor after the other: pages and numbers are used again.
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
