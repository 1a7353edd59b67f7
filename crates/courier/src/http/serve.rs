//! Connections: accepted up to a limit, each with its own task until it ends or becomes a WebSocket.

use super::client_address::{client_address, network};
use super::deadline::WriteDeadline;
use super::problem::Problem;
use super::read::Peer;
use super::recovery::{self, told};
use super::unread_body;
use crate::counts::{Counts, Reservation};
use crate::error::StartError;
use crate::limits::Limits;
use crate::metrics::{Metrics, Status};
use crate::node::Node;
use crate::tls::Tls;
use axum::Router;
use axum::http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// The buffer of a connection in bytes, which must hold the head of a request.
const BUFFER: usize = 16 << 10;
/// The time limit of running requests when the node shuts down.
const GRACE: Duration = Duration::from_secs(5);
/// The time limit for sending the refusal to a client beyond the limit of connections.
const PATIENCE: Duration = Duration::from_secs(1);
/// The maximum number of concurrent 503 answers to refused connections. Further connections are closed without an
/// answer.
const MOST_TURNED_AWAY: usize = 256;
/// The pause after the system has refused a connection, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// The number of connections of operators, in addition to those of users.
const MOST_OPERATORS: usize = 64;

/// The options for serving a node.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// The certificate to use; without one, connections are plain.
    pub tls: Option<Tls>,
    /// A second address, always plain, for `/metrics` and the routes of health checks. `/metrics` is then not
    /// served at the first address.
    pub metrics_address: Option<String>,
    /// True to log a line for each request, at level INFO with the target `access`.
    pub access_log: bool,
}

/// A listening node.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    running: JoinHandle<Option<Node>>,
    accepting: Vec<JoinHandle<()>>,
}

/// Listens on an address, and serves the node's routes until [`Serving::stop`]. A node whose disk has failed
/// is restarted as soon as possible.
///
/// ```
/// use corsair_courier::{Node, Options, serve};
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
///
/// # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Without a directory the messages are in memory.
/// let node = Node::start(Options::default()).await?;
/// let serving = serve(node, "127.0.0.1:0").await?;
///
/// let mut socket = TcpStream::connect(serving.address())?;
/// socket.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
/// let mut answer = String::new();
/// socket.read_to_string(&mut answer)?;
/// assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
/// serving.stop().await;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StartError::Listen`].
pub async fn serve(node: Node, address: &str) -> Result<Serving, StartError> {
    serve_with(node, address, ServeOptions::default()).await
}

/// Listens like [`serve`], with options.
///
/// # Errors
/// [`StartError::Listen`].
pub async fn serve_with(
    node: Node,
    address: &str,
    options: ServeOptions,
) -> Result<Serving, StartError> {
    let ServeOptions {
        tls,
        metrics_address,
        access_log,
    } = options;
    let (listener, bound) = listen(address).await?;
    let operators = match &metrics_address {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let (stop, stopped) = watch::channel(false);
    let (routes, router) = watch::channel(node.router());
    let service = Service {
        router,
        audience: match operators {
            Some(_) => Audience::Users,
            None => Audience::All,
        },
        access_log,
        metrics: node.inner.metrics.clone(),
        limits: Arc::new(node.inner.limits.clone()),
        tls,
    };
    let mut accepting = Vec::new();
    let metrics_address = operators.map(|(listener, bound)| {
        let service = Service {
            audience: Audience::Operators,
            limits: Arc::new(Limits {
                connections: MOST_OPERATORS,
                address_connections: MOST_OPERATORS,
                ..node.inner.limits.clone()
            }),
            tls: None,
            ..service.clone()
        };
        accepting.push(tokio::spawn(accept(listener, service, stopped.clone())));
        bound
    });
    accepting.push(tokio::spawn(accept(listener, service, stopped.clone())));
    let running = tokio::spawn(recovery::run(node, routes, stopped));
    Ok(Serving {
        address: bound,
        metrics_address,
        stop,
        running,
        accepting,
    })
}

async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |source| StartError::Listen {
        address: address.to_owned(),
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    Ok((listener, bound))
}

impl Serving {
    /// Returns the address on which the node listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of [`ServeOptions::metrics_address`], if it is set.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Stops accepting connections, answers running requests, closes the sockets and ends the node.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let node = self.running.await.ok().flatten();
        if let Some(node) = &node {
            node.close_sockets().await;
        }
        for accepting in self.accepting {
            let _ = accepting.await;
        }
        if let Some(node) = &node {
            node.close().await;
        }
    }
}

/// The shared data of connections. It does not depend on a node, which may have to be restarted.
#[derive(Clone, Debug)]
struct Service {
    /// The routes of the current node.
    router: watch::Receiver<Router>,
    audience: Audience,
    access_log: bool,
    metrics: Metrics,
    limits: Arc<Limits>,
    tls: Option<Tls>,
}

/// The kind of clients of an address.
#[derive(Clone, Copy, Debug)]
enum Audience {
    All,
    /// Users, if operators have a separate address. Users may use every path except `/metrics`.
    Users,
    Operators,
}

impl Audience {
    /// True if the audience may use this path.
    fn may_use(self, path: &str) -> bool {
        match self {
            Audience::All => true,
            Audience::Users => path != "/metrics",
            Audience::Operators => matches!(path, "/metrics" | "/readyz" | "/healthz" | "/ping"),
        }
    }
}

/// Counts a connection while it is open.
#[derive(Debug)]
struct Connected {
    _permit: OwnedSemaphorePermit,
    _from: Reservation<IpAddr>,
}

