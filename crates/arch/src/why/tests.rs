//! Systems with one planted bottleneck each, which the explanation must name.

use super::*;
use crate::variant::Setting;

/// A shop in which nothing waits for long: the bottlenecks are planted in it.
const SHOP: &str = r#"{"arch": "shop", "services": [
    {"name": "db", "package": "service", "count": 1, "regions": 1, "concurrency": 16,
     "endpoints": [{"name": "query", "steps": [{"work": {"exponential": "2ms"}}]}]},
    {"name": "cart", "package": "service", "count": 2, "regions": 1, "concurrency": 16,
     "calls": {"db": {"timeout": "1s"}},
     "endpoints": [{"name": "list", "steps": [{"work": {"exponential": "2ms"}}, {"call": "db"}]}]},
    {"name": "stock", "package": "service", "count": 2, "regions": 1, "processors": 2,
     "endpoints": [{"name": "count", "steps": [{"work": {"exponential": "2ms"}}]}]},
    {"name": "mail", "package": "service", "count": 1, "regions": 1,
     "endpoints": [{"name": "send", "steps": [{"work": {"exponential": "1ms"}}]}]},
    {"name": "web", "package": "service", "count": 2, "regions": 1, "processors": 4,
     "endpoints": [{"name": "page", "steps": [{"work": {"exponential": "1ms"}},
        {"parallel": [[{"call": "cart"}], [{"call": "stock"}]]}, {"call": "mail"}]}]},
    {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["web"]}],
    "load": {"www": {"rate": 100, "arrivals": "poisson", "requests": {"web.page": 1}}}}"#;

/// A planted bottleneck: fields and values, the service and part that the explanation names first, and a word of the
/// change that helps most.
type Planted = (
    &'static [(&'static str, &'static str)],
    &'static str,
    Part,
    &'static str,
);

