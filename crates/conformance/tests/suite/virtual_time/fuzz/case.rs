//! One case of the fuzzer: a scenario and configurations that are derived from a number, run in several ways that must
//! all have the same result.

use corsair::network::{Duplicating, Fifo, Jitter, Lossy, Network};
use corsair::{
    Actor, Addr, AddrRange, AsyncContext, Config, Context, DeadLetters, Event, Flow, Latency,
    Message, Outcome, Random, Report, RunError, Scenario, Select, Simulation, Spawn, Time, Token,
};
use futures_util::future::{Either, select};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::{NonZeroU32, NonZeroUsize};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number, and a reference-counted mark that shows leaks.
struct Note {
    number: u64,
    _mark: Arc<()>,
}

impl Message for Note {
    const KINDS: &'static [&'static str] = &["Even", "Odd"];
    fn kind(&self) -> usize {
        (self.number % 2) as usize
    }
    fn fingerprint(&self) -> u64 {
        self.number
    }
    const DUPLICATES: bool = true;

    fn duplicate(&self) -> Option<Note> {
        let (number, _mark) = (self.number, Arc::clone(&self._mark));
        (number % 3 > 0).then_some(Note { number, _mark })
    }
}

/// The parameters and counters that all actors of a run share.
#[derive(Clone)]
struct Case {
    /// The number of rounds of an actor, of actors in the first spawn, and of generations.
    rounds: u32,
    crowd: u32,
    depth: u32,
    /// The binary logarithm of the longest wait in nanoseconds.
    longest: u32,
    panics: bool,
    /// True if actors also send to ranges of actors.
    multicasts: bool,
    cuts: Option<Config>,
    mark: Arc<()>,
    /// A checksum: the sum of the hashes of all events that actors have seen.
    seen: Arc<AtomicU64>,
}

impl Case {
    fn note(&self, number: u64) -> Note {
        Note {
            number: number % 1_000,
            _mark: Arc::clone(&self.mark),
        }
    }

    /// Adds a hash of `saw` and of everything that the actor can observe at this moment to the checksum.
    fn see<C: Context<Note>>(&self, cx: &C, saw: u64) {
        let mut hasher = DefaultHasher::new();
        let envelope = cx.envelope();
        let place = (cx.me(), cx.parent(), cx.now(), saw);
        let what = (envelope.from, envelope.sent, envelope.trace, envelope.span);
        (place, what, envelope.parent, envelope.answers).hash(&mut hasher);
        self.seen.fetch_add(hasher.finish(), Ordering::Relaxed);
    }

    fn see_event<C: Context<Note>>(&self, cx: &C, event: &Event<Note>) {
        let mut hasher = DefaultHasher::new();
        match event {
            Event::Message { from, body } => (0, *from, body.number).hash(&mut hasher),
            Event::Timer(token) => (1, *token).hash(&mut hasher),
            Event::Spawned {
                request,
                first,
                count,
            } => (2, *request, *first, *count).hash(&mut hasher),
            Event::Down { who, reason } => (3, *who, *reason).hash(&mut hasher),
            Event::Unanswered { who, request } => (4, *who, *request).hash(&mut hasher),
            Event::DeadLetter { to, body } => (5, *to, body.number).hash(&mut hasher),
        }
        self.see(cx, hasher.finish());
    }

    /// Returns a random delay: often zero or within a window, seldom a long one.
    fn delay<C: Context<Note>>(&self, cx: &mut C) -> Duration {
        let bits = cx.below(self.longest + 1);
        let nanos = match cx.below(6) {
            0 => 0,
            1 => 1_000,
            _ => cx.random() >> (64 - 1 - bits),
        };
        Duration::from_nanos(nanos)
    }

    /// Returns a random address: of a neighbour, of a member of the crowd, of no actor, or of an actor that may be
    /// spawned later.
    fn address<C: Context<Note>>(&self, cx: &mut C) -> Addr {
        let number = match cx.below(10) {
            0 => return cx.me(),
            1 => return cx.parent(),
            2 => return Addr::NONE,
            3 => cx.below(1 << 16),
            4 => cx.below(u32::MAX),
            5 => cx.me().as_u32().wrapping_add(1 + cx.below(3)),
            6 => cx.below(64) * 4,
            _ => 256 + cx.below(self.crowd + 1),
        };
        Addr::from_u32(number)
    }
}

