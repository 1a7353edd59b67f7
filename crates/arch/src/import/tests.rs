//! Tests with well-known systems, their names and numbers, and with broken documents.

use super::*;
use std::fmt::Write as _;

/// Imports texts as files of these names.
fn import_texts(files: &[(&str, &str)]) -> Result<Imported, ImportError> {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        if !name.starts_with('.') {
            paths.push(path);
        }
    }
    import(&paths, &ImportOptions::default())
}

fn shop(files: &[(&str, &str)]) -> Imported {
    import_texts(files).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the calls as `from>to`; assumed calls have a question mark, calls without an answer have a tilde.
fn calls(imported: &Imported) -> Vec<String> {
    let shown = |call: &ImportedCall| {
        let arrow = if call.is_sent { "~" } else { ">" };
        let mark = if call.is_assumed { "?" } else { "" };
        format!("{}{arrow}{}{mark}", call.from, call.to)
    };
    imported.calls.iter().map(shown).collect()
}

fn service<'a>(imported: &'a Imported, name: &str) -> &'a crate::ServiceDefinition {
    let mut services = imported.definition.services.iter();
    services.find(|service| service.name == name).unwrap()
}

/// Returns a Deployment and its Service: name, labels, image, requested and allowed processors, environment.
fn deployment(
    name: &str,
    app: &str,
    version: &str,
    cpu: (&str, &str),
    env: &[(&str, &str)],
) -> String {
    let mut text = format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {app}}}}}\n  template:\n    metadata: {{labels: {{app: {app}, version: {version}}}}}\n    spec:\n      containers:\n      - name: server\n        image: {name}:1\n"
    );
    if !cpu.0.is_empty() {
        let (request, limit) = cpu;
        let _ = writeln!(
            text,
            "        resources: {{requests: {{cpu: {request}, memory: 64Mi}}, limits: {{cpu: {limit}, memory: 128Mi}}}}"
        );
    }
    if !env.is_empty() {
        text.push_str("        env:\n");
        for (name, value) in env {
            let _ = writeln!(text, "        - {{name: {name}, value: \"{value}\"}}");
        }
    }
    text
}

fn host(name: &str, app: &str, kind: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: {kind}, selector: {{app: {app}}}, ports: [{{port: 80}}]}}\n"
    )
}

/// Returns Online Boutique, with the processors and addresses of its release.
fn boutique() -> String {
    let address = |name: &str, port: u16| format!("{name}:{port}");
    let all = [
        (
            "frontend",
            ("100m", "200m"),
            vec![
                (
                    "PRODUCT_CATALOG_SERVICE_ADDR",
                    address("productcatalogservice", 3550),
                ),
                ("CURRENCY_SERVICE_ADDR", address("currencyservice", 7000)),
                ("CART_SERVICE_ADDR", address("cartservice", 7070)),
                (
                    "RECOMMENDATION_SERVICE_ADDR",
                    address("recommendationservice", 8080),
                ),
                ("SHIPPING_SERVICE_ADDR", address("shippingservice", 50051)),
                ("CHECKOUT_SERVICE_ADDR", address("checkoutservice", 5050)),
                ("AD_SERVICE_ADDR", address("adservice", 9555)),
                (
                    "SHOPPING_ASSISTANT_SERVICE_ADDR",
                    address("shoppingassistantservice", 80),
                ),
            ],
        ),
        (
            "checkoutservice",
            ("100m", "200m"),
            vec![
                (
                    "PRODUCT_CATALOG_SERVICE_ADDR",
                    address("productcatalogservice", 3550),
                ),
                ("SHIPPING_SERVICE_ADDR", address("shippingservice", 50051)),
                ("PAYMENT_SERVICE_ADDR", address("paymentservice", 50051)),
                ("EMAIL_SERVICE_ADDR", address("emailservice", 5000)),
                ("CURRENCY_SERVICE_ADDR", address("currencyservice", 7000)),
                ("CART_SERVICE_ADDR", address("cartservice", 7070)),
            ],
        ),
        (
            "recommendationservice",
            ("100m", "200m"),
            vec![(
                "PRODUCT_CATALOG_SERVICE_ADDR",
                address("productcatalogservice", 3550),
            )],
        ),
        (
            "cartservice",
            ("200m", "300m"),
            vec![("REDIS_ADDR", address("redis-cart", 6379))],
        ),
        ("redis-cart", ("70m", "125m"), vec![]),
        ("adservice", ("200m", "300m"), vec![]),
        ("currencyservice", ("100m", "200m"), vec![]),
        ("emailservice", ("100m", "200m"), vec![]),
        ("paymentservice", ("100m", "200m"), vec![]),
        ("productcatalogservice", ("100m", "200m"), vec![]),
        ("shippingservice", ("100m", "200m"), vec![]),
        (
            "loadgenerator",
            ("300m", "500m"),
            vec![("FRONTEND_ADDR", address("frontend", 80))],
        ),
    ];
    let mut text = String::new();
    for (name, cpu, env) in &all {
        let env: Vec<(&str, &str)> = env
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        text += &deployment(name, name, "v1", *cpu, &env);
        text += &host(name, name, "ClusterIP");
    }
    text + &host("frontend-external", "frontend", "LoadBalancer")
}

