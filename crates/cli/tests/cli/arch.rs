//! Architectures of services: the printed lines and the files of a run.

use crate::terminal::{Terminal, picture, succeed};

#[test]
fn the_default_architecture_prints_its_summary() {
    let said = succeed("-d 1");
    for part in [
        "corsair: netflixoss complete, 65 instances of 8 services in 1 region",
        "requests",
        "www          p50 ",
        "p99.9",
        "slowest",
        "dropped      ",
        "digest       ",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn the_same_flags_and_seed_are_the_same_run_on_any_number_of_workers() {
    let terminal = Terminal::new();
    let digest =
        |args: &str| terminal.json(&format!("-a netflixoss -d 1 {args}"))["digest"].clone();
    let first = digest("");
    assert!(first.is_string());
    for same in ["-cpus 1", "--workers 4", "-w 1", "-u 1s", "-kv chat:10ms"] {
        assert_eq!(digest(same), first, "{same}");
    }
    for other in [
        "--seed 1",
        "-p 200",
        "-w 2",
        "-u 500ms",
        "-kv chat:1ms",
        "-d 2",
    ] {
        assert_ne!(digest(other), first, "{other}");
    }
}

#[test]
fn a_step_numbers_the_graph_files_of_any_architecture() {
    let terminal = Terminal::new();
    for arch in ["fsm", "lamp"] {
        terminal.succeed(&format!("-a {arch} -p 100 -d 0 -s 7 -j -g"));
        for file in [format!("json/{arch}7.json"), format!("gml/{arch}7.gexf")] {
            assert!(terminal.path(&file).exists(), "{file}");
        }
        assert!(!terminal.path(format!("json/{arch}.json")).exists());
        terminal.succeed(&format!("-a {arch} -d 0 -s 7 -r"));
    }
}

#[test]
fn the_object_has_the_times_of_every_service_if_they_were_measured() {
    let terminal = Terminal::new();
    assert!(terminal.json("-a lamp -d 1")["times"].is_null());
    let object = terminal.json("-a lamp -d 1 -c");
    let times = object["times"].as_object().unwrap();
    assert_eq!(times.len() as u64, object["services"].as_u64().unwrap());
    let www = &times["www"]["response"];
    let entry = &object["entries"]["www"];
    assert_eq!(www["p99_seconds"], entry["p99_seconds"]);
    let least = entry["requests"].as_u64().unwrap() + entry["puts"].as_u64().unwrap();
    assert!(www["count"].as_u64().unwrap() <= least, "{object}");
    assert!(www["mean_seconds"].as_f64().unwrap() > 0.0, "{object}");
}

#[test]
fn everything_that_was_asked_for_is_written_and_counted() {
    let terminal = Terminal::new();
    let object = terminal.json("-a lamp -d 1 -j -g -c --flow-format all --out made");
    for file in [
        "made/json/lamp.json",
        "made/gml/lamp.graphml",
        "made/gml/lamp.gexf",
        "made/json_metrics/lamp_flow.json",
        "made/json_metrics/lamp.guess",
        "made/csv_metrics/lamp_www_resp.csv",
    ] {
        assert!(terminal.path(file).exists(), "{file}");
    }
    let graph: serde_json::Value =
        serde_json::from_str(&terminal.read("made/json/lamp.json")).unwrap();
    assert_eq!(graph["arch"], "lamp");
    let nodes = graph["graph"].as_array().unwrap().iter();
    assert_eq!(
        nodes.filter(|event| event.get("node").is_some()).count(),
        23
    );
    assert!(object["spans"].as_u64().unwrap() > 100);
    assert_eq!(object["instances"], 23);
    let entry = &object["entries"]["www"];
    assert!(entry["requests"].as_u64().unwrap() > 20 && entry["errors"] == 0);
    assert!(entry["p50_seconds"].as_f64() <= entry["p999_seconds"].as_f64());
}

#[test]
fn a_definition_in_the_directory_comes_before_a_built_in() {
    let terminal = Terminal::new();
    let text = r#"{"arch": "other", "services": [
        {"name": "db", "package": "store", "count": 2, "regions": 1, "dependencies": []},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    terminal.write("json_arch/lamp_arch.json", text);
    terminal.write("mine/shop_arch.json", text);
    assert_eq!(terminal.json("-a lamp -d 0")["instances"], 3);
    assert_eq!(
        terminal.json("-a shop --arch-dir mine -d 0")["instances"],
        3
    );
    assert_eq!(terminal.json("-a mine/shop_arch.json -d 0")["instances"], 3);
}

#[test]
fn steps_of_the_migration_have_their_files_and_regions() {
    let terminal = Terminal::new();
    assert_eq!(terminal.json("-a migration -s 9 -d 0 -j")["regions"], 3);
    assert!(terminal.path("json/migration9.json").exists());
    assert_eq!(terminal.json("-a migration -d 0 -j")["services"], 4);
    assert!(terminal.path("json/migration.json").exists());
}

#[test]
fn a_run_goes_on_from_its_graph() {
    let terminal = Terminal::new();
    terminal.succeed("-a lamp -d 0 -j");
    let again = terminal.json("-a lamp -r -d 1");
    assert_eq!(
        (again["instances"].as_u64(), again["errors"].as_u64()),
        (Some(23), Some(0))
    );
    let named = terminal.json("-a anything --reload json/lamp.json -d 1");
    assert_eq!(named["instances"], 23);
}

#[test]
fn a_collapsed_graph_has_services() {
    let terminal = Terminal::new();
    terminal.succeed("-a lamp -d 0 -j -f");
    let graph = terminal.read("json/lamp.json");
    assert!(
        graph.contains("lamp.us-east-1.zoneA.webserver.monolith"),
        "{graph}"
    );
    assert!(!graph.contains("webserver03"), "{graph}");
}

// Guarantee: observe-1.
#[test]
fn messages_are_logged_with_names_and_kinds() {
    let log = succeed("-a lamp -d 1 -m");
    let request = log.lines().find(|line| line.contains(" GetRequest why?"));
    let request = request.expect("somebody asks why");
    assert!(request.contains("lamp."), "{request}");
    assert!(
        log.contains(" NameDrop lamp.us-east-1.zoneA..memcache00"),
        "{log}"
    );
    for known in [
        ".webserver00 lamp.*.*.scenario Hello",
        "lamp.us-east-1.zoneA.eureka00 lamp.us-east-1.zoneA.webserver00 Put",
        "lamp.*.*.edda lamp.us-east-1.zoneB.eureka01 ",
    ] {
        assert!(log.contains(known), "{known} is not in\n{log}");
    }
    assert!(!log.contains(" actor"), "everybody has a name");
    let at = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    let received = log.lines().filter(at).count();
    let counted = format!("\n  messages     {received} (");
    assert!(log.contains(&counted), "{received} lines");
    assert!(
        log.contains("corsair: lamp complete"),
        "after the messages comes the summary"
    );
}

#[test]
fn a_latency_is_that_of_all_ways() {
    let terminal = Terminal::new();
    let run = terminal.json("-a lamp -d 1 --latency 7ms");
    // From www to the balancer, the web server and the storage, and back: six trips.
    let shortest = run["entries"]["www"]["p50_seconds"].as_f64().unwrap();
    assert!((0.042..0.0425).contains(&shortest), "{run}");
    let far = terminal.json("-a netflixoss -w 6 -d 1 --latency 1ms..2ms");
    let longest = far["entries"]["www"]["p999_seconds"].as_f64().unwrap();
    assert!(longest < 12.0 * 0.002, "{far}");
}

#[test]
fn what_every_actor_sent_and_received_adds_up() {
    let terminal = Terminal::new();
    for executor in ["virtual", "tokio"] {
        let run = terminal.json(&format!(
            "-a lamp -d 200ms --per-actor totals.csv --executor {executor}"
        ));
        let totals = terminal.read("totals.csv");
        let rows: Vec<Vec<&str>> = totals
            .lines()
            .map(|line| line.split(',').collect())
            .collect();
        assert_eq!(rows[0], ["actor", "sent", "received", "ended"]);
        // Instances, registries, the log of nodes and edges, and the scenario.
        assert_eq!(rows.len(), 1 + 23 + 3 + 1 + 1, "{totals}");
        for (row, name) in [
            (1, "lamp.*.*.scenario"),
            (2, "lamp.us-east-1.zoneA.rds-mysql00"),
            (25, "lamp.us-east-1.zoneA.eureka00"),
            (28, "lamp.*.*.edda"),
        ] {
            assert_eq!(rows[row][0], name);
        }
        let sum = |column: usize| -> u64 {
            let numbers = rows[1..].iter().map(|row| row[column].parse::<u64>());
            numbers.map(Result::unwrap).sum()
        };
        assert_eq!(Some(sum(2)), run["messages_total"].as_u64(), "{executor}");
        assert!(sum(1) >= sum(2), "{executor}");
    }
}

#[test]
fn what_stands_for_measured_times_is_in_the_file_for_guesstimate() {
    let terminal = Terminal::new();
    let text = r#"{"arch": "q", "services": [
        {"name": "db", "package": "store", "count": 1, "regions": 1, "useCustomGuesstimate": true,
         "guesstimateType": "NORMAL", "guesstimateValue": "[100,200]"},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    terminal.write("json_arch/q_arch.json", text);
    terminal.succeed("-a q -d 1 -c");
    let guess: serde_json::Value =
        serde_json::from_str(&terminal.read("json_metrics/q.guess")).unwrap();
    let graph = &guess["space"]["graph"];
    let metrics = graph["metrics"].as_array().unwrap();
    let cells = graph["guesstimates"].as_array().unwrap();
    assert_eq!(metrics.len(), cells.len());
    for (metric, cell) in metrics.iter().zip(cells) {
        let name = metric["name"].as_str().unwrap();
        let (kind, expression) = match name.starts_with("q.db_") {
            true => ("NORMAL", "[100,200]"),
            false => ("DATA", ""),
        };
        assert_eq!(cell["guesstimateType"], kind, "{name}");
        assert_eq!(cell["expression"], expression, "{name}");
        assert_eq!(cell["data"].is_null(), kind == "NORMAL", "{name}");
    }
}

#[test]
fn flags_are_kept_in_files_for_architectures_too() {
    let terminal = Terminal::new();
    let args = "-a cassandra -p 200 -d 1 -kv chat:5ms";
    let first = terminal.json(&format!("{args} -saveconfig mine"))["digest"].clone();
    assert_eq!(terminal.json("-config mine")["digest"], first);
}

#[test]
fn the_schema_is_json_and_knows_the_fields() {
    let schema: serde_json::Value = serde_json::from_str(&succeed("schema")).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    for key in ["arch", "victim", "services", "network"] {
        assert!(properties.contains_key(key), "{key}");
    }
    let service = &schema["$defs"]["ServiceDefinition"]["properties"];
    for key in [
        "package",
        "service_time",
        "concurrency",
        "error_rate",
        "faults",
    ] {
        assert!(service.get(key).is_some(), "{key}");
    }
}

#[test]
#[cfg(feature = "compose")]
fn a_compose_file_becomes_an_architecture_that_runs() {
    let terminal = Terminal::new();
    terminal.write(
        "shop.yml",
        "services:\n  web: {image: nginx, ports: ['80:80'], depends_on: [app]}\n  \
         app: {build: ./app, depends_on: [db]}\n  db: {image: postgres}\n",
    );
    let printed = terminal.succeed("compose2arch shop.yml");
    assert!(printed.contains("\"arch\": \"shop\""), "{printed}");
    terminal.succeed("compose2arch shop.yml --out json_arch/shop_arch.json");
    let run = terminal.json("-a shop -d 1");
    assert_eq!(
        (run["services"].as_u64(), run["errors"].as_u64()),
        (Some(4), Some(0))
    );
}

#[test]
#[cfg(not(feature = "compose"))]
fn a_compose_file_without_its_feature_is_refused_with_the_feature() {
    let said = Terminal::new().refuse("compose2arch shop.yml");
    assert!(said.contains("cargo run --features compose"), "{said}");
}

#[test]
fn the_capacity_is_found_printed_and_drawn() {
    let terminal = Terminal::new();
    let text = r#"{"arch": "q", "services": [
        {"name": "db", "package": "store", "count": 1, "regions": 1, "service_time": "2ms", "concurrency": 1},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    terminal.write("json_arch/q_arch.json", text);
    let args = "capacity -a q -d 2 --limit 20ms --plot q.svg";
    let found = terminal.json(args);
    // One request at a time for two milliseconds each: 500 per second, for any arrival process.
    let load = found["load"].as_f64().unwrap();
    assert!((480.0..=520.0).contains(&load), "{found}");
    picture(&terminal, "q.svg");
    assert_eq!(terminal.json(args), found);
    let table = terminal.succeed("capacity -a q -d 1 --limit 20ms --to 100");
    assert!(
        table.contains("sustains at least 100.0 requests per second"),
        "{table}"
    );
    let table = terminal.succeed("capacity -a q -d 1 --limit 1ms");
    assert!(
        table.contains("does not sustain even 5 requests per second"),
        "{table}"
    );
}

#[test]
fn an_architecture_runs_by_the_clock() {
    let terminal = Terminal::new();
    for executor in ["tokio", "pool", "threads"] {
        let run = terminal.json(&format!("-a lamp -d 500ms -u 10ms --executor {executor}"));
        assert_eq!(run["executor"].as_str(), Some(executor));
        // On a busy machine the load may begin before the instances have found each other.
        assert!(run["errors"].as_u64() < run["requests"].as_u64(), "{run}");
    }
}

#[test]
fn too_many_regions_are_blamed_on_the_flag_that_asks_for_them() {
    let terminal = Terminal::new();
    let text = r#"{"arch": "q", "services": [
        {"name": "db", "package": "store", "count": 1, "regions": 3},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    terminal.write("json_arch/q_arch.json", text);
    let said = terminal.refuse("-a q -w 3 -d 1");
    assert!(
        said.starts_with("-w: service 'db' would be in 9 regions"),
        "{said}"
    );
    let said = terminal.refuse("-a q -w 7 -d 1");
    assert!(said.starts_with("-w: 7 regions are not possible"), "{said}");
    let said = terminal.refuse("-a netflixoss -p 1 -d 1");
    assert!(said.starts_with("-p: 1 % of the 6 instances"), "{said}");
}

#[test]
fn faults_after_the_end_of_the_load_are_reported() {
    let terminal = Terminal::new();
    let text = r#"{"arch": "q", "services": [
        {"name": "db", "package": "store", "count": 1, "regions": 1,
         "faults": [{"kind": "kill", "at": "4s"}, {"kind": "pause", "at": "1ms", "for": "1ms"}]},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    terminal.write("json_arch/q_arch.json", &format!("\u{feff}{text}"));
    let run = terminal.run("-a q -d 2");
    assert_eq!(run.code, Some(0));
    assert_eq!(
        run.stderr.lines().collect::<Vec<_>>(),
        [
            "corsair: service 'db' has a fault at 4s that has no effect, because the load ends at 2s; \
          increase -d, or give the fault an earlier time"
        ]
    );
    assert!(!terminal.run("-a q -d 5").stderr.contains("does nothing"));
}

#[test]
fn requests_that_were_never_answered_are_in_the_percentiles() {
    let terminal = Terminal::new();
    let text = r#"{"arch": "q", "services": [
        {"name": "db", "package": "store", "count": 1, "regions": 1, "service_time": "25ms",
         "concurrency": 1},
        {"name": "www", "package": "denominator", "dependencies": ["db"]}]}"#;
    terminal.write("json_arch/q_arch.json", text);
    let run = terminal.json("-a q -d 10");
    let www = &run["entries"]["www"];
    assert!(www["unanswered"].as_u64() > Some(300), "{run}");
    // The oldest unanswered request was made when the queue already took some six seconds.
    assert!(www["p99_seconds"].as_f64() > Some(5.0), "{run}");
    let at_least = www["at_least"].as_array().unwrap();
    assert!(at_least.contains(&"p999_seconds".into()), "{run}");
    let lines = terminal.succeed("-a q -d 10");
    assert!(lines.contains("p99 at least "), "{lines}");
    assert!(
        lines.contains("unanswered, which count with their age"),
        "{lines}"
    );
}

