//! A run that its caller drives. The fuzzer checks that pauses do not change results.

use super::{MS, Note, config};
use corsair::fsm::{self, Fsm};
use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Flow, InjectError, InspectError, Latency,
    Outcome, RunError, Scenario, Simulation, Spawn, Time, Token,
};
use std::sync::Arc;
use std::time::Duration;

/// Records all events with their times.
struct Diary {
    entries: Vec<(Time, Addr, u32)>,
    _mark: Arc<()>,
}

impl Actor<Note> for Diary {
    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        let (from, number) = match event {
            Event::Message {
                from,
                body: Note::Number(number),
            } => (from, number),
            Event::Timer(token) => (cx.me(), token.number()),
            _ => return Flow::Continue,
        };
        self.entries.push((cx.now(), from, number));
        match number {
            // Sets two timers within the current window, one of them at the current instant.
            7 => {
                cx.timer(Duration::from_nanos(10), Token::new(1));
                cx.timer(Duration::ZERO, Token::new(2));
            }
            8 => return Flow::Stop,
            9 => panic!("nine"),
            _ => {}
        }
        Flow::Continue
    }
}

/// Spawns diaries and sends nothing. Waits for a message, or for the given duration.
struct Diaries {
    count: u32,
    wait: Option<Duration>,
    mark: Arc<()>,
}

impl Scenario<Note> for Diaries {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let mark = self.mark;
        let make = move |_| Diary {
            entries: Vec::new(),
            _mark: Arc::clone(&mark),
        };
        cx.spawn_actors(Spawn::many(self.count, "diary", ""), make)
            .await;
        match self.wait {
            Some(time) => cx.sleep(time).await,
            None => drop(cx.recv().await),
        }
    }
}

fn diaries(workers: usize, count: u32, wait: Option<Duration>) -> Simulation<Note> {
    let mark = Arc::default();
    Simulation::new(&config(workers), Diaries { count, wait, mark }).unwrap()
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn entries(simulation: &mut Simulation<Note>, who: Addr) -> Vec<(u64, u32)> {
    let entries = simulation.inspect(who, |diary: &Diary| diary.entries.clone());
    let entries = entries.unwrap().into_iter();
    entries
        .map(|(time, _, number)| (time.as_nanos(), number))
        .collect()
}

/// Spawns diaries, and sends to twenty of them in turn, in every other window.
struct Ticks {
    to: u32,
}

impl Scenario<Note> for Ticks {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let make = |_| Diary {
            entries: Vec::new(),
            _mark: Arc::default(),
        };
        let spawn = Spawn::many(600, "diary", "");
        let diaries = cx.spawn_actors(spawn, make).await;
        for tick in 0..400 {
            cx.send(diaries.get(self.to + tick % 20), Note::Number(100 + tick));
            cx.sleep(2 * MS).await;
        }
    }
}

/// A point of time in the middle of a window.
const T: u64 = 50_000_123;

// Guarantee: core-67.
#[test]
fn a_run_pauses_to_the_nanosecond_also_within_a_window_and_among_its_timers() {
    for workers in [1, 2, 3] {
        let mut simulation = diaries(workers, 600, None);
        assert_eq!((simulation.now(), simulation.next()), (at(0), Some(at(0))));
        assert!(simulation.actors().is_empty());
        simulation.run_until(at(T - 10));
        let who = simulation.find("diary577").unwrap();
        simulation.inject(at(T), who, Note::Number(7)).unwrap();
        assert_eq!(simulation.next(), Some(at(T)));
        simulation.run_until(at(T - 1));
        assert_eq!(entries(&mut simulation, who), []);
        simulation.run_until(at(T));
        assert_eq!(entries(&mut simulation, who), [(T, 7), (T, 2)]);
        simulation.run_until(at(T + 9));
        assert_eq!(simulation.next(), Some(at(T + 10)));
        assert_eq!(entries(&mut simulation, who).len(), 2);
        simulation.run_until(at(T + 10));
        assert_eq!(entries(&mut simulation, who)[2], (T + 10, 1));
        assert_eq!(simulation.now(), at(T + 10));
        assert_eq!((simulation.next(), simulation.is_over()), (None, false));
    }
}

