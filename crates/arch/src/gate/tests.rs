//! Prepared changes of a shop with known verdicts: some break an objective, some are harmless, and some cannot be
//! decided by a small number of runs.

use super::*;
use crate::setup::Setup;
use crate::topology::Scale;
use crate::variant::{DefinitionText, Setting};
use std::num::NonZeroUsize;

/// Web servers, a cart and a database, each used to at most a third of its capacity.
const SHOP: &str = r#"{"arch": "shop", "services": [
    {"name": "db", "package": "service", "count": 1, "regions": 1, "concurrency": 4,
     "endpoints": [{"name": "query", "steps": [{"work": {"exponential": "10ms"}}]}]},
    {"name": "cart", "package": "service", "count": 2, "regions": 1, "concurrency": 4,
     "calls": {"db": {"timeout": "500ms", "retries": {"most": 2, "backoff": "5ms"}}},
     "endpoints": [{"name": "list", "steps": [{"work": {"exponential": "8ms"}}, {"call": "db"}]},
                   {"name": "rare", "steps": [{"work": "1ms"}]}]},
    {"name": "web", "package": "service", "count": 2, "regions": 1, "processors": 0.5,
     "endpoints": [{"name": "page", "steps": [{"work": {"exponential": "2ms"}}, {"call": "cart"}]}]},
    {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["web"]}],
    "load": {"www": {"rate": 100, "arrivals": "poisson", "requests": {"web.page": 1}}}}"#;

fn shop() -> DefinitionText {
    DefinitionText::new(SHOP, "shop.json")
}

fn topology(fields: &[(&str, &str)]) -> Topology {
    let fields: Vec<Setting> = (fields.iter())
        .map(|(path, value)| Setting {
            path: (*path).to_owned(),
            value: Setting::value(value),
        })
        .collect();
    let setup = Setup {
        scale: Scale::default(),
        duration: Duration::from_secs(10),
        warm_up: None,
        load: None,
        sized: false,
    };
    setup.topology(&shop(), &fields, None).unwrap()
}

fn judged(fields: &[(&str, &str)], slos: &[&str], most_runs: usize) -> GateResult {
    let rules = GateRules {
        most_runs,
        ..GateRules::new(slos.iter().map(|slo| slo.parse().unwrap()).collect())
    };
    let (changed, base) = (topology(fields), topology(&[]));
    let config = Config::default();
    let result = gate(
        &config,
        &changed,
        Some(&base),
        &Plan::default(),
        &rules,
        |_| {},
    );
    result.unwrap().unwrap()
}

