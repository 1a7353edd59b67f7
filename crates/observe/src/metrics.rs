//! An HTTP server that publishes the measured times of a run for Prometheus, during the run: `GET /metrics`.

use crate::ObserveError;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The server, which runs on a separate thread. It stops when this value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the text that `text` returns; `text` is called for each request.
    ///
    /// # Errors
    /// [`ObserveError::Metrics`] if the address cannot be used.
    pub(crate) fn start(
        address: SocketAddr,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Server, ObserveError> {
        let failed = |error| ObserveError::Metrics { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let text = Arc::new(text);
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
                return;
            };
            let metrics = move || {
                let text = text();
                async move {
                    (
                        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
                        text,
                    )
                }
            };
            let routes = Router::new()
                .route("/metrics", get(metrics))
                .fallback(|| async { (axum::http::StatusCode::NOT_FOUND, "see /metrics\n") });
            // When the server is asked to end, it ends at once and does not send the rest of an answer.
            tokio::select! {
                _ = async { axum::serve(listener, routes).await } => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || runtime.block_on(serve))
            .map_err(ObserveError::Thread)?;
        Ok(Server {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the address of the server, with the real port if port 0 was requested.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may already have ended, so the result is ignored.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
