//! Stores the intervals in which edges existed on disk until the run is over.
//!
//! GraphML and GEXF store the end of an edge together with the edge, and all edges follow the nodes. A run may have
//! more edges than fit into memory, so edges are stored in a temporary file.

use super::network::Edge;
use crate::FileError;
use crate::replacement::create_beside;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The value of [`EdgeInterval::ended`] for an interval that has not ended.
pub(crate) const NEVER: u64 = u64::MAX;

/// An interval in which an edge existed, from its appearance until it was forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EdgeInterval {
    pub(crate) source: u32,
    pub(crate) target: u32,
    pub(crate) began: u64,
    /// The end of the interval; [`NEVER`] if the edge still exists.
    pub(crate) ended: u64,
    /// The number of the next interval of the same edge; 0 if there is none.
    pub(crate) next: u32,
    /// True if the same edge existed before.
    pub(crate) again: bool,
}

/// The size of an interval in bytes.
const SIZE: usize = 32;

/// The number of intervals that are written or read at once.
const BATCH: usize = 4096;

impl EdgeInterval {
    fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..4].copy_from_slice(&self.source.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.target.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.began.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.ended.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.next.to_le_bytes());
        bytes[28] = self.again.into();
        bytes
    }

    fn from_bytes(bytes: &[u8; SIZE]) -> EdgeInterval {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        EdgeInterval {
            source: word(0),
            target: word(4),
            began: long(8),
            ended: long(16),
            next: word(24),
            again: bytes[28] != 0,
        }
    }
}

/// The source and target of each forgotten edge, and the number of its last interval.
pub(crate) type EndedEdges = Vec<((u32, u32), u32)>;

/// All intervals of a run, by the numbers of their edges, which increase by one from 1.
#[derive(Debug)]
pub(crate) struct EdgeIntervals {
    file: File,
    path: PathBuf,
    /// Intervals that have not been written to the file.
    tail: Vec<EdgeInterval>,
    /// The number of intervals in the file.
    written: u32,
    /// The last interval of each edge that was removed.
    forgotten: FxHashMap<(u32, u32), u32>,
}

