//! The queue of a sink: bodies that a separate thread delivers.
//!
//! A node never waits for a file, a pipe or a socket. It puts bodies into a [`Queue`], which is bounded in bytes. A
//! separate thread delivers the bodies in order. The thread is started with the first body and ends after a time
//! without bodies.
//!
//! Where a receiver allows it, waiting bodies are delivered together ([`Together`]).
//!
//! A queue with a disk buffer tries to deliver a body until the receiver accepts or refuses it. When its memory is
//! full, the queue stores further bodies in a [`Spill`].

pub(super) mod body;
mod state;
mod worker;

pub(crate) use body::{Body, Counts, Deliver, Delivery, Together, Undelivered};
pub(crate) use state::SpillTo;

use super::append::Append;
use super::counter::Counters;
use super::spill::SavedSpill;
use corsair::edge::Overflow;
use parking_lot::{Condvar, Mutex};
use state::{Mode, State};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use tokio::sync::Notify;

impl Counts {
    /// Returns the counters of a queue with their names.
    pub(crate) fn named(&self, delivered: &'static str, queue: &Queue) -> Counters {
        let mut counters = vec![
            (delivered, self.delivered.clone()),
            ("failed", self.failed.clone()),
            ("dropped", self.dropped.clone()),
        ];
        if queue.0.spills {
            counters.push(("on_disk", self.on_disk.clone()));
        }
        counters
    }
}

