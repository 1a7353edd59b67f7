//! Detects processes that do not reach the end of a window.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The processes for which this process is waiting.
#[derive(Debug)]
pub struct Arrivals {
    /// The start of the current wait; `None` while this process computes.
    since: Mutex<Option<Instant>>,
    missing: Box<[AtomicBool]>,
}

impl Arrivals {
    /// Creates the record of a run with this number of processes.
    pub fn new(processes: usize) -> Arrivals {
        Arrivals {
            since: Mutex::default(),
            missing: (0..processes).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Marks this process as waiting from now on.
    pub fn wait(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    /// Records whether a process has not arrived yet.
    pub fn set_missing(&self, process: usize, is_missing: bool) {
        self.missing[process].store(is_missing, Ordering::Relaxed);
    }

    /// Marks this process as computing again.
    pub fn resume(&self) {
        *self.since.lock() = None;
    }

    /// Returns the processes for which this process has been waiting, if the wait has lasted for `limit` or longer.
    fn overdue(&self, limit: Duration) -> Option<Vec<usize>> {
        let since = (*self.since.lock())?;
        let missing = self.missing.iter().enumerate();
        let missing = missing.filter(|(_, is_missing)| is_missing.load(Ordering::Relaxed));
        (since.elapsed() >= limit).then(|| missing.map(|(process, _)| process).collect())
    }
}

/// A thread that reports when this process has waited too long for other processes. Dropping the watch ends the thread.
#[derive(Debug)]
pub struct Watch {
    is_over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts a thread that calls `report` with a message, at most once, when a wait for other processes reaches
    /// `limit`.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start(
        arrivals: Arc<Arrivals>,
        limit: Duration,
        report: impl FnOnce(String) + Send + 'static,
    ) -> std::io::Result<Watch> {
        let is_over = Arc::new((Mutex::new(false), Condvar::new()));
        let ended = Arc::clone(&is_over);
        let look = (limit / 8).clamp(Duration::from_millis(5), Duration::from_secs(1));
        let watch = move || {
            let mut over = ended.0.lock();
            while !*over {
                ended.1.wait_for(&mut over, look);
                if let Some(missing) = arrivals.overdue(limit).filter(|_| !*over) {
                    drop(over);
                    return report(sentence(&missing, limit));
                }
            }
        };
        let thread = thread::Builder::new()
            .name("watch".to_owned())
            .spawn(watch)?;
        Ok(Watch {
            is_over,
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.is_over.0.lock() = true;
        self.is_over.1.notify_all();
        // An error means that the thread panicked; the panic hook has already printed the message.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn sentence(missing: &[usize], limit: Duration) -> String {
    let who = match missing {
        [] => "another process".to_owned(),
        [one] => format!("process {one}"),
        [first, rest @ ..] => format!("process {first} and {} more", rest.len()),
    };
    let verb = if missing.len() > 1 { "have" } else { "has" };
    format!("{who} {verb} not reached the end of a window for {limit:?} (--window-within)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_process_that_does_not_come_is_named() {
        let arrivals = Arc::new(Arrivals::new(3));
        let (sender, receiver) = channel();
        let limit = Duration::from_millis(20);
        let report = move |sentence| sender.send(sentence).unwrap();
        let _watch = Watch::start(Arc::clone(&arrivals), limit, report).unwrap();
        arrivals.set_missing(2, true);
        arrivals.wait();
        let text = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(
            text.starts_with("process 2 has not reached the end") && text.contains("20ms"),
            "{text}"
        );
    }

    #[test]
    fn a_process_that_computes_waits_for_nobody() {
        let arrivals = Arrivals::new(2);
        arrivals.set_missing(1, true);
        assert_eq!(arrivals.overdue(Duration::ZERO), None);
        arrivals.wait();
        assert_eq!(arrivals.overdue(Duration::ZERO), Some(vec![1]));
        assert_eq!(arrivals.overdue(Duration::from_secs(3600)), None);
        arrivals.resume();
        assert_eq!(arrivals.overdue(Duration::ZERO), None);
    }
}
