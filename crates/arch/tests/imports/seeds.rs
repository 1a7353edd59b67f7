//! Valid manifests of each format, which are changed.

use std::fmt::Write as _;

/// Returns file names and texts.
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("shop.yaml", kubernetes()),
        ("mesh.yaml", mesh()),
        ("compose.yaml", COMPOSE.to_owned()),
        ("envoy.yaml", ENVOY.to_owned()),
        ("load.js", SCRIPT.to_owned()),
        ("load.json", LOAD.to_owned()),
    ]
}

fn kubernetes() -> String {
    let mut text = String::new();
    for (name, calls) in [("web", "cart:80"), ("cart", "db:6379"), ("db", "")] {
        let _ = writeln!(
            text,
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  replicas: 2\n  \
             template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - name: server\n        \
             image: {name}:1\n        env:\n        - {{name: BASE, value: {calls}}}\n        - {{name: NEXT_ADDR, value: \"$(BASE)\"}}\n        \
             envFrom: [{{configMapRef: {{name: conf}}}}]\n        resources: {{requests: {{cpu: 100m}}, limits: {{cpu: 200m}}}}\n        \
             readinessProbe: {{periodSeconds: 5, initialDelaySeconds: 8}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
             spec: {{type: ClusterIP, selector: {{app: {name}}}}}"
        );
    }
    text + "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {LOG_URL: 'http://db:80/x'}}\n\
        - {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {name: web}, maxReplicas: 9,\n  \
        metrics: [{type: Resource, resource: {name: cpu, target: {averageUtilization: 80}}}]}}\n"
}

fn mesh() -> String {
    kubernetes()
        + "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: cart}\nspec:\n  hosts: [cart]\n  http:\n  - route:\n    \
           - {destination: {host: cart, subset: v1}, weight: 90}\n    - {destination: {host: db}, weight: 10}\n    timeout: 2s\n    \
           retries: {attempts: 3, perTryTimeout: 500ms}\n    mirror: {host: db}\n    mirrorPercentage: {value: 50}\n---\n\
           apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: cart}\nspec:\n  host: cart\n  trafficPolicy:\n    \
           connectionPool: {tcp: {maxConnections: 100}, http: {http1MaxPendingRequests: 10}}\n    \
           outlierDetection: {consecutive5xxErrors: 7, baseEjectionTime: 15m, maxEjectionPercent: 20}\n  \
           subsets: [{name: v1, labels: {app: cart}}]\n"
}

const COMPOSE: &str = "
x-default: &default
  restart: always
  deploy: {replicas: 2, resources: {limits: {cpus: '0.5'}}}
services:
  web: {<<: *default, image: 'nginx:${VERSION:-1}', ports: ['80:80'], depends_on: [app]}
  app: {<<: *default, build: {context: ./app}, environment: [DB_ADDR, 'QUEUE=queue:9092', CACHE_URL=redis://cache:6379], links: ['db:database']}
  db: {image: postgres, healthcheck: {interval: 5s, retries: 3}}
  cache: {image: redis, command: redis-server --save ''}
  queue: {image: kafka}
";

const ENVOY: &str = "
node: {cluster: web}
static_resources:
  listeners:
  - filter_chains:
    - filters:
      - typed_config:
          route_config:
            virtual_hosts:
            - routes:
              - {match: {prefix: /}, route: {cluster: app, timeout: 1s, retry_policy: {num_retries: 2, per_try_timeout: 0.3s}}}
              - {match: {prefix: /b}, route: {weighted_clusters: {clusters: [{name: app, weight: 3}, {name: other, weight: 1}]}}}
  clusters:
  - name: app
    lb_policy: ROUND_ROBIN
    load_assignment: {endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: other}}}}]}]}
    circuit_breakers: {thresholds: [{max_connections: 7, max_requests: 9, retry_budget: {budget_percent: {value: 25}}}]}
  - {name: other, outlier_detection: {consecutive_5xx: 4}}
";

const SCRIPT: &str = "import http from 'k6/http';
export const options = {
  scenarios: {
    open: { executor: 'constant-arrival-rate', rate: 600, timeUnit: '1m', duration: '30s' },
    ramp: { executor: 'ramping-arrival-rate', startRate: 0, stages: [{ target: 100, duration: '10s' }, { target: 0, duration: '5s' }] },
    people: { executor: 'ramping-vus', stages: [{ target: parseInt(__ENV.USERS || '25'), duration: '1m' }], exec: 'buy' },
  },
  thresholds: { http_req_duration: ['p(95)<200', { threshold: 'avg<50' }], http_req_failed: ['rate<0.01'] },
};
export default function () { http.get('http://web/'); }
";

const LOAD: &str = r#"{"scenarios": {"open": {"executor": "constant-arrival-rate", "rate": 50, "timeUnit": "1s", "duration": "30s"},
    "users": {"executor": "constant-vus", "vus": 10}}, "thresholds": {"http_req_duration": ["p(99)<900"]}}"#;
