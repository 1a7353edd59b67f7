//! A copy of the index that replaces its file after a compaction, and the entries that are stored for the copy.

use super::copy;
use super::keys::Recent;
use super::machine::{At, Machine, SideEffects};
use super::tables::Tables;
use crate::command::Command;
use redb::{Database, Durability, Error, ReadTransaction, ReadableDatabase};
use std::path::{Path, PathBuf};

/// The maximum bytes of entries that are stored during a copy.
const MOST_KEPT: usize = 256 << 20;
/// The number of entries in one transaction.
const TOGETHER: usize = 1 << 12;

/// An applied log entry; `None` if it had no effect.
pub(super) type Applied = (At, Option<Command>);

/// A copy of the index that has applied all entries except those that are still stored.
pub(super) struct Replacement {
    pub path: PathBuf,
    pub database: Database,
    pub machine: Machine,
}

/// Entries that are kept for a compaction.
#[derive(Default)]
pub(super) struct CompactionBacklog {
    entries: Vec<Applied>,
    bytes: usize,
    too_many: bool,
}

impl CompactionBacklog {
    pub fn push(&mut self, at: At, command: Option<&Command>) {
        self.bytes += command.map_or(0, Command::weight) + size_of::<Applied>();
        if self.bytes > MOST_KEPT {
            self.too_many = true;
            self.entries = Vec::new();
        }
        if !self.too_many {
            self.entries.push((at, command.cloned()));
        }
    }

    pub fn take(&mut self) -> Option<Vec<Applied>> {
        self.bytes = 0;
        let entries = std::mem::take(&mut self.entries);
        (!self.too_many).then_some(entries)
    }
}

impl Replacement {
    pub fn make(path: PathBuf, cache: usize, txn: ReadTransaction) -> Result<Replacement, Error> {
        let database = create(&path, cache)?;
        copy::copy(&txn, &database)?;
        // The transaction is closed early, because it prevents the reuse of space.
        txn.close()?;
        let txn = database.begin_read()?;
        let state = copy::state(&txn)?.unwrap_or_default();
        let machine = Machine::new(state, &txn)?;
        drop(txn);
        Ok(Replacement {
            path,
            database,
            machine,
        })
    }

    /// Applies entries that were applied to the original. `to_disk` is true in the last call.
    pub fn apply(&mut self, entries: Vec<Applied>, to_disk: bool) -> Result<(), Error> {
        let mut entries = entries.into_iter().peekable();
        loop {
            let some = entries.by_ref().take(TOGETHER).collect::<Vec<_>>();
            let last = entries.peek().is_none();
            let mut txn = self.database.begin_write()?;
            let durability = match to_disk && last {
                true => Durability::Immediate,
                false => Durability::None,
            };
            txn.set_durability(durability).map_err(Error::from)?;
            txn.set_quick_repair(to_disk && last);
            {
                let mut tables = Tables::open(&txn)?;
                let mut recent = Recent::open(&txn, &self.machine.state.days)?;
                let mut caused = SideEffects::default();
                for (at, command) in some {
                    match command {
                        Some(command) => {
                            let machine = &mut self.machine;
                            // The submitter of the command was answered when the original applied it.
                            let _ = machine.apply(
                                &mut tables,
                                &mut recent,
                                at,
                                command,
                                &mut caused,
                            )?;
                            caused.clear();
                        }
                        None => self.machine.skip(at),
                    }
                }
                self.machine.save(&mut tables, to_disk && last)?;
            }
            txn.commit()?;
            if last {
                return Ok(());
            }
        }
    }
}

/// Creates the file of a copy, and replaces any file of an earlier attempt.
pub(super) fn create(path: &Path, cache: usize) -> Result<Database, Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    crate::database::open_file(path, cache)
}