#[test]
fn a_load_is_typed_or_comes_from_a_file() {
    let terminal = Terminal::new();
    let run = terminal.json("-a lamp -d 2 --load 100/s");
    let www = &run["entries"]["www"];
    let made =
        |www: &serde_json::Value| www["requests"].as_u64().unwrap() + www["puts"].as_u64().unwrap();
    assert_eq!(made(www), 199, "{run}");
    terminal.write(
        "load.json",
        r#"{"www": {"users": 5, "think": "100ms", "requests": {"read": 3, "write": 1}}}"#,
    );
    let run = terminal.json("-a lamp -d 2 --load load.json");
    let kinds = run["entries"]["www"]["kinds"].as_object().unwrap();
    assert!(
        kinds.contains_key("read") && kinds.contains_key("write"),
        "{run}"
    );
    let lines = terminal.succeed("-a lamp -d 2 --load load.json");
    assert!(lines.contains("\n    read       p50 "), "{lines}");
    for (load, said) in [
        ("fast", "--load: 'fast' is not a load; write for example"),
        ("nowhere.csv", "--load: cannot read ./nowhere.csv"),
        ("load.jsn", "--load: 'load.jsn' is not a load"),
    ] {
        let refused = terminal.refuse(&format!("-a lamp -d 1 --load {load}"));
        assert!(refused.starts_with(said), "{refused}");
    }
    assert!(
        terminal
            .refuse("-a fsm -p 10 --load 10/s")
            .contains("--load")
    );
}

