//! The disk buffer of a sink: bodies that do not fit into the memory of its queue, in a journal.
//!
//! A body is appended when the memory of the queue is full. Bodies are read back in order when that memory is empty. A
//! checkpoint records the positions of the journal that wait for delivery. A restored buffer drops the bodies after
//! these positions, because the task produces them again. A file is removed when a checkpoint that does not need it is
//! on disk.

use super::queue::body::Undelivered;
use corsair_journal::{Journal, JournalError, Record, Recovery, Tail, Unsynced};
use std::io;
use std::path::PathBuf;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Spill {
    directory: PathBuf,
    /// The most bytes of bodies.
    limit: u64,
    journal: Option<Journal>,
    record: Record,
    waiting: SavedSpill,
    /// The first position that the last saved state needs.
    needed: u64,
}

/// The disk buffers of sinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkDisk {
    /// The directory, which belongs to the engine.
    pub directory: PathBuf,
    /// The maximum bytes of bodies that wait on disk, for each sink.
    pub bytes: u64,
}

/// The bodies that wait on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedSpill {
    /// The position of the first waiting body.
    first: u64,
    /// The position after the last waiting body.
    next: u64,
    /// The total size of the texts in bytes.
    bytes: u64,
    /// The number of the journal to which the positions belong.
    identity: u64,
}

impl SavedSpill {
    /// True if no body waits on disk.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.next
    }
}

impl Spill {
    /// Creates a buffer for this many bytes. Its directory is created with the first body.
    pub(crate) fn new(directory: PathBuf, limit: u64) -> Spill {
        Spill {
            directory,
            limit,
            journal: None,
            record: Record::default(),
            waiting: SavedSpill {
                first: 1,
                next: 1,
                bytes: 0,
                identity: 0,
            },
            needed: 1,
        }
    }

    /// True if no body waits on disk.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of bodies that wait on disk.
    pub(crate) fn len(&self) -> u64 {
        self.waiting.next - self.waiting.first
    }

    /// True if a body of this many bytes does not exceed the limit. An empty buffer takes any body.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.is_empty() || self.waiting.bytes + bytes as u64 <= self.limit
    }

    /// Appends a body.
    pub(crate) fn append(&mut self, number: u64, text: &str) -> io::Result<()> {
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => {
                self.remove();
                let identity = getrandom::u64().map_err(io::Error::other)?.max(1);
                let created = Journal::create(&self.directory, identity, self.waiting.next, &[]);
                self.waiting.identity = identity;
                self.journal.insert(created.map_err(io::Error::other)?)
            }
        };
        self.record.begin();
        let bytes = self.record.bytes();
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        journal.append(&mut self.record, self.waiting.next, 1)?;
        self.waiting.next += 1;
        self.waiting.bytes += text.len() as u64;
        Ok(())
    }

    /// Takes the oldest bodies, up to this many bytes, but at least one.
    ///
    /// # Errors
    /// The files are damaged. The bodies on disk are given up.
    pub(crate) fn take(&mut self, most: usize) -> Result<Vec<Undelivered>, JournalError> {
        let (mut bodies, mut bytes) = (Vec::new(), 0);
        let (first, next) = (self.waiting.first, self.waiting.next);
        let mut complete = false;
        let read = Recovery::read(
            &self.directory,
            first - 1,
            Tail::Unsynced,
            |at, _, entry| {
                complete |= at >= next || (bytes > 0 && bytes + entry.len() > most);
                if complete {
                    return Err(String::new());
                }
                bytes += entry.len();
                bodies.push(body(entry)?);
                Ok(())
            },
        );
        // A visit that has enough ends the reading with an error.
        match read {
            Err(error) if !complete => {
                self.give_up();
                return Err(error);
            }
            _ => {}
        }
        if bodies.is_empty() {
            self.give_up();
            return Ok(bodies);
        }
        self.waiting.first += bodies.len() as u64;
        let texts: usize = bodies.iter().map(|body| body.text.len()).sum();
        self.waiting.bytes = self.waiting.bytes.saturating_sub(texts as u64);
        Ok(bodies)
    }

    fn give_up(&mut self) {
        self.waiting.first = self.waiting.next;
        self.waiting.bytes = 0;
    }

    /// Returns the bodies that wait, for a saved state.
    pub(crate) fn save(&mut self) -> SavedSpill {
        self.needed = self.waiting.first;
        self.waiting
    }

    /// Continues with the bodies of a saved state. Bodies after them are removed.
    ///
    /// # Errors
    /// The files are damaged, or belong to another state.
    pub(crate) fn restore(&mut self, saved: SavedSpill) -> Result<(), JournalError> {
        self.waiting = saved;
        self.needed = saved.first;
        if self.is_empty() {
            // The next body begins another journal.
            return Ok(());
        }
        let opened = corsair_journal::truncate(&self.directory, saved.next - 1)
            .and_then(|()| {
                Recovery::read(
                    &self.directory,
                    saved.next - 1,
                    Tail::Unsynced,
                    |_, _, _| Ok(()),
                )
            })
            .and_then(|recovery| match recovery {
                Some(recovery)
                    if recovery.identity() == saved.identity && recovery.next() == saved.next =>
                {
                    recovery.open(&self.directory)
                }
                _ => Err(JournalError::at(&self.directory)(io::Error::other(
                    "it lacks bodies of the saved state",
                ))),
            });
        match opened {
            Ok(journal) => {
                self.journal = Some(journal);
                Ok(())
            }
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }
    }

    /// Removes files that the last saved state does not need. Call it when that state is on disk.
    pub(crate) fn discard(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.discard_through(self.needed - 1);
        }
    }

    /// Returns the bodies that were appended so far, for a sync.
    pub(crate) fn unsynced(&self) -> Option<Unsynced> {
        self.journal.as_ref().map(Journal::unsynced)
    }

    /// Removes all files.
    pub(crate) fn remove(&mut self) {
        self.journal = None;
        if let Err(error) = std::fs::remove_dir_all(&self.directory)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("{}: {error}", self.directory.display());
        }
    }
}