const PLANTED: [Planted; 20] = [
    (
        &[
            ("services.db.concurrency", "1"),
            (
                "services.db.endpoints.query.steps.0.work",
                r#"{"exponential": "7ms"}"#,
            ),
        ],
        "db",
        Part::Queue,
        "db: ",
    ),
    (
        &[("services.stock.processors", "0.25")],
        "stock",
        Part::Processors,
        "stock: ",
    ),
    (
        &[(
            "services.mail.endpoints.send.steps.0.work",
            r#"{"exponential": "40ms"}"#,
        )],
        "mail",
        Part::Work,
        "mail: half the work",
    ),
    (
        &[(
            "services.mail.faults",
            r#"[{"kind": "slow", "at": "0s", "factor": 60}]"#,
        )],
        "mail",
        Part::Slowdown,
        "mail: no slow fault",
    ),
    (
        &[
            ("services.cart.calls.db.connections", r#"{"most": 1}"#),
            (
                "services.db.endpoints.query.steps.0.work",
                r#"{"exponential": "11ms"}"#,
            ),
        ],
        "cart",
        Part::BeforeCall,
        "db: half the work",
    ),
    (
        &[("services.mail.latency", r#"{"exponential": "30ms"}"#)],
        "mail",
        Part::Network,
        "mail: half the latency",
    ),
    (
        &[
            ("services.db.error_rate", "0.2"),
            (
                "services.cart.calls.db",
                r#"{"retries": {"most": 5, "backoff": "60ms"}}"#,
            ),
        ],
        "cart",
        Part::BeforeCall,
        "",
    ),
    (
        &[(
            "links",
            r#"[{"to": {"service": "stock"}, "at": "0s", "delay": "80ms"}]"#,
        )],
        "stock",
        Part::Network,
        "no fault 1 of a link",
    ),
    (
        &[(
            "services.cart.endpoints.list.steps.0.work",
            r#"{"lognormal": {"median": "20ms", "sigma": 0.6}}"#,
        )],
        "cart",
        Part::Work,
        "cart: half the work",
    ),
    (
        &[("services.web.processors", "0.14")],
        "web",
        Part::Processors,
        "web: ",
    ),
    (
        &[
            ("services.cart.concurrency", "1"),
            (
                "services.cart.endpoints.list.steps.0.work",
                r#"{"exponential": "9ms"}"#,
            ),
        ],
        "cart",
        Part::Queue,
        "cart: ",
    ),
    (
        &[
            (
                "services.stock.endpoints.count.steps.0.work",
                r#"{"exponential": "50ms"}"#,
            ),
            ("services.stock.processors", "64"),
        ],
        "stock",
        Part::Work,
        "stock: half the work",
    ),
    (
        &[
            (
                "services.db.faults",
                r#"[{"kind": "pause", "at": "3s", "for": "400ms"}]"#,
            ),
            ("services.cart.calls.db", "{}"),
        ],
        "db",
        Part::Queue,
        "db: no pause fault",
    ),
    (
        &[
            (
                "services.db.endpoints.query.steps.0.work",
                r#"{"pareto": {"least": "1ms", "shape": 1.3}}"#,
            ),
            ("services.db.concurrency", "64"),
        ],
        "db",
        Part::Work,
        "db: half the work",
    ),
    (
        &[
            ("services.cart.calls.db.timeout", "50ms"),
            ("services.cart.calls.db.retries", r#"{"most": 4}"#),
            (
                "links",
                r#"[{"to": {"service": "db"}, "at": "0s", "loss": 0.2}]"#,
            ),
        ],
        "cart",
        Part::TimeOut,
        "",
    ),
    (
        &[
            ("services.mail.concurrency", "1"),
            (
                "services.mail.endpoints.send.steps.0.work",
                r#"{"exponential": "8ms"}"#,
            ),
        ],
        "mail",
        Part::Queue,
        "mail: ",
    ),
    (
        &[
            (
                "services.web.endpoints.page.steps.0.work",
                r#"{"exponential": "25ms"}"#,
            ),
            ("services.web.processors", "64"),
        ],
        "web",
        Part::Work,
        "web: half the work",
    ),
    (
        &[
            ("services.stock.count", "1"),
            ("services.stock.processors", "0.24"),
        ],
        "stock",
        Part::Processors,
        "stock: ",
    ),
    (
        &[("services.db.latency", r#"{"exponential": "25ms"}"#)],
        "db",
        Part::Network,
        "db: half the latency",
    ),
    (
        &[(
            "services.cart.faults",
            r#"[{"kind": "slow", "at": "0s", "factor": 25}]"#,
        )],
        "cart",
        Part::Slowdown,
        "cart: no slow fault",
    ),
];

/// The number of systems that `cargo test` explains; all of them if `CORSAIR_GATE` is set.
const QUICK: usize = 5;

fn planted(fields: &[(&str, &str)]) -> DefinitionText {
    let fields: Vec<Setting> = (fields.iter())
        .map(|(path, value)| Setting {
            path: (*path).to_owned(),
            value: Setting::value(value),
        })
        .collect();
    let checked = DefinitionText::new(SHOP, "shop.json")
        .with(&fields)
        .unwrap();
    DefinitionText::new(checked.definition().to_text(), "shop.json")
}

// Guarantee: arch-22.
#[test]
fn planted_bottlenecks_are_named() {
    let count = match std::env::var_os("CORSAIR_GATE") {
        Some(_) => PLANTED.len(),
        None => QUICK,
    };
    let mut wrong = Vec::new();
    for (fields, service, part, change) in &PLANTED[..count] {
        let rules = WhyRules {
            seeds: 5,
            ..WhyRules::new("p99".parse().unwrap())
        };
        let found = why(
            &Config::default(),
            &planted(fields),
            None,
            &Plan::default(),
            &rules,
        );
        let found = found.unwrap().unwrap();
        let first = &found.contributions[0];
        let best = found
            .best()
            .map(|best| best.what.as_str())
            .unwrap_or_default();
        let share: f64 = found.contributions.iter().map(|part| part.share).sum();
        let is_right = first.service == *service && first.part == *part && best.starts_with(change);
        if !is_right || (share - 1.0).abs() > 1e-6 {
            wrong.push(format!(
                "{fields:?}: {} {:?} {:.2}, best {best}: {:?}",
                first.service,
                first.part,
                first.share,
                found
                    .remedies
                    .iter()
                    .map(|r| format!(
                        "{} {:.4} {:?}",
                        r.what, r.difference.mean, r.difference.within
                    ))
                    .collect::<Vec<_>>()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// Guarantee: arch-22.
#[test]
fn the_trail_changes_nothing_and_the_parts_add_up_to_the_response_time() {
    let text = planted(&[]);
    let rules = WhyRules {
        seeds: 2,
        remedies: 0,
        ..WhyRules::new("mean".parse().unwrap())
    };
    let run = |workers: usize| {
        let config = Config {
            workers: NonZeroUsize::new(workers).unwrap(),
            ..Config::default()
        };
        why(&config, &text, None, &Plan::default(), &rules)
            .unwrap()
            .unwrap()
    };
    let found = run(1);
    // All requests are explained, so that the explained mean equals the measured mean.
    assert!(
        (found.mean / found.value.mean - 1.0).abs() < 0.002,
        "{found:?}"
    );
    let sum: f64 = found
        .contributions
        .iter()
        .map(|part| part.seconds.mean)
        .sum();
    assert!(
        (sum / found.mean - 1.0).abs() < 0.01,
        "{sum} of {}",
        found.mean
    );
    assert_eq!(found.contributions, run(2).contributions);
    // Work that is not on the critical path does not count: of two calls at once, one.
    let work = |name: &str| {
        let mut parts = found.contributions.iter();
        parts
            .find(|one| one.service == name && one.part == Part::Work)
            .map_or(0.0, |one| one.seconds.mean)
    };
    assert!(work("stock") < 0.0015 && work("mail") > 0.0009, "{found:?}");
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let refused = |of: &str, seeds: usize, fields: &[(&str, &str)]| {
        let measure: Result<Measure, _> = of.parse();
        let Ok(measure) = measure else {
            return measure.unwrap_err().to_string();
        };
        let rules = WhyRules {
            seeds,
            ..WhyRules::new(measure)
        };
        let text = planted(fields);
        why(&Config::default(), &text, None, &Plan::default(), &rules)
            .unwrap_err()
            .to_string()
    };
    assert!(refused("errors", 4, &[]).contains("is not a percentile or mean"));
    assert!(refused("p0", 4, &[]).contains("is not a percentile or mean"));
    assert!(refused("p99", 1, &[]).starts_with("1 seeds are not possible"));
    assert!(refused("pag p99", 4, &[]).contains("the load has no kind of request 'pag'"));
    assert!(refused("p99", 2, &[("load.www.rate", "0")]).contains("no run had a request"));
}
