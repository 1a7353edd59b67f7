//! An OTLP receiver: HTTP with protobuf or JSON, and gRPC, each optionally compressed with gzip, on one port.
//!
//! All external input is bounded: the number of connections, the time of a request, the size of each body and of all
//! bodies together (before and after decompression), and the number of traces that are kept ([`Reservoir`]).

use anyhow::{Context, Result, anyhow};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use corsair_arch::{Reservoir, SpanBatch};
use flate2::read::MultiGzDecoder;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use parking_lot::Mutex;
use prost::Message;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Poll, ready};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tonic::codec::CompressionEncoding;
use tower::ServiceExt;

/// The standard port of OTLP over HTTP. The next constant is the standard port of OTLP over gRPC.
const HTTP: u16 = 4318;
const GRPC: u16 = 4317;

/// The maximum size in bytes of a request's body, compressed and decompressed.
const MOST_BYTES: usize = 16 << 20;

/// The maximum number of connections; further ones are closed at once.
const MOST_CONNECTIONS: usize = 512;

/// The maximum size in bytes of all bodies that are being received, and the size from which new requests are refused.
const MOST_IN_FLIGHT: usize = 256 << 20;
const BUSY: usize = 128 << 20;

/// The time limit of a request, with its body.
const REQUEST: Duration = Duration::from_secs(30);

/// The time after which an HTTP/1 connection without a request is closed, and the interval of HTTP/2 pings.
const IDLE: Duration = Duration::from_secs(120);

/// The pause after accepting a connection has failed, for example because there are too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// A receiver of spans.
#[derive(Debug)]
pub struct Receiver {
    runtime: Runtime,
    addresses: Vec<SocketAddr>,
    reservoir: Arc<Mutex<Reservoir>>,
}

/// The service that adds spans to the reservoir.
#[derive(Clone, Debug)]
struct Collector(Arc<Mutex<Reservoir>>);

impl Receiver {
    /// Starts listening. If the port is the standard port of OTLP over HTTP, the standard port for gRPC is opened as
    /// well.
    ///
    /// # Errors
    /// If an address cannot be used.
    pub fn start(address: SocketAddr, most_of_kind: usize) -> Result<Receiver> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("--listen")?;
        let reservoir = Arc::new(Mutex::new(Reservoir::new(most_of_kind)));
        let routes = routes(Collector(Arc::clone(&reservoir)));
        let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let in_flight = Arc::new(AtomicUsize::new(0));
        let mut addresses = vec![address];
        if address.port() == HTTP {
            addresses.push(SocketAddr::new(address.ip(), GRPC));
        }
        for address in &mut addresses {
            let listener = bind(address)?;
            let limits = (Arc::clone(&connections), Arc::clone(&in_flight));
            runtime.spawn(serve(listener, routes.clone(), limits));
        }
        Ok(Receiver {
            runtime,
            addresses,
            reservoir,
        })
    }

    /// Returns the addresses on which the receiver listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the number of received spans, and of kept traces.
    pub fn counts(&self) -> (u64, usize) {
        let reservoir = self.reservoir.lock();
        (reservoir.received(), reservoir.traces())
    }

    /// Stops listening, and returns the received traces.
    pub fn finish(self) -> Reservoir {
        self.runtime.shutdown_timeout(Duration::from_secs(2));
        std::mem::replace(&mut *self.reservoir.lock(), Reservoir::new(1))
    }
}

/// Opens an address, and replaces port 0 by the port that was chosen.
fn bind(address: &mut SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(*address)
        .map_err(|error| anyhow!("--listen {address}: {error}; give another address"))?;
    listener.set_nonblocking(true).context("--listen")?;
    *address = listener.local_addr().context("--listen")?;
    Ok(listener)
}

fn routes(collector: Collector) -> Router {
    let grpc = TraceServiceServer::new(collector.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(MOST_BYTES);
    Router::new()
        .route("/v1/traces", post(export))
        .route_service(
            "/opentelemetry.proto.collector.trace.v1.TraceService/{method}",
            grpc,
        )
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(collector)
}

/// Serves connections and never returns.
async fn serve(
    listener: TcpListener,
    routes: Router,
    (connections, in_flight): (Arc<Semaphore>, Arc<AtomicUsize>),
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (routes, in_flight) = (routes.clone(), Arc::clone(&in_flight));
        let service = service_fn(move |request: Request<Incoming>| {
            answer(routes.clone(), Arc::clone(&in_flight), request)
        });
        tokio::spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(IDLE)
                .max_buf_size(64 << 10);
            builder
                .http2()
                .timer(TokioTimer::new())
                .keep_alive_interval(IDLE)
                .max_concurrent_streams(32)
                .max_header_list_size(64 << 10);
            // Errors of HTTP itself are answered by hyper.
            let _ = builder
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(permit);
        });
    }
}

