//! The queue of a sink: bodies that a separate thread delivers.
//!
//! A node never waits for a file, a pipe or a socket. It puts a body into a [`Queue`], which is bounded in
//! bytes; a separate thread delivers them in order. The thread is started with the first body and ends after
//! a time without bodies.

use super::append::Append;
use super::counter::{Counter, Counters};
use crate::pending::PendingWrite;
use corsair::edge::Overflow;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;

/// A body that a sink delivers at once.
pub(crate) struct Body {
    /// The sequence number of the body within its node; a repeated delivery has the same number.
    pub(crate) number: u64,
    pub(crate) text: String,
    /// The number that this body adds to the counters.
    pub(crate) count: usize,
    pub(crate) counts: Counts,
    /// The write of the body, which is pending until this is dropped.
    pub(crate) pending: Option<PendingWrite>,
}

/// A body that has not been delivered, for the next start.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Undelivered {
    pub(crate) number: u64,
    pub(crate) text: String,
}

/// The counters of bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) delivered: Counter,
    /// The number of bodies whose delivery failed.
    pub(crate) failed: Counter,
    /// The number of bodies that were dropped because the queue was full.
    pub(crate) dropped: Counter,
}

impl Counts {
    /// Returns the counters with their names.
    pub(crate) fn named(&self, delivered: &'static str) -> Counters {
        vec![
            (delivered, self.delivered.clone()),
            ("failed", self.failed.clone()),
            ("dropped", self.dropped.clone()),
        ]
    }
}

/// Delivers a body, waiting if necessary, and returns false if it could not be delivered. The second argument
/// returns true when the delivery must be abandoned.
pub(crate) type Deliver = Box<dyn FnMut(&Undelivered, &dyn Fn() -> bool) -> bool + Send>;

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Queue(Arc<Inner>);

struct Inner {
    name: String,
    limit: usize,
    state: Mutex<State>,
    /// Notified when a body has arrived, or the queue is closed.
    filled: Condvar,
    /// Notified when the queue has capacity, is empty, or is closed.
    drained: Notify,
    deliver: Mutex<Deliver>,
    /// The file to which the queue appends, if any.
    file: Option<Append>,
}

#[derive(Default)]
struct State {
    bodies: VecDeque<Body>,
    /// The bytes of bodies, including the one that is being delivered.
    bytes: usize,
    /// The body that is being delivered.
    current: Option<Undelivered>,
    /// True while the thread that delivers bodies runs.
    running: bool,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Deliver,
    /// Delivers nothing more, and stores bodies without a limit until they are saved.
    Keep,
    /// Delivers and stores nothing more.
    Discard,
}