// Guarantee: core-67.
#[test]
fn an_actor_is_stepped_by_one_event_and_no_other_goes_further() {
    for workers in [1, 2] {
        let mut simulation = diaries(workers, 600, None);
        simulation.run_until(at(T - 1));
        let [a, b] = ["diary3", "diary590"].map(|name| simulation.find(name).unwrap());
        for (who, number) in [(a, 7), (a, 4), (b, 5)] {
            simulation.inject(at(T), who, Note::Number(number)).unwrap();
        }
        simulation.inject(at(T + 3), b, Note::Number(6)).unwrap();
        assert!(simulation.step_actor(a));
        assert_eq!(entries(&mut simulation, a), [(T, 7)]);
        assert_eq!(entries(&mut simulation, b), []);
        assert!(simulation.step_actor(a));
        assert_eq!(entries(&mut simulation, a), [(T, 7), (T, 4)]);
        // The timers that it has set come next: the one for this instant, then the later one. The other actors' earlier
        // events happen in between.
        assert!(simulation.step_actor(a));
        assert_eq!(entries(&mut simulation, a)[2], (T, 2));
        assert_eq!(entries(&mut simulation, b), []);
        assert!(simulation.step_actor(a));
        assert_eq!(entries(&mut simulation, a)[3], (T + 10, 1));
        assert_eq!(entries(&mut simulation, b), [(T, 5), (T + 3, 6)]);
        assert!(!simulation.step_actor(a), "nothing is left for it");
    }
}

// Guarantee: core-68.
#[test]
fn what_is_injected_arrives_in_its_order_wherever_the_run_was_paused() {
    let run = |workers, pauses: &[u64]| {
        let mut simulation = diaries(workers, 300, Some(MS * 100));
        simulation.run_until(at(10_000_000));
        let who = simulation.find("diary299").unwrap();
        for (index, &pause) in pauses.iter().enumerate() {
            simulation.run_until(at(pause));
            let number = 20 + index as u32;
            simulation.inject(at(T), who, Note::Number(number)).unwrap();
        }
        simulation.run_until(at(T));
        let seen = entries(&mut simulation, who);
        assert_eq!(seen, [(T, 20), (T, 21), (T, 22)]);
        simulation.finish().unwrap()
    };
    let first = run(1, &[20_000_000, 30_000_000, 40_000_000]);
    for workers in [1, 2, 4] {
        let again = run(workers, &[T - 3, T - 2, T - 1]);
        assert_eq!(again.digest, first.digest);
        assert_eq!((again.time, again.delivered()), (first.time, 3));
    }
}

// Guarantee: core-68.
#[test]
fn only_the_future_takes_messages() {
    let mut simulation = diaries(1, 1, Some(MS * 100));
    simulation.run_until(at(T));
    let who = simulation.find("diary0").unwrap();
    for nanos in [0, T - 1, T] {
        let refused = simulation.inject(at(nanos), who, Note::Number(0));
        let (time, now) = (at(nanos), at(T));
        assert_eq!(refused, Err(InjectError::Past { time, now }));
    }
    assert!(simulation.inject(Time::MAX, who, Note::Number(0)).is_err());
    assert!(!simulation.run_until(Time::MAX));
    let late = simulation.inject(Time::MAX, who, Note::Number(0));
    assert_eq!(late, Err(InjectError::Over));
    assert_eq!(simulation.report().outcome, Outcome::Completed);
    assert!(
        entries(&mut simulation, who).is_empty(),
        "seen after the end"
    );
}

