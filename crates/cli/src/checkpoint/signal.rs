//! SIGUSR1: save the run now.

use crate::console::complain;
use crate::options::Checkpoints;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if the signal has arrived since the last query.
pub struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Starts to listen for the signal. Nothing arrives on systems without this signal.
    pub fn new() -> Signals {
        let asked = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        listen(&asked);
        Signals(asked)
    }

    /// Returns true once for each signal. If the run cannot be saved, it prints a message instead.
    pub fn asked_for(&self, checkpoints: &Checkpoints) -> bool {
        let asked = self.0.swap(false, Ordering::Relaxed);
        if asked && checkpoints.has_changed_fields() {
            complain(
                "SIGUSR1: a branch with --set cannot be saved, because a checkpoint cannot contain changed fields",
            );
            return false;
        }
        asked
    }
}

#[cfg(unix)]
fn listen(asked: &Arc<AtomicBool>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    let inside = runtime.enter();
    let Ok(mut signals) = signal(SignalKind::user_defined1()) else {
        return;
    };
    drop(inside);
    let asked = Arc::clone(asked);
    let wait = async move {
        while signals.recv().await.is_some() {
            asked.store(true, Ordering::Relaxed);
        }
    };
    // If the thread cannot be started, the signal does nothing, because its handler is already installed.
    let thread = std::thread::Builder::new().name("sigusr1".to_owned());
    let _ = thread.spawn(move || runtime.block_on(wait));
}
