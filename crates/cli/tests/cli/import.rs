//! `corsair import`: manifests become definitions that run, with and without traces.

use crate::terminal::Terminal;

/// The manifests of a service with a store, behind a load balancer.
pub const MANIFESTS: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2,
     "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
     "spec": {"containers": [{"name": "w", "image": "web:1", "env": [{"name": "DB_HOST", "value": "db:5432"}],
     "resources": {"limits": {"cpu": "500m"}}}]}}}},
    {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"replicas": 1,
     "selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}},
     "spec": {"containers": [{"name": "d", "image": "postgres:16"}]}}}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"},
     "spec": {"selector": {"app": "db"}, "ports": [{"port": 5432}]}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
     "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]}}]}"#;

const LOAD: &str = r#"{"scenarios": {"browse": {"executor": "constant-arrival-rate", "rate": 50, "timeUnit": "1s",
    "duration": "30s", "preAllocatedVUs": 10}}, "thresholds": {"http_req_duration": ["p(95)<200"]}}"#;

#[test]
fn manifests_and_a_load_become_a_definition_that_runs() {
    let terminal = Terminal::new();
    terminal.write("shop.json", MANIFESTS);
    terminal.write("load.json", LOAD);
    let said =
        terminal.succeed("import shop.json load.json --name shop --out json_arch/shop_arch.json");
    for line in [
        "imported 2 services with 2 calls from 5 documents",
        "web -> db: env DB_HOST",
        "outside -> web: Service spec.type LoadBalancer",
        "no effect     kubernetes Service spec.ports (2, first in db)",
        "--slo 'p95 < 200ms'",
    ] {
        assert!(said.contains(line), "{line} is missing:\n{said}");
    }
    let definition = terminal.read("json_arch/shop_arch.json");
    assert!(definition.contains("\"processors\":0.5"), "{definition}");
    let run = terminal.json("-a shop -d 2");
    assert_eq!(
        (run["services"].as_u64(), run["errors"].as_u64()),
        (Some(3), Some(0)),
        "{run}"
    );
}

#[test]
fn traces_give_the_times_and_manifests_the_replicas() {
    let terminal = Terminal::new();
    terminal.write("shop.json", MANIFESTS);
    terminal.write("load.json", LOAD);
    terminal.succeed("import shop.json load.json --name shop --out json_arch/shop_arch.json");
    terminal.succeed("-a shop -d 5 -c --flow-format otlp");
    terminal.write(
        "more.json",
        &MANIFESTS.replace("\"replicas\": 2", "\"replicas\": 5"),
    );
    terminal.write(
        "policy.json",
        r#"{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": "db"}, "spec": {
            "hosts": ["db"], "http": [{"route": [{"destination": {"host": "db"}}],
            "retries": {"attempts": 2, "perTryTimeout": "500ms"}}]}}"#,
    );
    let said = terminal.succeed(
        "import more.json policy.json --traces json_metrics/shop_flow.otlp.jsonl --name both --out json_arch/both_arch.json",
    );
    assert!(said.contains("imported 2 services with 2 calls"), "{said}");
    let definition = terminal.read("json_arch/both_arch.json");
    assert!(definition.contains("\"percentiles\""), "{definition}");
    assert!(definition.contains("\"timeout\":\"500ms\""), "{definition}");
    let run = terminal.json("-a both -d 1");
    assert_eq!(run["errors"].as_u64(), Some(0), "{run}");
    // Five instances, one instance, and the entry point.
    assert_eq!(run["instances"].as_u64(), Some(7), "{run}");
}

#[test]
fn what_cannot_be_imported_is_refused_in_a_sentence() {
    let terminal = Terminal::new();
    terminal.write("load.json", LOAD);
    terminal.write("broken.json", "{\"kind\": ");
    terminal.write("definition.json", "{\"arch\": \"x\", \"services\": []}");
    terminal.write(
        "wrong.json",
        &MANIFESTS.replace("\"replicas\": 2", "\"replicas\": \"two\""),
    );
    terminal.write("shop.json", MANIFESTS);
    for (command, part) in [
        ("import", "FILES"),
        ("import nowhere", "cannot read nowhere"),
        ("import load.json", "describe no service"),
        (
            "import broken.json",
            "broken.json is not valid JSON: EOF while parsing a value at line 1",
        ),
        ("import shop.json --traces nowhere", "nowhere"),
        ("import shop.json --rate -1", "-1"),
        (
            "import definition.json",
            "definition.json is a definition, not a manifest",
        ),
        ("import shop.json --name=", "--name"),
        ("import shop.json --call web", "'web' is not a call"),
        ("import shop.json --call web=dbb", "did you mean db?"),
        (
            "import wrong.json",
            "wrong.json: Deployment 'web': spec.replicas is 'two'",
        ),
        ("import shop.json --work soon", "soon"),
    ] {
        let output = terminal.run(command);
        assert_eq!(output.code, Some(2), "{command}: {}", output.stdout);
        assert!(output.stderr.contains(part), "{command}: {}", output.stderr);
    }
}
