//! Reads the log of earlier versions, which was a database. Entries that the index lacks are read once, and written to
//! the journal.

use crate::command::Command;
use crate::database;
use crate::error::StartError;
use crate::guard::guard;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use std::path::Path;

/// The file name of the log in the data directory.
pub(super) const FILE: &str = "log.redb";
/// The version of the log's layout.
const FORMAT: u32 = 2;
/// The format, the identity, and the position after which the log begins.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
/// The length of a row's checksum in bytes.
const CHECK: usize = 4;
/// The size of redb's cache in bytes.
const CACHE: usize = 8 << 20;

/// The contents of the earlier log.
pub(super) struct LegacyLog {
    pub identity: u64,
    /// The commands after a position, in order.
    pub commands: Vec<Command>,
    /// The position of the last entry.
    pub last: u64,
}

impl LegacyLog {
    /// Reads the commands after this position; `None` if that log does not exist.
    ///
    /// # Errors
    /// If the log is damaged, or begins after this position.
    pub fn read(data: &Path, after: u64) -> Result<Option<LegacyLog>, StartError> {
        if !data.join(FILE).exists() {
            return Ok(None);
        }
        let (database, path) = database::open(Some(data), FILE, CACHE)?;
        let failed = |error| StartError::database(&path, error);
        let (format, identity) = guard(|| identity(&database)).map_err(failed)?;
        match format {
            Some(FORMAT) => {}
            // A log that was created and never used has no tables.
            None if guard(|| is_empty(&database)).map_err(failed)? => return Ok(None),
            // The first format had no table for the version.
            found => {
                return Err(StartError::Format {
                    path,
                    found: found.unwrap_or(1),
                    wanted: FORMAT,
                });
            }
        }
        let (commands, last) = guard(|| read(&database, after)).map_err(failed)?;
        Ok(Some(LegacyLog {
            identity,
            commands,
            last,
        }))
    }
}

/// Removes the log if it has this identity, because its entries are now in the journal.
pub(super) fn remove(data: &Path, of: u64) {
    let path = data.join(FILE);
    let is_left = path.exists()
        && database::open(Some(data), FILE, CACHE)
            .is_ok_and(|(database, _)| guard(|| identity(&database)).is_ok_and(|(_, it)| it == of));
    if is_left {
        // If the removal fails, the next start repeats it.
        let _ = std::fs::remove_file(path);
    }
}

fn is_empty(database: &Database) -> Result<bool, redb::Error> {
    Ok(database.begin_read()?.list_tables()?.next().is_none())
}

/// Returns the format, if the log has one, and the identity.
fn identity(database: &Database) -> Result<(Option<u32>, u64), redb::Error> {
    let txn = database.begin_read()?;
    let meta = match txn.open_table(META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok((None, 0)),
        Err(error) => return Err(error.into()),
    };
    let format = meta.get("format")?.map(|row| row.value());
    let identity = meta.get("identity")?.map_or(0, |row| row.value());
    Ok((
        format.map(|format| u32::try_from(format).unwrap_or(u32::MAX)),
        identity,
    ))
}

/// Reads the commands after this position, and the position of the last command.
fn read(database: &Database, after: u64) -> Result<(Vec<Command>, u64), redb::Error> {
    let txn = database.begin_read()?;
    let base = txn.open_table(META)?.get("base")?;
    let tables = txn.list_tables()?;
    let mut segments: Vec<u64> = tables
        .filter_map(|table| table.name().strip_prefix("log_")?.parse().ok())
        .collect();
    segments.sort_unstable();
    let mut commands = Vec::new();
    let mut expected = after + 1;
    let mut last = base.map_or(0, |row| row.value());
    for number in segments {
        let name = format!("log_{number}");
        let rows: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(&name);
        for row in txn.open_table(rows)?.iter()? {
            let (first, bytes) = row?;
            let mut position = first.value();
            let damaged = |position| {
                redb::Error::Corrupted(format!("entry {position} of the log is damaged"))
            };
            let Some((check, mut rest)) = bytes.value().split_at_checked(CHECK) else {
                return Err(damaged(position));
            };
            if checksum(position, rest) != *check {
                return Err(damaged(position));
            }
            if position > expected {
                return Err(redb::Error::Corrupted(format!(
                    "the log continues at entry {position}; expected entry {expected}"
                )));
            }
            while !rest.is_empty() {
                let (command, more) =
                    postcard::take_from_bytes::<Command>(rest).map_err(|_| damaged(position))?;
                rest = more;
                if position == expected {
                    commands.push(command);
                    expected += 1;
                }
                last = position;
                position += 1;
            }
        }
    }
    Ok((commands, last))
}

/// Returns the checksum of a row, which includes its first position.
fn checksum(first: u64, row: &[u8]) -> [u8; CHECK] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&first.to_le_bytes());
    hasher.update(row);
    hasher.finalize().to_le_bytes()
}

#[cfg(test)]
pub(super) mod tests;
