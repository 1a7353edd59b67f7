//! Sending to another system during the run.
//!
//! A separate thread sends one payload after the other. If the system is slow, the run waits as soon as a few payloads
//! are queued: nothing is dropped. If the system fails, the run continues, and lost payloads are counted. After a
//! failure, payloads are discarded for a pause. The pause is 1 s at first and doubles with each failure. Then the next
//! payload is tried. So a system that has failed costs the run an occasional time-out, and a system that recovers is
//! used again.

#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(feature = "kafka")]
pub(crate) mod kafka;

use crate::{Loss, ObserveError};
use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The maximum number of queued payloads.
const QUEUE: usize = 16;

/// The pause after the first failure of a system, and the longest pause.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A system that receives payloads.
pub(crate) trait Destination: Send + 'static {
    /// Sends one payload.
    ///
    /// # Errors
    /// Returns a description of the failure.
    fn send(&mut self, payload: &[u8]) -> Result<(), String>;
}

struct Payload {
    bytes: Vec<u8>,
    /// The number of spans or events in the payload.
    count: u64,
}

/// The queue of a system, and the thread that sends the payloads.
pub(crate) struct Remote {
    queue: SyncSender<Payload>,
    thread: JoinHandle<SendResult>,
    /// The unit of payloads.
    unit: &'static str,
    system: String,
}

/// The results of sending.
#[derive(Debug, Default)]
struct SendResult {
    sent: u64,
    lost: u64,
    reason: Option<String>,
}

impl Remote {
    /// Starts a thread that sends payloads to a system with this name.
    pub(crate) fn start(
        system: String,
        unit: &'static str,
        destination: impl Destination,
    ) -> Result<Remote, ObserveError> {
        let (queue, payloads) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("sender".to_owned())
            .spawn(move || send_all(&payloads, destination))
            .map_err(ObserveError::Thread)?;
        Ok(Remote {
            queue,
            thread,
            unit,
            system,
        })
    }

    /// Queues a payload with `count` items; waits if the queue is full.
    pub(crate) fn send(&self, bytes: Vec<u8>, count: u64) {
        // The thread receives payloads while the queue exists. If the thread has panicked, `finish` counts the payloads
        // as lost.
        let _ = self.queue.send(Payload { bytes, count });
    }

    /// Waits until all payloads are sent or discarded. Returns the losses among `all`.
    pub(crate) fn finish(self, all: u64) -> Option<Loss> {
        drop(self.queue);
        let sent = self.thread.join().unwrap_or_else(|_| SendResult {
            lost: all,
            reason: Some("the sending thread has panicked".to_owned()),
            sent: 0,
        });
        assert_eq!(sent.sent + sent.lost, all);
        (sent.lost > 0).then(|| Loss {
            system: self.system,
            lost: sent.lost,
            of: all,
            unit: self.unit,
            reason: sent.reason.unwrap_or_default(),
        })
    }
}

fn send_all(payloads: &Receiver<Payload>, mut destination: impl Destination) -> SendResult {
    let mut result = SendResult::default();
    let mut pause = PAUSE;
    let mut alone_until: Option<Instant> = None;
    for payload in payloads {
        if alone_until.is_some_and(|until| Instant::now() < until) {
            result.lost += payload.count;
            continue;
        }
        match destination.send(&payload.bytes) {
            Ok(()) => {
                result.sent += payload.count;
                (pause, alone_until) = (PAUSE, None);
            }
            Err(reason) => {
                result.lost += payload.count;
                result.reason.get_or_insert(reason);
                alone_until = Some(Instant::now() + pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
    result
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.system).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system that accepts this many payloads and then fails.
    struct Dying(u32);

    impl Destination for Dying {
        fn send(&mut self, _: &[u8]) -> Result<(), String> {
            self.0 = self.0.checked_sub(1).ok_or("it died")?;
            Ok(())
        }
    }

    // Guarantee: observe-11.
    #[test]
    fn what_a_dying_system_does_not_take_is_counted_with_the_reason() {
        let remote = Remote::start("x at y".into(), "spans", Dying(2)).unwrap();
        for _ in 0..100 {
            remote.send(b"payload".to_vec(), 10);
        }
        let loss = remote.finish(1_000).unwrap();
        assert_eq!((loss.lost, loss.of), (980, 1_000));
        assert_eq!(
            (loss.system.as_str(), loss.reason.as_str()),
            ("x at y", "it died")
        );
    }

    #[test]
    fn nothing_is_lost_on_a_system_that_lives() {
        let remote = Remote::start("x".into(), "spans", Dying(100)).unwrap();
        (0..100).for_each(|_| remote.send(Vec::new(), 1));
        assert_eq!(remote.finish(100), None);
    }
}