// Guarantee: arch-19.
#[test]
fn online_boutique_has_the_graph_that_its_addresses_say() {
    let imported = shop(&[("boutique.yaml", &boutique())]);
    assert_eq!(
        calls(&imported),
        [
            "outside>frontend",
            "frontend>productcatalogservice",
            "frontend>currencyservice",
            "frontend>cartservice",
            "frontend>recommendationservice",
            "frontend>shippingservice",
            "frontend>checkoutservice",
            "frontend>adservice",
            "checkoutservice>productcatalogservice",
            "checkoutservice>shippingservice",
            "checkoutservice>paymentservice",
            "checkoutservice>emailservice",
            "checkoutservice>currencyservice",
            "checkoutservice>cartservice",
            "recommendationservice>productcatalogservice",
            "cartservice>redis-cart",
        ]
    );
    assert_eq!(service(&imported, "redis-cart").processors, Some(0.125));
    assert_eq!(service(&imported, "cartservice").count, 1);
    let left_out = imported.left_out.join("\n");
    assert!(
        left_out.contains("names 'shoppingassistantservice', which no document describes"),
        "{left_out}"
    );
    assert!(
        left_out.contains("'loadgenerator' makes load"),
        "{left_out}"
    );
    let memory = |field: &&Unused| field.field.ends_with("containers.resources");
    assert_eq!(
        imported.unused.iter().find(memory).map(|field| field.times),
        Some(24)
    );
    // The imported definition can be run.
    let checked = read_text(&imported.definition.to_text(), "x").unwrap();
    let topology = crate::Topology::new(&checked, crate::Scale::default()).unwrap();
    let plan = crate::Plan {
        duration: Duration::from_secs(5),
        ..crate::Plan::default()
    };
    let config = corsair::Config::default();
    let (_, totals) =
        crate::simulate(corsair::Executor::Virtual, &config, topology, &plan).unwrap();
    let www = &totals.entries["www"];
    assert!(www.requests > 150 && www.errors == 0, "{}", www.requests);
}

