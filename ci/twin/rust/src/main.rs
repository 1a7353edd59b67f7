//! A service of the laboratory. It runs the steps of its endpoints and records spans with the OpenTelemetry SDK.
//! ../README.md describes the service; the services in all languages behave alike.

mod route;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Router, routing::get};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider};
use rand_distr::{Distribution, StandardNormal};
use route::{Policy, Route};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

#[derive(Deserialize)]
struct Spec {
    name: String,
    port: u16,
    #[serde(default)]
    slots: usize,
    endpoints: HashMap<String, Vec<Step>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Step {
    work: f64,
    burn: f64,
    sigma: f64,
    call: Vec<String>,
    parallel: Vec<Vec<String>>,
    chance: f64,
    #[serde(flatten)]
    policy: Policy,
}

struct Service {
    spec: Spec,
    slots: Option<Semaphore>,
    slow: AtomicU64,
    client: reqwest::Client,
    /// By the first address of each called service.
    routes: HashMap<String, Route>,
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Service {
    /// Sends a request; `None` if no connection could be opened.
    async fn send(&self, within: &Context, url: &str) -> Option<bool> {
        let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let span = self.tracer.span_builder("GET").with_kind(SpanKind::Client);
        let span = span.with_attributes([KeyValue::new("server.address", host.to_owned())]);
        let mut span = CallSpan(within.with_span(span.start_with_context(&self.tracer, within)), false);
        let mut headers = HeaderMap::new();
        TraceContextPropagator::new().inject_context(&span.0, &mut HeaderInjector(&mut headers));
        let succeeds = match self.client.get(url).headers(headers).send().await {
            Ok(answer) => Some(answer.status().as_u16() < 500 && answer.bytes().await.is_ok()),
            Err(error) if error.is_connect() => None,
            Err(_) => Some(false),
        };
        span.1 = succeeds == Some(true);
        succeeds
    }

    async fn attempt(&self, within: &Context, route: &Route) -> bool {
        if !route.state().breaker.allows(&route.policy) {
            return false;
        }
        let limit = match route.policy.timeout {
            0.0 => Duration::from_secs(3600),
            millis => Duration::from_secs_f64(millis / 1e3),
        };
        let made = async {
            let _connection = match &route.connections {
                Some(connections) => Some(connections.acquire().await),
                None => None,
            };
            // An instance without an open port is left out for a second, and another one is asked.
            for _ in 0..route.urls.len() {
                let busy = route.pick();
                match self.send(within, &route.urls[busy.1]).await {
                    None => route.state().down[busy.1] = Some(Instant::now() + Duration::from_secs(1)),
                    Some(succeeds) => return succeeds,
                }
            }
            false
        };
        let succeeds = tokio::time::timeout(limit, made).await.unwrap_or(false);
        route.state().breaker.record(&route.policy, !succeeds);
        succeeds
    }

    async fn call(&self, within: &Context, urls: &[String]) -> bool {
        let route = &self.routes[&urls[0]];
        route.earn();
        for retry in 0..=route.policy.retries {
            if retry > 0 && !route.spend() {
                break;
            }
            if self.attempt(within, route).await {
                return true;
            }
        }
        false
    }

    async fn run(&self, within: &Context, steps: &[Step]) -> bool {
        for step in steps {
            if step.chance > 0.0 && rand::random::<f64>() >= step.chance {
                continue;
            }
            let normal: f64 = StandardNormal.sample(&mut rand::rng());
            let factor = f64::from_bits(self.slow.load(Ordering::Relaxed)) * (step.sigma * normal).exp() / 1e3;
            if step.work > 0.0 {
                tokio::time::sleep(Duration::from_secs_f64(step.work * factor)).await;
            }
            if step.burn > 0.0 {
                let time = Duration::from_secs_f64(step.burn * factor);
                let _ = tokio::task::spawn_blocking(move || burn(time)).await;
            }
            if !step.call.is_empty() && !self.call(within, &step.call).await {
                return false;
            }
            let calls = step.parallel.iter().map(|urls| self.call(within, urls));
            if !futures_util::future::join_all(calls).await.into_iter().all(|one| one) {
                return false;
            }
        }
        true
    }
}

/// The span of a call, and whether the call has succeeded. A time-out drops it.
struct CallSpan(Context, bool);

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.1 {
            self.0.span().set_status(Status::error("the call failed"));
        }
        self.0.span().end();
    }
}

/// Uses a processor for this time.
fn burn(time: Duration) {
    let used = || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec, to which the call writes.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let until = used() + time;
    while used() < until {
        for number in 0..1_000 {
            std::hint::black_box(number);
        }
    }
}

async fn handle(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> StatusCode {
    if name == "slow" {
        let factor: f64 = query.get("factor").and_then(|text| text.parse().ok()).unwrap_or(1.0);
        service.slow.store(factor.to_bits(), Ordering::Relaxed);
        return StatusCode::OK;
    }
    if name == "flush" {
        let provider = service.provider.clone();
        let _ = tokio::task::spawn_blocking(move || provider.force_flush()).await;
        return StatusCode::OK;
    }
    let Some(steps) = service.spec.endpoints.get(&name) else {
        return StatusCode::NOT_FOUND;
    };
    let from = TraceContextPropagator::new().extract(&HeaderExtractor(&headers));
    let span = service.tracer.span_builder(name).with_kind(SpanKind::Server);
    let within = from.with_span(span.start_with_context(&service.tracer, &from));
    let slot = match &service.slots {
        Some(slots) => Some(slots.acquire().await),
        None => None,
    };
    let succeeds = service.run(&within, steps).await;
    drop(slot);
    if !succeeds {
        within.span().set_status(Status::error("a call failed"));
    }
    within.span().end();
    match succeeds {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let spec: Spec = serde_json::from_str(&arguments[1])?;
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", arguments[2]))
        .build()?;
    // Every span is wanted: no queue may drop one.
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(200_000)
        .with_max_export_batch_size(2_000)
        .build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
    let resource = opentelemetry_sdk::Resource::builder_empty().with_attributes([
        KeyValue::new("service.name", spec.name.clone()),
        KeyValue::new("service.instance.id", format!("{}{}", spec.name, spec.port)),
    ]);
    let provider = SdkTracerProvider::builder()
        .with_span_processor(processor)
        .with_resource(resource.build())
        .build();
    let port = spec.port;
    let mut routes = HashMap::new();
    for step in spec.endpoints.values().flatten() {
        for urls in step.parallel.iter().chain([&step.call]).filter(|urls| !urls.is_empty()) {
            routes.insert(urls[0].clone(), Route::new(urls, &step.policy));
        }
    }
    let service = Arc::new(Service {
        slots: (spec.slots > 0).then(|| Semaphore::new(spec.slots)),
        slow: AtomicU64::new(1f64.to_bits()),
        client: reqwest::Client::new(),
        routes,
        tracer: provider.tracer("laboratory"),
        provider,
        spec,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async move {
        let routes = Router::new().route("/{name}", get(handle)).with_state(service);
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        axum::serve(listener, routes).await?;
        Ok(())
    })
}