/// The bodies of a queue, for the next start.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedQueue {
    pub(crate) bodies: Vec<Undelivered>,
    /// The later bodies, which wait on disk.
    spilled: Option<SavedSpill>,
}

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
    together: Option<Together>,
    /// The file to which the queue appends, if any.
    file: Option<Append>,
    /// True if bodies that do not fit into memory go to disk.
    spills: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut queue = f.debug_struct("Queue");
        queue.field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl Queue {
    /// Creates a queue for `limit` bytes, or for one larger body.
    pub(crate) fn new(name: String, limit: usize, deliver: Deliver) -> Queue {
        Queue::spilling(name, limit, None, None, deliver)
    }

    /// Creates a queue for this many bytes, or one body, with or without a disk buffer.
    pub(crate) fn spilling(
        name: String,
        limit: usize,
        disk: Option<SpillTo>,
        together: Option<Together>,
        deliver: Deliver,
    ) -> Queue {
        Queue(Arc::new(Inner {
            name,
            limit,
            spills: disk.is_some(),
            state: Mutex::new(State {
                disk,
                ..State::default()
            }),
            filled: Condvar::new(),
            drained: Notify::new(),
            deliver: Mutex::new(deliver),
            together,
            file: None,
        }))
    }

    /// Creates a queue of lines that are appended to a file.
    pub(crate) fn of_file(name: String, limit: usize, file: Append) -> Queue {
        let to = file.clone();
        let deliver: Deliver = Box::new(move |bodies, _| {
            let append = |body: &Undelivered| {
                let appended = to.append(&body.text);
                if !appended {
                    to.dropped(body.text.len());
                }
                appended
            };
            match bodies.iter().all(append) {
                true => Delivery::Delivered,
                false => Delivery::Refused,
            }
        });
        let mut queue = Queue::new(name, limit, deliver);
        let inner = Arc::get_mut(&mut queue.0).expect("it is new");
        inner.file = Some(file);
        queue
    }

    /// Waits until the lines of a file, or the bodies of the disk buffer, are on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let disk = self
            .0
            .state
            .lock()
            .disk
            .as_ref()
            .and_then(|disk| disk.spill.unsynced());
        if let Some(unsynced) = disk {
            unsynced.sync()?;
        }
        self.0.file.as_ref().map_or(Ok(()), Append::sync)
    }

    /// Removes files of the disk buffer that the last saved state does not need. Call this method when the state is
    /// on disk.
    pub(crate) fn discard_saved(&self) {
        if let Some(disk) = &mut self.0.state.lock().disk {
            disk.spill.discard();
        }
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
                if overflow == Overflow::DropOldest {
                    state.drop_oldest(&body, queue.limit, &queue.name);
                }
                if state.has_room(&body, queue.limit) {
                    self.store(&mut state, body);
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

    /// Adds a body without waiting. If the queue is full, it counts the body as failed, or `overflow` decides for a disk
    /// buffer: with [`Overflow::Block`] the sender must wait for [`Queue::has_room`] after this call.
    pub(crate) fn offer(&self, body: Body, overflow: Overflow) {
        let mut state = self.0.state.lock();
        if state.mode == Mode::Discard {
            return;
        }
        if self.0.spills && overflow == Overflow::DropOldest {
            state.drop_oldest(&body, self.0.limit, &self.0.name);
        }
        let waits = self.0.spills && overflow == Overflow::Block;
        if waits || state.has_room(&body, self.0.limit) {
            self.note(&body.text);
            self.store(&mut state, body);
        } else if self.0.spills {
            body.counts.dropped.add(body.count);
        } else {
            body.counts.failed.add(body.count);
        }
    }

    /// True if bodies that do not fit into memory go to disk.
    pub(crate) fn spills(&self) -> bool {
        self.0.spills
    }

    /// Waits until the disk buffer is not over its limit, or until `aborted` returns true.
    pub(crate) async fn has_room(&self, aborted: impl Fn() -> bool) {
        if !self.0.spills {
            return;
        }
        loop {
            let mut room = std::pin::pin!(self.0.drained.notified());
            room.as_mut().enable();
            {
                let state = self.0.state.lock();
                let over = state
                    .disk
                    .as_ref()
                    .is_some_and(|disk| !disk.spill.has_room(0));
                if !over || state.mode != Mode::Deliver || aborted() {
                    return;
                }
            }
            room.await;
        }
    }

    /// Stores a body in memory, or on disk if memory is full or other bodies wait on disk.
    fn store(&self, state: &mut State, body: Body) {
        let fits = state.fits_in_memory(&body, self.0.limit);
        if let Some(disk) = &mut state.disk
            && !(fits && disk.spill.is_empty())
        {
            match disk.spill.append(body.number, &body.text) {
                Ok(()) => {
                    disk.count();
                    return self.wake(state);
                }
                Err(error) => {
                    tracing::error!(
                        "{}: the disk buffer cannot be written: {error}",
                        self.0.name
                    );
                    if !disk.spill.is_empty() {
                        body.counts.failed.add(body.count);
                        return;
                    }
                }
            }
        }
        state.bytes += body.text.len();
        state.bodies.push_back(body);
        self.wake(state);
    }

    /// Waits until the queue is empty, or delivery has stopped.
    pub(crate) async fn drained(&self) {
        loop {
            let mut drained = std::pin::pin!(self.0.drained.notified());
            drained.as_mut().enable();
            {
                let state = self.0.state.lock();
                let empty = state.is_empty() && state.current.is_empty();
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
        self.0.state.lock().rest()
    }

    /// Records that a text will be appended to the file, if there is one.
    fn note(&self, text: &str) {
        if let Some(file) = &self.0.file {
            file.pushed(text.len());
        }
    }

    /// Returns all bodies that have not been delivered, for the next start.
    pub(crate) fn save(&self) -> SavedQueue {
        let mut state = self.0.state.lock();
        SavedQueue {
            bodies: state.rest(),
            spilled: state.disk.as_mut().map(|disk| disk.spill.save()),
        }
    }

    /// Restores the bodies of the previous engine.
    pub(crate) fn restore(&self, saved: SavedQueue, counts: &Counts) {
        let mut state = self.0.state.lock();
        match (&mut state.disk, saved.spilled) {
            (Some(disk), Some(spilled)) => {
                if let Err(error) = disk.spill.restore(spilled) {
                    tracing::error!("{}: bodies on disk are lost: {error}", self.0.name);
                }
                disk.count();
            }
            (None, Some(spilled)) if !spilled.is_empty() => {
                tracing::error!(
                    "{}: bodies wait on disk, and there is no --sink-disk",
                    self.0.name
                );
            }
            _ => {}
        }
        drop(state);
        self.refill(saved.bodies, counts);
    }

    /// Adds bodies of the previous engine.
    pub(crate) fn refill(&self, rest: Vec<Undelivered>, counts: &Counts) {
        let mut state = self.0.state.lock();
        for undelivered in rest {
            self.note(&undelivered.text);
            state.push(undelivered, counts);
        }
        self.wake(&mut state);
    }

    fn end(&self, mode: Mode) {
        let mut state = self.0.state.lock();
        state.mode = mode;
        if mode == Mode::Discard {
            state.bodies.clear();
            state.bytes = 0;
            if let Some(mut disk) = state.disk.take() {
                disk.spill.remove();
                disk.counts.on_disk.set(0);
            }
        }
        drop(state);
        self.0.filled.notify_all();
        self.0.drained.notify_waiters();
    }

    /// Wakes the thread, or starts it if there is none.
    fn wake(&self, state: &mut State) {
        if state.mode != Mode::Deliver || state.is_empty() {
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

#[cfg(test)]
mod tests;
