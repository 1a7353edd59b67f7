//! Well-known systems, by their names and numbers.

use super::*;

/// Returns Online Boutique, with the processors and addresses of its release.
pub(super) fn boutique() -> String {
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
    // What is imported runs.
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
fn calls_that_the_user_states_replace_guesses() {
    let mut text = String::new();
    for (name, app) in [
        ("page-v1", "page"),
        ("reviews-v1", "reviews"),
        ("reviews-v2", "reviews"),
        ("ratings-v1", "ratings"),
    ] {
        text += &deployment(name, app, "v1", ("", ""), &[]);
    }
    for app in ["page", "reviews", "ratings"] {
        text += &host(
            app,
            app,
            if app == "page" {
                "LoadBalancer"
            } else {
                "ClusterIP"
            },
        );
    }
    let import_with = |calls: &[(&str, &str)]| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("all.yaml");
        std::fs::write(&path, &text).unwrap();
        let calls = calls
            .iter()
            .map(|(from, to)| ((*from).to_owned(), (*to).to_owned()));
        import(
            &[path],
            &ImportOptions {
                calls: calls.collect(),
                ..ImportOptions::default()
            },
        )
    };
    let guessed = calls(&import_with(&[]).unwrap());
    assert!(
        guessed.contains(&"page-v1>ratings-v1?".to_owned()),
        "{guessed:?}"
    );
    let stated = calls(&import_with(&[("reviews-v2", "ratings")]).unwrap());
    assert_eq!(
        stated,
        [
            "outside>page-v1",
            "reviews-v2>ratings-v1",
            "page-v1>reviews-v1?",
            "page-v1>reviews-v2?"
        ]
    );
    let error = import_with(&[("reviews-v2", "rating")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "--call: 'rating' is not a service of the manifests; did you mean ratings?"
    );
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
    assert_eq!(
        shown,
        [
            "services.*.command",
            "services.*.deploy.resources",
            "services.*.restart"
        ]
    );
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
