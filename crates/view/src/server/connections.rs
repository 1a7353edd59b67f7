//! Connections to the page: a limited number, each with a time limit for its first request.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tower::ServiceExt;

/// The largest number of connections; further ones are closed at once. A browser opens six.
const MOST: usize = 128;

/// The size of a connection's buffer in bytes; it must hold the head of a request.
const BUFFER: usize = 16 << 10;

/// The pause after the system has refused a connection, for example because there are too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves connections and never returns. The head of a request must arrive within a time limit. The same limit ends
/// idle connections, except WebSockets.
pub(super) async fn serve(listener: TcpListener, routes: Router, head: Duration) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let routes = routes.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            routes.clone().oneshot(request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::spawn(async move {
            // hyper itself answers violations of HTTP.
            let _ = connection.await;
            drop(permit);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    #[test]
    fn a_connection_that_does_not_say_what_it_wants_is_closed_and_others_are_served() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let routes = Router::new().route("/", get(async || "here"));
            runtime.block_on(serve(listener, routes, Duration::from_millis(200)));
        });
        let answer = |stream: &mut TcpStream| {
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let mut text = String::new();
            // A reset of the connection is accepted like its end.
            let _ = stream.read_to_string(&mut text);
            text
        };
        let slow: Vec<TcpStream> = (0..MOST - 1)
            .map(|number| {
                let mut stream = TcpStream::connect(address).unwrap();
                write!(stream, "GET / HTTP/1.1\r\nX-{number}: ").unwrap();
                stream
            })
            .collect();
        let mut quick = TcpStream::connect(address).unwrap();
        write!(
            quick,
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        assert!(answer(&mut quick).ends_with("here"));
        for mut stream in slow {
            let said = answer(&mut stream);
            assert!(!said.contains("200 OK"), "{said}");
        }
    }
}