/// An actor in handler form.
struct Clerk {
    case: Case,
    left: u32,
}

impl Actor<Note> for Clerk {
    fn start<C: Context<Note>>(&mut self, cx: &mut C) {
        self.case.see(cx, 77);
        cx.timer(Duration::ZERO, Token::new(3));
    }

    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        self.case.see_event(cx, &event);
        act(&self.case, cx, &event);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            Flow::Stop
        } else {
            Flow::Continue
        }
    }
}

/// Performs one random action that does not wait.
fn act<C: Context<Note>>(case: &Case, cx: &mut C, event: &Event<Note>) {
    let to = case.address(cx);
    let number = cx.random();
    if case.multicasts && number % 32 == 0 {
        return send_to_many(case, cx, to);
    }
    match cx.below(17) {
        16 if number % 4 != 0 => {
            cx.send_self(case.note(number));
        }
        0..3 => drop(cx.send(to, case.note(number))),
        3 => {
            let delay = case.delay(cx);
            cx.send_after(delay, to, case.note(number));
        }
        4..6 => {
            let delay = case.delay(cx);
            cx.timer(delay, Token::new(number as u32 % 50));
        }
        6 if number % 4 == 0 => cx.stop(to),
        7 => drop(cx.request(to, case.note(number))),
        8 if matches!(event, Event::Message { .. }) => {
            let reply_handle = cx.envelope().reply_handle();
            cx.reply(reply_handle, case.note(number));
        }
        9 => cx.new_trace(),
        10 => {
            // A stop or a message that arrives at the same instant as an earlier delayed message.
            let delay = case.delay(cx);
            cx.send_after(delay, to, case.note(number));
            cx.timer(delay, Token::new(99));
        }
        11 if matches!(event, Event::Timer(token) if token.number() == 99) => cx.stop(to),
        12 if case.panics && number % 16 == 0 => panic!("number {}", number % 7),
        13 => {
            if let Some(config) = case.cuts.as_ref().filter(|_| number % 8 == 0) {
                config.cancel.cancel();
            }
        }
        14 if case.depth > 0 && number % 4 == 0 => {
            let (inner, spawn) = (younger(case), spawning(cx));
            let left = 1 + cx.below(5);
            let request = cx.spawn_request(spawn, move |_| Clerk {
                case: inner.clone(),
                left,
            });
            case.see(cx, request.into());
        }
        15 => {
            let delay = case.delay(cx);
            let timer = cx.timer_handle(delay, Token::new(number as u32 % 50));
            let period = Duration::from_nanos(1 << (case.longest.max(3) - 2)) + delay / 2;
            let ticks = cx.every(period, Token::new(98));
            if number % 2 == 0 {
                let cancelled = cx.cancel(timer);
                case.see(cx, cancelled.into());
            }
            if number % 8 != 0 {
                let cancelled = (cx.cancel(ticks), cx.cancel(ticks));
                case.see(cx, u64::from(cancelled.0) + 2 * u64::from(cancelled.1));
            }
        }
        _ => {}
    }
}

/// Sends to a range of up to 800 addresses, most of which have no actor.
fn send_to_many<C: Context<Note>>(case: &Case, cx: &mut C, first: Addr) {
    let count = match cx.below(4) {
        0 => cx.below(3),
        1 => cx.below(300),
        _ => 500 + cx.below(300),
    };
    let count = if cfg!(miri) { count % 20 } else { count };
    let to = AddrRange::new(first, count.min(u32::MAX - first.as_u32()));
    let (case, number) = (case.clone(), cx.random() >> 32);
    let panics = case.panics && number % 8 == 0;
    let of = move |index: u32, which: u64| {
        assert!(!panics || index % 256 != 17, "number {}", number % 7);
        case.note(number + u64::from(index) * 3 + which)
    };
    if number % 2 == 0 {
        cx.send_each(to, move |index| [of(index, 0)]);
    } else {
        cx.send_each(to, move |index| [of(index, 0), of(index, 1), of(index, 2)]);
    }
}

