//! `corsair learn`, and the report of where a run's time goes.

use crate::terminal::{Terminal, picture};

const SHOP: &str = r#"{"arch": "shop", "network": {"same_zone": "1ms", "same_region": "1ms"}, "services": [
    {"name": "db", "package": "service", "count": 2, "regions": 1, "concurrency": 2,
     "endpoints": [{"name": "get", "steps": [{"work": {"exponential": "5ms"}}]}]},
    {"name": "web", "package": "service", "count": 1, "regions": 1,
     "endpoints": [{"name": "page", "steps": [{"work": "2ms"}, {"call": "db.get", "times": 2}]}]},
    {"name": "www", "package": "denominator", "dependencies": ["web"]}],
    "load": {"www": {"rate": 200, "arrivals": "poisson", "requests": {"page": 1}}}}"#;

fn terminal() -> Terminal {
    let terminal = Terminal::new();
    terminal.write("json_arch/shop_arch.json", SHOP);
    terminal
}

#[test]
fn what_was_recorded_is_learned_and_run_again() {
    let terminal = terminal();
    terminal.succeed("-a shop -d 20 --flow-format otlp,zipkin2");
    let learned = terminal.succeed(
        "learn json_metrics/shop_flow.otlp.jsonl --name again --out json_arch/again_arch.json",
    );
    assert!(
        learned.starts_with("corsair: learned 2 services from "),
        "{learned}"
    );
    assert!(
        learned.contains("p99 ") && learned.contains("Kolmogorov-Smirnov 0.0"),
        "{learned}"
    );
    let again = terminal.json("-a again -d 20 --format json");
    assert!(again["requests"].as_u64().unwrap() > 3_500, "{again}");
    // Only the definition is printed on stdout.
    let said = terminal.run("learn json_metrics/shop_flow.zipkin.json");
    assert!(
        said.stderr.starts_with("corsair: learned 2 services"),
        "{}",
        said.stderr
    );
    let definition: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(definition["arch"], "learned");
    let report = terminal.json("learn json_metrics/shop_flow.zipkin.json --format json");
    assert_eq!(report["requests"][0]["kind"], "web.page");
    assert_eq!(report["definition"]["services"], definition["services"]);
}

/// Records the shop, and returns the start of a command that learns from the recording with a file of machines.
fn recorded(terminal: &Terminal) -> &'static str {
    terminal.succeed("-a shop -d 5 --flow-format otlp");
    "learn json_metrics/shop_flow.otlp.jsonl --resamples 0 --name again --with rack.json"
}

/// Returns a definition of db and web with these machines, on the machines with these names.
fn on_machines(machines: &str, db: &str, web: &str) -> String {
    format!(
        r#"{{"arch": "shop", "machines": {machines}, "services": [
        {{"name": "db", "package": "service", "machine": "{db}"}},
        {{"name": "web", "package": "service", "machine": "{web}"}},
        {{"name": "mail", "package": "service", "machine": "{web}"}}]}}"#
    )
}

