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

/// Waits for Ctrl-C or a request to terminate. Another one ends the process.
pub async fn asked_to_end() {
    signalled().await;
    tokio::spawn(async {
        signalled().await;
        std::process::exit(EXIT_CODE.into());
    });
}

#[cfg(unix)]
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    // Where the system gives no handler, the signal ends the process as it would anyway.
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
