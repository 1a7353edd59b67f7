//! The agenda of an environment: scheduled events by time, priority and order of scheduling.

use super::event::Event;
use super::number::Number;
use pyo3::prelude::*;
use std::cmp::Ordering;

/// A scheduled event.
#[derive(Debug)]
pub struct Entry {
    pub time: Number,
    pub priority: i64,
    pub id: u64,
    pub event: Py<Event>,
}

impl Entry {
    fn precedes(&self, py: Python<'_>, other: &Entry) -> PyResult<bool> {
        Ok(match self.time.compare(py, &other.time)? {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => (self.priority, self.id) < (other.priority, other.id),
        })
    }
}

/// A binary heap whose comparisons may ask Python, and may therefore fail.
#[derive(Debug, Default)]
pub struct Agenda {
    entries: Vec<Entry>,
}

impl Agenda {
    pub fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn push(&mut self, py: Python<'_>, entry: Entry) -> PyResult<()> {
        self.entries.push(entry);
        let mut at = self.entries.len() - 1;
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

    pub fn pop(&mut self, py: Python<'_>) -> PyResult<Option<Entry>> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let first = self.entries.swap_remove(0);
        let (mut at, count) = (0, self.entries.len());
        loop {
            let mut least = 2 * at + 1;
            if least >= count {
                break;
            }
            let right = least + 1;
            if right < count && self.entries[right].precedes(py, &self.entries[least])? {
                least = right;
            }
            if !self.entries[least].precedes(py, &self.entries[at])? {
                break;
            }
            self.entries.swap(at, least);
            at = least;
        }
        Ok(Some(first))
    }

    /// Empties the agenda for the garbage collector.
    pub fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }
}
