//! A service of the laboratory. It runs the steps of its endpoints and records spans with the OpenTelemetry SDK.
//! ../README.md describes the service; the services in all languages behave alike.

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
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
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
    sigma: f64,
    call: String,
    parallel: Vec<String>,
    chance: f64,
    timeout: f64,
    retries: u32,
}

struct Service {
    spec: Spec,
    slots: Option<Semaphore>,
    slow: AtomicU64,
    client: reqwest::Client,
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Service {
    async fn attempt(&self, within: &Context, url: &str, timeout: f64) -> bool {
        let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let span = self.tracer.span_builder("GET").with_kind(SpanKind::Client);
        let span = span.with_attributes([KeyValue::new("server.address", host.to_owned())]);
        let within = within.with_span(span.start_with_context(&self.tracer, within));
        let mut headers = HeaderMap::new();
        TraceContextPropagator::new().inject_context(&within, &mut HeaderInjector(&mut headers));
        let mut request = self.client.get(url).headers(headers);
        if timeout > 0.0 {
            request = request.timeout(Duration::from_secs_f64(timeout / 1e3));
        }
        let succeeds = match request.send().await {
            Ok(answer) => answer.status().as_u16() < 500 && answer.bytes().await.is_ok(),
            Err(_) => false,
        };
        if !succeeds {
            within.span().set_status(Status::error("the call failed"));
        }
        within.span().end();
        succeeds
    }

    async fn call(&self, within: &Context, url: &str, step: &Step) -> bool {
        for _ in 0..=step.retries {
            if self.attempt(within, url, step.timeout).await {
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
            if step.work > 0.0 {
                let normal: f64 = StandardNormal.sample(&mut rand::rng());
                let factor = f64::from_bits(self.slow.load(Ordering::Relaxed));
                let wait = step.work * (step.sigma * normal).exp() * factor;
                tokio::time::sleep(Duration::from_secs_f64(wait / 1e3)).await;
            }
            if !step.call.is_empty() && !self.call(within, &step.call, step).await {
                return false;
            }
            let calls = step.parallel.iter().map(|url| self.call(within, url, step));
            if !futures_util::future::join_all(calls).await.into_iter().all(|one| one) {
                return false;
            }
        }
        true
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
    let service = Arc::new(Service {
        slots: (spec.slots > 0).then(|| Semaphore::new(spec.slots)),
        slow: AtomicU64::new(1f64.to_bits()),
        client: reqwest::Client::new(),
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
