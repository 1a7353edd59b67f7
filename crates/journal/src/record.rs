//! The layout of a journal's files.
//!
//! A file begins with a [`Header`]. Entries that are written together are one record. A record has these parts:
//! checksum, length, the position of the first entry, the number of entries, the bytes of the entries. The checksum
//! also covers the journal's identity. If a file has a successor, its last record has no entries. The last record is
//! followed by zeros, or by nothing.
//!
//! **An incomplete last record.** If each record is synced before the next one is written, a crash can leave only the
//! last record incomplete. This record was not acknowledged. A complete record after an unreadable one then means that
//! synced bytes are damaged.

/// The magic number at the start of a file.
const MAGIC: [u8; 8] = *b"corslog\n";
/// The version of the layout. Versions 1 and 2 were databases of the messaging service.
pub(super) const FORMAT: u32 = 3;
/// The size in bytes of a file's header.
pub const HEADER: usize = 32;
/// The size in bytes of a record's head, which precedes its entries.
const HEAD: usize = 20;
/// Records begin at multiples of this number of bytes.
const ALIGN: usize = 8;

/// The journal to which a file belongs, and the file's place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub format: u32,
    pub identity: u64,
    /// The position of the first entry.
    pub first: u64,
}

impl Header {
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.format.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.identity.to_le_bytes());
        bytes[24..].copy_from_slice(&self.first.to_le_bytes());
        let check = crc32fast::hash(&bytes);
        bytes[12..16].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads the header of a file; `None` if it is damaged.
    pub fn read(file: &[u8]) -> Option<Header> {
        let bytes = file.get(..HEADER)?;
        let header = Header {
            format: u32_at(bytes, 8)?,
            identity: u64_at(bytes, 16)?,
            first: u64_at(bytes, 24)?,
        };
        (header.bytes() == *bytes).then_some(header)
    }
}

/// A buffer for one record. The buffer's memory is reused for the next record.
#[derive(Debug, Default)]
pub struct Record(Vec<u8>);

impl Record {
    /// Starts a record without entries.
    pub fn begin(&mut self) {
        self.0.clear();
        self.0.resize(HEAD, 0);
    }

    /// Returns the buffer, to which the caller appends the bytes of entries. The bytes that [`begin`](Record::begin)
    /// has written must not be changed.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    /// Returns the length of the entries in bytes.
    pub fn len(&self) -> usize {
        self.0.len().saturating_sub(HEAD)
    }

    /// True if nothing was appended since [`begin`](Record::begin).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Completes the record, and returns its bytes in the layout of a file. `count` is the number of entries.
    ///
    /// # Panics
    /// If the record has 4 GiB or more.
    pub fn finish(&mut self, identity: u64, first: u64, count: u32) -> &[u8] {
        let bytes = &mut self.0;
        let length = u32::try_from(bytes.len() - HEAD).expect("a record has less than 4 GiB");
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..16].copy_from_slice(&first.to_le_bytes());
        bytes[16..HEAD].copy_from_slice(&count.to_le_bytes());
        let check = checksum(identity, &bytes[4..]);
        bytes[..4].copy_from_slice(&check.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
        bytes
    }
}

/// A record in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredRecord<'a> {
    /// The position of the record's first entry.
    pub first: u64,
    /// The number of entries; 0 means that the journal continues in another file.
    pub count: u32,
    pub entries: &'a [u8],
    /// The offset at which the next record begins.
    pub end: usize,
}

/// Returns the record at this offset, or `None` if the bytes are not a record.
fn read(file: &[u8], at: usize, identity: u64) -> Option<StoredRecord<'_>> {
    let bytes = file.get(at..)?;
    let length = usize::try_from(u32_at(bytes, 4)?).ok()?;
    let first = u64_at(bytes, 8)?;
    // Positions begin with 1, so zeros are not a record.
    if first == 0 {
        return None;
    }
    let whole = bytes.get(..HEAD.checked_add(length)?)?;
    if checksum(identity, &whole[4..]) != u32_at(bytes, 0)? {
        return None;
    }
    Some(StoredRecord {
        first,
        count: u32_at(bytes, 16)?,
        entries: &whole[HEAD..],
        end: (at + whole.len()).next_multiple_of(ALIGN),
    })
}

/// The records of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents<'a> {
    pub records: Vec<StoredRecord<'a>>,
    /// The position after the last entry.
    pub next: u64,
    /// The offset at which the last record ends.
    pub end: usize,
    /// True if the journal continues in another file.
    pub continues: bool,
}

impl Contents<'_> {
    /// True if a complete record follows the unreadable bytes: synced bytes are damaged, or records were written
    /// without a sync between them.
    pub fn is_interrupted(&self, file: &[u8], header: &Header) -> bool {
        // No file has more entries than bytes.
        let later = self.next + 1..=self.next + file.len() as u64;
        let is_later = |at| {
            u64_at(file, at + 8).is_some_and(|first| later.contains(&first))
                && read(file, at, header.identity).is_some()
        };
        (self.end..file.len()).step_by(ALIGN).any(is_later)
    }
}

/// Reads the records after the header, up to the first bytes that are not a record.
pub(super) fn contents<'a>(file: &'a [u8], header: &Header) -> Contents<'a> {
    let mut contents = Contents {
        records: Vec::new(),
        next: header.first,
        end: HEADER,
        continues: false,
    };
    while let Some(record) = read(file, contents.end, header.identity)
        && record.first == contents.next
    {
        contents.end = record.end;
        if record.count == 0 {
            contents.continues = true;
            break;
        }
        contents.next += u64::from(record.count);
        contents.records.push(record);
    }
    contents
}

fn checksum(identity: u64, record: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&identity.to_le_bytes());
    hasher.update(record);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests;
