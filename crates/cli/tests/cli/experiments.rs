//! `compare`, `sweep` and `capacity --find`: many runs, and the reports about them.

use crate::terminal::{Terminal, picture};

const QUEUE: &str = r#"{"arch": "q", "network": {"same_region": "1ms"}, "services": [
    {"name": "web", "package": "service", "count": 2, "regions": 1, "concurrency": 1,
     "endpoints": [{"name": "get", "steps": [{"work": {"exponential": "5ms"}}]}]},
    {"name": "www", "package": "denominator", "dependencies": ["web"]}],
    "load": {"www": {"rate": 200, "arrivals": "poisson", "requests": {"get": 1}}}}"#;

fn terminal() -> Terminal {
    let terminal = Terminal::new();
    terminal.write("json_arch/q_arch.json", QUEUE);
    terminal
}

#[test]
fn two_variants_are_compared_from_the_same_seeds() {
    let terminal = terminal();
    let args = "compare q --set services.web.count=4 --seeds 5 -d 20";
    let rows = terminal.json(&format!("{args} --format json --svg c.svg"));
    let row = |name: &str| {
        let rows = rows.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    // Two M/M/1 at a load of 0.5 and four at 0.25; two trips of a millisecond: 12 and 8.67 ms.
    let mean = row("mean_seconds");
    assert!((number(&mean["a"]) - 0.012).abs() < 0.0006, "{mean}");
    assert!((number(&mean["b"]) - 0.008_67).abs() < 0.0004, "{mean}");
    assert!(
        (number(&mean["difference"]) + 0.003_33).abs() < 0.0006,
        "{mean}"
    );
    assert_eq!(mean["is_clear"], true);
    // Both architectures receive the same requests.
    assert_eq!(row("requests")["difference"], 0.0);
    picture(&terminal, "c.svg");
    let table = terminal.succeed(args);
    assert!(
        table.contains("from 5 seeds") && table.contains("ms *"),
        "{table}"
    );
    let other = terminal.succeed(&format!("{args} --workers 1"));
    assert_eq!(other, table);
}

#[test]
fn comparisons_that_make_no_sense_are_refused() {
    let terminal = terminal();
    for (args, parts) in [
        (
            "compare q",
            ["there is nothing to compare", "--set"].as_slice(),
        ),
        ("compare q nothing", &["nothing", "there is no"]),
        (
            "compare q --set services.wbe.count=4",
            &["services.wbe.count", "did you mean web?"],
        ),
        ("compare q --set count", &["services.web.count=4"]),
        ("compare q q --seeds 1", &["--seeds", "2 to"]),
        ("compare q q --warm-up 20", &["warm-up", "-d"]),
        ("compare fsm q", &["fsm", "no fields"]),
    ] {
        let said = terminal.refuse(args);
        for part in parts {
            assert!(
                said.contains(part),
                "`corsair {args}` says {said:?}, not {part:?}"
            );
        }
    }
}

#[test]
fn a_sweep_has_a_line_for_each_run_and_goes_on_where_it_was_stopped() {
    let terminal = terminal();
    let args =
        "sweep -a q --set services.web.count=1..3 --set load.www.rate=100,150 --seeds 2 -d 5";
    terminal.succeed(&format!("{args} --out all.csv"));
    let all = terminal.read("all.csv");
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 1 + 12);
    let head = "definition,services.web.count,load.www.rate,seed,requests,throughput,errors,";
    assert!(lines[0].starts_with(head), "{}", lines[0]);
    let columns: Vec<&str> = lines[12].split(',').collect();
    assert_eq!(columns[1..4], ["3", "150", "1"]);
    // A file that ends in the middle of a line: this run and all later runs are repeated, and no others.
    let cut = &all[..all.len() * 6 / 10];
    terminal.write("part.csv", cut);
    let said = terminal.succeed(&format!("{args} --out part.csv --workers 1"));
    assert!(
        said.contains("12 runs") && !said.contains(" 0 of them"),
        "{said}"
    );
    assert_eq!(terminal.read("part.csv"), all);
    let said = terminal.succeed(&format!("{args} --out part.csv"));
    assert!(said.contains("12 of them already there"), "{said}");
    // A file of another sweep is not changed.
    let said = terminal.refuse(&format!("{args} -d 6 --out part.csv"));
    assert!(said.contains("belongs to another sweep"), "{said}");
    assert_eq!(terminal.read("part.csv"), all);
}

