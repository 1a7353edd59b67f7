//! The journal of a file system: one record for each change, in memory that outlives the host's process.

use super::inode::{Edit, Ino};
use crate::packet::Reader;

/// A change of a file system. Applying all records of a journal in order gives the state of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A new inode without a name: its kind (`Node::code`), mode, and the target of a symbolic link.
    Make {
        ino: Ino,
        kind: u8,
        mode: u32,
        time: u64,
        target: Vec<u8>,
    },
    /// Names are created, replaced or removed, all at once.
    Names {
        edits: Vec<Edit>,
        time: u64,
    },
    /// A file was written, or its size was set.
    Size {
        ino: Ino,
        size: u64,
        is_set: bool,
        time: u64,
    },
    /// The content and the size of a file are durable.
    Synced {
        ino: Ino,
        size: u64,
    },
    /// The names of a directory are durable.
    NamesSynced {
        directory: Ino,
    },
    /// All changes of names before this time are durable.
    AllNamesSynced {
        before: u64,
    },
    Mode {
        ino: Ino,
        mode: u32,
        time: u64,
    },
    Times {
        ino: Ino,
        accessed: u64,
        modified: u64,
        time: u64,
    },
    /// The content was read.
    Accessed {
        ino: Ino,
        time: u64,
    },
    /// The inode was removed.
    Free {
        ino: Ino,
    },
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}

fn put(to: &mut Vec<u8>, code: u8, ino: Ino, numbers: &[u64]) {
    to.push(code);
    to.extend(ino.to_le_bytes());
    for number in numbers {
        to.extend(number.to_le_bytes());
    }
}

fn counted(reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let count = reader.u32()? as usize;
    reader.bytes(count).map(<[u8]>::to_vec)
}

impl Record {
    /// Appends the record as bytes.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Record::Make {
                ino,
                kind,
                mode,
                time,
                target,
            } => {
                put(to, 1, *ino, &[u64::from(*mode), *time]);
                to.push(*kind);
                put_bytes(to, target);
            }
            Record::Names { edits, time } => {
                put(to, 2, edits.len() as u32, &[*time]);
                for edit in edits {
                    to.extend(edit.directory.to_le_bytes());
                    to.extend(edit.before.unwrap_or(0).to_le_bytes());
                    to.extend(edit.after.unwrap_or(0).to_le_bytes());
                    put_bytes(to, &edit.name);
                }
            }
            Record::Size {
                ino,
                size,
                is_set,
                time,
            } => put(to, if *is_set { 11 } else { 3 }, *ino, &[*size, *time]),
            Record::Synced { ino, size } => put(to, 4, *ino, &[*size]),
            Record::NamesSynced { directory } => put(to, 5, *directory, &[]),
            Record::AllNamesSynced { before } => put(to, 6, 0, &[*before]),
            Record::Mode { ino, mode, time } => put(to, 7, *ino, &[u64::from(*mode), *time]),
            Record::Times {
                ino,
                accessed,
                modified,
                time,
            } => put(to, 8, *ino, &[*accessed, *modified, *time]),
            Record::Free { ino } => put(to, 9, *ino, &[]),
            Record::Accessed { ino, time } => put(to, 10, *ino, &[*time]),
        }
    }

    /// Reads a record; `None` at the end.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Record> {
        let (code, ino) = (reader.u8()?, reader.u32()?);
        Some(match code {
            1 => Record::Make {
                ino,
                mode: reader.u64()? as u32,
                time: reader.u64()?,
                kind: reader.u8()?,
                target: counted(reader)?,
            },
            2 => {
                let time = reader.u64()?;
                let mut edits = vec![];
                for _ in 0..ino {
                    edits.push(Edit {
                        directory: reader.u32()?,
                        before: Some(reader.u32()?).filter(|&ino| ino != 0),
                        after: Some(reader.u32()?).filter(|&ino| ino != 0),
                        name: counted(reader)?,
                    });
                }
                Record::Names { edits, time }
            }
            3 | 11 => Record::Size {
                ino,
                size: reader.u64()?,
                is_set: code == 11,
                time: reader.u64()?,
            },
            4 => Record::Synced {
                ino,
                size: reader.u64()?,
            },
            5 => Record::NamesSynced { directory: ino },
            6 => Record::AllNamesSynced {
                before: reader.u64()?,
            },
            7 => Record::Mode {
                ino,
                mode: reader.u64()? as u32,
                time: reader.u64()?,
            },
            8 => Record::Times {
                ino,
                accessed: reader.u64()?,
                modified: reader.u64()?,
                time: reader.u64()?,
            },
            9 => Record::Free { ino },
            10 => Record::Accessed {
                ino,
                time: reader.u64()?,
            },
            _ => return None,
        })
    }
}

/// Records in shared memory, preceded by their length in bytes.
#[derive(Debug)]
pub(super) struct Journal {
    memory: &'static mut [u8],
    length: usize,
}

const HEADER: usize = 8;

impl Journal {
    pub(super) fn new(memory: &'static mut [u8]) -> Journal {
        let length = memory.first_chunk::<HEADER>().copied().unwrap_or_default();
        let length = (u64::from_le_bytes(length) as usize).min(memory.len() - HEADER);
        Journal { memory, length }
    }

    /// Returns all records so far.
    pub(super) fn records(&self) -> Vec<Record> {
        let mut reader = Reader(&self.memory[HEADER..HEADER + self.length]);
        std::iter::from_fn(|| Record::read(&mut reader)).collect()
    }

    /// Returns the size of all records in bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Appends the bytes of records. Returns false if they do not fit.
    pub(super) fn append(&mut self, bytes: &[u8]) -> bool {
        let start = HEADER + self.length;
        let Some(free) = self.memory.get_mut(start..start + bytes.len()) else {
            return false;
        };
        free.copy_from_slice(bytes);
        self.set_len(self.length + bytes.len());
        true
    }

    /// Removes all records.
    pub(super) fn clear(&mut self) {
        self.set_len(0);
    }

    fn set_len(&mut self, length: usize) {
        self.length = length;
        self.memory[..HEADER].copy_from_slice(&(length as u64).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let edit = |before, after| Edit {
            directory: 3,
            name: b"name".to_vec(),
            before,
            after,
        };
        let records = [
            Record::Make {
                ino: 7,
                kind: 2,
                mode: 0o644,
                time: 5,
                target: b"there".to_vec(),
            },
            Record::Names {
                edits: vec![edit(None, Some(4)), edit(Some(4), None)],
                time: 9,
            },
            Record::Size {
                ino: 1,
                size: 1 << 33,
                is_set: false,
                time: 4,
            },
            Record::Size {
                ino: 1,
                size: 7,
                is_set: true,
                time: 5,
            },
            Record::Synced { ino: 1, size: 6 },
            Record::NamesSynced { directory: 1 },
            Record::AllNamesSynced { before: 77 },
            Record::Mode {
                ino: 2,
                mode: 0o600,
                time: 3,
            },
            Record::Times {
                ino: 2,
                accessed: 8,
                modified: 3,
                time: 4,
            },
            Record::Free { ino: 9 },
            Record::Accessed { ino: 2, time: 6 },
        ];
        let mut journal = Journal::new(Box::leak(vec![0; 1 << 10].into_boxed_slice()));
        for record in &records {
            let mut bytes = vec![];
            record.write(&mut bytes);
            assert!(journal.append(&bytes));
        }
        assert_eq!(journal.records(), records);
        assert!(!journal.append(&[0; 1 << 10]));
        journal.clear();
        assert_eq!((journal.len(), journal.records()), (0, vec![]));
    }
}
