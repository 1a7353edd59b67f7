//! Ctrl-C: the first ends the run cleanly, the second ends the process.

use corsair::Cut;

/// The exit code of a process that Ctrl-C has ended.
pub const EXIT_CODE: u8 = 130;

/// Lets Ctrl-C cut runs with this switch. Where the system gives no handler, Ctrl-C ends the
/// process at once, as it would anyway.
pub fn on_ctrl_c(cut: Cut) {
    let handler = move || {
        if cut.is_cut() {
            std::process::exit(EXIT_CODE.into());
        }
        cut.cut();
    };
    let _ = ctrlc::set_handler(handler);
}

/// Waits for Ctrl-C or a request to terminate, which counts from this call on. Another one ends the
/// process.
pub fn asked_to_end() -> impl Future<Output = ()> + Send {
    let first = signalled();
    async {
        first.await;
        tokio::spawn(async {
            signalled().await;
            std::process::exit(EXIT_CODE.into());
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
