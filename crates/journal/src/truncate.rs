//! Removes the end of a journal.

use crate::error::JournalError;
use crate::journal;
use crate::record::{self, HEADER, Header};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Removes all entries after a position from the journal in this directory. The journal must not be open. The position
/// must be that of the last entry of a record. If the directory has no journal, this function does nothing.
///
/// # Errors
/// The files cannot be read or written, or the entries up to the position are damaged.
pub fn truncate(directory: &Path, through: u64) -> Result<(), JournalError> {
    let firsts = journal::firsts(directory).map_err(JournalError::at(directory))?;
    let part = directory.join(journal::PART);
    let begun = fs::read(&part).ok().and_then(|file| Header::read(&file));
    if begun.is_some_and(|header| header.first > through) {
        fs::remove_file(&part).map_err(JournalError::at(&part))?;
    }
    // The last file goes first, so that a kill leaves a journal that this function can truncate again.
    for &first in firsts.iter().rev() {
        let path = journal::path(directory, first);
        if first > through + 1 || (first == through + 1 && firsts.front() != Some(&first)) {
            fs::remove_file(&path).map_err(JournalError::at(&path))?;
            continue;
        }
        let bytes = fs::read(&path).map_err(JournalError::at(&path))?;
        let header = Header::read(&bytes)
            .ok_or_else(|| JournalError::at(&path)(io::Error::other("its header is damaged")))?;
        let contents = record::contents(&bytes, &header);
        let kept = contents.records.iter();
        let end = kept
            .take_while(|record| record.first + u64::from(record.count) <= through + 1)
            .map(|record| record.end)
            .last();
        let cut = (|| {
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(end.unwrap_or(HEADER) as u64)?;
            file.sync_all()
        })();
        return cut.map_err(JournalError::at(&path));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Journal, Record, Recovery, Tail};

    #[test]
    fn entries_after_the_position_are_gone_and_the_journal_continues_there() {
        let parent = tempfile::tempdir().unwrap();
        let mut record = Record::default();
        for through in [0, 1, 3, 4, 5] {
            let directory = parent.path().join(through.to_string());
            let mut journal = Journal::create(&directory, 7, 1, &[]).unwrap();
            for position in 1..=5u64 {
                record.begin();
                // Two records fill a file.
                let length = if position == 5 { 1 } else { 9 << 20 };
                let bytes = record.bytes();
                bytes.resize(bytes.len() + length, position as u8);
                journal.append(&mut record, position, 1).unwrap();
            }
            drop(journal);
            truncate(&directory, through).unwrap();
            truncate(&directory, through).unwrap();
            let mut found = Vec::new();
            let read = Recovery::read(&directory, 0, Tail::Synced, |first, _, bytes| {
                found.push((first, bytes[0]));
                Ok(())
            });
            let recovery = read.unwrap().unwrap();
            let expected: Vec<_> = (1..=through)
                .map(|position| (position, position as u8))
                .collect();
            assert_eq!((recovery.next(), found), (through + 1, expected));
            let mut journal = recovery.open(&directory).unwrap();
            record.begin();
            record.bytes().push(9);
            journal.append(&mut record, through + 1, 1).unwrap();
            drop(journal);
            let read = Recovery::read(&directory, through, Tail::Synced, |first, _, bytes| {
                assert_eq!((first, bytes), (through + 1, &[9][..]));
                Ok(())
            });
            assert_eq!(read.unwrap().unwrap().next(), through + 2);
        }
    }
}