#[test]
fn what_an_actor_has_sent_is_known_at_any_time_and_what_the_report_says() {
    for workers in [1, 3] {
        let base = Config {
            per_actor: true,
            ..config(workers)
        };
        let scenario = Fsm {
            population: 50,
            talk: Duration::from_secs(1),
            ..Fsm::default()
        };
        let mut simulation = Simulation::new(&fsm::config(base), scenario).unwrap();
        simulation.run_until(at(500_000_000));
        let half: u64 = sent_by_all(&mut simulation);
        while simulation.run_until(simulation.now().after(Duration::from_secs(1))) {}
        assert!(half > 0 && sent_by_all(&mut simulation) > half);
        let nobody = Addr::from_u32(1 << 30);
        let error = simulation.sent(nobody).unwrap_err();
        assert_eq!(error, InspectError::NoActor { who: nobody });
    }
}

/// Returns the total of sent messages, after checking that each actor's count agrees with the report.
fn sent_by_all(simulation: &mut Simulation<fsm::Msg>) -> u64 {
    let per_actor = simulation.report().per_actor;
    let sent = per_actor.iter().map(|actor| {
        let sent = simulation.sent(actor.who).unwrap();
        // Spawn requests are numbered together with messages.
        assert!(
            u64::from(sent).abs_diff(actor.sent) <= 1,
            "{actor:?} {sent}"
        );
        actor.sent
    });
    sent.sum()
}

#[test]
fn what_comes_from_outside_to_a_worker_that_had_nothing_to_do_is_not_late_nor_early() {
    // Some messages are in flight for up to 57 windows.
    let latency = Latency::between(Duration::from_micros(1_050), 60 * MS).unwrap();
    // Actors of several workers.
    let some = [0, 300, 577];
    for (to, who) in some.iter().flat_map(|&to| some.map(|who| (to, who))) {
        let run = |workers| {
            let config = Config {
                latency,
                ..config(workers)
            };
            let mut simulation = Simulation::new(&config, Ticks { to }).unwrap();
            // Pauses between two windows of 2^20 ns each. The injected message is so far ahead that it is stored in the
            // current block of 128 windows.
            for (pause, far) in [(140, 100), (300, 70), (540, 90)] {
                simulation.run_until(at((pause << 20) - 1));
                let who = simulation.find(&format!("diary{who}")).unwrap();
                let due = at((pause + far) << 20);
                simulation
                    .inject(due, who, Note::Number(pause as u32))
                    .unwrap();
            }
            let report = simulation.finish().unwrap();
            (report.digest, report.time, report.delivered())
        };
        let expected = run(1);
        for workers in [2, 3] {
            assert_eq!(run(workers), expected, "{workers} workers, {to}, {who}");
        }
    }
}

#[test]
fn an_inspection_says_why_it_sees_nothing() {
    let mut simulation = diaries(2, 2, None);
    simulation.run_until(at(T));
    let [root, first, second] = simulation.actors()[..] else {
        panic!("{:?}", simulation.actors());
    };
    simulation
        .inject(at(T + 1), first, Note::Number(8))
        .unwrap();
    simulation.run_until(at(T + 1));
    let mut see = |who| simulation.inspect(who, |_: &Diary| ()).unwrap_err();
    assert_eq!(see(first), InspectError::Ended { who: first });
    let nobody = Addr::from_u32(70_000);
    assert_eq!(see(nobody), InspectError::NoActor { who: nobody });
    assert!(matches!(see(root), InspectError::OtherType { .. }));
    assert!(simulation.inspect(second, |_: &Diary| ()).is_ok());
    let other = simulation.inspect(second, |_: &u32| ()).unwrap_err();
    assert!(other.to_string().contains("Diary, not u32"), "{other}");
}

// Guarantee: core-67.
#[test]
fn where_nothing_is_left_a_message_from_outside_lets_the_run_go_on() {
    let mut simulation = diaries(2, 1, None);
    assert!(simulation.run_until(at(T)));
    assert!(!simulation.step(), "no events remain");
    simulation
        .inject(at(2 * T), Addr::from_u32(0), Note::Number(1))
        .unwrap();
    assert!(simulation.step());
    assert_eq!(simulation.finish().unwrap().time, at(2 * T));
    let deadlock = diaries(2, 1, None).finish().unwrap_err();
    assert!(matches!(deadlock, RunError::Deadlock { report } if report.waiting.len() == 2));
}