#[test]
fn bookinfo_has_versions_with_weights_and_policies_of_its_mesh() {
    let mut text = String::new();
    for (name, app, version) in [
        ("details-v1", "details", "v1"),
        ("ratings-v1", "ratings", "v1"),
        ("reviews-v1", "reviews", "v1"),
        ("reviews-v2", "reviews", "v2"),
        ("reviews-v3", "reviews", "v3"),
        ("productpage-v1", "productpage", "v1"),
    ] {
        let env: &[(&str, &str)] = match app {
            "productpage" => &[
                ("REVIEWS_HOST", "reviews.default.svc.cluster.local"),
                ("DETAILS_URL", "http://details:9080"),
            ],
            _ => &[],
        };
        text += &deployment(name, app, version, ("", ""), env);
    }
    for app in ["details", "ratings", "reviews", "productpage"] {
        text += &host(app, app, "ClusterIP");
    }
    let mesh = "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: bookinfo}
spec:
  hosts: ['*']
  gateways: [bookinfo-gateway]
  http: [{match: [{uri: {exact: /productpage}}], route: [{destination: {host: productpage, port: {number: 9080}}}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec:
  hosts: [reviews]
  http:
  - route:
    - {destination: {host: reviews, subset: v1}, weight: 90}
    - {destination: {host: reviews, subset: v2}, weight: 10}
    timeout: 2s
    retries: {attempts: 3, perTryTimeout: 500ms, retryOn: 5xx}
    mirror: {host: reviews, subset: v3}
    mirrorPercentage: {value: 50}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews}
spec:
  host: reviews
  trafficPolicy:
    loadBalancer: {simple: LEAST_REQUEST}
    connectionPool: {tcp: {maxConnections: 100, connectTimeout: 30ms}, http: {http1MaxPendingRequests: 10, http2MaxRequests: 1000}}
    outlierDetection: {consecutive5xxErrors: 7, interval: 5m, baseEjectionTime: 15m, maxEjectionPercent: 20}
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
  - {name: v3, labels: {version: v3}}
";
    let imported = shop(&[("bookinfo.yaml", &text), ("mesh.yaml", mesh)]);
    assert_eq!(
        calls(&imported),
        [
            "outside>productpage-v1",
            "productpage-v1>reviews-v1",
            "productpage-v1>reviews-v2",
            "productpage-v1>details-v1",
            "productpage-v1~reviews-v3",
            "productpage-v1>ratings-v1?",
        ]
    );
    let page = serde_json::to_value(service(&imported, "productpage-v1")).unwrap();
    let steps = &page["endpoints"][0]["steps"];
    assert_eq!(
        steps[1]["call"],
        serde_json::json!({"reviews-v1": 90.0, "reviews-v2": 10.0})
    );
    assert_eq!(
        (&steps[3]["send"], &steps[3]["probability"]),
        (&"reviews-v3".into(), &0.5.into())
    );
    assert_eq!(
        page["calls"]["reviews-v1"],
        serde_json::json!({
            "balance": "two_choices", "timeout": "500ms", "deadline": "2s",
            "connections": {"most": 100, "waiting": 10}, "bulkhead": 1000,
            "retries": {"most": 3, "backoff": "25ms", "limit": "250ms", "jitter": 1.0},
            "ejection": {"failures": 7, "for": "900s", "most": 0.2}
        })
    );
    let unused: Vec<&str> = imported
        .unused
        .iter()
        .filter(|f| f.kind != "Deployment")
        .map(|f| f.field.as_str())
        .collect();
    assert!(unused.contains(&"spec.http.retries.retryOn"), "{unused:?}");
    assert!(
        unused.contains(&"spec.trafficPolicy.connectionPool.tcp.connectTimeout"),
        "{unused:?}"
    );
    assert!(unused.contains(&"spec.http.match"), "{unused:?}");
}

#[test]
fn compose_files_have_limits_variables_and_calls_by_names_alone() {
    let text = "
services:
  nginx-thrift: {image: openresty-thrift, ports: ['8080:8080'], depends_on: [jaeger]}
  user-service: {image: social, deploy: {replicas: 4, resources: {limits: {cpus: '1.5', memory: 1G}}}}
  user-mongodb: {image: 'mongo:4.4.6'}
  user-timeline-service: {image: social, environment: [TIMELINE_ADDR, 'QUEUE=kafka:9092'], command: run --x}
  user-timeline-redis: {image: redis}
  post-storage-service: {image: social, ports: ['10002:9090'], restart: always}
  kafka: {image: apache/kafka}
  mail: {image: mailer, environment: {KAFKA_ADDR: 'kafka:9092'}}
  jaeger: {image: 'jaegertracing/all-in-one', ports: ['16686:16686']}
";
    let imported = shop(&[
        (
            ".env",
            "PORT=6000\nTIMELINE_ADDR=post-storage-service:${PORT}\n",
        ),
        ("compose.yml", text),
    ]);
    let mut found = calls(&imported);
    found.sort();
    assert_eq!(
        found,
        [
            "kafka~mail?",
            "kafka~user-timeline-service?",
            "nginx-thrift>user-service?",
            "nginx-thrift~jaeger",
            "outside>nginx-thrift",
            "user-service>user-mongodb?",
            "user-timeline-service>post-storage-service",
            "user-timeline-service>user-timeline-redis?",
        ]
    );
    let user = service(&imported, "user-service");
    assert_eq!((user.count, user.processors), (4, Some(1.5)));
    assert_eq!(service(&imported, "user-mongodb").count, 1);
    let shown: Vec<&str> = imported
        .unused
        .iter()
        .map(|field| field.field.as_str())
        .collect();
    assert_eq!(shown, ["services.*.deploy.resources", "services.*.restart"]);
}

#[test]
fn autoscalers_probes_and_configuration_maps_have_their_effect() {
    let text = deployment("api", "api", "v1", ("250m", "1"), &[]).replace(
        "        image: api:1\n",
        "        image: api:1\n        envFrom: [{configMapRef: {name: conf}}]\n        readinessProbe: {periodSeconds: 5, failureThreshold: 2, initialDelaySeconds: 8, httpGet: {path: /}}\n",
    );
    let rest = "
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: store}, spec: {replicas: 3, serviceName: store, template: {spec: {containers: [{name: s, image: postgres}]}}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {DB_URL: 'postgres://u:p@store-0.store/shop'}}
- {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: api}, spec: {scaleTargetRef: {name: api}, minReplicas: 2, maxReplicas: 9, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}], behavior: {scaleDown: {stabilizationWindowSeconds: 60}}}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: api}, spec: {minAvailable: 1, selector: {matchLabels: {app: api}}}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: api}}
";
    let imported = shop(&[("all.yaml", &(text + rest))]);
    assert_eq!(calls(&imported), ["outside>api?", "api>store"]);
    let api = serde_json::to_value(service(&imported, "api")).unwrap();
    assert_eq!(
        api["autoscaler"],
        serde_json::json!({"target": 0.2, "least": 2, "most": 9, "delay": "8s", "calm": "60s"})
    );
    assert_eq!(
        api["health_check"],
        serde_json::json!({"every": "5s", "failures": 2, "successes": 1})
    );
    assert_eq!(
        (
            service(&imported, "api").count,
            service(&imported, "store").count
        ),
        (2, 3)
    );
    let left_out = imported.left_out.join("\n");
    assert!(
        left_out.contains("PodDisruptionBudget of 'api' (keep 1 available)"),
        "{left_out}"
    );
    assert!(
        left_out.contains("1 documents of kind ServiceAccount"),
        "{left_out}"
    );
}

