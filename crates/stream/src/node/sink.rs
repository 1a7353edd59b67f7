//! `log`, `http_out` and `http_post`: what leaves a task. Each passes on what it gets.

use super::{Counter, NodeError, Operator};
use crate::batch::{Flow, Group};
use crate::series::Document;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where the `log` nodes of an engine write.
pub(crate) type LogTarget = Arc<Mutex<dyn Write + Send>>;

/// Writes points as lines of the line protocol.
pub(crate) struct Log {
    /// What stands before each line.
    pub(crate) prefix: String,
    pub(crate) target: LogTarget,
    pub(crate) lost: Counter,
}

impl Operator for Log {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        let mut text = String::new();
        for batch in flow.batches() {
            for row in batch.rows.iter() {
                text.push_str(&self.prefix);
                batch.block.write_line(row, &mut text);
                text.push('\n');
            }
        }
        // All of them at once: lines of different nodes do not mix.
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        let written = target.write_all(text.as_bytes());
        if written.and_then(|()| target.flush()).is_err() {
            // A log that cannot be written, a closed pipe say, is no reason to stop the task.
            self.lost.add(flow.points());
        }
        drop(target);
        out.push(flow);
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, Counter)> {
        vec![("lost", self.lost.clone())]
    }
}

/// The latest window or batch of every group.
#[derive(Clone, Debug, Default)]
pub struct Latest(Arc<Mutex<BTreeMap<Arc<Group>, Flow>>>);

impl Latest {
    fn set(&self, flow: Flow) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.insert(flow.group().clone(), flow);
    }

    /// As JSON, a series per group, ordered by the values of the tags.
    pub fn json(&self) -> Vec<u8> {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let flows: Vec<Flow> = latest.values().cloned().collect();
        drop(latest);
        json(&flows)
    }
}

/// Keeps the latest for those who ask.
pub(crate) struct HttpOut(pub(crate) Latest);

impl Operator for HttpOut {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) -> Result<(), NodeError> {
        self.0.set(flow.clone());
        out.push(flow);
        Ok(())
    }
}

/// Posts what comes to a URL. Tries three times, then counts it as failed: a receiver that is away
/// must not stop the task.
pub(crate) struct HttpPost {
    url: Arc<str>,
    agent: ureq::Agent,
    counts: PostCounts,
}

#[derive(Clone, Default)]
pub(crate) struct PostCounts {
    posted: Counter,
    failed: Counter,
}

/// How long one try may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long it waits before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

impl HttpPost {
    pub(crate) fn new(url: Arc<str>) -> HttpPost {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .build();
        HttpPost {
            url,
            agent: config.into(),
            counts: PostCounts::default(),
        }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, Counter)> {
        vec![
            ("posted", self.counts.posted.clone()),
            ("failed", self.counts.failed.clone()),
        ]
    }

    /// Posts it. Blocks the thread.
    pub(crate) fn post(&self, flow: &Flow) {
        let body = json(std::slice::from_ref(flow));
        let send = || {
            let request = self.agent.post(&*self.url);
            let sent = request.content_type("application/json").send(&body[..]);
            sent.is_ok()
        };
        let tries = std::iter::once(Duration::ZERO).chain(PAUSES);
        let sent = tries.into_iter().any(|pause| {
            std::thread::sleep(pause);
            send()
        });
        if sent {
            self.counts.posted.add(1);
        } else {
            self.counts.failed.add(1);
        }
    }
}

fn json(flows: &[Flow]) -> Vec<u8> {
    serde_json::to_vec(&Document { flows }).expect("strings and numbers are always written")
}
