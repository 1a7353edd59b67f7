//! Measures the cost of making a run observable. There are three variants: the run without a session, in a session
//! without a page, and in a session with a page that takes every frame and requests curves twice a second. All three
//! end with the same digest.
//!
//! ```text
//! cargo bench --profile release -p corsair-view --bench cost
//! cargo bench --profile release -p corsair-view --bench cost -- pirates 15
//! valgrind --tool=callgrind target/release/deps/cost-* services 1 free
//! ```
//!
//! The measure is the processor time of the thread that runs the simulation and makes the frames. The three variants
//! run in turn, and the medians of the ratios within a round are printed, so that other load on the machine has little
//! influence. The benchmark needs Linux, because it reads /proc.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use corsair::fsm::{self, Fsm};
use corsair::{CancelToken, Config, Executor};
use corsair_arch::{Plan, Scale, Topology, read, simulate};
use corsair_view::{Control, Handle, Level, Pirates, Services, Session, SessionRequest, World};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

/// How a run is viewed while it is measured.
#[derive(Clone, Copy, PartialEq)]
enum ViewMode {
    /// A run without a session.
    Free,
    /// A world that never pauses, which shows the engine's cost of possible pauses.
    Never,
    /// A session without a page.
    Held,
    /// A session with a page.
    Watched,
}

const WAYS: [(&str, ViewMode); 4] = [
    ("free", ViewMode::Free),
    ("never", ViewMode::Never),
    ("held", ViewMode::Held),
    ("watched", ViewMode::Watched),
];

/// Returns the processor time of this thread in nanoseconds.
fn processor_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = stat.split(' ').next().expect("three numbers");
    first.parse().expect("a number")
}

/// Runs a world in a session at full speed to its end, and returns it.
fn held<W: World>(world: W, is_watched: bool) -> W {
    let (session, handle) = Session::new(world, Default::default(), None);
    let cancel = CancelToken::default();
    let tell = |handle: &Handle, control| {
        let told = handle.ask_blocking(SessionRequest::Control(control));
        told.expect("the run is not over");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut handle = handle;
            let _watching = is_watched.then(|| handle.watch());
            tell(&handle, Control::Speed(None));
            tell(&handle, Control::Play);
            let mut known = 0;
            for turn in 0u32.. {
                std::thread::sleep(Duration::from_millis(16));
                if is_watched {
                    let frame = handle.frames().borrow_and_update().clone();
                    std::hint::black_box(frame.encode(known, Level::Each));
                    known = frame.version;
                    if turn % 30 == 0 {
                        let _ = handle.ask_blocking(SessionRequest::Series("all".to_owned()));
                    }
                }
                if handle.statuses().borrow().is_over {
                    break;
                }
            }
            cancel.cancel();
        });
        session.run(&cancel)
    })
}

/// Returns a configuration with one worker, because several would mostly wait for each other on a busy machine.
fn config() -> Config {
    Config {
        workers: NonZeroUsize::MIN,
        ..Config::default()
    }
}

fn services(way: ViewMode) -> Option<u64> {
    let checked = read("netflixoss", Path::new("nowhere")).expect("it is built in");
    let topology = Topology::new(&checked, Scale::default()).expect("it fits");
    let config = config();
    let plan = Plan {
        // Half a second of real time: what is done once hardly shows.
        duration: Duration::from_secs(300),
        chat: Duration::from_millis(1),
        ..Plan::default()
    };
    if way == ViewMode::Free {
        let ran = simulate(Executor::Virtual, &config, topology, &plan);
        return ran.expect("it runs").0.digest;
    }
    let world = Services::new(&config, topology, &plan).expect("it begins");
    let ended = match way {
        ViewMode::Never => world,
        _ => held(world, way == ViewMode::Watched),
    };
    ended.finish().expect("it runs").0.digest
}

fn pirates(way: ViewMode) -> Option<u64> {
    let config = config();
    let scenario = Fsm {
        population: 100_000,
        talk: Duration::from_secs(60),
        ..Fsm::default()
    };
    if way == ViewMode::Free {
        let ran = fsm::run(Executor::Virtual, &config, scenario);
        return ran.expect("it runs").0.digest;
    }
    let world = Pirates::new(&config, scenario).expect("it begins");
    let ended = match way {
        ViewMode::Never => world,
        _ => held(world, way == ViewMode::Watched),
    };
    ended.finish().expect("it runs").0.digest
}

/// A run, which returns its digest.
type Run = fn(ViewMode) -> Option<u64>;

fn main() {
    // Cargo adds a flag of its own.
    let given = std::env::args().skip(1).filter(|given| given != "--bench");
    let given: Vec<String> = given.collect();
    let only = given.first().map(String::as_str);
    let rounds: usize = given.get(1).map_or(11, |n| n.parse().expect("a number"));
    let way = given.get(2).map(String::as_str);
    let runs: [(&str, Run); 2] = [("services", services), ("pirates", pirates)];
    for (name, run) in runs {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let ways = WAYS
            .iter()
            .filter(|(name, _)| way.is_none_or(|way| way == *name));
        let ways: Vec<_> = ways.copied().collect();
        let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
        let mut times = vec![u64::MAX; ways.len()];
        let mut digest = None;
        for _ in 0..rounds {
            let taken: Vec<u64> = ways
                .iter()
                .map(|&(_, way)| {
                    let begun = processor_time();
                    let ended = run(way);
                    let taken = processor_time() - begun;
                    assert_eq!(*digest.get_or_insert(ended), ended, "another run");
                    taken
                })
                .collect();
            for (place, &time) in taken.iter().enumerate() {
                times[place] = times[place].min(time);
                ratios[place].push(time as f64 / taken[0] as f64);
            }
        }
        for (place, (way, _)) in ways.iter().enumerate() {
            ratios[place].sort_by(f64::total_cmp);
            let median = ratios[place][rounds / 2];
            let least = Duration::from_nanos(times[place]);
            let change = 100.0 * (median - 1.0);
            println!("{name:10}{way:10}least {least:>8.1?}   median {change:+.1} % of free");
        }
    }
}
