//! Upgrades of an index from earlier formats.
//!
//! Format 2 had no checksums of acknowledgements, no list of a user's sessions, and stored the days of idempotency keys
//! in the order of the calendar. Format 3 had no ages of messages: its messages become one [chunk](super::expiry), with
//! the age of the newest of them. Format 4 had no table of similar names.

use super::chunk::{Chunk, OpenChunk, note};
use super::keys::Days;
use super::lookalikes;
use super::machine::{MessageRow, State};
use super::row::{decode, encode, number, session_key};
use super::tables::{
    FORMAT, FORMATS, META, SESSION_ACKS, SESSIONS, STATE, Tables, USER_ACKS, USER_SESSIONS,
};
use crate::model::{Millis, Session, UserId};
use crate::seal::FIRST;
use redb::{Database, Durability, ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};

/// The formats that are upgraded.
pub(super) const BEFORE: [u32; 3] = [2, 3, 4];

const OLD_SESSION_ACKS: TableDefinition<[u8; 16], u64> = TableDefinition::new("session_acks");
const OLD_USER_ACKS: TableDefinition<u64, u64> = TableDefinition::new("user_acks");

/// The state in format 2.
#[derive(Serialize, Deserialize)]
struct OldState {
    format: u32,
    log: u64,
    position: u64,
    digest: [u8; 16],
    users: u64,
    conversations: u64,
    days: Vec<u64>,
}

/// The state in format 3.
#[derive(Serialize, Deserialize)]
struct StateWithoutBytes {
    format: u32,
    log: u64,
    position: u64,
    digest: [u8; 16],
    users: u64,
    conversations: u64,
    days: Days,
}

#[derive(Serialize, Deserialize)]
struct OldSession {
    user: UserId,
    proof: [u8; 32],
    expires: Millis,
}

/// Upgrades an index of one of the formats [`BEFORE`]. After an error nothing has changed.
pub(super) fn upgrade(database: &Database, found: u32) -> Result<(), redb::Error> {
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::Immediate)
        .map_err(redb::Error::from)?;
    let mut scratch = Vec::new();
    if found < 3 {
        upgrade_state(&txn, &mut scratch)?;
        upgrade_sessions(&txn, &mut scratch)?;
        upgrade_acknowledgements(&txn)?;
    }
    txn.open_table(FORMATS)?.insert(STATE, FORMAT)?;
    {
        let mut tables = Tables::open(&txn)?;
        match found < 4 {
            true => measure_messages(&mut tables, &mut scratch)?,
            false => raise_format(&mut tables, &mut scratch)?,
        }
        lookalikes::add_all(&mut tables)?;
    }
    txn.commit()?;
    Ok(())
}

fn upgrade_state(txn: &WriteTransaction, scratch: &mut Vec<u8>) -> Result<(), redb::Error> {
    let mut meta = txn.open_table(META)?;
    let Some(row) = meta.get(STATE)?.map(|row| row.value().to_vec()) else {
        return Ok(());
    };
    let old: OldState = decode("state", &[], &row)?;
    let state = StateWithoutBytes {
        format: 3,
        log: old.log,
        position: old.position,
        digest: old.digest,
        users: old.users,
        conversations: old.conversations,
        days: Days {
            last: old.days.last().copied().unwrap_or(0),
            tables: old.days,
        },
    };
    meta.insert(STATE, encode(&[], &state, scratch))?;
    Ok(())
}

/// Computes the size and age of all messages.
fn measure_messages(tables: &mut Tables<'_>, scratch: &mut Vec<u8>) -> Result<(), redb::Error> {
    let Some(row) = tables.meta.get(STATE)?.map(|row| row.value().to_vec()) else {
        return Ok(());
    };
    let StateWithoutBytes {
        log,
        position,
        digest,
        users,
        conversations,
        days,
        ..
    } = decode("state", &[], &row)?;
    let (mut bytes, mut newest) = (0, Millis::default());
    let mut last = None;
    let chunk = Chunk(1);
    let Tables {
        messages, marks, ..
    } = tables;
    let mut mark = |(of, last)| {
        let row = number(&[chunk.0, of], last);
        marks.insert((chunk.0, of), row).map(drop)
    };
    for row in messages.iter()? {
        let (place, row) = row?;
        let (of, message) = place.value();
        let stored: MessageRow<'_> = decode("message", &[of, message], row.value())?;
        bytes += row.value().len() as u64;
        newest = newest.max(stored.sent);
        if let Some(last) = last.replace((of, message))
            && last.0 != of
        {
            mark(last)?;
        }
    }
    if let Some(last) = last {
        mark(last)?;
        note(tables, chunk, newest)?;
    }
    let state = State {
        format: FORMAT,
        log,
        position,
        digest,
        users,
        conversations,
        days,
        bytes,
        growing: OpenChunk::after(chunk),
        version: FIRST,
    };
    tables.meta.insert(STATE, encode(&[], &state, scratch))?;
    Ok(())
}

