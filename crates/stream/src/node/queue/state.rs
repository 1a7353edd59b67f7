//! The bodies of a queue, in memory and on disk.

use super::body::{Body, Counts, Undelivered};
use crate::node::spill::Spill;
use std::collections::VecDeque;
use std::sync::Arc;

/// The disk buffer of a queue.
pub(crate) struct SpillTo {
    pub(crate) spill: Spill,
    /// The counters of bodies that are read back.
    pub(crate) counts: Counts,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) bodies: VecDeque<Body>,
    /// The bytes of bodies, including the one that is being delivered.
    pub(super) bytes: usize,
    /// The bodies that are being delivered.
    pub(super) current: Arc<[Undelivered]>,
    /// True while the thread that delivers bodies runs.
    pub(super) running: bool,
    pub(super) mode: Mode,
    /// The disk buffer. If it is not empty, its bodies come after `bodies`.
    pub(super) disk: Option<SpillTo>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Deliver,
    /// The queue delivers nothing more, and stores bodies without a limit until they are saved.
    Keep,
    /// The queue delivers and stores nothing more.
    Discard,
}

impl SpillTo {
    /// Sets the counter of bodies on disk.
    pub(super) fn count(&self) {
        self.counts.on_disk.set(self.spill.len());
    }
}

impl State {
    /// True if a body can be stored. Saved bodies are not limited.
    pub(super) fn has_room(&self, body: &Body, limit: usize) -> bool {
        let fits = self.fits_in_memory(body, limit);
        match &self.disk {
            _ if self.mode != Mode::Deliver => true,
            None => fits,
            Some(disk) if disk.spill.is_empty() => true,
            Some(disk) => disk.spill.has_room(body.text.len()),
        }
    }

    pub(super) fn fits_in_memory(&self, body: &Body, limit: usize) -> bool {
        self.mode != Mode::Deliver || self.bytes == 0 || self.bytes + body.text.len() <= limit
    }

    /// Returns the bodies in memory that have not been delivered.
    pub(super) fn rest(&self) -> Vec<Undelivered> {
        let rest = self.bodies.iter().map(|body| Undelivered {
            number: body.number,
            text: body.text.clone(),
        });
        self.current.iter().cloned().chain(rest).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bodies.is_empty() && self.disk.as_ref().is_none_or(|disk| disk.spill.is_empty())
    }

    pub(super) fn push(&mut self, Undelivered { number, text }: Undelivered, counts: &Counts) {
        self.bytes += text.len();
        self.bodies.push_back(Body {
            number,
            text,
            count: 1,
            counts: counts.clone(),
            pending: None,
        });
    }

    /// Drops the oldest bodies until this one can be stored. A disk buffer is read in parts of half the memory.
    pub(super) fn drop_oldest(&mut self, body: &Body, limit: usize, name: &str) {
        while !self.has_room(body, limit) {
            if self.bodies.is_empty() {
                self.load(limit, name);
            }
            let Some(oldest) = self.bodies.pop_front() else {
                return;
            };
            self.bytes -= oldest.text.len();
            oldest.counts.dropped.add(oldest.count);
        }
    }

    /// Moves bodies from disk to memory, if there are any. `limit` is the memory of the queue in bytes.
    pub(super) fn load(&mut self, limit: usize, name: &str) {
        let Some(disk) = &mut self.disk else {
            return;
        };
        if disk.spill.is_empty() {
            return;
        }
        let before = disk.spill.len();
        let taken = disk.spill.take(limit / 2).unwrap_or_else(|error| {
            tracing::error!("{name}: the disk buffer cannot be read: {error}");
            disk.counts.failed.add(before as usize);
            Vec::new()
        });
        disk.count();
        let counts = disk.counts.clone();
        for body in taken {
            self.push(body, &counts);
        }
    }
}
