//! How entries lie in a file of the log.
//!
//! A file begins with a [`Header`]. Each group of commands that became durable together is one record:
//! checksum, length, the position of the first command, how many there are, the commands. The checksum also
//! covers the log's identity. The last record of a file that has a successor has no commands. After
//! it there are zeros, or nothing.
//!
//! **A torn end.** A record is written when the one before it is on disk, so what a dying machine leaves
//! half-written is the last record, which was not acknowledged. If the bytes after the records are not a record, and
//! a record lies further on, then something that was on disk is damaged.

/// What a file of a log begins with.
const MAGIC: [u8; 8] = *b"corslog\n";
/// The version of the layout. The first two were databases.
pub(super) const FORMAT: u32 = 3;
/// Bytes of a header.
pub(super) const HEADER: usize = 32;
/// Bytes before a record's commands.
const HEAD: usize = 20;
/// Records begin at multiples of this.
const ALIGN: usize = 8;

/// Which log a file belongs to, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub format: u32,
    pub identity: u64,
    /// The position of the first command.
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

/// Begins a record in `bytes`; its commands are to be appended, and [`finish`] called.
pub(super) fn begin(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.resize(HEAD, 0);
}

/// Completes the record that `bytes` holds.
pub(super) fn finish(bytes: &mut Vec<u8>, identity: u64, first: u64, count: u32) {
    let length = u32::try_from(bytes.len() - HEAD).expect("a group is bounded");
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..16].copy_from_slice(&first.to_le_bytes());
    bytes[16..HEAD].copy_from_slice(&count.to_le_bytes());
    let check = checksum(identity, &bytes[4..]);
    bytes[..4].copy_from_slice(&check.to_le_bytes());
    bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
}

/// Commands that became durable together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// The position of the first.
    pub first: u64,
    /// The number of commands; with 0 the log continues in another file.
    pub count: u32,
    pub commands: &'a [u8],
    /// Where the next record begins.
    pub end: usize,
}

/// Reads the record that begins here, if one does.
fn read(file: &[u8], at: usize, identity: u64) -> Option<Record<'_>> {
    let bytes = file.get(at..)?;
    let length = usize::try_from(u32_at(bytes, 4)?).ok()?;
    let first = u64_at(bytes, 8)?;
    // Zeros are no record.
    if first == 0 {
        return None;
    }
    let whole = bytes.get(..HEAD.checked_add(length)?)?;
    if checksum(identity, &whole[4..]) != u32_at(bytes, 0)? {
        return None;
    }
    Some(Record {
        first,
        count: u32_at(bytes, 16)?,
        commands: &whole[HEAD..],
        end: (at + whole.len()).next_multiple_of(ALIGN),
    })
}

/// What a file holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents<'a> {
    pub records: Vec<Record<'a>>,
    /// The position after the last command.
    pub next: u64,
    /// Where the last record ends.
    pub end: usize,
    /// True if the log continues in another file.
    pub goes_on: bool,
}

/// Reads the records after the header.
///
/// # Errors
/// The position of the first entry that was on disk and is damaged.
pub(super) fn contents<'a>(file: &'a [u8], header: &Header) -> Result<Contents<'a>, u64> {
    let mut contents = Contents {
        records: Vec::new(),
        next: header.first,
        end: HEADER,
        goes_on: false,
    };
    while let Some(record) = read(file, contents.end, header.identity)
        && record.first == contents.next
    {
        contents.end = record.end;
        if record.count == 0 {
            contents.goes_on = true;
            break;
        }
        contents.next += u64::from(record.count);
        contents.records.push(record);
    }
    // No file has more entries than bytes.
    let later = contents.next + 1..=contents.next + file.len() as u64;
    let is_later = |at| {
        u64_at(file, at + 8).is_some_and(|first| later.contains(&first))
            && read(file, at, header.identity).is_some()
    };
    match (contents.end..file.len()).step_by(ALIGN).any(is_later) {
        true => Err(contents.next),
        false => Ok(contents),
    }
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
