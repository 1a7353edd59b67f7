//! Flags in Go's spelling and in GNU's, help, completions, man page.

use crate::terminal::{Terminal, succeed};

#[test]
fn go_and_gnu_spelling_make_the_same_run() {
    let terminal = Terminal::new();
    let digests = [
        "-a fsm -p 60 -d 1 -kv chat:100ms -cpus 2",
        "-a=fsm -p=60 -d=1 -kv=chat:100ms -cpus=2",
        "--a fsm --p 60 --d 1 --kv chat:100ms --cpus 2",
        "-arch fsm -population 60 -duration 1 -kv chat:100ms -workers 2",
        "--arch=fsm --population=60 --duration=1s --kv=chat:100ms --workers=2",
        "-afsm -p60 -d1 --kv chat:100ms --cpus 2",
    ]
    .map(|args| terminal.json(args)["digest"].clone());
    assert!(digests[0].is_string());
    assert!(
        digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

// Guarantee: core-63.
#[test]
fn another_duration_population_seed_or_tuning_is_another_run() {
    let terminal = Terminal::new();
    let mut digests = [
        "-p 60 -d 1 -kv chat:100ms",
        "-p 61 -d 1 -kv chat:100ms",
        "-p 60 -d 2 -kv chat:100ms",
        "-p 60 -d 1 -kv chat:90ms",
        "-p 60 -d 1 -kv chat:100ms --seed 1",
        "-p 60 -d 1 -kv chat:100ms --latency 2ms",
    ]
    .map(|args| terminal.json(&format!("-a fsm {args}"))["digest"].to_string());
    digests.sort();
    assert!(
        digests.windows(2).all(|pair| pair[0] != pair[1]),
        "{digests:?}"
    );
}

#[test]
fn a_switch_is_turned_off_as_in_go() {
    let terminal = Terminal::new();
    terminal.succeed("-a fsm -p 5 -d 0 -j -j=false");
    assert!(!terminal.path("json").exists());
    terminal.succeed("-a fsm -p 5 -d 0 -j=true");
    assert!(terminal.path("json/fsm.json").exists());
}

#[test]
fn flags_of_open_issues_at_their_defaults_are_accepted() {
    succeed("-a fsm -p 5 -d 0 -w 1 -s 0 -u 1s -g=false -n=false -c=false -f=false");
}

/// spigo's flags as the help names them.
const SPIGO: &str =
    "-a -p -d -w -g -j -n -m -r -c -k -s -u --kv -f --cpus --cpuprofile --config --saveconfig";

#[test]
fn help_lists_every_flag_of_spigo_and_how_to_begin() {
    for help in [succeed("-h"), succeed("--help"), succeed("-help")] {
        for flag in SPIGO.split(' ') {
            assert!(
                help.contains(&format!(" {flag}")),
                "{flag} is missing in\n{help}"
            );
        }
        assert!(help.contains("corsair -a fsm -p 100000"));
        assert!(
            help.lines().all(|line| line.chars().count() <= 120),
            "{help}"
        );
    }
}

#[test]
fn the_version_is_the_crates() {
    assert_eq!(
        succeed("--version"),
        format!("corsair {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_and_man_page_know_the_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = succeed(&format!("completions {shell}"));
        assert!(
            script.contains("cpuprofile") && script.contains("lookahead"),
            "{shell}"
        );
    }
    let page = succeed("man");
    assert!(
        page.starts_with(".ie") || page.contains(".TH corsair"),
        "{page}"
    );
    assert!(page.contains("lookahead"));
}

#[test]
fn values_are_completed_from_the_definition_that_the_line_names() {
    let terminal = Terminal::new();
    terminal.write(
        "json_arch/shop_arch.json",
        r#"{"arch": "shop", "services": [
            {"name": "cart", "package": "service", "count": 1,
             "endpoints": [{"name": "list", "steps": [{"work": "1ms"}]}]},
            {"name": "www", "package": "denominator", "dependencies": ["cart"]}]}"#,
    );
    let words = |line: &str| -> Vec<String> {
        let printed = terminal.succeed(&format!("__complete {line}"));
        let words = printed
            .lines()
            .map(|line| line.split('\t').next().unwrap_or(""));
        words.map(str::to_owned).collect()
    };
    assert_eq!(words("-a sh"), ["shop"]);
    assert_eq!(words("--arch=lam"), ["--arch=lamp"]);
    assert_eq!(words("capacity -a shop --slo cart."), ["cart.list"]);
    assert_eq!(
        words("capacity -a shop --find instances:c"),
        ["instances:cart"]
    );
    assert_eq!(
        words("compare shop --set services.cart.cou"),
        ["services.cart.count="]
    );
    assert_eq!(
        words("compare shop --set=services.cart.count="),
        ["--set=services.cart.count=1"]
    );
    assert_eq!(words("gate sho"), ["shop"]);
    assert_eq!(words("gate shop --base lam"), ["lamp"]);
    assert_eq!(words("gate shop --set services.c"), ["services.cart."]);
    assert_eq!(words("gate shop --slo cart"), ["cart.list"]);
    assert_eq!(words("why sho"), ["shop"]);
    assert_eq!(words("why shop --of c"), ["cart.list"]);
    assert_eq!(words("why shop --of p9"), ["p95", "p99"]);
    assert_eq!(words("stability sho"), ["shop"]);
    assert_eq!(words("stability shop --fault c"), ["cart="]);
    assert_eq!(words("patch sho"), ["shop"]);
    assert_eq!(words("hunt --arch=sho"), ["--arch=shop"]);
    assert_eq!(words("hunt -a shop --budget e"), ["errors"]);
    assert_eq!(words("maelstrom -w ech"), ["echo"]);
    assert_eq!(words("maelstrom --latency-dist u"), ["uniform"]);
    assert_eq!(words("maelstrom --topology tree4"), ["tree4"]);
    assert_eq!(words("check --model regi"), ["register"]);
    assert_eq!(words("host r"), ["run"]);
    assert!(words("import sho").is_empty());
    assert!(words("compare no-such-architecture --set ser").is_empty());
    assert!(words("--seed 4 -j").is_empty());
}
