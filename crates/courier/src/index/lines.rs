//! The contents of an index as lines, from which another index is built.
//!
//! The lines contain everything that a client could ask for, in the order of [`Line`]'s variants. Tables that follow
//! from others (names, memberships, the sessions of a user) are built again.

use super::expiry::first_kept;
use super::keys::UserKey;
use super::machine::{MessageRow, State};
use super::opened::OpenedIndex;
use super::queue::{QueueRange, noted_tails};
use super::row::{checked, decode, session_key};
use super::tables::{
    CHUNKS, CONVERSATIONS, FIRSTS, MARKS, MESSAGES, PAIRS, QUEUES, SESSION_ACKS, SESSIONS, TITLES,
    USER_ACKS, USERS, keys_of_day,
};
use crate::model::{Conversation, ConversationId, Session, SessionId, User};
use redb::{ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// The version of the lines.
pub(super) const LINES: u32 = 1;

/// A part of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Line {
    /// The first line.
    Begin {
        /// The version of the lines.
        courier: u32,
        /// The position of the last entry of the log in the index.
        position: u64,
        /// The newest version of a command in the index.
        version: u8,
        /// The last chunk of messages.
        chunk: u64,
        /// The days of idempotency keys, in the order of creation.
        days: Vec<u64>,
        /// The day of the last key.
        day: u64,
    },
    User {
        id: u64,
        /// The name; empty if the account was deleted.
        name: String,
        password: String,
        created: u64,
        /// The last sequence number that any session of the user has acknowledged.
        acknowledged: Option<u64>,
    },
    Session {
        id: String,
        user: u64,
        /// The hash of the token's secret half, in hexadecimal digits.
        proof: String,
        expires: u64,
        opened: Option<u64>,
        acknowledged: Option<u64>,
    },
    Conversation {
        id: u64,
        creator: u64,
        members: Vec<u64>,
        created: u64,
        title: Option<String>,
        pair: bool,
        /// The number of the first message that was not removed.
        first: u64,
    },
    Message {
        conversation: u64,
        number: u64,
        sender: u64,
        sent: u64,
        text: String,
    },
    /// Consecutive messages of a conversation in a user's queue.
    Queue {
        user: u64,
        first: u64,
        conversation: u64,
        number: u64,
        count: u64,
        own: u64,
    },
    /// A chunk of messages, and the time of the newest one.
    Chunk { chunk: u64, newest: u64 },
    /// The last message of a conversation in a chunk.
    Mark {
        chunk: u64,
        conversation: u64,
        last: u64,
    },
    /// The message or conversation for which an idempotency key was used. The key is in hexadecimal digits. The number
    /// is 0 if the key has created the conversation.
    Key {
        day: u64,
        user: u64,
        key: String,
        conversation: u64,
        number: u64,
        fingerprint: u64,
    },
}

fn hexadecimal(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// Parses bytes in hexadecimal digits.
pub(super) fn from_hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let decoded = data_encoding::HEXLOWER.decode(text.as_bytes()).ok()?;
    decoded.try_into().ok()
}