/// Accepts connections until the stop signal, and waits for open ones.
async fn accept(listener: TcpListener, service: Service, mut stopped: watch::Receiver<bool>) {
    let refused = Arc::new(Semaphore::new(MOST_TURNED_AWAY));
    let Service {
        metrics,
        limits,
        tls,
        ..
    } = &service;
    // A client that expects TLS could not read a plain answer.
    let tell = tls.is_none();
    let most = limits.connections;
    let room = Arc::new(Semaphore::new(most));
    let addresses = Counts::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = told(&mut stopped) => break,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let address = peer.ip().to_canonical();
        // A proxy stands for many clients, so the limit for one address does not apply.
        let most_there = match limits.trusted_proxies.contains(&address) {
            true => usize::MAX,
            false => limits.address_connections,
        };
        let Some(from) = addresses.take(network(address), 1, most_there) else {
            metrics.refuse("address_connections");
            let message = format!(
                "your address already has {most_there} connections to this node; close one"
            );
            turn_away(tell.then_some(stream), &refused, message);
            continue;
        };
        let Ok(permit) = room.clone().try_acquire_owned() else {
            metrics.refuse("connections");
            let message = format!(
                "this node has reached its limit of {most} connections; try again later, or use another node"
            );
            turn_away(tell.then_some(stream), &refused, message);
            continue;
        };
        // Messages are sent at once; the system does not wait for further ones.
        let _ = stream.set_nodelay(true);
        let (service, stopped) = (service.clone(), stopped.clone());
        let peer = Peer {
            address: peer,
            counted: Arc::new(Connected {
                _permit: permit,
                _from: from,
            }),
            upgraded: Arc::new(AtomicBool::new(false)),
            is_certified: false,
        };
        tokio::spawn(secured(stream, peer, service, stopped));
    }
    drop(listener);
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(GRACE, room.acquire_many(all)).await;
}

/// Serves a connection, with TLS if there is a certificate.
async fn secured(
    stream: TcpStream,
    mut peer: Peer,
    service: Service,
    mut stopped: watch::Receiver<bool>,
) {
    let Some(tls) = service.tls.clone() else {
        return connection(stream, peer, service, stopped).await;
    };
    let agreed = tokio::select! {
        agreed = tokio::time::timeout(service.limits.head, tls.accept(stream)) => agreed,
        () = told(&mut stopped) => return,
    };
    match agreed {
        Ok(Ok(stream)) => {
            peer.is_certified = Tls::has_certificate(&stream);
            connection(stream, peer, service, stopped).await;
        }
        // The client does not speak TLS, or sends nothing.
        _ => service.metrics.refuse("tls"),
    }
}

/// Serves one connection until it ends or has become a WebSocket.
async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    service: Service,
    mut stopped: watch::Receiver<bool>,
) {
    let Service {
        router,
        audience,
        access_log,
        metrics,
        limits,
        ..
    } = service;
    metrics.connections.inc();
    let (requests, bounds) = (metrics.requests.clone(), limits.clone());
    let stream = WriteDeadline::new(stream, limits.write, peer.upgraded.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let access = access_log.then(|| Access::begin(&request, &peer, &bounds.trusted_proxies));
        let (mut request, rest) = unread_body::keep(request);
        request.extensions_mut().insert(peer.clone());
        let router = match audience.may_use(request.uri().path()) {
            true => router.borrow().clone(),
            false => Router::new().fallback(|| async { Problem::no_route() }),
        };
        let (answer, requests) = (router.oneshot(request), requests.clone());
        async move {
            let mut answer = answer.await?;
            unread_body::finish(rest, &mut answer).await;
            let status = answer.status().as_u16();
            requests.get_or_create(&Status { status }).inc();
            if let Some(access) = access {
                access.log(status);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(BUFFER)
        // Otherwise each request that waits for the log allocates a buffer to look for the end of the connection.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        // hyper answers errors in the HTTP protocol.
        _ = connection.as_mut() => {}
        () = told(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
    metrics.connections.dec();
}

/// A request in the access log. The query is left out, because it may contain private data.
struct Access {
    address: IpAddr,
    method: Method,
    path: String,
    begun: Instant,
}

impl Access {
    fn begin(request: &Request<Incoming>, peer: &Peer, trusted: &[IpAddr]) -> Access {
        Access {
            address: client_address(peer.address.ip(), request.headers(), trusted),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            begun: Instant::now(),
        }
    }

    fn log(self, status: u16) {
        let Access {
            address,
            method,
            path,
            begun,
        } = self;
        let seconds = begun.elapsed().as_secs_f64();
        tracing::info!(target: "access", "{address} \"{method} {path}\" {status} {seconds:.6}");
    }
}

/// Answers a refused connection with 503, unless too many are being answered.
fn turn_away(stream: Option<TcpStream>, refused: &Arc<Semaphore>, message: String) {
    if let Some(stream) = stream
        && let Ok(permit) = refused.clone().try_acquire_owned()
    {
        tokio::spawn(async move {
            refuse(stream, &message).await;
            drop(permit);
        });
    }
}

async fn refuse(mut stream: TcpStream, message: &str) {
    let body = format!(r#"{{"error":{{"code":"connections","message":"{message}"}}}}"#);
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 5\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let exchange = async {
        // A client that has sent nothing would not expect an answer. If bytes remain unread when the connection is
        // closed, the system may discard the answer.
        let mut unread = [0; 1024];
        if stream.read(&mut unread).await? == 0 {
            return Ok(());
        }
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await?;
        while stream.read(&mut unread).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(PATIENCE, exchange).await;
}