#[test]
fn any_architecture_has_numbered_runs() {
    let terminal = Terminal::new();
    terminal.succeed("-a lamp -d 0 -j -s 3");
    assert!(terminal.read("json/lamp3.json").contains("webserver17"));
    let again = terminal.json("-a lamp -r -s 3 -d 1");
    assert_eq!(again["instances"], 23);
    let said = terminal.refuse("-a migration -s 10");
    assert!(said.starts_with("-s"), "{said}");
    terminal.succeed("-a migration -p 50 -s 5 -d 0");
}

#[test]
fn regions_zones_and_ranges_have_the_names_of_their_flags() {
    let terminal = Terminal::new();
    let names = "--region-names paris,rome --zone-names east,west --ip-ranges 10.1,10.2;10.3,10.4";
    terminal.succeed(&format!("-a lamp -d 0 -j -w 2 {names}"));
    let graph = terminal.read("json/lamp.json");
    for part in [
        r#""lamp.paris.east.webserver"#,
        r#""lamp.rome.west.webserver"#,
        "IP/10.1.0.",
        "IP/10.4.0.",
    ] {
        assert!(graph.contains(part), "{part} is not in\n{graph}");
    }
    for other in ["us-east-1", "zoneA", "IP/54."] {
        assert!(!graph.contains(other), "{other}");
    }
    let said = terminal.refuse(&format!("-a lamp -d 0 -w 3 {names}"));
    assert!(said.starts_with("-w") && said.contains('2'), "{said}");
}

