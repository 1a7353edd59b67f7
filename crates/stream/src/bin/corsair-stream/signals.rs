//! Ctrl-C and requests to terminate.

use anyhow::Context;

/// Signals that ask the program to end, from the moment that it listens to them.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = "cannot listen to signals";
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt()).context(failed)?,
            terminate: signal(SignalKind::terminate()).context(failed)?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ctrl-C, from the moment that the program listens to it.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Signals> {
        Ok(Signals)
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.context("no handler").is_err() {
            std::future::pending::<()>().await;
        }
    }
}
