//! The server of the page. By default it listens on loopback; it serves only this page, and requires
//! a token.
//!
//! Every viewer has a socket. Frames are sent one at a time: when the page has drawn a frame, it gets the newest one. A
//! slow page gets fewer frames, and frames never pile up. One viewer has the controls; when this viewer leaves, another
//! one gets them.

mod connections;
mod page;
mod socket;

use crate::session::Handle;
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::{Notify, watch};

/// The largest number of viewers.
const MOST_WATCHERS: u32 = 16;

/// The time within which the head of a request must arrive.
const HEAD: Duration = Duration::from_secs(10);

/// Maximum bytes of a query.
const MOST_ASKED: usize = 64 << 10;

/// The server of the page. It stops when this value is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    token: String,
    ends: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// The reasons why the server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The server cannot listen on the address.
    #[error("cannot listen at {address}: {error}; give another address, or none for any free port")]
    Address {
        /// The address on which the server should listen.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The system cannot provide a thread, a runtime or random numbers.
    #[error("cannot serve the page: {0}")]
    System(String),
}

/// The state that all viewers share.
#[derive(Debug)]
struct ServerState {
    token: String,
    /// The requested address.
    asked: SocketAddr,
    handle: Handle,
    watchers: AtomicU32,
    next: AtomicU64,
    /// The viewer who has the controls.
    holder: watch::Sender<Option<u64>>,
}

impl Server {
    /// Serves the page of a session.
    ///
    /// # Errors
    /// Returns a [`ServeError`] if the server cannot be started.
    pub fn start(address: SocketAddr, handle: Handle) -> Result<Server, ServeError> {
        let system = |error: &dyn std::fmt::Display| ServeError::System(error.to_string());
        let asked = address;
        let listener =
            TcpListener::bind(address).map_err(|error| ServeError::Address { address, error })?;
        let address = listener.local_addr().map_err(|e| system(&e))?;
        listener.set_nonblocking(true).map_err(|e| system(&e))?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|e| system(&e))?;
        let token = random.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| system(&e))?;
        let shared = Arc::new(ServerState {
            token: token.clone(),
            asked,
            handle,
            watchers: AtomicU32::new(0),
            next: AtomicU64::new(1),
            holder: watch::Sender::new(None),
        });
        let ends = Arc::new(Notify::new());
        let ended = Arc::clone(&ends);
        let serve = async move {
            let listener = match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => listener,
                Err(_) => return,
            };
            let routes = Router::new()
                .route("/{token}/", get(index))
                .route("/{token}/socket", get(open))
                .route("/{token}/{file}", get(file))
                .layer(from_fn_with_state(Arc::clone(&shared), check_host))
                .with_state(shared);
            tokio::select! {
                () = connections::serve(listener, routes, HEAD) => {}
                () = ended.notified() => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("view".to_owned())
            .spawn(move || runtime.block_on(serve))
            .map_err(|e| system(&e))?;
        Ok(Server {
            address,
            token,
            ends,
            thread: Some(thread),
        })
    }

    /// Returns the page's URL for a browser on this machine, with the token that gives access.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}/{}/", self.token)
    }

    /// Returns a warning if machines other than this one can reach the page.
    pub fn warning(&self) -> Option<String> {
        let address = self.address.ip();
        if address.is_loopback() {
            return None;
        }
        let other = match address.is_unspecified() {
            true => "; elsewhere, replace the host of the URL by the IP address of this machine",
            false => "",
        };
        Some(format!(
            "--ui {} can be reached from other machines, without encryption: whoever sees the URL controls the run{other}",
            self.address
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl ServerState {
    fn knows(&self, token: &str) -> bool {
        self.token.as_bytes().ct_eq(token.as_bytes()).into()
    }
}

async fn index(State(shared): State<Arc<ServerState>>, Path(token): Path<String>) -> Response {
    serve(&shared, &token, "index.html")
}

async fn file(
    State(shared): State<Arc<ServerState>>,
    Path((token, file)): Path<(String, String)>,
) -> Response {
    serve(&shared, &token, &file)
}

fn serve(shared: &ServerState, token: &str, file: &str) -> Response {
    match page::file(file).filter(|_| shared.knows(token)) {
        Some(found) => page::answer(found),
        None => refuse(
            StatusCode::NOT_FOUND,
            "open the address that corsair has printed",
        ),
    }
}

fn refuse(status: StatusCode, why: &'static str) -> Response {
    let mut response = (status, format!("{why}\n")).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

async fn open(
    State(shared): State<Arc<ServerState>>,
    Path(token): Path<String>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if !shared.knows(&token) {
        return refuse(
            StatusCode::NOT_FOUND,
            "open the address that corsair has printed",
        );
    }
    if !is_own(&headers) {
        return refuse(
            StatusCode::FORBIDDEN,
            "this page belongs to another session; open the address that corsair has printed",
        );
    }
    let Some(seat) = Seat::take(&shared) else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "16 watch already");
    };
    upgrade
        .max_message_size(MOST_ASKED)
        .max_frame_size(MOST_ASKED)
        .on_upgrade(move |socket| socket::watch(socket, seat))
}

/// Rejects requests whose `Host` is neither a loopback name nor the address on which the server listens. A malicious
/// site can make its own name point to this machine (DNS rebinding), but the site cannot choose the `Host` that the
/// browser sends.
async fn check_host(
    State(shared): State<Arc<ServerState>>,
    request: Request,
    next: Next,
) -> Response {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
    if is_allowed(host, shared.asked.ip()) {
        return next.run(request).await;
    }
    refuse(
        StatusCode::MISDIRECTED_REQUEST,
        "this host name is not served; use localhost, 127.0.0.1 or the IP address given to --ui",
    )
}

/// Returns true if a server that listens at `at` accepts this `Host`. Any port is accepted, because ports may be
/// forwarded.
fn is_allowed(host: &str, at: IpAddr) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.is_empty() => name,
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = (name.strip_prefix('[')).and_then(|name| name.strip_suffix(']'));
    let address: Option<IpAddr> = match bare {
        Some(bare) => bare.parse::<Ipv6Addr>().ok().map(Into::into),
        None => name.parse::<Ipv4Addr>().ok().map(Into::into),
    };
    address.is_some_and(|ip| ip.is_loopback() || ip == at || at.is_unspecified())
}

/// Returns true if a socket was opened by the page that this server sent. Clients other than browsers send no origin.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    match (headers.get(header::ORIGIN), text(header::HOST)) {
        (None, _) => true,
        (Some(origin), Some(host)) => {
            let origin = origin.to_str().unwrap_or_default();
            origin
                .strip_prefix("http://")
                .is_some_and(|place| place.eq_ignore_ascii_case(host))
        }
        (Some(_), None) => false,
    }
}