/// Writes the number of this format into the counters of format 4.
fn raise_format(tables: &mut Tables<'_>, scratch: &mut Vec<u8>) -> Result<(), redb::Error> {
    let row = tables.meta.get(STATE)?.map(|row| row.value().to_vec());
    if let Some(row) = row {
        let mut state: State = decode("state", &[], &row)?;
        state.format = FORMAT;
        tables.meta.insert(STATE, encode(&[], &state, scratch))?;
    }
    Ok(())
}

fn upgrade_sessions(txn: &WriteTransaction, scratch: &mut Vec<u8>) -> Result<(), redb::Error> {
    let mut sessions = txn.open_table(SESSIONS)?;
    let mut of_users = txn.open_table(USER_SESSIONS)?;
    let mut all = Vec::new();
    for row in sessions.iter()? {
        let (id, row) = row?;
        let old: OldSession = decode("session", &session_key(id.value()), row.value())?;
        let session = Session {
            user: old.user,
            proof: old.proof,
            expires: old.expires,
            opened: None,
        };
        all.push((id.value(), session));
    }
    for (id, session) in all {
        sessions.insert(id, encode(&session_key(id), &session, scratch))?;
        of_users.insert((session.user.0, id), ())?;
    }
    Ok(())
}

fn upgrade_acknowledgements(txn: &WriteTransaction) -> Result<(), redb::Error> {
    let mut of_sessions = txn.open_table(SESSION_ACKS)?;
    for row in txn.open_table(OLD_SESSION_ACKS)?.iter()? {
        let (id, at) = row?;
        let row = number(&session_key(id.value()), at.value());
        of_sessions.insert(id.value(), row)?;
    }
    let mut of_users = txn.open_table(USER_ACKS)?;
    for row in txn.open_table(OLD_USER_ACKS)?.iter()? {
        let (id, at) = row?;
        of_users.insert(id.value(), number(&[id.value()], at.value()))?;
    }
    txn.delete_table(OLD_SESSION_ACKS)?;
    txn.delete_table(OLD_USER_ACKS)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, CommandResult, Refusal};
    use crate::index::OpenedIndex;
    use crate::index::tables::{CHUNKS, LOOKALIKES, MARKS};
    use crate::index::tests::TestIndex;
    use crate::model::SessionId;

    #[tokio::test]
    async fn an_index_of_the_second_format_goes_on_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (id, session) = (
            [7; 16],
            OldSession {
                user: UserId(1),
                proof: [3; 32],
                expires: Millis(9),
            },
        );
        {
            let database = Database::create(dir.path().join("index.redb")).unwrap();
            let txn = database.begin_write().unwrap();
            let mut scratch = Vec::new();
            {
                let state = OldState {
                    format: BEFORE[0],
                    log: 5,
                    position: 40,
                    digest: [1; 16],
                    users: 1,
                    conversations: 2,
                    days: vec![3, 4],
                };
                let mut meta = txn.open_table(META).unwrap();
                let row = encode(&[], &state, &mut scratch);
                meta.insert(STATE, row).unwrap();
                let mut formats = txn.open_table(FORMATS).unwrap();
                formats.insert(STATE, BEFORE[0]).unwrap();
                let mut sessions = txn.open_table(SESSIONS).unwrap();
                let row = encode(&session_key(id), &session, &mut scratch);
                sessions.insert(id, row).unwrap();
                let mut acks = txn.open_table(OLD_SESSION_ACKS).unwrap();
                acks.insert(id, 17).unwrap();
                txn.open_table(OLD_USER_ACKS)
                    .unwrap()
                    .insert(1, 18)
                    .unwrap();
            }
            txn.commit().unwrap();
        }
        let opened = OpenedIndex::open(Some(dir.path())).unwrap();
        assert_eq!(opened.state.format, FORMAT);
        assert_eq!((opened.state.position, opened.state.log), (40, 5));
        assert_eq!(opened.state.days.tables, [3, 4]);
        let (feed, entries) = crossbeam_channel::bounded(1);
        let (index, thread) = opened
            .start(
                entries,
                crate::index::tests::RecordedDeliveries::default(),
                |_| {},
            )
            .unwrap();
        let found = index.session(SessionId(id)).await.unwrap().unwrap();
        assert_eq!((found.user, found.expires), (UserId(1), Millis(9)));
        let position = index.position(UserId(1), SessionId(id)).await.unwrap();
        assert_eq!(position.acknowledged, 17);
        drop((feed, index));
        thread.join().unwrap();
        // One upgrade is enough, and all tables are complete.
        let opened = OpenedIndex::open(Some(dir.path())).unwrap();
        let txn = opened.database.begin_write().unwrap();
        let tables = Tables::open(&txn).unwrap();
        assert!(tables.user_sessions.get((1, id)).unwrap().is_some());
    }

    #[tokio::test]
    async fn an_index_of_the_third_format_learns_how_much_and_how_old_its_messages_are() {
        let dir = tempfile::tempdir().unwrap();
        let mut fed = TestIndex::open(Some(dir.path()));
        let ([a, b, _], both, only) = fed.rooms().await;
        for at in 1..=10 {
            fed.post(a, both, None, at).await.unwrap();
            fed.post(a, only, None, 2 * at).await.unwrap();
        }
        let bytes = fed.index.stock().await.unwrap().bytes;
        fed.close();
        {
            let opened = OpenedIndex::open(Some(dir.path())).unwrap();
            let State {
                log,
                position,
                digest,
                users,
                conversations,
                days,
                ..
            } = opened.state;
            let old = StateWithoutBytes {
                format: 3,
                log,
                position,
                digest,
                users,
                conversations,
                days,
            };
            let txn = opened.database.begin_write().unwrap();
            txn.delete_table(MARKS).unwrap();
            txn.delete_table(CHUNKS).unwrap();
            let mut scratch = Vec::new();
            {
                let mut meta = txn.open_table(META).unwrap();
                let row = encode(&[], &old, &mut scratch);
                meta.insert(STATE, row).unwrap();
                let mut formats = txn.open_table(FORMATS).unwrap();
                formats.insert(STATE, 3).unwrap();
            }
            txn.commit().unwrap();
        }
        let mut fed = TestIndex::open(Some(dir.path()));
        let stock = fed.index.stock().await.unwrap();
        assert_eq!(stock.bytes, bytes);
        assert_eq!(stock.oldest, Some((Chunk(1), Millis(20))));
        fed.post(b, only, None, 30).await.unwrap();
        let expire = Command::Expire {
            through: 1,
            most: 15,
        };
        let expired = fed.apply(expire).await;
        assert_eq!(expired, Ok(CommandResult::Expired(15)));
        let page = fed.index.messages(only, 0, 99, usize::MAX).await.unwrap();
        let found: Vec<_> = page.items.iter().map(|message| message.number).collect();
        assert_eq!(found, (6..=11).collect::<Vec<_>>());
        fed.close();
    }

    #[tokio::test]
    async fn an_index_of_the_fourth_format_learns_which_names_look_alike() {
        let dir = tempfile::tempdir().unwrap();
        let mut fed = TestIndex::open(Some(dir.path()));
        let register = |name: &str| Command::RegisterUser {
            name: name.to_owned(),
            password: String::new(),
            at: Millis(1),
        };
        fed.apply(register("anne")).await.unwrap();
        fed.close();
        {
            let opened = OpenedIndex::open(Some(dir.path())).unwrap();
            let txn = opened.database.begin_write().unwrap();
            txn.delete_table(LOOKALIKES).unwrap();
            let mut scratch = Vec::new();
            {
                let state = State {
                    format: 4,
                    ..opened.state.clone()
                };
                let mut meta = txn.open_table(META).unwrap();
                let row = encode(&[], &state, &mut scratch);
                meta.insert(STATE, row).unwrap();
                let mut formats = txn.open_table(FORMATS).unwrap();
                formats.insert(STATE, 4).unwrap();
            }
            txn.commit().unwrap();
        }
        let mut fed = TestIndex::open(Some(dir.path()));
        let refused = fed.apply(register("\u{430}nne")).await;
        assert!(matches!(refused, Err(Refusal::NameLooksTaken(_))));
        fed.apply(register("anna")).await.unwrap();
        fed.close();
    }
}
