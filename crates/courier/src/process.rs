//! Settings of the process that runs a node: its limit of open files, and the signals that end it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The exit code of a process that a signal has ended.
pub const INTERRUPTED: u8 = 130;

/// Raises the limit of open files to the maximum for this process, because every connection needs a file. If the system
/// refuses, the limit is unchanged, and connections beyond it wait.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Waits for Ctrl-C or SIGTERM, including signals between this call and the first poll. A second signal ends the
/// process.
pub fn asked_to_end() -> impl Future<Output = ()> + Send {
    let first = signalled();
    async {
        first.await;
        tokio::spawn(async {
            signalled().await;
            std::process::exit(INTERRUPTED.into());
        });
    }
}

/// Calls a function at every SIGHUP, from this call on. Without this call, SIGHUP ends the process. On systems
/// without SIGHUP this does nothing.
pub fn on_hangup(call: impl Fn() + Send + 'static) {
    #[cfg(unix)]
    if let Ok(mut hangup) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                call();
            }
        });
    }
    #[cfg(not(unix))]
    drop(call);
}

#[cfg(unix)]
fn signalled() -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    async {
        // If no handler can be installed, the signal ends the process by default.
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