/// Returns the parameters of the next generation.
fn younger(case: &Case) -> Case {
    Case {
        depth: case.depth - 1,
        rounds: case.rounds / 2,
        ..case.clone()
    }
}

/// Returns random settings for a spawn.
fn spawning<C: Context<Note>>(cx: &mut C) -> Spawn {
    let count = match cx.below(8) {
        0 => 0,
        1 => 130 + cx.below(200),
        _ => 1 + cx.below(5),
    };
    let count = if cfg!(miri) { count % 4 } else { count };
    let mut spawn = Spawn::many(count, "x", "");
    if cx.below(2) == 0 || count > 100 {
        spawn = spawn.on_demand();
    }
    if cx.below(2) == 0 {
        spawn = spawn.watched();
    }
    spawn
}

/// The body of an async actor and of the root.
fn live<'a, C: AsyncContext<Note>>(
    cx: &'a mut C,
    case: &'a Case,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(async move {
        for round in 0..case.rounds {
            let to = case.address(cx);
            let delay = case.delay(cx);
            let number = cx.random();
            match cx.below(12) {
                0 => cx.sleep(delay).await,
                1 => {
                    let asked = cx.ask(to, case.note(number), delay).await;
                    let answer =
                        asked.map_or_else(|error| error.to_string().len() as u64, |b| b.number);
                    case.see(cx, answer);
                }
                2 => {
                    // The timer ends the wait if no message does.
                    let token = Token::new(1000 + round);
                    cx.timer(delay, token);
                    let event = cx
                        .recv_if(|event| match event {
                            Event::Timer(due) => *due == token,
                            Event::Message { body, .. } => body.number % 5 == 0,
                            _ => false,
                        })
                        .await;
                    case.see_event(cx, &event);
                }
                3 if case.depth > 0 => {
                    let (inner, spawn) = (younger(case), spawning(cx));
                    let crowd = cx
                        .spawn(spawn, move |mut cx: C, index| {
                            let case = inner.clone();
                            async move {
                                case.see(&cx, index.into());
                                live(&mut cx, &case).await;
                            }
                        })
                        .await;
                    if let Some(last) = crowd.iter().last() {
                        cx.send(last, case.note(number));
                        case.see(cx, last.as_u32().into());
                    }
                }
                4 => {
                    // Waits for the first of two futures; the other one is dropped.
                    let (mut waited, mut got) = (false, None);
                    {
                        let pause = std::pin::pin!(cx.sleep(delay));
                        match select(pause, std::future::ready(number)).await {
                            Either::Left(_) => waited = true,
                            Either::Right((number, _)) => got = Some(number),
                        }
                    }
                    case.see(cx, u64::from(waited) + got.unwrap_or(0));
                }
                5 => cx.yield_now().await,
                6 if number % 8 == 0 => cx.settle().await,
                8 => {
                    let event = cx.recv_timeout(delay).await;
                    match &event {
                        Some(event) => case.see_event(cx, event),
                        None => case.see(cx, 5),
                    }
                }
                9 => {
                    let request = cx.request(to, case.note(number));
                    let either = Select::new()
                        .answer(request)
                        .message(|_, note: &Note| note.number < 300);
                    if let Some((arm, event)) = cx.select(either.within(delay)).await {
                        case.see(cx, arm as u64);
                        case.see_event(cx, &event);
                    }
                }
                7 => {
                    let mut yielded = 0;
                    std::future::poll_fn(|task| {
                        yielded += 1;
                        if yielded > number % 4 {
                            return std::task::Poll::Ready(());
                        }
                        task.waker().wake_by_ref();
                        std::task::Poll::Pending
                    })
                    .await;
                }
                _ => {
                    cx.timer(delay, Token::new(round));
                    let event = cx.recv().await;
                    case.see_event(cx, &event);
                    act(case, cx, &event);
                }
            }
        }
    })
}

