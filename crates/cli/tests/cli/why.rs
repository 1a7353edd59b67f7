//! `corsair why` and `corsair stability`: explanations and maps.

use crate::terminal::{Terminal, picture};

const SHOP: &str = r#"{"arch": "shop", "services": [
    {"name": "db", "package": "service", "count": 1, "regions": 1, "concurrency": 1,
     "endpoints": [{"name": "query", "steps": [{"work": {"exponential": "7ms"}}]}]},
    {"name": "web", "package": "service", "count": 2, "regions": 1,
     "endpoints": [{"name": "page", "steps": [{"work": {"exponential": "1ms"}}, {"call": "db"}]}]},
    {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["web"]}],
    "load": {"www": {"rate": 100, "arrivals": "poisson", "requests": {"web.page": 1}}}}"#;

#[test]
fn the_bottleneck_and_the_change_that_helps_are_named() {
    let terminal = Terminal::new();
    terminal.write("shop.json", SHOP);
    let said = terminal.succeed("why shop.json --seeds 4");
    let second = said.lines().nth(1).unwrap_or_default();
    assert!(second.contains("db") && second.contains("queue"), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("corsair: db: ") && last.contains("helps most"),
        "{said}"
    );
    let json = terminal.json("why shop.json --seeds 2 --changes 1 --of mean --format json");
    assert_eq!(json["contributions"][0]["part"], "queue", "{json}");
}

#[test]
fn a_map_is_printed_and_written() {
    let terminal = Terminal::new();
    terminal.write("shop.json", SHOP);
    let said = terminal.succeed(
        "stability shop.json --loads 50,300 --lengths 0s,1s --after 10s --seeds 1 --slo p99<500ms --out m.csv --plot m.svg",
    );
    assert!(
        said.contains("| length of the trigger | 50/s | 300/s |"),
        "{said}"
    );
    assert!(said.contains(" S ") && said.contains(" D |"), "{said}");
    assert!(terminal.read("m.csv").starts_with("load,value,class,"));
    picture(&terminal, "m.svg");
    let json = terminal.json(
        "stability shop.json --loads 50 --set services.db.concurrency=1,2 --fault db=pause --after 10s --seeds 1 --format json",
    );
    assert_eq!(json["points"].as_array().map(Vec::len), Some(2), "{json}");
}

#[test]
fn what_cannot_be_explained_or_mapped_is_refused() {
    let terminal = Terminal::new();
    terminal.write("shop.json", SHOP);
    for (line, part) in [
        ("why nowhere", "nowhere"),
        ("why fsm", "fsm has no fields"),
        ("why shop.json --of errors", "is not a percentile or mean"),
        ("why shop.json --of p101", "--of"),
        ("why shop.json --seeds 1", "1 seeds are not possible"),
        ("stability shop.json --loads 1", "a map has two axes"),
        (
            "stability shop.json --loads x --lengths 1s",
            "'x' is not a number",
        ),
        (
            "stability shop.json --loads NaN --lengths 1s",
            "out of range",
        ),
        (
            "stability shop.json --loads 1..1000000 --lengths 1s",
            "not possible",
        ),
        (
            "stability shop.json --loads 1 --lengths 1s --fault db",
            "is not a fault",
        ),
        (
            "stability shop.json --loads 1 --lengths 1s --fault web2=kill",
            "there is no service 'web2'",
        ),
        (
            "stability shop.json --loads 1 --set services.dp.count=1",
            "did you mean db?",
        ),
        (
            "stability shop.json --loads 1 --lengths 1s --slo mean<1s",
            "each interval",
        ),
    ] {
        let output = terminal.run(line);
        assert_eq!(output.code, Some(2), "{line}: {}", output.stdout);
        assert!(output.stderr.contains(part), "{line}: {}", output.stderr);
    }
}
