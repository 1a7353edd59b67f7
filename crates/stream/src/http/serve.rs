//! Connections: accepted up to a limit, each with its own task and time limits.

use super::tls::Tls;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower::ServiceExt;

/// The limits of connections.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The maximum number of connections; a further one is answered with 503 and closed.
    pub connections: usize,
    /// The time limit for a request's head, which also applies to idle connections.
    pub head: Duration,
    /// The time limit for a client to receive a part of an answer.
    pub write: Duration,
    /// The time limit for running requests at shutdown.
    pub grace: Duration,
    /// The certificate, if connections use TLS.
    pub tls: Option<Tls>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            head: Duration::from_secs(60),
            write: Duration::from_secs(30),
            grace: Duration::from_secs(3),
            tls: None,
        }
    }
}

/// The buffer of a connection in bytes, which must hold the head of a request.
const BUFFER: usize = 16 << 10;
/// The pause after the system has refused a connection, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is ready, then waits for running requests within the time limit, and closes all other
/// connections.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let (stopping, stopped) = watch::channel(false);
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.as_mut() => break,
        };
        let Ok((stream, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        match room.clone().try_acquire_owned() {
            Ok(permit) => {
                let connection = accept(stream, router.clone(), limits.clone(), stopped.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(_) => drop(connections.spawn(turn_away(stream, limits.connections))),
        }
    }
    drop(listener);
    stopping.send_replace(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(limits.grace, ended).await;
    connections.shutdown().await;
}

/// Serves a connection, after the TLS handshake if there is a certificate.
async fn accept(stream: TcpStream, router: Router, limits: Limits, stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = &limits.tls else {
        return connection(stream, router, &limits, stopped).await;
    };
    // A handshake is a part of the head of a request.
    if let Ok(Ok(stream)) = timeout(limits.head, tls.accept(stream)).await {
        connection(stream, router, &limits, stopped).await;
    }
}

async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    router: Router,
    limits: &Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let stream = TimedWrites::new(stream, limits.write);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // hyper itself answers violations of HTTP.
        _ = connection.as_mut() => {}
        () = told(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// Returns when it is time to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// Answers a client that exceeds the limit of connections.
async fn turn_away(mut stream: TcpStream, most: usize) {
    let message = format!("there are {most} connections already; try again in a moment");
    let body = format!(r#"{{"code":"connections","message":"{message}","error":"{message}"}}"#);
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 1\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let answered = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(Duration::from_secs(1), answered).await;
}

/// A socket whose writes have a time limit.
struct TimedWrites<S> {
    stream: S,
    time: Duration,
    /// Set while a write waits.
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> TimedWrites<S> {
    fn new(stream: S, time: Duration) -> TimedWrites<S> {
        TimedWrites {
            stream,
            time,
            deadline: Box::pin(sleep(Duration::ZERO)),
            waiting: false,
        }
    }

    /// Returns the result of a write; an error if it was blocked for too long.
    fn timed<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.waiting = false;
            return poll;
        }
        if !self.waiting {
            self.waiting = true;
            self.deadline.as_mut().reset(Instant::now() + self.time);
        }
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(cx, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