impl Scenario<Note> for Case {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let inner = self.clone();
        let spawn = Spawn::many(self.crowd, "first", "").watched();
        cx.spawn(spawn, move |mut cx: C, index| {
            let case = inner.clone();
            async move {
                case.see(&cx, index.into());
                live(&mut cx, &case).await;
            }
        })
        .await;
        live(&mut cx, &self).await;
        let last = self.delay(&mut cx);
        cx.sleep(last).await;
    }
}

/// Returns the results that must be the same in all ways to run a case.
fn essence(result: Result<Report, RunError>, seen: u64) -> String {
    let mut text = String::new();
    let mut print_line = |what: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{what}");
    };
    let report = match &result {
        Ok(report) if report.outcome == Outcome::Cancelled => return "cancelled".to_owned(),
        // Other events in the window of a failure depend on the width of the window.
        Err(
            error @ (RunError::Panicked { .. }
            | RunError::Livelock { .. }
            | RunError::TooManyActors { .. }),
        ) => return error.to_string(),
        Err(error) => {
            print_line(format_args!("{error}"));
            error.report()
        }
        Ok(report) => Some(report),
    };
    print_line(format_args!("saw {seen:x}"));
    if let Some(report) = report {
        print_line(format_args!("{:?} {:?}", report.digest, report.time));
        print_line(format_args!(
            "{:?} {:?}",
            report.messages, report.dead_letters
        ));
        print_line(format_args!("{:?}", (report.lost, report.duplicated)));
        let counts = (report.timers, report.spawned, report.ended);
        print_line(format_args!("{counts:?} {:?}", report.waiting));
        print_line(format_args!("{:?}", report.per_actor));
    }
    text
}

/// Returns the first difference between two texts, with its surroundings.
fn difference(expected: &str, got: &str) -> String {
    let same = expected.bytes().zip(got.bytes());
    let at = same.take_while(|(a, b)| a == b).count();
    let line = expected[..at].matches('\n').count();
    let around = |text: &str| -> String {
        let before = at.saturating_sub(150);
        text.chars().skip(before).take(400).collect()
    };
    format!(
        "line {line} differs: expected\n…{}…\nbut it was\n…{}…",
        around(expected),
        around(got)
    )
}

/// Runs a case with random pauses: at points of time, between windows, and at events of an actor.
fn run_with_pauses(config: &Config, case: Case, seed: u64) -> Result<Report, RunError> {
    let mut random = Random::new(seed);
    let mut simulation = Simulation::new(config, case)?;
    let reach = config.latency.max().as_nanos() as u64;
    for _ in 0..40 {
        let now = simulation.now();
        match random.below(8) {
            0..3 => {
                let far = random.bits() % (reach * 3);
                simulation.run_until(now.after(Duration::from_nanos(far)));
            }
            3 => {
                if let Some(next) = simulation.next() {
                    simulation.run_until(next);
                }
            }
            4 => drop(simulation.step()),
            5 => {
                let actors = simulation.actors();
                let which = random.below(actors.len() as u32) as usize;
                if let Some(&who) = actors.get(which) {
                    simulation.step_actor(who);
                }
            }
            6 => {
                let (left, mut steps) = (u64::from(random.below(20)), 0);
                let left = left + simulation.report().delivered();
                simulation.run_while(|simulation| {
                    steps += 1;
                    steps < 20 && simulation.report().delivered() < left
                });
            }
            _ => {
                for who in simulation.actors() {
                    let state = simulation.inspect(who, |clerk: &Clerk| clerk.left);
                    assert!(state.is_ok_and(|left| left > 0) || state.is_err());
                }
            }
        }
    }
    simulation.finish()
}

/// A flag in a case's number: messages have no traces, and actors also send to ranges of actors.
pub(crate) const PLAIN: u64 = 1 << 40;