/// A viewer's connection, which is counted and may have the controls.
#[derive(Debug)]
struct Seat {
    shared: Arc<ServerState>,
    id: u64,
}

impl Seat {
    fn take(shared: &Arc<ServerState>) -> Option<Seat> {
        let room = |count| (count < MOST_WATCHERS).then_some(count + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        shared.watchers.fetch_update(set, fetch, room).ok()?;
        let seat = Seat {
            id: shared.next.fetch_add(1, Ordering::Relaxed),
            shared: Arc::clone(shared),
        };
        seat.take_controls(false);
        Some(seat)
    }

    fn has_controls(&self) -> bool {
        *self.shared.holder.borrow() == Some(self.id)
    }

    /// Takes the controls if they are free. With `also_from_another`, also takes them from another viewer.
    fn take_controls(&self, also_from_another: bool) {
        self.shared.holder.send_if_modified(|holder| {
            let takes = holder.is_none() || also_from_another && *holder != Some(self.id);
            if takes {
                *holder = Some(self.id);
            }
            takes
        });
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.watchers.fetch_sub(1, Ordering::Relaxed);
        self.shared.holder.send_if_modified(|holder| {
            let is_mine = *holder == Some(self.id);
            if is_mine {
                *holder = None;
            }
            is_mine
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_and_the_given_address_are_hosts() {
        let [loopback, anywhere, other] =
            ["127.0.0.1", "0.0.0.0", "192.0.2.7"].map(|ip| ip.parse().unwrap());
        for host in [
            "127.0.0.1:4000",
            "localhost",
            "LOCALHOST:9",
            "[::1]:4000",
            "127.9.9.9",
        ] {
            assert!(
                is_allowed(host, loopback) && is_allowed(host, other),
                "{host}"
            );
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "evil.example:4000",
            "localhost.evil.example",
            "192.0.2.7",
            "::1:x",
            "[::1",
        ] {
            assert!(!is_allowed(host, loopback), "{host}");
        }
        assert!(is_allowed("192.0.2.7:80", other) && !is_allowed("192.0.2.8:80", other));
        // A server that listens on all addresses accepts every address as `Host`, but no name.
        assert!(is_allowed("192.0.2.8:80", anywhere) && !is_allowed("evil.example:80", anywhere));
    }

    #[test]
    fn only_the_own_page_may_open_a_socket() {
        let check = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:4000".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            is_own(&headers)
        };
        assert!(check(None) && check(Some("http://127.0.0.1:4000")));
        for wrong in [
            "",
            "null",
            "http://evil.example",
            "http://127.0.0.1:4001",
            "127.0.0.1:4000",
        ] {
            assert!(!check(Some(wrong)), "{wrong}");
        }
    }
}