#[test]
fn envoy_is_the_caller_of_its_clusters() {
    let proxy = r#"{"node": {"cluster": "edge"}, "admin": {"address": 1}, "static_resources": {
      "listeners": [{"filter_chains": [{"filters": [{"typed_config": {"route_config": {"virtual_hosts": [{"routes": [
        {"match": {"prefix": "/"}, "route": {"cluster": "web", "timeout": "1s", "retry_policy": {"num_retries": 2, "per_try_timeout": "0.3s"}}}]}]}}}]}]}],
      "clusters": [{"name": "web", "lb_policy": "ROUND_ROBIN", "connect_timeout": "5s",
        "load_assignment": {"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "web-app"}}}}]}]},
        "circuit_breakers": {"thresholds": [{"max_connections": 7, "max_requests": 9, "retry_budget": {"budget_percent": {"value": 25}}}]}}]}}"#;
    let imported = shop(&[
        ("envoy.json", proxy),
        ("compose.yml", "services: {web-app: {image: x}}"),
    ]);
    assert_eq!(calls(&imported), ["outside>edge", "edge>web-app"]);
    let edge = serde_json::to_value(service(&imported, "edge")).unwrap();
    assert_eq!(
        edge["calls"]["web-app"],
        serde_json::json!({"balance": "round_robin", "timeout": "300ms", "deadline": "1s", "bulkhead": 9,
            "connections": {"most": 7},
            "retries": {"most": 2, "backoff": "25ms", "limit": "250ms", "jitter": 1.0, "budget": {"share": 0.25, "burst": 3.0}}})
    );
    assert!(
        imported
            .unused
            .iter()
            .any(|field| field.field == "static_resources.clusters.connect_timeout")
    );
}