/// The time without bodies after which the thread ends.
const IDLE: Duration = Duration::from_secs(5);

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut queue = f.debug_struct("Queue");
        queue.field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Queue {
    /// Creates a queue for `limit` bytes, or for one larger body.
    pub(crate) fn new(name: String, limit: usize, deliver: Deliver) -> Queue {
        Queue(Arc::new(Inner {
            name,
            limit,
            state: Mutex::default(),
            filled: Condvar::new(),
            drained: Notify::new(),
            deliver: Mutex::new(deliver),
            file: None,
        }))
    }

    /// Creates a queue of lines that are appended to a file.
    pub(crate) fn of_file(name: String, limit: usize, file: Append) -> Queue {
        let to = file.clone();
        let deliver: Deliver = Box::new(move |body, _| {
            let appended = to.append(&body.text);
            if !appended {
                to.dropped(body.text.len());
            }
            appended
        });
        let mut queue = Queue::new(name, limit, deliver);
        let inner = Arc::get_mut(&mut queue.0).expect("it is new");
        inner.file = Some(file);
        queue
    }

    /// Waits until the lines of a file are on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.file.as_ref().map_or(Ok(()), Append::sync)
    }

    /// Returns the length of the file without the undelivered bodies, if the queue appends to a file.
    pub(crate) fn delivered_length(&self, rest: &[Undelivered]) -> Option<u64> {
        let end = self.0.file.as_ref()?.end();
        let rest: usize = rest.iter().map(|body| body.text.len()).sum();
        Some(end.saturating_sub(rest as u64))
    }

    /// Continues a file after the saved length.
    pub(crate) fn restore_file(&self, length: u64) {
        if let Some(file) = &self.0.file {
            file.restore(length);
        }
    }

    /// Adds a body. If the queue is full, `overflow` decides: the call waits for capacity, or a body is dropped. A
    /// waiting call ends when `aborted` returns true. Returns true if the body was added.
    pub(crate) async fn push(
        &self,
        body: Body,
        overflow: Overflow,
        aborted: impl Fn() -> bool,
    ) -> bool {
        let queue = &*self.0;
        loop {
            let mut room = std::pin::pin!(queue.drained.notified());
            room.as_mut().enable();
            {
                let mut state = queue.state.lock();
                if state.mode == Mode::Discard {
                    return false;
                }
                while overflow == Overflow::DropOldest && !state.has_room(&body, queue.limit) {
                    let Some(oldest) = state.bodies.pop_front() else {
                        break;
                    };
                    state.bytes -= oldest.text.len();
                    oldest.counts.dropped.add(oldest.count);
                }
                if state.has_room(&body, queue.limit) {
                    state.bytes += body.text.len();
                    state.bodies.push_back(body);
                    self.wake(&mut state);
                    return true;
                }
                if aborted() {
                    return false;
                }
            }
            if overflow != Overflow::Block {
                body.counts.dropped.add(body.count);
                return false;
            }
            room.await;
        }
    }

    /// Adds a body without waiting; if the queue is full, counts it as failed.
    pub(crate) fn offer(&self, body: Body) {
        let mut state = self.0.state.lock();
        if state.mode == Mode::Discard {
            return;
        }
        if state.has_room(&body, self.0.limit) {
            self.note(&body.text);
            state.bytes += body.text.len();
            state.bodies.push_back(body);
            self.wake(&mut state);
        } else {
            body.counts.failed.add(body.count);
        }
    }

    /// Waits until the queue is empty, or delivery has stopped.
    pub(crate) async fn drained(&self) {
        loop {
            let mut drained = std::pin::pin!(self.0.drained.notified());
            drained.as_mut().enable();
            {
                let state = self.0.state.lock();
                let empty = state.bodies.is_empty() && state.current.is_none();
                if empty || state.mode != Mode::Deliver {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Stops delivery: the remaining and further bodies are stored for [`Queue::rest`].
    pub(crate) fn keep(&self) {
        self.end(Mode::Keep);
    }

    /// Stops delivery, and drops the remaining bodies.
    pub(crate) fn discard(&self) {
        self.end(Mode::Discard);
    }

    /// Wakes senders, which check again whether they have to wait.
    pub(crate) fn wake_senders(&self) {
        self.0.drained.notify_waiters();
    }

    /// Returns the bodies that have not been delivered, the oldest first. They include the body that is being
    /// delivered, because it is unknown whether that body has arrived.
    pub(crate) fn rest(&self) -> Vec<Undelivered> {
        let state = self.0.state.lock();
        let rest = state.bodies.iter().map(|body| Undelivered {
            number: body.number,
            text: body.text.clone(),
        });
        state.current.iter().cloned().chain(rest).collect()
    }

    /// Records that a text will be appended to the file, if there is one.
    fn note(&self, text: &str) {
        if let Some(file) = &self.0.file {
            file.pushed(text.len());
        }
    }

    /// Restores the bodies of the previous engine.
    pub(crate) fn refill(&self, rest: Vec<Undelivered>, counts: &Counts) {
        let mut state = self.0.state.lock();
        for Undelivered { number, text } in rest {
            self.note(&text);
            state.bytes += text.len();
            state.bodies.push_back(Body {
                number,
                text,
                count: 1,
                counts: counts.clone(),
                pending: None,
            });
        }
        self.wake(&mut state);
    }

    fn end(&self, mode: Mode) {
        let mut state = self.0.state.lock();
        state.mode = mode;
        if mode == Mode::Discard {
            state.bodies.clear();
            state.bytes = 0;
        }
        drop(state);
        self.0.filled.notify_all();
        self.0.drained.notify_waiters();
    }

    /// Wakes the thread, or starts it if there is none.
    fn wake(&self, state: &mut State) {
        if state.mode != Mode::Deliver || state.bodies.is_empty() {
            return;
        }
        if state.running {
            self.0.filled.notify_one();
            return;
        }
        let inner = self.0.clone();
        let thread = thread::Builder::new().name("corsair-sink".into());
        match thread.spawn(move || inner.run()) {
            Ok(_) => state.running = true,
            // The next body tries again to start the thread.
            Err(error) => tracing::error!("{}: no thread for it: {error}", self.0.name),
        }
    }
}

impl State {
    /// Stored bodies are not limited.
    fn has_room(&self, body: &Body, limit: usize) -> bool {
        self.mode != Mode::Deliver || self.bytes == 0 || self.bytes + body.text.len() <= limit
    }
}

impl Inner {
    /// Delivers bodies, until there has been nothing to deliver for some time.
    fn run(&self) {
        let mut deliver = self.deliver.lock();
        let mut state = self.state.lock();
        loop {
            if state.mode != Mode::Deliver {
                break;
            }
            let Some(body) = state.bodies.pop_front() else {
                let waited = self.filled.wait_for(&mut state, IDLE);
                if waited.timed_out() && state.bodies.is_empty() {
                    break;
                }
                continue;
            };
            let current = Undelivered {
                number: body.number,
                text: body.text,
            };
            state.current = Some(current.clone());
            drop(state);
            let over = || self.state.lock().mode != Mode::Deliver;
            let delivered = catch_unwind(AssertUnwindSafe(|| deliver(&current, &over)));
            let delivered = delivered.unwrap_or(false);
            state = self.state.lock();
            if state.mode == Mode::Keep && !delivered {
                // The body is saved with the other undelivered bodies.
                break;
            }
            state.current = None;
            state.bytes = state.bytes.saturating_sub(current.text.len());
            match delivered {
                true => body.counts.delivered.add(body.count),
                false => body.counts.failed.add(body.count),
            }
            drop(body.pending);
            self.drained.notify_waiters();
        }
        state.running = false;
        drop(state);
        self.drained.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn body(text: &str, counts: &Counts) -> Body {
        Body {
            number: 0,
            text: text.into(),
            count: 1,
            counts: counts.clone(),
            pending: None,
        }
    }

    /// Creates a queue of ten bytes; each delivery waits for permission from the test.
    fn queue() -> (Queue, mpsc::Receiver<String>, mpsc::Sender<bool>) {
        let (delivered, read) = mpsc::channel();
        let (permit, permitted) = mpsc::channel();
        let deliver = move |body: &Undelivered, over: &dyn Fn() -> bool| {
            let _ = delivered.send(body.text.clone());
            loop {
                match permitted.recv_timeout(Duration::from_millis(1)) {
                    Ok(succeeds) => return succeeds,
                    Err(_) if over() => return false,
                    Err(_) => {}
                }
            }
        };
        (
            Queue::new("test".into(), 10, Box::new(deliver)),
            read,
            permit,
        )
    }

    #[tokio::test]
    async fn bodies_are_delivered_in_order_and_counted() {
        let (queue, read, permit) = queue();
        let counts = Counts::default();
        for (text, succeeds) in [("a", true), ("b", false), ("c", true)] {
            queue
                .push(body(text, &counts), Overflow::Block, || false)
                .await;
            permit.send(succeeds).unwrap();
        }
        queue.drained().await;
        assert_eq!(read.try_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!((counts.delivered.get(), counts.failed.get()), (2, 1));
    }

    #[tokio::test]
    async fn a_full_queue_drops_what_its_policy_says() {
        for (overflow, kept) in [
            (Overflow::DropNewest, "2nd"),
            (Overflow::DropOldest, "third"),
        ] {
            let (queue, read, permit) = queue();
            let counts = Counts::default();
            queue.push(body("first", &counts), overflow, || false).await;
            // The first body is being delivered, so it cannot be dropped.
            assert_eq!(read.recv().unwrap(), "first");
            queue.push(body("2nd", &counts), overflow, || false).await;
            queue.push(body("third", &counts), overflow, || false).await;
            assert_eq!(counts.dropped.get(), 1, "{overflow}");
            permit.send(true).unwrap();
            permit.send(true).unwrap();
            queue.drained().await;
            assert_eq!(read.recv().unwrap(), kept, "{overflow}");
        }
    }

    #[tokio::test]
    async fn what_is_kept_comes_back_with_what_was_being_delivered() {
        let (queue, read, _permit) = queue();
        let counts = Counts::default();
        queue
            .push(body("one", &counts), Overflow::Block, || false)
            .await;
        assert_eq!(read.recv().unwrap(), "one");
        queue
            .push(body("two", &counts), Overflow::Block, || false)
            .await;
        queue.keep();
        // The body exceeds the limit of the queue, and is stored nevertheless.
        queue
            .push(body("three hundred", &counts), Overflow::Block, || false)
            .await;
        queue.drained().await;
        let rest = loop {
            // The thread ends soon.
            if !queue.0.state.lock().running {
                break queue.rest();
            }
            tokio::task::yield_now().await;
        };
        let rest: Vec<&str> = rest.iter().map(|body| &*body.text).collect();
        assert_eq!(rest, ["one", "two", "three hundred"]);
    }

    #[tokio::test]
    async fn a_sender_that_waits_for_room_goes_on_when_its_task_is_aborted() {
        let (queue, _read, _permit) = queue();
        let counts = Counts::default();
        let aborted = Arc::new(std::sync::atomic::AtomicBool::new(false));
        queue
            .push(body("123456789", &counts), Overflow::Block, || false)
            .await;
        let pushing = {
            let (queue, aborted, counts) = (queue.clone(), aborted.clone(), counts.clone());
            tokio::spawn(async move {
                let aborted = || aborted.load(std::sync::atomic::Ordering::SeqCst);
                queue
                    .push(body("0123456789", &counts), Overflow::Block, aborted)
                    .await;
            })
        };
        tokio::task::yield_now().await;
        assert!(!pushing.is_finished());
        aborted.store(true, std::sync::atomic::Ordering::SeqCst);
        queue.wake_senders();
        pushing.await.unwrap();
        queue.discard();
    }
}