/// Answers a request within its time limit.
async fn answer(
    routes: Router,
    in_flight: Arc<AtomicUsize>,
    request: Request<Incoming>,
) -> Result<Response, std::convert::Infallible> {
    if in_flight.load(Ordering::Relaxed) > BUSY {
        let why = "too many requests at once; try again";
        return Ok(refuse(StatusCode::SERVICE_UNAVAILABLE, why));
    }
    let counted = |inner| {
        Body::new(CountedBody {
            inner,
            counted: 0,
            in_flight,
        })
    };
    let answered = routes.oneshot(request.map(counted));
    match tokio::time::timeout(REQUEST, answered).await {
        Ok(answered) => answered,
        Err(_) => Ok(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive within 30 s",
        )),
    }
}

/// A body whose bytes count among those in flight until it is dropped.
struct CountedBody {
    inner: Incoming,
    counted: usize,
    in_flight: Arc<AtomicUsize>,
}

impl hyper::body::Body for CountedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)) else {
            return Poll::Ready(None);
        };
        let frame = frame?;
        let size = frame.data_ref().map_or(0, Bytes::len);
        self.counted += size;
        let before = self.in_flight.fetch_add(size, Ordering::Relaxed);
        if before + size > MOST_IN_FLIGHT {
            return Poll::Ready(Some(Err("too many bytes at once; try again".into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

fn refuse(status: StatusCode, why: impl Into<String>) -> Response {
    (status, why.into()).into_response()
}

/// Handles `POST /v1/traces`.
async fn export(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let body = match text(header::CONTENT_ENCODING) {
        None | Some("" | "identity") => body.to_vec(),
        Some("gzip") => match decompress(&body) {
            Ok(body) => body,
            Err((status, why)) => return refuse(status, why),
        },
        Some(_) => {
            let why = "this content-encoding is not known; expected gzip, or none";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
    };
    let (added, ok) = match kind {
        "application/x-protobuf" => (collector.add_protobuf(&body), ""),
        "application/json" => (collector.add(&body), "{}"),
        _ => {
            let why = "the content-type is not known; expected application/x-protobuf or application/json";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
    };
    match added {
        Ok(()) => ([(header::CONTENT_TYPE, kind.to_owned())], ok).into_response(),
        Err(why) => refuse(StatusCode::BAD_REQUEST, why),
    }
}

fn decompress(body: &[u8]) -> Result<Vec<u8>, (StatusCode, &'static str)> {
    let mut text = Vec::new();
    let mut reader = MultiGzDecoder::new(body).take(MOST_BYTES as u64 + 1);
    match reader.read_to_end(&mut text) {
        Ok(size) if size <= MOST_BYTES => Ok(text),
        Ok(_) => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body has more than 16 MiB; send smaller batches",
        )),
        Err(_) => Err((
            StatusCode::BAD_REQUEST,
            "the body is not gzip, or is cut off",
        )),
    }
}

impl Collector {
    fn add(&self, text: &[u8]) -> Result<(), String> {
        let batch = SpanBatch::parse(text)?;
        self.0.lock().add(batch);
        Ok(())
    }

    fn add_protobuf(&self, body: &[u8]) -> Result<(), String> {
        let request = ExportTraceServiceRequest::decode(body)
            .map_err(|error| format!("the body is not an ExportTraceServiceRequest: {error}"))?;
        self.add_request(&request)
    }

    /// Converts a request to OTLP/JSON and adds its spans, so that all encodings are read by the same code.
    fn add_request(&self, request: &ExportTraceServiceRequest) -> Result<(), String> {
        let text = serde_json::to_vec(request).map_err(|error| error.to_string())?;
        self.add(&text)
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        self.add_request(request.get_ref())
            .map_err(tonic::Status::invalid_argument)?;
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}