/// Runs the case with this number in several ways.
///
/// # Errors
/// A description of the first difference.
pub(crate) fn check(number: u64) -> Result<(), String> {
    let mut random = Random::new(number);
    let mut below = |bound| random.below(bound);
    let small = cfg!(miri);
    let min = [1u64, 7, 1_000, 100_000, 1 << 20, 50_000_000, 1_000_000_000][below(7) as usize];
    let latency = match below(2) {
        0 => Latency::constant(Duration::from_nanos(min)),
        _ => {
            let max = min + u64::from(below(4)) * min + u64::from(below(1000));
            Latency::between(Duration::from_nanos(min), Duration::from_nanos(max))
                .map_err(|error| error.to_string())?
        }
    };
    let reach = min.ilog2() + 1 + below(6);
    let config = Config {
        seed: number,
        latency,
        end: (below(4) == 0).then(|| Time::from_nanos(min * u64::from(1 + below(40)))),
        dead_letters: [DeadLetters::Count, DeadLetters::ToRoot][below(2) as usize],
        strict: below(4) == 0,
        per_actor: below(2) == 0,
        most_at_once: NonZeroU32::new(5_000).unwrap_or(NonZeroU32::MIN),
        traces: number & PLAIN == 0,
        ..Config::default()
    };
    // Half of the cases have a network model.
    let network: Option<Arc<dyn Network>> = match below(4) {
        0 => {
            let jitter = Jitter::new(latency.min(), latency.max()).map_err(|e| e.to_string())?;
            let lossy = Lossy::new(jitter, 0.1).map_err(|e| e.to_string())?;
            Some(Arc::new(
                Duplicating::new(lossy, 0.2).map_err(|e| e.to_string())?,
            ))
        }
        1 => {
            let jitter = Jitter::new(latency.min(), latency.max()).map_err(|e| e.to_string())?;
            Some(Arc::new(Fifo(jitter)))
        }
        _ => None,
    };
    let config = Config { network, ..config };
    let mark = Arc::new(());
    let case = Case {
        rounds: 1 + below(if small { 4 } else { 16 }),
        crowd: 1 + below(if small { 4 } else { 60 }),
        depth: below(3),
        longest: reach.min(60),
        panics: below(6) == 0,
        multicasts: number & PLAIN != 0,
        cuts: None,
        mark: Arc::clone(&mark),
        seen: Arc::default(),
    };
    let cuts = below(8) == 0;
    let ways = if small { 1 } else { 3 };
    let mut ways: Vec<(usize, Option<u64>)> = (0..ways)
        .map(|_| {
            let narrow = 1 + u64::from(below(u32::MAX)) % min;
            let lookahead = [None, Some(min), Some(narrow.max(min / 300))][below(3) as usize];
            (2 + below(7) as usize, lookahead)
        })
        .collect();
    let pauses = 2 + below(4) as usize;
    ways.insert(0, (1, None));
    ways.push((1, Some((min / 7).max(1))));
    // The last two runs have random pauses.
    let paused = ways.len();
    ways.extend([(1, None), (pauses, None)]);

    let mut first: Option<(String, u64)> = None;
    for (index, (workers, lookahead)) in ways.into_iter().enumerate() {
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
            lookahead: lookahead.map(Duration::from_nanos),
            cancel: Default::default(),
            ..config.clone()
        };
        let scenario = Case {
            seen: Arc::default(),
            cuts: cuts.then(|| config.clone()),
            ..case.clone()
        };
        let seen = Arc::clone(&scenario.seen);
        let result = if index < paused {
            corsair::simulate(&config, scenario)
        } else {
            run_with_pauses(&config, scenario, number ^ index as u64)
        };
        let windows = match (&result, lookahead) {
            (Ok(report), None) => report.windows,
            _ => 0,
        };
        let essence = essence(result, seen.load(Ordering::Relaxed));
        let pauses = if index < paused { "" } else { ", with pauses" };
        let way = format!("case {number}, {workers} workers, lookahead {lookahead:?}{pauses}");
        let owners = Arc::strong_count(&mark);
        if owners != 2 {
            return Err(format!("{way}: {} marks are left", owners - 2));
        }
        if cuts {
            continue;
        }
        let (expected, expected_windows) = first.get_or_insert_with(|| (essence.clone(), windows));
        if *expected != essence {
            return Err(format!("{way}: {}", difference(expected, &essence)));
        }
        if lookahead.is_none() && windows != *expected_windows {
            return Err(format!("{way}: {windows} windows, not {expected_windows}"));
        }
    }
    Ok(())
}