// Guarantee: core-67.
#[test]
fn a_panic_ends_a_simulation_and_is_what_it_ends_with() {
    for workers in [1, 2] {
        let mut simulation = diaries(workers, 600, None);
        simulation.run_until(at(T));
        let who = simulation.find("diary599").unwrap();
        simulation.inject(at(T + 5), who, Note::Number(9)).unwrap();
        assert!(!simulation.run_until(at(T + 6)));
        assert!(simulation.is_over());
        match simulation.finish().unwrap_err() {
            RunError::Panicked { panic, .. } => {
                assert_eq!((panic.name.as_str(), panic.time), ("diary599", at(T + 5)));
                assert_eq!(panic.event, "Number from nobody");
            }
            other => panic!("{other}"),
        }
    }
}

// Guarantee: core-77.
#[test]
fn a_dropped_simulation_stops_and_drops_its_actors() {
    for workers in [1, 3] {
        let mark = Arc::default();
        let scenario = Diaries {
            count: 600,
            wait: None,
            mark: Arc::clone(&mark),
        };
        let mut simulation = Simulation::new(&config(workers), scenario).unwrap();
        simulation.run_until(at(T));
        let letter = Note::Mark(Arc::clone(&mark));
        simulation
            .inject(at(2 * T), Addr::from_u32(0), letter)
            .unwrap();
        assert!(Arc::strong_count(&mark) > 600);
        drop(simulation);
        assert_eq!(Arc::strong_count(&mark), 1);
    }
}

// Guarantee: core-67.
#[test]
fn a_simulation_goes_no_further_than_the_end_that_is_set() {
    let config = Config {
        end: Some(at(T)),
        ..config(2)
    };
    let scenario = Diaries {
        count: 1,
        wait: Some(MS * 100),
        mark: Arc::default(),
    };
    let mut simulation = Simulation::new(&config, scenario).unwrap();
    assert!(simulation.run_until(at(T)), "there is more to happen");
    assert!(!simulation.run_until(at(2 * T)), "but not before the end");
    assert!(!simulation.step());
    match simulation.finish().unwrap_err() {
        RunError::PastEnd { end, next, .. } => {
            assert_eq!(end, at(T));
            assert!(next > at(100_000_000));
        }
        other => panic!("{other}"),
    }
}

// Guarantee: core-77.
#[test]
fn a_simulation_may_go_from_thread_to_thread_and_at_the_pace_of_the_wall() {
    let mut simulation = diaries(2, 10, Some(MS * 20));
    simulation.run_until(at(1000));
    let report = std::thread::spawn(move || {
        simulation.run_until(at(5_000_000));
        // At this pace, twenty milliseconds take a twentieth of a millisecond.
        simulation.pace(Some(400.0));
        simulation.run_until(at(15_000_000));
        simulation.finish()
    });
    let report = report.join().unwrap().unwrap();
    let whole = diaries(1, 10, Some(MS * 20)).finish().unwrap();
    assert_eq!((report.digest, report.time), (whole.digest, whole.time));
}

/// Waits for the last possible instant.
struct Last;

impl Scenario<Note> for Last {
    async fn root<C: corsair::AsyncContext<Note>>(self, mut cx: C) {
        let last = u64::MAX - 1 - cx.now().as_nanos();
        cx.timer(Duration::from_nanos(last), Token::new(1));
        cx.recv().await;
    }
}

#[test]
fn what_is_due_at_the_last_instant_happens_until_then() {
    let mut simulation = Simulation::new(&config(1), Last).unwrap();
    assert!(simulation.run_until(Time::from_nanos(u64::MAX - 2)));
    assert_eq!(simulation.report().timers, 0);
    simulation.run_until(Time::from_nanos(u64::MAX - 1));
    assert_eq!(simulation.report().timers, 1);
    assert_eq!(simulation.finish().unwrap().time.as_nanos(), u64::MAX - 1);
}