#[test]
fn scenarios_of_k6_are_entry_points_and_thresholds_are_objectives() {
    let script = "export const options = { scenarios: {
        open: { executor: 'constant-arrival-rate', rate: 600, timeUnit: '1m', duration: '30s' },
        ramp: { executor: 'ramping-arrival-rate', startRate: 0, stages: [{ target: 100, duration: '10s' }] },
        people: { executor: 'ramping-vus', stages: [{ target: 25, duration: '1m' }], exec: 'buy' } },
        thresholds: { http_req_duration: ['p(95)<200', { threshold: 'avg<50' }], http_req_failed: ['rate<0.01'] } };";
    let imported = shop(&[
        ("compose.yml", "services: {web: {image: x}}"),
        ("load.js", script),
    ]);
    let load = serde_json::to_value(&imported.definition.load).unwrap();
    assert_eq!(
        load,
        serde_json::json!({
            "www-open": {"rate": [{"at": "0s", "rate": 10.0}, {"at": "30s", "rate": 0.0}], "requests": {"web.request": 1.0}},
            "www-ramp": {"rate": [{"at": "0s", "rate": 0.0}, {"at": "9999999us", "rate": 100.0, "ramp": true}, {"at": "10s", "rate": 0.0}], "requests": {"web.request": 1.0}},
            "www-people": {"users": 25, "think": {"exponential": "1s"}, "requests": {"web.request": 1.0}}
        })
    );
    assert_eq!(
        imported.objectives,
        ["p95 < 200ms", "mean < 50ms", "errors < 1%"]
    );
    assert!(
        imported
            .unused
            .iter()
            .any(|field| field.field == "scenarios.*.exec")
    );
}

#[test]
fn calls_in_a_circle_end_where_they_began() {
    let text = "services:
  a: {image: x, ports: ['80:80'], environment: {B_ADDR: 'b:1'}}
  b: {image: x, environment: {C_ADDR: 'c:1'}}
  c: {image: x, environment: {A_ADDR: 'a:1', B_ADDR: 'b:1'}}";
    let imported = shop(&[("compose.yml", text)]);
    assert_eq!(calls(&imported), ["outside>a", "a>b", "b>c"]);
    assert_eq!(
        imported
            .left_out
            .iter()
            .filter(|said| said.contains("closes a circle"))
            .count(),
        2
    );
}

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    let refused = |name: &str, text: &str| import_texts(&[(name, text)]).unwrap_err().to_string();
    let said = refused(
        "a.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: many, template: {spec: {}}}",
    );
    assert!(said.ends_with("a.yaml: Deployment 'web': spec.replicas is 'many'; expected a whole number from 0 to 1000000"), "{said}");
    assert!(refused("a.yaml", "a: [b\n").contains("is not valid YAML"));
    assert!(refused("a.yaml", "x: {{ .Values.name }}").contains("helm template"));
    assert!(refused("a.yaml", "hello: world").contains("no document of a known format"));
    assert!(refused("a.yaml", "services: {}").contains("no service"));
    assert!(refused("a.js", "let x = 1").contains("no document"));
    let missing = import(&["nowhere.yaml".into()], &ImportOptions::default()).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read nowhere.yaml"));
}

