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