/// The effect of a change, and the expected verdict.
enum Change {
    /// The change breaks an objective, and the reason contains this text.
    Breaks(&'static str),
    Harmless,
    /// The objective's limit is the true value.
    AtLimit(&'static str),
}
use Change::{AtLimit, Breaks, Harmless};

/// The changes: a field, its value and the effect. `cargo test` judges the first [`QUICK`] of them.
const CHANGES: [(&str, &str, Change); 20] = [
    ("services.db.concurrency", "1", Breaks("db takes")),
    ("services.web.count", "3", Harmless),
    ("services.web.error_rate", "0.01", AtLimit("errors")),
    ("services.cart.error_rate", "0.05", Breaks("errors is")),
    ("services.cart.calls.db.retries.most", "5", Harmless),
    ("services.cart.calls.db.timeout", "800ms", AtLimit("p99")),
    ("services.web.processors", "0.1", Breaks("web takes")),
    (
        "services.db.endpoints.query.steps.0.work",
        r#"{"exponential": "60ms"}"#,
        Breaks("db takes"),
    ),
    (
        "services.cart.calls.db",
        r#"{"timeout": "8ms"}"#,
        Breaks("errors is"),
    ),
    ("load.www.rate", "450", Breaks("errors is")),
    (
        "services.db.faults",
        r#"[{"kind": "kill", "at": "5s", "for": "2s"}]"#,
        Breaks("errors is"),
    ),
    (
        "services.web.rate_limit",
        r#"{"rate": 40}"#,
        Breaks("web fails, refuses or gives up"),
    ),
    (
        "links",
        r#"[{"to": {"service": "db"}, "at": "0s", "delay": "60ms"}]"#,
        Breaks("db takes"),
    ),
    (
        "services.cart.calls.db.connections",
        r#"{"most": 1, "waiting": 0}"#,
        Breaks("cart fails, refuses or gives up"),
    ),
    ("services.db.concurrency", "8", Harmless),
    ("services.cart.count", "4", Harmless),
    ("services.cart.calls.db.bulkhead", "100", Harmless),
    ("services.cart.concurrency", "2", Harmless),
    ("services.db.concurrency", "3", AtLimit("p95")),
    ("services.web.count", "4", AtLimit("mean")),
];

/// The number of changes that `cargo test` judges; all of them if `CORSAIR_GATE` is set.
const QUICK: usize = 6;

// Guarantee: arch-21.
#[test]
fn prepared_changes_are_judged_right() {
    let count = match std::env::var_os("CORSAIR_GATE") {
        Some(_) => CHANGES.len(),
        None => QUICK,
    };
    let mut wrong = Vec::new();
    for (path, value, change) in &CHANGES[..count] {
        let fields = [(*path, *value)];
        let result = match change {
            Breaks(_) | Harmless => judged(&fields, &["p99 < 150ms", "errors < 1%"], 32),
            AtLimit("errors") => judged(&fields, &["errors < 1%"], 8),
            AtLimit(measure) => {
                // The true value is measured with seeds that the gate does not use.
                let slo = format!("{measure} < {}", true_value(&fields, measure));
                judged(&fields, &[&slo], 8)
            }
        };
        let said = reason(&result, Some("main.json"));
        let is_right = match change {
            Breaks(names) => {
                result.verdict == Verdict::Missed
                    && said.starts_with("fails: ")
                    && said.contains(names)
            }
            Harmless => result.verdict == Verdict::Met && said.starts_with("passes: "),
            AtLimit(_) => {
                matches!(result.verdict, Verdict::Undecided(_))
                    && said.contains("more runs decide")
                        | said.contains("further runs would be needed")
            }
        };
        if !is_right || said.contains('\n') {
            wrong.push(format!("{path}={value}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns an objective's true value as a limit, measured with seeds that the gate does not use.
fn true_value(fields: &[(&str, &str)], measure: &str) -> String {
    let slo: Slo = format!("{measure} < 10s").parse().unwrap();
    let config = Config {
        seed: 1_000_000,
        ..Config::default()
    };
    let rules = GateRules::new(vec![slo]);
    let topology = topology(fields);
    let plan = extended(&config, &topology, &Plan::default(), &rules);
    let plan = plan.unwrap().unwrap();
    let values = in_parallel(2, 48, |number| {
        let seed = config.seed + number as u64;
        let run = measure_run(&config, &topology, &plan, &rules, seed);
        run.observed[0].value
    });
    let mean = Estimate::of(&values).mean;
    format!("{}us", (mean * 1e6).round())
}

fn measure_run(
    config: &Config,
    topology: &Topology,
    plan: &Plan,
    rules: &GateRules,
    seed: u64,
) -> Measured {
    measure(config, topology, plan, rules, seed)
        .unwrap()
        .unwrap()
}

#[test]
fn the_result_does_not_depend_on_the_number_of_workers() {
    let rules = GateRules::new(vec!["p99 < 150ms".parse().unwrap()]);
    let shop = topology(&[]);
    let run = |workers: usize| {
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            ..Config::default()
        };
        let result = gate(
            &config,
            &shop,
            Some(&shop),
            &Plan::default(),
            &rules,
            |_| {},
        );
        let result = result.unwrap().unwrap();
        // Equal seeds give equal runs, so a system compared with itself shows no difference.
        assert_eq!(result.objectives[0].difference.map(|d| d.mean), Some(0.0));
        format!("{:?}", result.objectives)
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let shop = topology(&[]);
    let refused = |slos: &[&str], most_runs: usize| {
        let rules = GateRules {
            most_runs,
            ..GateRules::new(slos.iter().map(|slo| slo.parse().unwrap()).collect())
        };
        let config = Config::default();
        let result = gate(&config, &shop, None, &Plan::default(), &rules, |_| {});
        result.map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(&[], 8).starts_with("there is no objective"));
    assert!(refused(&["p99 < 1s"], 1).starts_with("1 runs are not possible"));
    assert!(refused(&["pag p99 < 1s"], 8).contains("the load has no kind of request 'pag'"));
}

#[test]
fn a_kind_that_did_not_come_in_is_undecided() {
    let fields = [
        (
            "load.www.requests",
            r#"{"web.page": 1, "web.slow": 0.0000001}"#,
        ),
        (
            "services.web.endpoints",
            r#"[{"name": "page", "steps": [{"call": "cart"}]}, {"name": "slow", "steps": [{"work": "1s"}]}]"#,
        ),
    ];
    let rules = GateRules {
        is_fixed: true,
        most_runs: 4,
        ..GateRules::new(vec!["web.slow p99 < 1ms".parse().unwrap()])
    };
    let config = Config::default();
    let result = gate(
        &config,
        &topology(&fields),
        None,
        &Plan::default(),
        &rules,
        |_| {},
    );
    let result = result.unwrap().unwrap();
    assert_eq!(result.verdict, Verdict::Undecided(None));
    let said = reason(&result, None);
    assert!(
        said.contains("has no requests") && said.contains("make runs longer"),
        "{said}"
    );
}

#[test]
fn the_report_has_the_verdict_the_change_and_the_services() {
    let result = judged(&[("services.db.concurrency", "1")], &["p99 < 150ms"], 32);
    let field = FieldChange {
        path: "services.db.concurrency".to_owned(),
        before: Some("4".to_owned()),
        after: Some("1".to_owned()),
    };
    let report = GateReport {
        result: &result,
        base: Some("main.json"),
        changes: &[field],
        notes: &["a|b".to_owned()],
        pictures: Some(["o.svg", "s.svg"]),
        command: "corsair gate shop.json",
    };
    let text = report.markdown();
    for part in [
        "## corsair gate: fails",
        "**missed**",
        "| `services.db.concurrency` | 4 | 1 |",
        "![Time by service](s.svg)",
        "- a\\|b",
        "main.json has",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    #[cfg(feature = "pictures")]
    for svg in [
        crate::picture::objectives(&result),
        crate::picture::services(&result),
    ] {
        let svg = svg.unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    }
}
