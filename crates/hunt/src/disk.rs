//! A small durable store for a node. It has named files; the synced part of each file survives a crash.

use corsair::Random;
use std::collections::BTreeMap;

/// Files of a node. Records written after the last [`sync`](Disk::sync) may be lost in a crash:
/// each file may lose some of its last unsynced writes.
///
/// ```
/// use corsair_hunt::Disk;
///
/// let mut disk = Disk::default();
/// disk.append("log", b"one");
/// disk.sync();
/// disk.append("log", b"two");
/// assert_eq!(disk.records("log").collect::<Vec<_>>(), [b"one", b"two"]);
/// disk.crash(&mut corsair::Random::new(1));
/// assert_eq!(disk.records("log").next(), Some(&b"one"[..]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: BTreeMap<&'static str, File>,
}

#[derive(Clone, Debug, Default)]
struct File {
    records: Vec<Vec<u8>>,
    synced: Vec<Vec<u8>>,
    /// True if the file was replaced after its last sync, so that a crash may restore the old
    /// contents.
    replaced: bool,
}

impl Disk {
    /// Adds a record to the end of a file.
    pub fn append(&mut self, file: &'static str, record: &[u8]) {
        self.files
            .entry(file)
            .or_default()
            .records
            .push(record.to_vec());
    }

    /// Replaces the contents of a file with one record.
    pub fn write(&mut self, file: &'static str, record: &[u8]) {
        let file = self.files.entry(file).or_default();
        file.records = vec![record.to_vec()];
        file.replaced = true;
    }

    /// Makes all records durable that were written before this call.
    pub fn sync(&mut self) {
        for file in self.files.values_mut() {
            if file.replaced {
                file.synced.clone_from(&file.records);
                file.replaced = false;
            } else {
                let from = file.synced.len();
                file.synced.extend_from_slice(&file.records[from..]);
            }
        }
    }

    /// Returns the records of a file, the first record first.
    pub fn records(&self, file: &str) -> impl Iterator<Item = &[u8]> {
        let records = self.files.get(file).map_or(&[][..], |file| &file.records);
        records.iter().map(Vec::as_slice)
    }

    /// Returns the last record of a file as a number, if it has eight bytes.
    pub fn number(&self, file: &str) -> Option<u64> {
        let last = self.records(file).last()?;
        Some(u64::from_le_bytes(last.try_into().ok()?))
    }

    /// Replaces the contents of a file with one number.
    pub fn write_number(&mut self, file: &'static str, number: u64) {
        self.write(file, &number.to_le_bytes());
    }

    /// Loses unsynced records: all of them, or those after a random record.
    pub fn crash(&mut self, random: &mut Random) {
        for file in self.files.values_mut() {
            if file.replaced {
                if random.below(2) == 0 {
                    file.records.clone_from(&file.synced);
                }
            } else {
                let unsynced = file.records.len() - file.synced.len();
                let survive = random.below(unsynced as u32 + 1) as usize;
                file.records.truncate(file.synced.len() + survive);
            }
            file.synced.clone_from(&file.records);
            file.replaced = false;
        }
    }
}