impl EdgeIntervals {
    /// Creates the file next to `path`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(crate) fn begin(path: &Path) -> Result<EdgeIntervals, FileError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match create_beside(path, &format!(".{name}.edges.")) {
            Ok((path, file)) => Ok(EdgeIntervals {
                file,
                path,
                tail: Vec::new(),
                written: 0,
                forgotten: FxHashMap::default(),
            }),
            Err(error) => Err(FileError::Create {
                path: path.to_owned(),
                error,
            }),
        }
    }

    /// Returns all intervals up to now as bytes, and the last interval of each forgotten edge.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn save(&mut self) -> Result<(Vec<u8>, EndedEdges), FileError> {
        let mut bytes = Vec::new();
        let read = self.for_each(|_, _, spell| {
            bytes.extend_from_slice(&spell.to_bytes());
            Ok(())
        });
        read.map_err(|error| self.failed(error))?;
        let forgotten = self.forgotten.iter();
        Ok((
            bytes,
            forgotten.map(|(&ends, &last)| (ends, last)).collect(),
        ))
    }

    /// Continues after the intervals of a saved run, whose `written` bytes the caller writes through
    /// [`EdgeIntervals::file`].
    pub(crate) fn resume(&mut self, written: u64, forgotten: EndedEdges) {
        self.written = (written / SIZE as u64) as u32;
        self.forgotten = forgotten.into_iter().collect();
    }

    /// Returns the file. Its saved contents must be written before anything is recorded.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Records a new edge.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn begins(&mut self, at: u64, edge: &Edge) -> Result<(), FileError> {
        let ends = (edge.source, edge.target);
        let before = self.forgotten.remove(&ends);
        if let Some(before) = before {
            self.change(before, |spell| spell.next = edge.number)?;
        }
        self.tail.push(EdgeInterval {
            source: edge.source,
            target: edge.target,
            began: at,
            ended: NEVER,
            next: 0,
            again: before.is_some(),
        });
        if self.tail.len() < BATCH {
            return Ok(());
        }
        self.write_tail().map_err(|error| self.failed(error))
    }

    /// Records the end of an edge.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn ends(&mut self, at: u64, edge: &Edge) -> Result<(), FileError> {
        self.forgotten
            .insert((edge.source, edge.target), edge.number);
        self.change(edge.number, |spell| spell.ended = at)
    }

    fn write_tail(&mut self) -> io::Result<()> {
        let bytes: Vec<u8> = self
            .tail
            .iter()
            .flat_map(|spell| spell.to_bytes())
            .collect();
        self.file
            .seek(SeekFrom::Start(u64::from(self.written) * SIZE as u64))?;
        self.file.write_all(&bytes)?;
        self.written += self.tail.len() as u32;
        self.tail.clear();
        Ok(())
    }

    fn change(
        &mut self,
        number: u32,
        change: impl FnOnce(&mut EdgeInterval),
    ) -> Result<(), FileError> {
        let index = number - 1;
        if let Some(place) = index.checked_sub(self.written) {
            change(&mut self.tail[place as usize]);
            return Ok(());
        }
        let changed = self.read(number).and_then(|mut spell| {
            change(&mut spell);
            self.file
                .seek(SeekFrom::Start(u64::from(index) * SIZE as u64))?;
            self.file.write_all(&spell.to_bytes())
        });
        changed.map_err(|error| self.failed(error))
    }

    /// Returns the interval with this number, which must exist.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn read(&mut self, number: u32) -> io::Result<EdgeInterval> {
        let index = number - 1;
        if let Some(place) = index.checked_sub(self.written) {
            return Ok(self.tail[place as usize]);
        }
        let mut bytes = [0; SIZE];
        self.file
            .seek(SeekFrom::Start(u64::from(index) * SIZE as u64))?;
        self.file.read_exact(&mut bytes)?;
        Ok(EdgeInterval::from_bytes(&bytes))
    }

    /// Calls `each` with every interval and its number, in order. `each` may read other intervals.
    ///
    /// # Errors
    /// If the file cannot be read, or the first of `each`.
    pub(crate) fn for_each(
        &mut self,
        mut each: impl FnMut(&mut EdgeIntervals, u32, EdgeInterval) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut number = 0;
        while number < self.written {
            let count = (self.written - number).min(BATCH as u32);
            bytes.resize(count as usize * SIZE, 0);
            self.file
                .seek(SeekFrom::Start(u64::from(number) * SIZE as u64))?;
            self.file.read_exact(&mut bytes)?;
            for spell in bytes.as_chunks().0 {
                number += 1;
                each(self, number, EdgeInterval::from_bytes(spell))?;
            }
        }
        for place in 0..self.tail.len() {
            let spell = self.tail[place];
            each(self, self.written + place as u32 + 1, spell)?;
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> FileError {
        let path = self.path.clone();
        FileError::Write { path, error }
    }
}

impl Drop for EdgeIntervals {
    fn drop(&mut self) {
        // If removal fails, only a hidden file is left, so the error is ignored.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_edges_that_a_killed_process_left_is_removed_and_one_in_use_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for left in [".fsm.graphml.edges.1", ".fsm.graphml.edges.4000000"] {
            std::fs::write(path(left), "left").unwrap();
        }
        let in_use = File::create(path(".fsm.graphml.edges.2")).unwrap();
        in_use.lock().unwrap();
        drop(EdgeIntervals::begin(&path("fsm.graphml")).unwrap());
        let names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, [".fsm.graphml.edges.2"]);
    }

    #[test]
    fn intervals_are_what_was_recorded_wherever_they_lie() {
        let directory = tempfile::tempdir().unwrap();
        let mut spells = EdgeIntervals::begin(&directory.path().join("graph")).unwrap();
        let count = 3 * BATCH as u32 + 7;
        let edge = |number| Edge {
            number,
            source: number % 100,
            target: number,
        };
        for number in 1..=count {
            spells.begins(number.into(), &edge(number)).unwrap();
        }
        // One interval in the file and one that has not been written can both be read.
        for number in [5, count] {
            spells.ends(100_000, &edge(number)).unwrap();
            let again = Edge {
                number: count + 1 + number % 2,
                ..edge(number)
            };
            spells.begins(200_000, &again).unwrap();
        }
        let mut seen = Vec::new();
        spells
            .for_each(|spells, number, spell| {
                assert_eq!(spells.read(number)?, spell);
                seen.push(spell);
                Ok(())
            })
            .unwrap();
        assert_eq!(seen.len() as u32, count + 2);
        let first = EdgeInterval {
            source: 5,
            target: 5,
            began: 5,
            ended: 100_000,
            next: count + 2,
            again: false,
        };
        assert_eq!(seen[4], first);
        assert_eq!(seen[5].ended, NEVER);
        assert!(seen[count as usize..].iter().all(|spell| spell.again));
        drop(spells);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
