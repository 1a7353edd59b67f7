//! `http_post`: each window or batch posted to a URL as JSON.

use super::queue::{Body, Counts, Deliver, Queue};
use super::{Counters, Kept};
use crate::batch::Flow;
use crate::json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Posts what comes to a URL. Tries three times, then counts it as failed: a receiver that is away
/// must not stop the task.
pub(crate) struct HttpPost {
    queue: Queue,
    counts: Counts,
}

/// How long it waits before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// So often it looks, while it waits, whether to give up.
const LOOK: Duration = Duration::from_millis(20);

impl HttpPost {
    /// `timeout`: how long one try may take. `limit`: bytes that may wait.
    pub(crate) fn new(name: String, url: Arc<str>, timeout: Duration, limit: usize) -> HttpPost {
        let agent = ureq::Agent::config_builder().timeout_global(Some(timeout));
        let agent: ureq::Agent = agent.build().into();
        let deliver: Deliver = Box::new(move |body, over| {
            let send = || {
                let request = agent.post(&*url).content_type("application/json");
                request.send(body.as_bytes()).is_ok()
            };
            let pauses = std::iter::once(Duration::ZERO).chain(PAUSES);
            pauses.into_iter().any(|pause| {
                let until = Instant::now() + pause;
                while Instant::now() < until && !over() {
                    std::thread::sleep(LOOK.min(pause));
                }
                !over() && send()
            })
        });
        HttpPost {
            queue: Queue::new(name, limit, deliver),
            counts: Counts::default(),
        }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn counters(&self) -> Counters {
        vec![
            ("posted", self.counts.delivered.clone()),
            ("failed", self.counts.failed.clone()),
            ("dropped", self.counts.dropped.clone()),
        ]
    }

    pub(crate) fn body(&self, flow: &Flow) -> Body {
        Body {
            text: json(std::slice::from_ref(flow)),
            count: 1,
            counts: self.counts.clone(),
            pending: None,
        }
    }

    /// What was not posted before the last stop is posted first.
    pub(crate) fn restore(&self, kept: Kept) {
        if let Kept::Bodies(bodies) = kept {
            self.queue.refill(bodies, &self.counts);
        }
    }
}
