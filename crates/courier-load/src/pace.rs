//! Exact times of an open-loop schedule.
//!
//! A timer of the async runtime fires only at whole milliseconds, and this delay would be counted as latency. Instead,
//! a dedicated thread sleeps until each POST is due, with an error of a few dozen microseconds, and wakes the worker
//! that makes the POST.

use crate::LoadError;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The receiver of the intended time of a worker's next POST.
pub(crate) type Due = mpsc::UnboundedReceiver<Instant>;

/// Starts the thread. POST number `n` is due `n / rate` seconds after `start`, and worker `n % workers` makes it. The
/// thread ends after the last POST, or when all workers have ended.
///
/// # Errors
/// If the system cannot create a thread.
pub(crate) fn start(
    rate: f64,
    start: Instant,
    workers: usize,
    messages: usize,
) -> Result<Vec<Due>, LoadError> {
    let (tell, due): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::unbounded_channel()).unzip();
    let pace = move || {
        for number in 0..workers * messages {
            let at = start + Duration::from_secs_f64(number as f64 / rate);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if tell[number % workers].send(at).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("courier pace".to_owned())
        .spawn(pace)
        .map_err(|error| LoadError::Task(error.to_string()))?;
    Ok(due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_worker_receives_its_times_in_order_and_never_early() {
        let begun = Instant::now();
        let due = start(10_000.0, begun, 3, 5).unwrap();
        for (worker, mut due) in due.into_iter().enumerate() {
            for turn in 0..5 {
                let at = due.recv().await.unwrap();
                let number = (turn * 3 + worker) as f64;
                assert_eq!(at, begun + Duration::from_secs_f64(number / 10_000.0));
                assert!(Instant::now() >= at);
            }
            assert!(due.recv().await.is_none());
        }
    }
}
