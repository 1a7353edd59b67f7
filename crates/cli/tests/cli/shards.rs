//! `corsair sweep --shard` and `corsair sweep merge`: a sweep that many jobs run.

use crate::terminal::Terminal;

const QUEUE: &str = r#"{"arch": "q", "network": {"same_region": "1ms"}, "services": [
    {"name": "web", "package": "service", "count": 2, "regions": 1, "concurrency": 1,
     "endpoints": [{"name": "get", "steps": [{"work": {"exponential": "5ms"}}]}]},
    {"name": "www", "package": "denominator", "dependencies": ["web"]}],
    "load": {"www": {"rate": 50, "arrivals": "poisson", "requests": {"get": 1}}}}"#;

/// Six points with two seeds each. One value has commas, and one number has no short binary form.
const SWEEP: &str = r#"sweep -a q --set load.www.rate=50,51.234567891234567,60 --set services.web.endpoints.get.steps.0.work={"uniform":["1ms","2ms"]},2ms --seeds 2 -d 1"#;

fn terminal() -> Terminal {
    let terminal = Terminal::new();
    terminal.write("json_arch/q_arch.json", QUEUE);
    terminal
}

/// Runs the shards of a sweep of twelve runs, and the complete sweep.
fn shards(terminal: &Terminal, of: usize, ending: &str) -> Vec<String> {
    let sweep = SWEEP;
    terminal.succeed(&format!("{sweep} --out whole.{ending}"));
    let name = |number| format!("part{number}.{ending}");
    for number in 1..=of {
        let out = name(number);
        terminal.succeed(&format!("{sweep} --shard {number}/{of} --out {out}"));
    }
    (1..=of).map(name).collect()
}

#[test]
fn merged_shards_are_the_file_of_the_whole_sweep() {
    for ending in ["csv", "jsonl"] {
        let terminal = terminal();
        let mut files = shards(&terminal, 3, ending);
        files.reverse();
        let said = terminal.succeed(&format!(
            "sweep merge {} --out merged.{ending}",
            files.join(" ")
        ));
        assert!(said.contains("12 runs of 3 shards"), "{said}");
        let merged = terminal.read(&format!("merged.{ending}"));
        assert_eq!(merged, terminal.read(&format!("whole.{ending}")));
        assert!(merged.lines().count() > 11, "{merged}");
    }
}

#[test]
fn a_shard_that_was_stopped_goes_on() {
    let terminal = terminal();
    shards(&terminal, 2, "csv");
    let whole = terminal.read("part2.csv");
    terminal.write("part2.csv", &whole[..whole.len() - 30]);
    let said = terminal.refuse("sweep merge part1.csv part2.csv --out all.csv");
    assert!(
        said.contains("part2.csv has 5 of the 6 runs of shard 2/2"),
        "{said}"
    );
    assert!(!terminal.path("all.csv").exists());
    let said = terminal.succeed(&format!("{SWEEP} --shard 2/2 --out part2.csv"));
    assert!(said.contains("6 runs of shard 2/2 in part2.csv, 5 of them already there"));
    assert_eq!(terminal.read("part2.csv"), whole);
}

#[test]
fn more_shards_than_runs_are_merged_too() {
    let terminal = terminal();
    let files = shards(&terminal, 14, "csv");
    terminal.succeed(&format!("sweep merge {} --out all.csv", files.join(" ")));
    assert_eq!(terminal.read("all.csv"), terminal.read("whole.csv"));
}

#[test]
fn what_is_no_complete_set_of_shards_is_refused() {
    let terminal = terminal();
    shards(&terminal, 3, "csv");
    let sweep = SWEEP;
    terminal.succeed(&format!("{sweep} --shard 3/4 --out of4.csv"));
    terminal.succeed(&format!("{sweep} --seed 9 --shard 3/3 --out other.csv"));
    let part = terminal.read("part3.csv");
    terminal.write("copy.csv", &part);
    let last = part.lines().last().unwrap();
    terminal.write("long.csv", &format!("{part}{last}\n"));
    terminal.write(
        "older.csv",
        &part.replacen(env!("CARGO_PKG_VERSION"), "0.0.1", 1),
    );
    let swapped: Vec<&str> = part.lines().collect();
    let swapped = [
        swapped[0], swapped[1], swapped[3], swapped[2], swapped[4], swapped[5],
    ]
    .join("\n");
    terminal.write("swapped.csv", &swapped);
    terminal.write("headless.csv", part.lines().next().unwrap());
    terminal.write("bare.csv", &format!("{}\n", part.lines().next().unwrap()));
    for (files, parts) in [
        ("part1.csv part3.csv", ["2/3", "missing"].as_slice()),
        ("part2.csv", &["1/3, 3/3 are missing", "all 3"]),
        (
            "part1.csv part2.csv part3.csv copy.csv",
            &["part3.csv", "copy.csv", "both shard 3/3"],
        ),
        (
            "part1.csv part2.csv of4.csv",
            &["of4.csv", "different sweeps"],
        ),
        (
            "part1.csv part2.csv other.csv",
            &["other.csv", "different sweeps"],
        ),
        (
            "part1.csv part2.csv older.csv",
            &["older.csv", "0.0.1", "one version"],
        ),
        (
            "part1.csv part2.csv long.csv",
            &["long.csv", "more than the 4 runs"],
        ),
        (
            "part1.csv part2.csv swapped.csv",
            &["swapped.csv", "run 1", "does not belong to"],
        ),
        (
            "part1.csv part2.csv whole.csv",
            &["whole.csv is not a shard", "--shard 1/8"],
        ),
        (
            "part1.csv part2.csv headless.csv",
            &["headless.csv is not a shard"],
        ),
        ("part1.csv part2.csv bare.csv", &["bare.csv", "columns"]),
        (
            "part1.csv part2.csv nothing.csv",
            &["cannot open nothing.csv"],
        ),
        ("part1.csv part2.csv json_arch", &["json_arch"]),
    ] {
        let said = terminal.refuse(&format!("sweep merge {files} --out all.csv"));
        for part in parts {
            assert!(said.contains(part), "{files}: {said:?} lacks {part:?}");
        }
        assert!(!terminal.path("all.csv").exists(), "{files}");
    }
    let said = terminal.refuse("sweep merge part1.csv part2.csv part3.csv --out ./part2.csv");
    assert!(said.contains("one of the shards"), "{said}");
    let said = terminal.refuse(&format!("{sweep} --shard 2/3 --out part1.csv"));
    assert!(said.contains("another shard"), "{said}");
    let said = terminal.refuse(&format!("{sweep} --shard 4/3 --out x.csv"));
    assert!(
        said.contains("not a shard") && said.contains("1/8"),
        "{said}"
    );
    assert!(
        terminal
            .refuse("sweep merge --out x.csv")
            .contains("missing")
    );
}
