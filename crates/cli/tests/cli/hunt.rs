//! `corsair hunt`: budgets, faults, pairs, findings, refusals.

use crate::terminal::Terminal;

/// Web servers behind a balancer, with two stores.
const SHOP: &str = r#"{"arch": "shop", "version": "arch-0.1", "services": [
    {"name": "db", "package": "store", "count": 2, "regions": 1, "dependencies": []},
    {"name": "web", "package": "monolith", "count": 4, "regions": 1, "dependencies": ["db"]},
    {"name": "web-elb", "package": "elb", "count": 0, "regions": 1, "dependencies": ["web"]},
    {"name": "www", "package": "denominator", "count": 0, "regions": 0, "dependencies": ["web-elb"]}]}"#;

#[test]
fn a_hunt_names_the_faults_that_break_a_budget_and_replays_the_first() {
    let terminal = Terminal::new();
    terminal.write("json_arch/shop_arch.json", SHOP);
    let output = terminal.run("hunt -a shop -d 2 --out found.json");
    let said = &output.stdout;
    assert_eq!(output.code, Some(1), "{said}{}", output.stderr);
    assert!(said.contains("without faults: p50"), "{said}");
    assert!(
        said.contains("kill web from 500ms for 500ms: errors"),
        "{said}"
    );
    let replayed = terminal.run("hunt --replay found.json");
    assert_eq!(replayed.code, Some(1), "{}", replayed.stderr);
    assert!(
        replayed.stdout.contains(", as in found.json"),
        "{}",
        replayed.stdout
    );
}

#[test]
fn a_hunt_without_findings_succeeds() {
    let terminal = Terminal::new();
    terminal.write("json_arch/shop_arch.json", SHOP);
    let said = terminal.succeed("hunt -a shop -d 2 --budget errors<100% --pairs --shard 1/40");
    assert!(said.contains("0 break a budget"), "{said}");
    assert!(said.contains("pairs of the others"), "{said}");
}

#[test]
fn what_cannot_be_hunted_is_refused_in_a_sentence() {
    let terminal = Terminal::new();
    terminal.write("json_arch/shop_arch.json", SHOP);
    terminal.write("no.json", "{\"arch\": 1}");
    for (command, part) in [
        ("hunt", "--arch"),
        ("hunt -a shop --budget p98<1s", "'p98' is not measured"),
        ("hunt -a shop --budget errors<200%", "not a percentage"),
        ("hunt -a shop -d 2 --budget p50<1us", "without any fault"),
        ("hunt -a shop -d 2 --for 3s", "before the end of the load"),
        ("hunt -a nobody", "nobody"),
        ("hunt --replay no.json", "is not a finding"),
        ("hunt --replay missing.json", "cannot read missing.json"),
    ] {
        let output = terminal.run(command);
        assert_eq!(output.code, Some(2), "{command}: {}", output.stdout);
        assert!(output.stderr.contains(part), "{command}: {}", output.stderr);
    }
}
