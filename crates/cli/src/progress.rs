//! A progress bar on stderr, for runs that take more than a second on a terminal.

use crate::console::{Console, Talk};
use corsair::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The source of the talk's progress.
#[derive(Clone, Debug)]
pub enum Measure {
    /// The progress on the wall clock.
    Clock,
    /// The progress in virtual time, as reported by the run.
    Virtual(Progress),
}

impl Measure {
    /// Returns the elapsed part of the talk.
    fn done(&self, talk: &Talk) -> Duration {
        let done = match self {
            Measure::Clock => talk.elapsed(),
            Measure::Virtual(progress) => progress.time().elapsed(),
        };
        done.min(talk.takes())
    }
}

/// A progress bar that appears after a second and disappears when it is dropped.
#[derive(Debug)]
pub struct Bar {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The time after which a run gets a bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// The interval at which the bar moves.
const TICK: Duration = Duration::from_millis(100);

impl Bar {
    /// Starts a progress bar, if stderr is a terminal.
    pub fn begin(console: &Arc<Console>, measure: Measure) -> Bar {
        if !std::io::stderr().is_terminal() {
            return Bar { running: None };
        }
        let (stop, stopped) = channel();
        let console = Arc::clone(console);
        let draw = move || {
            let waited = |time| stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if !waited(PATIENCE) {
                return;
            }
            let bar = ProgressBar::new_spinner().with_style(style(SPINNER));
            console.set_bar(Some(bar.clone()));
            let mut measured = false;
            while waited(TICK) {
                if let Some(talk) = console.talk().filter(|talk| !talk.takes().is_zero()) {
                    if !measured {
                        bar.set_style(style(BAR));
                        bar.set_length(talk.takes().as_millis() as u64);
                        measured = true;
                    }
                    bar.set_position(measure.done(&talk).as_millis() as u64);
                }
                bar.tick();
            }
            console.set_bar(None);
            bar.finish_and_clear();
        };
        // If the thread cannot be started, the run continues without a progress bar.
        let thread = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(draw);
        Bar {
            running: thread.ok().map(|thread| (stop, thread)),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// The text before the talk, or in runs without a talk.
const SPINNER: &str = "{spinner} running for {elapsed}; Ctrl-C ends it";
/// The text during the talk.
const BAR: &str = "{elapsed} {wide_bar} {percent}% of the talk; Ctrl-C ends it";

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_understood() {
        for template in [SPINNER, BAR] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn no_more_of_a_talk_is_over_than_there_is() {
        let talk = Talk::begins(Duration::ZERO);
        assert_eq!(Measure::Clock.done(&talk), Duration::ZERO);
        let talk = Talk::begins(Duration::from_secs(5));
        assert_eq!(
            Measure::Virtual(Progress::default()).done(&talk),
            Duration::ZERO
        );
    }
}