/// Reads a body from an entry.
fn body(entry: &[u8]) -> Result<Undelivered, String> {
    let (number, text) = entry.split_first_chunk().ok_or("an entry is too short")?;
    Ok(Undelivered {
        number: u64::from_le_bytes(*number),
        text: String::from_utf8(text.to_vec()).map_err(|error| error.to_string())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A change of a buffer.
    #[derive(Clone, Debug)]
    enum Step {
        Append(usize),
        Take(usize),
        /// Saves the state, as a checkpoint does.
        Save,
        /// The process is killed, and continues with the last saved state.
        Kill,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => (0..40usize).prop_map(Step::Append),
            2 => (1..200usize).prop_map(Step::Take),
            1 => Just(Step::Save),
            1 => Just(Step::Kill),
        ];
        proptest::collection::vec(step, 1..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        // Guarantee: stream-11.
        #[test]
        fn bodies_come_back_in_order_after_any_kills(steps in steps()) {
            let dir = tempfile::tempdir().unwrap();
            let new = || Spill::new(dir.path().join("sink"), u64::MAX);
            let mut spill = new();
            // The bodies that wait, and the state of the last checkpoint.
            let (mut waiting, mut number) = (std::collections::VecDeque::new(), 0);
            let mut checkpoint = (spill.save(), waiting.clone(), number);
            for step in steps {
                match step {
                    Step::Append(length) => {
                        number += 1;
                        let text = format!("{number}:{}", "x".repeat(length));
                        spill.append(number, &text).unwrap();
                        waiting.push_back(Undelivered { number, text });
                    }
                    Step::Take(most) if !spill.is_empty() => {
                        let taken = spill.take(most).unwrap();
                        prop_assert!(!taken.is_empty());
                        for body in taken {
                            prop_assert_eq!(Some(body), waiting.pop_front());
                        }
                    }
                    Step::Take(_) => prop_assert!(waiting.is_empty()),
                    Step::Save => {
                        checkpoint = (spill.save(), waiting.clone(), number);
                        spill.discard();
                    }
                    Step::Kill => {
                        spill = new();
                        (waiting, number) = (checkpoint.1.clone(), checkpoint.2);
                        spill.restore(checkpoint.0).unwrap();
                    }
                }
                prop_assert_eq!(spill.len(), waiting.len() as u64);
                let bytes: usize = waiting.iter().map(|body| body.text.len()).sum();
                prop_assert_eq!(spill.waiting.bytes, bytes as u64);
            }
        }
    }

    #[test]
    fn missing_files_of_a_saved_state_are_reported_and_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sink");
        let mut spill = Spill::new(path.clone(), 100);
        spill.append(1, "one").unwrap();
        let saved = spill.save();
        spill.remove();
        let mut spill = Spill::new(path.clone(), 100);
        let said = spill.restore(saved).unwrap_err().to_string();
        assert!(said.contains("lacks bodies"), "{said}");
        assert!(spill.is_empty());
        spill.append(2, "two").unwrap();
        assert_eq!(spill.take(100).unwrap()[0].text, "two");
    }
}
