//! The agenda of an environment: scheduled events by time, priority and order of scheduling.

use super::number::Number;
use pyo3::prelude::*;
use std::cmp::Ordering;

/// The priority of an event whose callbacks were interrupted by the end of a run. It precedes all other events of that
/// time.
pub const FIRST: i64 = -1;
/// The priority of interrupts and of the start of processes.
pub const URGENT: i64 = 0;
/// The priority of all other events.
pub const NORMAL: i64 = 1;

/// A scheduled event.
#[derive(Debug)]
pub struct Entry<E> {
    pub time: Number,
    pub priority: i64,
    pub id: u64,
    pub event: E,
}

impl<E> Entry<E> {
    #[inline]
    fn precedes(&self, py: Python<'_>, other: &Entry<E>) -> PyResult<bool> {
        let order = match (&self.time, &other.time) {
            (Number::Float(a), Number::Float(b)) if a != b => return Ok(a < b),
            (Number::Float(_), Number::Float(_)) => Ordering::Equal,
            (Number::Int(a), Number::Int(b)) => a.cmp(b),
            (a, b) => a.compare(py, b)?,
        };
        let rank = |entry: &Entry<E>| (entry.priority, entry.id);
        Ok(order.then(rank(self).cmp(&rank(other))) == Ordering::Less)
    }
}

/// A binary heap whose comparisons may call Python code, and may therefore fail.
#[derive(Debug)]
pub struct Agenda<E> {
    entries: Vec<Entry<E>>,
}

impl<E> Agenda<E> {
    pub fn new() -> Agenda<E> {
        Agenda {
            entries: Vec::new(),
        }
    }

    pub fn first(&self) -> Option<&Entry<E>> {
        self.entries.first()
    }

    pub fn entries(&self) -> &[Entry<E>] {
        &self.entries
    }

    pub fn push(&mut self, py: Python<'_>, entry: Entry<E>) -> PyResult<()> {
        self.entries.push(entry);
        self.rise(py, self.entries.len() - 1)
    }

    pub fn pop(&mut self, py: Python<'_>) -> PyResult<Option<Entry<E>>> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let first = self.entries.swap_remove(0);
        let (mut at, count) = (0, self.entries.len());
        // The last entry moves to the front. It most likely belongs near the end, so it moves down without being
        // compared, and then up.
        while 2 * at + 2 < count {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let is_left = self.entries[left].precedes(py, &self.entries[right])?;
            let least = if is_left { left } else { right };
            self.entries.swap(at, least);
            at = least;
        }
        if 2 * at + 1 < count {
            self.entries.swap(at, 2 * at + 1);
            at = 2 * at + 1;
        }
        self.rise(py, at)?;
        Ok(Some(first))
    }

    /// Moves an entry up to its place.
    fn rise(&mut self, py: Python<'_>, mut at: usize) -> PyResult<()> {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.entries[at].precedes(py, &self.entries[parent])? {
                break;
            }
            self.entries.swap(at, parent);
            at = parent;
        }
        Ok(())
    }

    /// Empties the agenda for the garbage collector.
    pub fn take(&mut self) -> Vec<Entry<E>> {
        std::mem::take(&mut self.entries)
    }
}
