//! Copies of an index in a new file: a backup, a snapshot for another node, or a compacted index.

use super::machine::{MessageRow, State};
use super::queue::check_row;
use super::row::decode;
use super::tables::{
    CHUNKS, CONVERSATIONS, FIRSTS, FORMATS, LOOKALIKES, MARKS, MEMBERSHIPS, MESSAGES, META, NAMES,
    PAIRS, QUEUES, SESSION_ACKS, SESSIONS, STATE, TAILS, TITLES, USER_ACKS, USER_SESSIONS, USERS,
    keys_of_day,
};
use crate::model::{Conversation, User};
use redb::{
    CursorError, Database, Durability, Error, Key, ReadTransaction, ReadableTable, TableDefinition,
    TableError, Value,
};
use std::borrow::Borrow;
use std::ops::Bound;

/// The number of rows in one transaction.
const TOGETHER: usize = 1 << 13;

/// Copies all tables.
pub(super) fn copy(from: &ReadTransaction, to: &Database) -> Result<(), Error> {
    table(from, to, FORMATS)?;
    table(from, to, META)?;
    table(from, to, USERS)?;
    table(from, to, NAMES)?;
    table(from, to, LOOKALIKES)?;
    table(from, to, SESSIONS)?;
    table(from, to, USER_SESSIONS)?;
    table(from, to, SESSION_ACKS)?;
    table(from, to, USER_ACKS)?;
    table(from, to, CONVERSATIONS)?;
    table(from, to, TITLES)?;
    table(from, to, PAIRS)?;
    table(from, to, MEMBERSHIPS)?;
    table(from, to, MESSAGES)?;
    table(from, to, QUEUES)?;
    table(from, to, TAILS)?;
    table(from, to, MARKS)?;
    table(from, to, CHUNKS)?;
    table(from, to, FIRSTS)?;
    if let Some(state) = state(from)? {
        for day in state.days.tables {
            let name = keys_of_day(day);
            let keys = TableDefinition::<(u64, [u8; 16]), (u64, u64, u64)>::new(&name);
            table(from, to, keys)?;
        }
    }
    let mut last = to.begin_write()?;
    last.set_durability(Durability::Immediate)
        .map_err(Error::from)?;
    last.set_quick_repair(true);
    last.commit()?;
    Ok(())
}

/// Returns the counters, if there are any.
pub(super) fn state(txn: &ReadTransaction) -> Result<Option<State>, Error> {
    let meta = match txn.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match meta.get(STATE)? {
        Some(row) => decode("state", &[], row.value()).map(Some),
        None => Ok(None),
    }
}

fn table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &Database,
    definition: TableDefinition<'_, K, V>,
) -> Result<(), Error>
where
    for<'k> K::SelfType<'k>: Borrow<K::SelfType<'k>>,
{
    let rows = match from.open_table(definition) {
        Ok(rows) => rows,
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut rows = rows.iter()?;
    let mut more = true;
    while more {
        let mut txn = to.begin_write()?;
        txn.set_durability(Durability::None).map_err(Error::from)?;
        {
            let mut table = txn.open_table(definition)?;
            let end: Bound<K::SelfType<'_>> = Bound::Unbounded;
            let mut cursor = table.upper_bound_mut(end)?;
            more = false;
            for row in rows.by_ref().take(TOGETHER) {
                let (key, value) = row?;
                cursor
                    .insert_before(key.value(), value.value())
                    .map_err(unordered)?;
                more = true;
            }
            cursor.close()?;
        }
        txn.commit()?;
    }
    Ok(())
}

fn unordered(error: CursorError) -> Error {
    Error::Corrupted(format!("the rows are out of order: {error}"))
}

/// Reads everything that a client could ask for.
///
/// # Errors
/// If a row is damaged.
pub(super) fn verify(txn: &ReadTransaction) -> Result<State, Error> {
    let Some(state) = state(txn)? else {
        return Err(Error::Corrupted("there is nothing in it".to_owned()));
    };
    for row in txn.open_table(USERS)?.iter()? {
        let (id, row) = row?;
        decode::<User>("user", &[id.value()], row.value())?;
    }
    for row in txn.open_table(CONVERSATIONS)?.iter()? {
        let (id, row) = row?;
        decode::<Conversation>("conversation", &[id.value()], row.value())?;
    }
    for row in txn.open_table(MESSAGES)?.iter()? {
        let (place, row) = row?;
        let (of, number) = place.value();
        decode::<MessageRow<'_>>("message", &[of, number], row.value())?;
    }
    for row in txn.open_table(QUEUES)?.iter()? {
        let (place, row) = row?;
        check_row(place.value(), row.value())?;
    }
    Ok(state)
}
