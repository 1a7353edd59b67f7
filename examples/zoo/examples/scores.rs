//! Scores the search on the zoo: `scores [REPEATS [RUNS]]`. For each program: the median number of
//! runs to the bug and the time, guided and by plain seeds, how far it is shrunk, and how many runs
//! of the fixed twin raise an alarm.

use corsair_hunt::{Hunt, Hunted, Subject, hunt, shrink};
use std::io::Write;
use std::time::{Duration, Instant};

fn search(subject: &dyn Subject, seed: u64, runs: u64, guided: bool) -> (Hunted, Duration) {
    let settings = Hunt {
        seed,
        runs,
        guided,
        time: Duration::from_mins(10),
        threads: 0,
    };
    let began = Instant::now();
    let hunted = hunt(subject, &settings).expect("the program runs");
    (hunted, began.elapsed())
}

fn median<T: Ord + Copy>(values: &mut [T]) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<u64>().ok());
    let (repeats, most) = (
        arguments.next().unwrap_or(10),
        arguments.next().unwrap_or(20_000),
    );
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| program | guided: runs, time | plain: runs, time | shrunk | twin |"
    )?;
    writeln!(out, "|---|---|---|---|---|")?;
    for (subject, twin) in corsair_zoo::all(true).iter().zip(corsair_zoo::all(false)) {
        let mut cells = Vec::new();
        let mut sizes = Vec::new();
        for guided in [true, false] {
            let (mut runs, mut times) = (Vec::new(), Vec::new());
            for seed in 0..repeats {
                let (hunted, time) = search(&**subject, seed, most, guided);
                let found = hunted.failure.is_some();
                runs.push(if found { hunted.runs } else { u64::MAX });
                times.push(time);
                if let (true, Some(failure)) = (guided, &hunted.failure) {
                    let shrunk = shrink(&**subject, failure).expect("a failure is shrunk");
                    sizes.push(shrunk.failure.delivered * 100 / failure.delivered.max(1));
                }
            }
            let runs = match median(&mut runs) {
                u64::MAX => format!("not in {most}"),
                runs => runs.to_string(),
            };
            cells.push(format!("{runs}, {:.2?}", median(&mut times)));
        }
        let shrunk = match sizes.is_empty() {
            true => "–".to_owned(),
            false => format!("{} %", median(&mut sizes)),
        };
        let (alarm, _) = search(&*twin, 1000, most, true);
        let twin = match alarm.failure {
            None => format!("silent in {}", alarm.runs),
            Some(failure) => format!(
                "ALARM {} (seed {}): {}",
                alarm.runs, failure.seed, failure.property
            ),
        };
        let name = subject.name();
        writeln!(
            out,
            "| {name} | {} | {} | {shrunk} | {twin} |",
            cells[0], cells[1]
        )?;
    }
    Ok(())
}