#[test]
fn machines_are_taken_from_another_definition() {
    let terminal = terminal();
    let learn = recorded(&terminal);
    let machines = r#"{"box": {"processors": 4, "faults": [{"kind": "slow", "at": "1s", "for": "1s", "factor": 2}]},
        "own": {"processors": 0.5}}"#;
    terminal.write("rack.json", &on_machines(machines, "own", "box"));
    let said = terminal.succeed(&format!("{learn} --out json_arch/again_arch.json"));
    assert!(
        said.contains("taken from rack.json: db machine, web machine"),
        "{said}"
    );
    let learned: serde_json::Value =
        serde_json::from_str(&terminal.read("json_arch/again_arch.json")).unwrap();
    assert_eq!(learned["machines"]["box"]["processors"], 4.0);
    assert_eq!(learned["machines"]["box"]["faults"][0]["factor"], 2.0);
    assert_eq!(learned["machines"]["own"]["processors"], 0.5);
    let services = learned["services"].as_array().unwrap();
    let machine = |name: &str| {
        let found = services.iter().find(|one| one["name"] == name);
        found.map(|one| one["machine"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(machine("db").as_deref(), Some("own"));
    assert_eq!(machine("web").as_deref(), Some("box"));
    // Services of the file that were not recorded are not added.
    assert_eq!(machine("mail"), None);
    // Half a processor is too slow for 400 calls of 5 ms each second.
    let again = terminal.json("-a again -d 5");
    let used = &again["services_by_name"]["own"]["utilisation"];
    assert!(used.as_f64().unwrap() > 0.99, "{again}");
}

#[test]
fn machines_that_do_not_fit_are_refused_in_a_sentence() {
    let terminal = terminal();
    let learn = recorded(&terminal);
    let one = r#"{"box": {"processors": 2}}"#;
    for (text, said) in [
        (
            on_machines(r#"{"box": {}}"#, "box", "box"),
            "--with rack.json:1: this is not a definition: missing field `processors`; add it",
        ),
        (
            on_machines(r#"{"box": {"processors": 0}}"#, "box", "box"),
            "--with rack.json:1: machine 'box' has 0.0 processors; give more than 0, up to a million",
        ),
        (
            on_machines(
                r#"{"box": {"processors": 2}, "rack": {"processors": 2}}"#,
                "box",
                "box",
            ),
            "--with rack.json:1: machine 'rack' has no services; name it as the machine of one, or remove it",
        ),
        (
            r#"{"arch": "x", "services": [{"name": "other", "package": "service"}]}"#.to_owned(),
            "--with rack.json has none of the learned services, which are db, web, www; use these names",
        ),
        (
            r#"{"arch": "x", "machines": {"db": {"processors": 2}},
            "services": [{"name": "web", "package": "service", "machine": "db"}]}"#
                .to_owned(),
            "--with rack.json does not fit the traces: machine 'db' has the name of a service; rename one of them",
        ),
        ("[1, 2]".to_owned(), "--with rack.json:1: "),
        (String::new(), "--with rack.json"),
        ("\u{0}\u{1}".to_owned(), "--with rack.json:1: "),
        (one.to_owned(), "--with rack.json:1: "),
    ] {
        terminal.write("rack.json", &text);
        let refused = terminal.refuse(learn);
        assert!(refused.starts_with(said), "{text}: {refused}");
    }
    let missing = learn.replace("rack.json", "none.json");
    let refused = terminal.refuse(&missing);
    assert!(refused.starts_with("--with none.json: "), "{refused}");
    let refused = terminal.refuse(&learn.replace("rack.json", "."));
    assert!(refused.starts_with("--with .: "), "{refused}");
}

#[test]
fn a_run_tells_what_happens_over_time_and_where_time_goes() {
    let terminal = terminal();
    let summary = terminal.succeed("-a shop -d 10 --timeline t.csv,t.svg --interval 2s");
    assert!(
        summary.contains("  time goes to, per request from outside\n    db "),
        "{summary}"
    );
    let table = terminal.read("t.csv");
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("seconds,service,region,zone,requests,errors,p50_seconds"));
    // Two zones of db, one of web, and www, each with five slices.
    assert_eq!(rows.len(), 1 + 4 * 5);
    assert!(
        rows.iter()
            .any(|row| row.starts_with("8,db,us-east-1,zoneB,")),
        "{table}"
    );
    let picture = picture(&terminal, "t.svg");
    for part in [
        "www p99",
        "requests per second",
        "jobs in queues",
        "per cent",
        "db",
    ] {
        assert!(picture.contains(part), "{part}");
    }
    let report = terminal.json("-a shop -d 10 --format json");
    let db = &report["services_by_name"]["db"];
    let seconds = |key: &str| db[key].as_f64().unwrap();
    // Two calls for each request, each with 5 ms of work and two trips of a millisecond.
    let calls = db["requests"].as_f64().unwrap();
    assert!(
        (seconds("work_seconds") / calls / 0.005 - 1.0).abs() < 0.1,
        "{db}"
    );
    assert!(
        (seconds("network_seconds") / calls / 0.002 - 1.0).abs() < 0.02,
        "{db}"
    );
    assert!((seconds("utilisation") / 0.5 - 1.0).abs() < 0.1, "{db}");
    assert!(seconds("queue_seconds") > 0.0);
}
