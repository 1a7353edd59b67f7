//! Ctrl-C and requests to terminate: the first ends the server cleanly, the second the process.

/// The exit code of a process that a second signal has ended.
const EXIT_CODE: i32 = 130;

/// Waits for Ctrl-C or a request to terminate, which counts from this call on. Another one ends the
/// process.
pub(crate) fn asked_to_end() -> impl Future<Output = ()> + Send {
    let first = signalled();
    async {
        first.await;
        tokio::spawn(async {
            signalled().await;
            std::process::exit(EXIT_CODE);
        });
    }
}

#[cfg(unix)]
fn signalled() -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    async {
        // Where the system gives no handler, the signal ends the process as it would anyway.
        let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