#[test]
fn a_migration_of_half_the_size_answers_its_requests() {
    let terminal = Terminal::new();
    for step in [0, 3, 8] {
        let half = terminal.json(&format!("-a migration -s {step} -p 50 -d 1"));
        let whole = terminal.json(&format!("-a migration -s {step} -d 1"));
        assert_eq!(half["errors"], 0, "step {step}");
        assert!(
            half["instances"].as_u64() < whole["instances"].as_u64(),
            "step {step}"
        );
    }
}

#[test]
fn a_table_of_each_kind_of_time_is_left_for_a_service() {
    let terminal = Terminal::new();
    terminal.succeed("-a lamp -d 1 -c");
    for kind in ["resp", "serv", "net", "rt"] {
        let table = terminal.read(&format!("csv_metrics/lamp_webserver_{kind}.csv"));
        assert!(table.lines().count() > 3, "{kind}: {table}");
    }
}

#[test]
fn files_are_dated_from_the_epoch_and_say_so_if_that_is_1970() {
    let terminal = Terminal::new();
    let first = || {
        let spans: serde_json::Value =
            serde_json::from_str(&terminal.read("json_metrics/lamp_flow.json")).unwrap();
        let spans = spans.as_array().unwrap().iter();
        let micros = spans.filter_map(|span| span["annotations"][0]["timestamp"].as_u64());
        micros.min().unwrap()
    };
    let said = terminal.succeed("-a lamp -d 1 -c");
    assert!(
        said.contains("dates        begin in 1970; --epoch now begins today"),
        "{said}"
    );
    let undated = first();
    assert!(undated < 1_000_000, "{undated}");
    let said = terminal.succeed("-a lamp -d 1 -c --epoch 2026-01-01T00:00:00Z");
    assert!(!said.contains("1970"), "{said}");
    assert_eq!(first(), 1_767_225_600_000_000 + undated);
}

#[test]
fn any_broker_of_a_list_that_is_none_is_reported() {
    let terminal = Terminal::new();
    let said = terminal.refuse("-a lamp -d 0 -c -k localhost:9092,elsewhere");
    assert!(
        said.starts_with("-k") && said.contains("elsewhere"),
        "{said}"
    );
}
