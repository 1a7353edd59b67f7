//! Flags kept in files: -saveconfig and -config.

use crate::terminal::Terminal;

#[test]
fn a_saved_configuration_makes_the_same_run() {
    let terminal = Terminal::new();
    let lines = terminal.succeed("-a fsm -p 60 -d 1 -kv chat:100ms --seed 4 -j -saveconfig");
    assert!(lines.contains("saved to ./json/fsm_conf.json"), "{lines}");
    let digest = terminal.json("-a fsm -p 60 -d 1 -kv chat:100ms --seed 4")["digest"].clone();
    assert_eq!(terminal.json("-config fsm")["digest"], digest);
    assert_eq!(
        terminal.json("-config=json/fsm_conf.json")["digest"],
        digest
    );
    let saved: serde_json::Value =
        serde_json::from_str(&terminal.read("json/fsm_conf.json")).unwrap();
    let expected = serde_json::json!({
        "arch": "fsm", "population": 60, "duration": 1, "kv": "chat:100ms", "seed": 4, "graphjson": true
    });
    assert_eq!(saved, expected);
}

#[test]
fn the_command_line_wins_over_the_file() {
    let terminal = Terminal::new();
    terminal.write(
        "json_arch/mine_conf.json",
        r#"{"arch": "fsm", "population": 60, "duration": "0"}"#,
    );
    assert_eq!(terminal.json("-config mine")["pirates"], 60);
    assert_eq!(terminal.json("-config mine -p 70")["pirates"], 70);
}

#[test]
fn a_configuration_is_saved_under_any_name() {
    let terminal = Terminal::new();
    terminal.succeed("-a fsm -p 9 -d 0 -saveconfig mine --out there");
    assert_eq!(terminal.json("-config mine --out there")["pirates"], 9);
}

#[test]
fn files_that_say_nonsense_are_refused_with_their_name() {
    let terminal = Terminal::new();
    for (text, part) in [
        ("{\"arch\": \"fsm\",", "not a JSON object"),
        ("[1]", "not a JSON object"),
        (
            r#"{"arch": "fsm", "populaton": 5}"#,
            "did you mean \"population\"?",
        ),
        (
            r#"{"arch": "fsm", "config": "other"}"#,
            "not a flag that a file can set",
        ),
        (
            r#"{"arch": "fsm", "population": [5]}"#,
            "write a string, a number",
        ),
        (
            r#"{"arch": "fsm", "population": -5}"#,
            "-p (\"population\" in",
        ),
        (
            r#"{"arch": "fsm", "executor": "fast"}"#,
            "virtual, tokio, threads, pool",
        ),
    ] {
        terminal.write("json/x_conf.json", text);
        let said = terminal.refuse("-config x");
        assert!(
            said.contains(part) && said.contains("x_conf.json"),
            "{text}: {said}"
        );
    }
    let said = terminal.refuse("-config nowhere");
    assert!(
        said.contains("json/nowhere_conf.json") && said.contains("-saveconfig"),
        "{said}"
    );
    assert!(terminal.refuse("-a fsm -saveconfig a/b").contains("--out"));
}

#[test]
fn a_file_that_spigo_has_written_is_read_and_wins() {
    let terminal = Terminal::new();
    let text = r#"{"arch": "lamp", "graphmlfile": "", "graphjsonfile": "lamp", "neo4jurl": "",
        "runduration": 1000000000, "dunbar": 0, "population": 200, "msglog": false, "regions": 2,
        "regionnames": ["us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-1",
        "ap-southeast-2"], "ipranges": [["54.198.", "54.221.", "50.19."],
        ["54.245.", "54.244.", "54.214."], ["54.247.", "54.246.", "54.288."],
        ["54.93.", "54.28.", "54.78."], ["54.251.", "54.254.", "54.255."],
        ["54.252.", "54.253.", "54.206."]],
        "zonenames": ["zoneA", "zoneB", "zoneC"], "collect": false, "kafka": null, "stopstep": 4,
        "eurekapoll": "1s", "filter": false, "keyvals": "chat:20ms"}"#;
    terminal.write("json_arch/theirs_conf.json", text);
    let run = terminal.json("-config theirs -a netflixoss -p 100");
    assert_eq!(
        (run["arch"].as_str(), run["regions"].as_u64()),
        (Some("lamp"), Some(2))
    );
    let www = &run["entries"]["www"];
    let made = www["requests"].as_u64().unwrap() + www["puts"].as_u64().unwrap();
    assert!((48..=50).contains(&made), "{run}");
    assert!(terminal.read("json/lamp4.json").contains("webserver35"));
    // A definition with other regions, zones and addresses.
    let own = text
        .replace("us-east-1", "mars-1")
        .replace("zoneC", "north")
        .replace("54.245.", "10.9.");
    terminal.write("json_arch/own_conf.json", &own);
    terminal.succeed("-config own");
    let graph = terminal.read("json/lamp4.json");
    for part in [
        r#""lamp.mars-1.north.webserver02""#,
        r#""lamp.us-west-2.zoneA.webserver36""#,
        "IP/54.198.0.",
        "IP/10.9.0.",
    ] {
        assert!(graph.contains(part), "{part}");
    }
    assert!(!graph.contains("us-east-1") && !graph.contains("zoneC"));
    terminal.write("json_arch/own_conf.json", &own.replace("10.9.", "10.900."));
    let said = terminal.refuse("-config own");
    assert!(
        said.starts_with("--ip-ranges (\"ip-ranges\" in ")
            && said.contains("'10.900.' is not a range"),
        "{said}"
    );
}
