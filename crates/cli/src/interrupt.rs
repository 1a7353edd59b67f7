//! Ctrl-C: the first press ends the run cleanly, the second ends the process.

use corsair::CancelToken;
use std::thread;
use tokio::runtime::{Builder, Runtime};

/// The exit code if Ctrl-C ended the process.
pub const EXIT_CODE: u8 = 130;

/// Makes Ctrl-C cancel the runs with this token. If no handler can be installed, Ctrl-C ends the process at once.
pub fn on_ctrl_c(cancel: CancelToken) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return;
    };
    // Presses after this line are recorded, even before the thread runs.
    let Ok(mut presses) = Presses::new(&runtime) else {
        return;
    };
    let listen = async move {
        while presses.next().await {
            if cancel.is_cancelled() {
                std::process::exit(EXIT_CODE.into());
            }
            cancel.cancel();
        }
    };
    // Without the thread, Ctrl-C would have no effect, so the program ends here.
    thread::Builder::new()
        .name("ctrl-c".to_owned())
        .spawn(move || runtime.block_on(listen))
        .unwrap_or_else(|error| panic!("no thread for Ctrl-C: {error}"));
}

/// A stream of presses of Ctrl-C.
#[cfg(unix)]
struct Presses(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Presses {
    fn new(runtime: &Runtime) -> std::io::Result<Presses> {
        use tokio::signal::unix::{SignalKind, signal};
        let _inside = runtime.enter();
        signal(SignalKind::interrupt()).map(Presses)
    }

    /// Waits for the next press; returns false if no more presses can arrive.
    async fn next(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// A stream of presses of Ctrl-C.
#[cfg(windows)]
struct Presses(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Presses {
    fn new(runtime: &Runtime) -> std::io::Result<Presses> {
        let _inside = runtime.enter();
        tokio::signal::windows::ctrl_c().map(Presses)
    }

    /// Waits for the next press; returns false if no more presses can arrive.
    async fn next(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Calls `end` when the process receives SIGTERM. If no handler can be installed, the signal ends the process.
#[cfg(all(feature = "mpi", unix))]
pub fn on_terminate(end: impl FnOnce() + Send + 'static) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let inside = runtime.enter();
    let Ok(mut signals) = signal(SignalKind::terminate()) else {
        return;
    };
    drop(inside);
    let wait = move || {
        if runtime.block_on(signals.recv()).is_some() {
            end();
        }
    };
    thread::Builder::new()
        .name("sigterm".to_owned())
        .spawn(wait)
        .unwrap_or_else(|error| panic!("no thread for SIGTERM: {error}"));
}

#[cfg(all(feature = "mpi", not(unix)))]
pub fn on_terminate(_: impl FnOnce() + Send + 'static) {}
