//! `corsair gate`: changes of definitions and manifests, judged for a pull request.

use crate::import::MANIFESTS;
use crate::terminal::{Terminal, picture};

const SHOP: &str = r#"{"arch": "shop", "services": [
    {"name": "db", "package": "service", "count": 1, "regions": 1, "concurrency": 4,
     "endpoints": [{"name": "query", "steps": [{"work": {"exponential": "10ms"}}]}]},
    {"name": "web", "package": "service", "count": 2, "regions": 1, "processors": 0.5,
     "endpoints": [{"name": "page", "steps": [{"work": {"exponential": "2ms"}}, {"call": "db"}]}]},
    {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["web"]}],
    "load": {"www": {"rate": 100, "arrivals": "poisson", "requests": {"web.page": 1}}}}"#;

const SLO: &str = "--slo p99<150ms";

fn terminal() -> Terminal {
    let terminal = Terminal::new();
    terminal.write("main.json", SHOP);
    terminal.write("shop/all.json", MANIFESTS);
    terminal
}

// Guarantee: arch-21.
#[test]
fn the_exit_code_is_the_verdict_and_the_reason_is_one_line() {
    let terminal = terminal();
    for (change, code, said) in [
        ("services.web.count=3", 0, "corsair: passes: p99 is "),
        ("services.db.concurrency=1", 1, "corsair: fails: p99 is "),
    ] {
        let line = format!("gate main.json --set {change} --base main.json {SLO}");
        let output = terminal.run(&line);
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert_eq!(output.code, Some(code), "{line}: {shown}");
        assert!(output.stdout.starts_with(said), "{shown}");
        assert!(shown.contains("(main.json has "), "{shown}");
        let changed = change.split_once('=').unwrap().0;
        assert!(shown.contains(&format!("changed  {changed}: ")), "{shown}");
    }
    // One failure in a hundred is what the limit allows: no number of runs decides soon.
    let line =
        "gate main.json --set services.web.error_rate=0.01 --slo errors<1% --runs 4 --format json";
    let output = terminal.run(line);
    assert_eq!(output.code, Some(3), "{}", output.stdout);
    let json: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["verdict"], "undecided", "{json}");
}

// Guarantee: arch-21.
#[test]
fn manifests_are_laid_over_the_definition_before_the_change() {
    let terminal = terminal();
    let line = format!("gate shop --base main.json {SLO} --report out/gate.md");
    let output = terminal.run(&line);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let report = terminal.read("out/gate.md");
    for part in [
        "## corsair gate: passes",
        "gate-objectives.svg",
        "gate-services.svg",
    ] {
        assert!(report.contains(part), "{part} is missing:\n{report}");
    }
    for file in ["out/gate-objectives.svg", "out/gate-services.svg"] {
        picture(&terminal, file);
    }
    // Work and load are those of the definition, so that a tenth of the limit is too little.
    let less = MANIFESTS.replace("500m", "100m");
    terminal.write("shop/all.json", &less);
    let output = terminal.run(&line);
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("web takes "), "{}", output.stdout);
    assert!(
        output
            .stdout
            .contains("changed  services.web.processors: 0.5 -> 0.1"),
        "{}",
        output.stdout
    );
}

#[test]
fn what_cannot_be_judged_is_refused_in_a_sentence() {
    let terminal = terminal();
    terminal.write("empty/readme.txt", "nothing");
    terminal.write("list.json", "[1]");
    for (line, part) in [
        ("gate main.json", "there is no objective; give --slo"),
        ("gate main.json --slo p99<-1ms", "--slo"),
        ("gate main.json --slo p99<NaNs", "--slo"),
        ("gate nowhere --slo p99<1s", "nowhere"),
        ("gate empty --slo p99<1s", "no document of a known format"),
        ("gate list.json --slo p99<1s", "list.json"),
        (
            "gate main.json shop --slo p99<1s",
            "main.json is a definition",
        ),
        (
            "gate main.json --base nowhere.json --slo p99<1s",
            "nowhere.json",
        ),
        (
            "gate main.json --slo p99<1s --runs 1",
            "1 runs are not possible",
        ),
        ("gate main.json --slo p99<1s -d 0", "0 seconds"),
        (
            "gate main.json --slo p99<1s --set services.wbe.count=1",
            "did you mean web?",
        ),
        ("gate fsm --slo p99<1s", "fsm is not an architecture"),
    ] {
        let output = terminal.run(line);
        assert_eq!(output.code, Some(2), "{line}: {}", output.stdout);
        assert!(output.stderr.contains(part), "{line}: {}", output.stderr);
    }
}