#[test]
fn documents_that_would_grow_without_bound_are_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        let _ = writeln!(
            laughs,
            "a{level}: &a{level} [{}]",
            before.trim_end_matches(", ")
        );
    }
    let deep = "{a: ".repeat(100_000);
    let lists = "[".repeat(100_000);
    let documents = "---\na: 1\n".repeat(30_000);
    let merged = format!("x: &x {{{}}}\ny: {{<<: *x}}", "k: v, ".repeat(10));
    for text in [laughs, deep, lists, documents, merged] {
        assert!(import_texts(&[("a.yaml", &text)]).is_err());
    }
    // A long chain of calls does not overflow the program's stack.
    let mut chain =
        "services:\n  s0: {image: x, ports: ['1:1'], environment: {A_ADDR: 's1:1'}}\n".to_owned();
    for place in 1..3000 {
        let _ = writeln!(
            chain,
            "  s{place}: {{image: x, environment: {{A_ADDR: 's{}:1'}}}}",
            place + 1
        );
    }
    assert_eq!(shop(&[("compose.yml", &chain)]).calls.len(), 3000);
}

// Guarantee: arch-19.
/// Imports manifests with random changes, each of which must be imported or refused: 200 changes, or the number in
/// `CORSAIR_MUTATIONS`.
#[test]
fn changed_manifests_are_imported_or_refused() {
    let count = std::env::var("CORSAIR_MUTATIONS")
        .ok()
        .and_then(|count| count.parse().ok());
    let seeds = [
        boutique(),
        "services: {a: {image: x, ports: ['80:80'], deploy: {replicas: 2}, environment: {B: 'b:1'}}, b: {image: redis}}".to_owned(),
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: r}\nspec: {host: r, trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}}}}\n---\n".to_owned() + &deployment("r", "r", "v1", ("1", "2"), &[]),
    ];
    let mut random = corsair::Random::new(43);
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ": ",
        "- ",
        "&a ",
        "*a",
        "\n",
        "---\n",
        "-1",
        "1e309",
        "null",
        "'",
        "\"",
        "<<: ",
        "🏴",
        "\t",
        "99999999999",
    ];
    for number in 0..count.unwrap_or(200_usize) {
        let mut text: Vec<char> = seeds[number % seeds.len()].chars().collect();
        for _ in 0..1 + random.below(6) {
            let at = random.below(text.len() as u32) as usize;
            let end = (at + random.below(12) as usize).min(text.len());
            match random.below(3) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece = pieces[random.below(pieces.len() as u32) as usize];
                    text.splice(at..end, piece.chars());
                }
                _ => {
                    let copied = text[at..end].to_vec();
                    text.splice(at..at, copied);
                }
            }
        }
        let text: String = text.into_iter().collect();
        match import_texts(&[("a.yaml", &text)]) {
            Ok(imported) => assert!(!imported.definition.services.is_empty()),
            Err(ImportError::Definition(error)) => panic!("{error}\n{text}"),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Compares the documentation of fields with the tables of the formats.
#[test]
fn the_table_of_fields_is_that_of_the_formats() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("IMPORT.md");
    let table = field_table();
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let head = written
        .split("| format | kind |")
        .next()
        .unwrap_or_default()
        .to_owned();
    if std::env::var_os("CORSAIR_WRITE_FIELDS").is_some() {
        std::fs::write(&path, head.clone() + &table).unwrap();
        return;
    }
    assert!(
        written == head + &table,
        "IMPORT.md is old; write it: CORSAIR_WRITE_FIELDS=1 cargo test -p corsair-arch --features compose the_table"
    );
}