impl OpenedIndex {
    /// Passes all lines of the index to `take`, in order. Memory: a few lines and the last range of recent queues.
    ///
    /// # Errors
    /// A row is damaged, or `take` has returned an error.
    pub fn lines(
        &self,
        mut take: impl FnMut(Line) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let txn = self.database.begin_read()?;
        let State {
            position,
            version,
            growing,
            days,
            ..
        } = self.state.clone();
        take(Line::Begin {
            courier: LINES,
            position,
            version,
            chunk: growing.chunk.0,
            days: days.tables.clone(),
            day: days.last,
        })?;
        accounts(&txn, &mut take)?;
        conversations(&txn, &mut take)?;
        queues(&txn, &mut take)?;
        chunks(&txn, &mut take)?;
        for day in days.tables {
            let name = keys_of_day(day);
            let keys: TableDefinition<'_, UserKey, (u64, u64, u64)> = TableDefinition::new(&name);
            let keys = match txn.open_table(keys) {
                Ok(keys) => keys,
                Err(TableError::TableDoesNotExist(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            for row in keys.iter()? {
                let (place, used) = row?;
                let ((user, key), (conversation, number, fingerprint)) =
                    (place.value(), used.value());
                take(Line::Key {
                    day,
                    user,
                    key: hexadecimal(&key),
                    conversation,
                    number,
                    fingerprint,
                })?;
            }
        }
        Ok(())
    }
}

type Take<'a> = &'a mut dyn FnMut(Line) -> Result<(), redb::Error>;

fn accounts(txn: &ReadTransaction, take: Take<'_>) -> Result<(), redb::Error> {
    let acks = txn.open_table(USER_ACKS)?;
    for row in txn.open_table(USERS)?.iter()? {
        let (id, row) = row?;
        let id = id.value();
        let user: User = decode("user", &[id], row.value())?;
        let acknowledged = acks.get(id)?.map(|row| row.value());
        let acknowledged = acknowledged.map(|row| checked("place of user", &[id], row));
        take(Line::User {
            id,
            name: user.name,
            password: user.password,
            created: user.created.0,
            acknowledged: acknowledged.transpose()?,
        })?;
    }
    let acks = txn.open_table(SESSION_ACKS)?;
    for row in txn.open_table(SESSIONS)?.iter()? {
        let (id, row) = row?;
        let id = id.value();
        let key = session_key(id);
        let session: Session = decode("session", &key, row.value())?;
        let acknowledged = acks.get(id)?.map(|row| row.value());
        let acknowledged = acknowledged.map(|row| checked("place of session", &key, row));
        take(Line::Session {
            id: SessionId(id).to_string(),
            user: session.user.0,
            proof: hexadecimal(&session.proof),
            expires: session.expires.0,
            opened: session.opened.map(|at| at.0),
            acknowledged: acknowledged.transpose()?,
        })?;
    }
    Ok(())
}

fn conversations(txn: &ReadTransaction, take: Take<'_>) -> Result<(), redb::Error> {
    let (titles, pairs) = (txn.open_table(TITLES)?, txn.open_table(PAIRS)?);
    let firsts = txn.open_table(FIRSTS)?;
    for row in txn.open_table(CONVERSATIONS)?.iter()? {
        let (id, row) = row?;
        let id = id.value();
        let known: Conversation = decode("conversation", &[id], row.value())?;
        let members: Vec<u64> = known.members.iter().map(|member| member.0).collect();
        let title = titles.get(id)?;
        let title = title.map(|row| decode("title", &[id], row.value()));
        let pair = match members[..] {
            [one, other] => {
                let row = pairs.get((one, other))?.map(|row| row.value());
                let of = row.map(|row| checked("pair", &[one, other], row));
                of.transpose()? == Some(id)
            }
            _ => false,
        };
        take(Line::Conversation {
            id,
            creator: known.creator.0,
            members,
            created: known.created.0,
            title: title.transpose()?,
            pair,
            first: first_kept(&firsts, ConversationId(id))?,
        })?;
    }
    for row in txn.open_table(MESSAGES)?.iter()? {
        let (place, row) = row?;
        let (conversation, number) = place.value();
        let stored: MessageRow<'_> = decode("message", &[conversation, number], row.value())?;
        take(Line::Message {
            conversation,
            number,
            sender: stored.sender.0,
            sent: stored.sent.0,
            text: stored.text.to_owned(),
        })?;
    }
    Ok(())
}

/// Passes the ranges of all queues to `take`. If the last range of a queue is in the table of tails, that range
/// replaces the row of the queue.
fn queues(txn: &ReadTransaction, take: Take<'_>) -> Result<(), redb::Error> {
    let noted: BTreeMap<_, _> = noted_tails(txn)?
        .into_iter()
        .filter(|(_, run)| run.count > 0)
        .map(|(user, run)| ((user.0, run.first), run))
        .collect();
    let mut tell = |user, run: QueueRange| {
        take(Line::Queue {
            user,
            first: run.first,
            conversation: run.conversation,
            number: run.number,
            count: run.count,
            own: run.own,
        })
    };
    let mut after = Unbounded;
    for row in txn.open_table(QUEUES)?.iter()? {
        let (place, row) = row?;
        let place = place.value();
        for (&(user, _), &run) in noted.range((after, Excluded(place))) {
            tell(user, run)?;
        }
        let written = QueueRange::read(place, row.value())?;
        tell(place.0, noted.get(&place).copied().unwrap_or(written))?;
        after = Excluded(place);
    }
    for (&(user, _), &run) in noted.range((after, Unbounded)) {
        tell(user, run)?;
    }
    Ok(())
}

fn chunks(txn: &ReadTransaction, take: Take<'_>) -> Result<(), redb::Error> {
    for row in txn.open_table(CHUNKS)?.iter()? {
        let (chunk, row) = row?;
        let chunk = chunk.value();
        let newest = checked("chunk", &[chunk], row.value())?;
        take(Line::Chunk { chunk, newest })?;
    }
    for row in txn.open_table(MARKS)?.iter()? {
        let (place, row) = row?;
        let (chunk, conversation) = place.value();
        take(Line::Mark {
            chunk,
            conversation,
            last: checked("mark", &[chunk, conversation], row.value())?,
        })?;
    }
    Ok(())
}
