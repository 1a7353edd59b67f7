//! Ctrl-C and requests to terminate.

use anyhow::Context;

/// Signals that ask the program to end, received from the creation of this value on.
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

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ctrl-C, received from the creation of this value on.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Signals> {
        Ok(Signals)
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.context("no handler").is_err() {
            std::future::pending::<()>().await;
        }
    }
}