/// Imports public systems without edits, if `CORSAIR_IMPORT_CHECKOUTS` names the folder of their repositories: see
/// `ci/import.sh`.
#[test]
fn public_manifests_are_imported_without_an_edit() {
    let Some(checkouts) = std::env::var_os("CORSAIR_IMPORT_CHECKOUTS") else {
        return;
    };
    let checkouts = PathBuf::from(checkouts);
    let systems: &[(&[&str], usize, &[&str])] = &[
        (
            &[
                "microservices-demo/release/kubernetes-manifests.yaml",
                "microservices-demo/release/istio-manifests.yaml",
            ],
            11,
            &[
                "outside>frontend",
                "frontend>cartservice",
                "cartservice>redis-cart",
                "checkoutservice>paymentservice",
            ],
        ),
        (
            &["DeathStarBench/socialNetwork/docker-compose.yml"],
            25,
            &[
                "nginx-thrift>user-timeline-service?",
                "post-storage-service>post-storage-mongodb",
                "home-timeline-service>home-timeline-redis?",
            ],
        ),
        (
            &["DeathStarBench/mediaMicroservices/docker-compose.yml"],
            30,
            &[
                "movie-id-service>movie-id-mongodb?",
                "rating-service>rating-redis?",
            ],
        ),
        (
            &["DeathStarBench/hotelReservation/docker-compose.yml"],
            15,
            &[
                "frontend>search?",
                "profile>mongodb-profile",
                "profile>memcached-profile",
            ],
        ),
        (
            &["DeathStarBench/hotelReservation/kubernetes"],
            15,
            &["outside>frontend?", "frontend>search?"],
        ),
        (
            &["TeaStore/examples/kubernetes/teastore-clusterip.yaml"],
            7,
            &[
                "outside>teastore-webui",
                "teastore-persistence>teastore-db",
                "teastore-webui>teastore-auth?",
            ],
        ),
        (
            &["TeaStore/examples/docker/docker-compose_default.yaml"],
            7,
            &["outside>webui", "persistence>db", "webui>auth?"],
        ),
        (
            &[
                "istio/samples/bookinfo/platform/kube/bookinfo.yaml",
                "istio/samples/bookinfo/networking/bookinfo-gateway.yaml",
                "istio/samples/bookinfo/networking/destination-rule-reviews.yaml",
                "istio/samples/bookinfo/networking/virtual-service-reviews-90-10.yaml",
            ],
            6,
            &[
                "outside>productpage-v1",
                "productpage-v1>details-v1?",
                "productpage-v1>reviews-v1?",
                "productpage-v1>reviews-v2?",
            ],
        ),
        (
            &[
                "opentelemetry-demo/compose.yaml",
                "opentelemetry-demo/compose.full.yaml",
                "opentelemetry-demo/src/load-generator/script.js",
            ],
            20,
            &[
                "outside>frontend-proxy",
                "frontend-proxy>frontend",
                "frontend>cart",
                "cart>valkey-cart",
                "checkout>payment",
                "kafka~accounting?",
            ],
        ),
    ];
    let mut wrong = Vec::new();
    for (files, least, expected) in systems {
        let paths: Vec<PathBuf> = files.iter().map(|file| checkouts.join(file)).collect();
        match import(&paths, &ImportOptions::default()) {
            Err(error) => wrong.push(error.to_string()),
            Ok(imported) => {
                let found = calls(&imported);
                let services = imported.definition.services.len() - imported.definition.load.len();
                if services < *least {
                    wrong.push(format!("{}: {services} services", files[0]));
                }
                let missing = expected
                    .iter()
                    .filter(|call| found.iter().all(|known| known != *call));
                wrong.extend(missing.map(|call| format!("{}: no {call}", files[0])));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
