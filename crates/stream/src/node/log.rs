//! `log`: points as lines of the line protocol, to a file or pipe that all `log` nodes share.

use super::queue::{Body, Counts, Deliver, Queue};
use super::{Counter, Counters};
use crate::batch::Flow;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the `log` nodes of an engine write.
pub(crate) type LogTarget = Arc<Mutex<dyn Write + Send>>;

/// Writes points as lines.
pub(crate) struct Log {
    /// What stands before each line.
    prefix: String,
    lost: Counter,
}

/// The queue that leads to a target.
pub(crate) fn queue(target: LogTarget, limit: usize) -> Queue {
    let deliver: Deliver = Box::new(move |text, _| {
        let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
        let written = target.write_all(text.as_bytes());
        // A log that cannot be written, a closed pipe say, is no reason to stop a task.
        written.and_then(|()| target.flush()).is_ok()
    });
    Queue::new("log".into(), limit, deliver)
}

/// The queue that leads to the end of a file, made if there is none.
pub(crate) fn file(name: String, path: PathBuf, limit: usize) -> Queue {
    let mut open: Option<File> = None;
    let deliver: Deliver = Box::new(move |text, _| {
        if open.is_none() {
            let file = File::options().create(true).append(true).open(&path);
            open = file
                .map_err(|error| tracing::warn!("{}: {error}", path.display()))
                .ok();
        }
        let written = open
            .as_mut()
            .is_some_and(|file| file.write_all(text.as_bytes()).is_ok());
        if !written {
            // The next one tries again.
            open = None;
        }
        written
    });
    Queue::new(name, limit, deliver)
}

impl Log {
    pub(crate) fn new(prefix: String) -> Log {
        let lost = Counter::default();
        Log { prefix, lost }
    }

    pub(crate) fn counters(&self) -> Counters {
        vec![("lost", self.lost.clone())]
    }

    /// The lines of a flow: one body, so that lines of different nodes do not mix.
    pub(crate) fn body(&self, flow: &Flow) -> Body {
        let mut text = String::new();
        for batch in flow.batches() {
            for row in batch.rows.iter() {
                let begin = text.len();
                text.push_str(&self.prefix);
                match batch.block.write_line(row, &mut text) {
                    true => text.push('\n'),
                    // There is no line for it, a float that is not finite, say.
                    false => text.truncate(begin),
                }
            }
        }
        Body {
            text,
            count: flow.points(),
            counts: Counts {
                delivered: Counter::default(),
                failed: self.lost.clone(),
                dropped: self.lost.clone(),
            },
            pending: None,
        }
    }
}
