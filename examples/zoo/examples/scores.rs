//! Scores the search on the zoo: `scores [REPEATS [RUNS [NAMES…]]]`. The program prints a row for each program of the
//! zoo: the median number of runs and the median time until the bug is found; the median number of runs of a search
//! that draws the faults of each run independently; the number of searches that found the bug; how much of the failure
//! remains after shrinking, which the fixed twin must pass; how often the shrunk failure is reproduced with 1 to 4
//! workers; and whether the fixed twin raises no alarm in the same number of runs. Without arguments it makes one
//! search of 20 runs for two programs, which shows the table but proves little. The exit code is 1 if a twin raises an
//! alarm or a failure is not reproduced.

use clap::Parser;
use corsair_hunt::{Failure, Hunt, Hunted, Replay, Subject, explain, hunt, shrink};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Arguments {
    /// The number of searches for each program.
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    repeats: u64,
    /// The maximum number of runs of a search.
    #[arg(default_value_t = 20)]
    runs: u64,
    /// The programs; all, if none is given.
    #[arg(value_parser = corsair_zoo::names())]
    names: Vec<String>,
}

/// The number of times that a shrunk failure is run again.
const REPLAYS: usize = 100;

fn search(subject: &dyn Subject, seed: u64, runs: u64, guided: bool) -> (Hunted, Duration) {
    let settings = Hunt {
        seed,
        runs,
        guided,
        time: Duration::from_mins(10),
        ..Hunt::default()
    };
    let began = Instant::now();
    let hunted = hunt(subject, &settings).expect("the program runs");
    (hunted, began.elapsed())
}

fn median<T: Ord + Copy>(values: &mut [T]) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Shrinks a failure and writes it to a file. Returns the percentage of events that remain, and the number of replays
/// of the file with the same digest. The fixed twin must pass what is left.
fn shrunk(subject: &dyn Subject, twin: &dyn Subject, failure: &Failure) -> (u64, usize) {
    let shrunk = shrink(subject, failure).expect("a failure is shrunk");
    let plan = &shrunk.failure.plan;
    let fixed = twin.run(shrunk.failure.seed, plan, 1);
    let fixed = fixed.expect("the fixed twin runs").properties;
    let violated = fixed.violated();
    assert!(
        violated.is_empty(),
        "{}: {plan:?}: {violated:?}",
        twin.name()
    );
    let explanation = explain(subject, &shrunk.failure).expect("a failure is explained");
    assert!(explanation.svg().ends_with("</svg>\n"));
    let name = format!("corsair-{}-{}.json", std::process::id(), subject.name());
    let path = std::env::temp_dir().join(name);
    let replay = shrunk.replay(subject);
    replay.save(subject, &path).expect("a replay is written");
    let replay = Replay::load(&path).expect("a replay is read");
    std::fs::remove_file(&path).expect("the file exists");
    let same = (0..REPLAYS).filter(|number| {
        let result = replay.run(subject, 1 + number % 4);
        result.is_ok_and(|result| result.digest == shrunk.digest)
    });
    // Rounded up, so that 10 % means at most a tenth.
    let left = (shrunk.failure.events * 100).div_ceil(failure.events.max(1));
    (left, same.count())
}

fn main() -> std::io::Result<ExitCode> {
    let Arguments {
        repeats,
        runs: most,
        mut names,
    } = Arguments::parse();
    if std::env::args().len() == 1 {
        names = vec!["ring".to_owned(), "failover".to_owned()];
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| program | runs | time | unguided | found | shrunk | reproduced | twin |\n|---|---|---|---|---|---|---|---|"
    )?;
    let [bugs, twins] = [true, false].map(corsair_zoo::all_and_further);
    let (mut code, mut small, mut all_found) = (ExitCode::SUCCESS, 0, 0);
    for (subject, twin) in bugs.into_iter().zip(twins) {
        let name = subject.name();
        if !names.is_empty() && !names.iter().any(|chosen| chosen == name) {
            continue;
        }
        let (mut runs, mut times, mut found, mut sizes) = (vec![], vec![], 0, vec![]);
        let needed = |hunted: &Hunted| hunted.failure.as_ref().map_or(u64::MAX, |_| hunted.runs);
        let mut unguided = vec![];
        let mut same = None;
        for seed in 0..repeats {
            let (hunted, time) = search(&*subject, seed, most, true);
            times.push(time);
            runs.push(needed(&hunted));
            unguided.push(needed(&search(&*subject, seed, most, false).0));
            if let Some(failure) = &hunted.failure {
                found += 1;
                let (size, replays) = shrunk(&*subject, &*twin, failure);
                sizes.push(size);
                same = Some(same.unwrap_or(REPLAYS).min(replays));
            }
        }
        let [runs, unguided] = [&mut runs, &mut unguided].map(|runs| match median(runs) {
            u64::MAX => format!("more than {most}"),
            runs => runs.to_string(),
        });
        let size = match sizes.is_empty() {
            true => "–".to_owned(),
            false => {
                let left = median(&mut sizes);
                all_found += 1;
                small += u32::from(left <= 10);
                format!("{left} %")
            }
        };
        let replays = same.map_or("–".to_owned(), |same| format!("{same} of {REPLAYS}"));
        let (alarm, _) = search(&*twin, 1000, most, true);
        let twin = match &alarm.failure {
            None => format!("silent in {}", alarm.runs),
            Some(failure) => format!("ALARM in run {}: {failure:?}", alarm.runs),
        };
        if alarm.failure.is_some() || same.is_some_and(|same| same < REPLAYS) {
            code = ExitCode::FAILURE;
        }
        let time = median(&mut times);
        writeln!(
            out,
            "| {name} | {runs} | {time:.2?} | {unguided} | {found} of {repeats} | {size} | {replays} | {twin} |"
        )?;
    }
    writeln!(
        out,
        "\n{small} of {all_found} found bugs are shrunk to at most a tenth of the events"
    )?;
    Ok(code)
}