#[test]
fn a_sweep_writes_json_lines() {
    let terminal = terminal();
    terminal.succeed(
        "sweep -a q --set services.web.endpoints.get.steps.0.work=1ms,2ms -d 5 --out r.jsonl",
    );
    let text = terminal.read("r.jsonl");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["services.web.endpoints.get.steps.0.work"], "2ms");
    assert!(lines[1]["mean_seconds"].as_f64() > lines[0]["mean_seconds"].as_f64());
}

#[test]
fn a_sweep_of_which_a_point_makes_no_sense_runs_nothing() {
    let terminal = terminal();
    let said = terminal.refuse("sweep -a q --set services.web.count=1,-1 -d 5 --out x.csv");
    assert!(
        said.contains("services.web.count=-1") && said.contains("give 0 to"),
        "{said}"
    );
    assert!(!terminal.path("x.csv").exists());
    let said = terminal.refuse("sweep -a q --set services.web.count=3..1 --out x.csv");
    assert!(said.contains("is not a range"), "{said}");
}

#[test]
fn the_number_of_instances_for_a_load_is_found_with_the_bottleneck() {
    let terminal = terminal();
    let args = "capacity -a q --find instances:web --limit 40ms -d 5";
    let found = terminal.json(&format!("{args} --load {{\"rate\":600,\"arrivals\":\"poisson\",\"requests\":{{\"get\":1}}}} --format json"));
    // M/M/1 with a rate of 200 - λ/n: the 99th percentile is 4.6 / (200 - 600/n) + 2 ms, which is below 40 ms for eight
    // instances or more.
    assert_eq!(found["instances"], 8, "{found}");
    let points = found["points"].as_array().unwrap();
    let last = points.iter().find(|point| point["instances"] == 8).unwrap();
    let busy = last["utilisations"]["web"].as_f64().unwrap();
    assert!((busy - 0.375).abs() < 0.02, "{last}");
    let table = terminal.succeed(args);
    assert!(
        table.contains("instances of web sustain this load") && table.contains("bottleneck   web")
    );
    for (args, part) in [
        ("--find web", "instances:web"),
        ("--find instances:wbe", "did you mean web?"),
    ] {
        let said = terminal.refuse(&format!("capacity -a q {args}"));
        assert!(said.contains(part), "{said}");
    }
    let said = terminal.refuse("capacity -a lamp --find instances:webserver");
    assert!(said.contains("--load"), "{said}");
}

// Guarantee: arch-20.
#[test]
fn built_in_architectures_have_sizes_where_these_mean_something() {
    let terminal = Terminal::new();
    let found = terminal.json("capacity -a lamp -d 1 --precision 0.1 --format json");
    assert!(found["load"].as_f64().unwrap() > 100.0, "{found}");
    let table = terminal.succeed("capacity -a lamp -d 1 --precision 0.1");
    assert!(
        ["memcache", "rds-mysql"]
            .iter()
            .any(|name| table.contains(&format!("bottleneck   {name}")))
            && table.contains("illustrative"),
        "{table}"
    );
    // Runs without --sized have no sizes, and their digests depend only on the definition.
    let digest = |args: &str| terminal.json(args)["digest"].as_str().unwrap().to_owned();
    let plain = digest("-a lamp -d 1");
    assert_ne!(digest("-a lamp -d 1 --sized"), plain);
    assert_eq!(digest("-a lamp -d 1"), plain);
    // Fields of a definition are never replaced. A file that replaces a built-in architecture gets no sizes.
    let own = r#"{"arch": "lamp", "services": [
        {"name": "db", "package": "store", "count": 1, "regions": 1, "service_time": "2ms", "concurrency": 1},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    terminal.write("json_arch/lamp_arch.json", own);
    assert_eq!(digest("-a lamp -d 1 --sized"), digest("-a lamp -d 1"));
    assert!(
        !terminal
            .succeed("capacity -a lamp -d 1 --to 20")
            .contains("illustrative")
    );
    let said = terminal.refuse("-a fsm --sized");
    assert!(said.contains("sizes of services"), "{said}");
}

#[test]
fn the_demo_saturates_fails_and_recovers() {
    let table = Terminal::new().succeed("demo --text");
    let errors = |name: &str| -> u32 {
        let line = table
            .lines()
            .find(|line| line.contains(&format!("s  {name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {table}"));
        let (before, _) = line.split_once(" %").unwrap();
        before.rsplit(' ').next().unwrap().parse().unwrap()
    };
    for calm in ["Calm", "Relief", "Recovery"] {
        assert!(errors(calm) <= 2, "{table}");
    }
    assert!(
        errors("Saturation") >= 10 && errors("Failure") >= 3,
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "a pipe gets no colours");
}
