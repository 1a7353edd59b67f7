//! An append-only log in files, for services that must not lose acknowledged data.
//!
//! A [`Journal`] numbers its entries from 1. Entries that are written together are one record, with a checksum; the
//! caller decides when records are synced. [`Recovery::read`] reads the entries of a journal after a crash, and
//! [`Recovery::open`] continues the journal after the last complete record.
//!
//! ```
//! use corsair_journal::{Journal, Record, Recovery, Tail};
//!
//! let parent = tempfile::tempdir()?;
//! let directory = parent.path().join("log");
//! let mut journal = Journal::create(&directory, 7, 1, &[])?;
//! let mut record = Record::default();
//! record.begin();
//! record.bytes().extend_from_slice(b"first second");
//! journal.append(&mut record, 1, 2)?;
//! journal.sync()?;
//! drop(journal);
//!
//! let mut entries = Vec::new();
//! let visit = |first, count, bytes: &[u8]| {
//!     entries.push((first, count, bytes.to_vec()));
//!     Ok(())
//! };
//! let recovery = Recovery::read(&directory, 0, Tail::Synced, visit)?.expect("there is a journal");
//! assert_eq!(recovery.next(), 3);
//! assert_eq!(entries, [(1, 2, b"first second".to_vec())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod journal;
mod record;

pub use error::JournalError;
pub use journal::{
    Journal, Unsynced, durable_directory, exists, first, private_directory, private_file,
};
pub use record::{HEADER, Record};
pub use recovery::{Recovery, Tail};
pub use truncate::truncate;

mod recovery;
mod truncate;
