//! Runs work that Ctrl-C can end and that reports its progress.
//!
//! A separate thread does the work, without the interpreter. The calling thread waits. Ten times per second it takes
//! the interpreter to handle signals, which only the main thread does, and to call the progress function.

use corsair::CancelToken;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The interval at which signals and progress are checked.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work`. Cancelling `cancel` ends it early. `progress` is called regularly with the result of `so_far`.
///
/// # Errors
/// If a signal handler or `progress` raises an exception during the work, if the work panics, or if its
/// thread cannot be started.
pub fn watched<T: Send>(
    py: Python<'_>,
    cancel: &CancelToken,
    progress: Option<&Bound<'_, PyAny>>,
    so_far: impl Fn() -> f64,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (ended, bell) = (Mutex::new(false), Condvar::new());
    let mut raised = None;
    let done = thread::scope(|scope| {
        let worker = thread::Builder::new().name("corsair".to_owned());
        let worker = worker.spawn_scoped(scope, || {
            let done = catch_unwind(AssertUnwindSafe(work));
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
            bell.notify_one();
            done
        });
        let worker = worker
            .map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
        loop {
            let is_over = py.detach(|| {
                let guard = ended.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = bell.wait_timeout_while(guard, TICK, |ended| !*ended);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            });
            if is_over {
                break;
            }
            if raised.is_none() {
                let told = py.check_signals().and_then(|()| match progress {
                    Some(progress) => progress.call1((so_far(),)).map(drop),
                    None => Ok(()),
                });
                if let Err(error) = told {
                    cancel.cancel();
                    raised = Some(error);
                }
            }
        }
        py.detach(|| worker.join())
            .map_err(panicked)?
            .map_err(panicked)
    })?;
    // Checks for a signal that arrived at the very end.
    let raised = raised.or_else(|| py.check_signals().err());
    raised.map_or(Ok(done), Err)
}

/// Returns the exception for a panic, which is reported as a fault of the program.
fn panicked(panic: Box<dyn std::any::Any + Send>) -> PyErr {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    PyRuntimeError::new_err(format!(
        "corsair has failed by a fault of its own, please report it: {}",
        words.unwrap_or("no words")
    ))
}
