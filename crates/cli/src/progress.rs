//! A progress bar on stderr, for runs that take more than a second on a terminal.

use crate::console::Console;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How far the talk of a run by the clock has come.
#[derive(Clone, Copy, Debug)]
pub struct Talk {
    began: Instant,
    takes: Duration,
}

impl Talk {
    /// A talk that begins now.
    pub fn begins(takes: Duration) -> Talk {
        Talk {
            began: Instant::now(),
            takes,
        }
    }
}

/// A bar that appears after a second and goes when this is dropped.
#[derive(Debug)]
pub struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

/// Runs shorter than this have no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);

impl Progress {
    /// Begins to wait, if stderr is a terminal. `by_clock` says that the time of the run is that
    /// of the clock, so that it is known how long the talk takes.
    pub fn begin(console: &Arc<Console>, by_clock: bool) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { running: None };
        }
        let (stop, stopped) = channel();
        let console = Arc::clone(console);
        let draw = move || {
            if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = bar(console.talk().filter(|_| by_clock));
            console.set_bar(Some(bar.clone()));
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some(talk) = console.talk().filter(|_| by_clock) {
                    bar.set_position(talk.began.elapsed().min(talk.takes).as_millis() as u64);
                }
                bar.tick();
            }
            console.set_bar(None);
            bar.finish_and_clear();
        };
        // Without a thread there is no bar, which is no reason to have no run.
        let thread = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(draw);
        Progress {
            running: thread.ok().map(|thread| (stop, thread)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn bar(talk: Option<Talk>) -> ProgressBar {
    let (bar, template) = match talk {
        Some(talk) if !talk.takes.is_zero() => (
            ProgressBar::new(talk.takes.as_millis() as u64),
            "{elapsed} {wide_bar} {percent}%",
        ),
        _ => (
            ProgressBar::new_spinner(),
            "{spinner} running for {elapsed}; Ctrl-C ends it",
        ),
    };
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
