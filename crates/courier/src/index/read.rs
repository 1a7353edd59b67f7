//! What is asked of the index.

use super::apply::{Stored, decode};
use super::tables::{
    CONVERSATIONS, MEMBERSHIPS, MESSAGES, NAMES, QUEUES, SESSION_ACKS, SESSIONS, USERS,
};
use super::{Index, IndexError};
use crate::model::{Conversation, ConversationId, Message, Session, SessionId, User, UserId};
use redb::{ReadOnlyTable, ReadTransaction};

/// Part of a longer list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    /// Whether there is more after it.
    pub more: bool,
}

/// A message in a user's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub sequence: u64,
    pub message: Message,
}

/// Where a session stands in its user's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The last sequence it has acknowledged.
    pub acknowledged: u64,
    /// The last sequence there is.
    pub last: u64,
}

impl Index {
    /// The user of this name.
    pub async fn user_named(&self, name: String) -> Result<Option<(UserId, User)>, IndexError> {
        self.read(move |txn| {
            let Some(id) = txn.open_table(NAMES)?.get(name.as_str())? else {
                return Ok(None);
            };
            let id = UserId(id.value());
            Ok(user(txn, id)?.map(|user| (id, user)))
        })
        .await
    }

    /// A user's name.
    pub async fn name(&self, id: UserId) -> Result<Option<String>, IndexError> {
        self.read(move |txn| Ok(user(txn, id)?.map(|user| user.name)))
            .await
    }

    /// A session that is not over.
    pub async fn session(&self, id: SessionId) -> Result<Option<Session>, IndexError> {
        self.read(move |txn| match txn.open_table(SESSIONS)?.get(id.0)? {
            Some(row) => decode(row.value()).map(Some),
            None => Ok(None),
        })
        .await
    }

    /// Where a session of this user stands.
    pub async fn position(&self, user: UserId, session: SessionId) -> Result<Position, IndexError> {
        self.read(move |txn| {
            let own = txn.open_table(SESSION_ACKS)?.get(session.0)?;
            Ok(Position {
                acknowledged: own.map_or(0, |at| at.value()),
                last: last_sequence(&txn.open_table(QUEUES)?, user)?,
            })
        })
        .await
    }

    /// A conversation, if it exists.
    pub async fn conversation(
        &self,
        id: ConversationId,
    ) -> Result<Option<Conversation>, IndexError> {
        self.read(move |txn| conversation(txn, id)).await
    }

    /// The conversations of a user after one of them, in ascending order.
    pub async fn conversations(
        &self,
        user: UserId,
        after: ConversationId,
        limit: usize,
    ) -> Result<Page<(ConversationId, Conversation)>, IndexError> {
        self.read(move |txn| {
            let memberships = txn.open_table(MEMBERSHIPS)?;
            let Some(from) = after.0.checked_add(1) else {
                return Ok(Page::none());
            };
            let mut rows = memberships.range((user.0, from)..=(user.0, u64::MAX))?;
            let mut items = Vec::new();
            for row in rows.by_ref().take(limit) {
                let id = ConversationId(row?.0.value().1);
                items.extend(conversation(txn, id)?.map(|found| (id, found)));
            }
            let more = rows.next().is_some();
            Ok(Page { items, more })
        })
        .await
    }

    /// The messages of a conversation after one of them, in order.
    pub async fn messages(
        &self,
        of: ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Page<Message>, IndexError> {
        self.read(move |txn| {
            let messages = txn.open_table(MESSAGES)?;
            let Some(from) = after.checked_add(1) else {
                return Ok(Page::none());
            };
            let mut rows = messages.range((of.0, from)..=(of.0, u64::MAX))?;
            let mut items = Vec::new();
            for row in rows.by_ref().take(limit) {
                let (key, value) = row?;
                items.push(message(of, key.value().1, value.value())?);
            }
            let more = rows.next().is_some();
            Ok(Page { items, more })
        })
        .await
    }

    /// What lies in a user's queue after this sequence, in order.
    pub async fn queue(
        &self,
        user: UserId,
        after: u64,
        limit: usize,
    ) -> Result<Page<Queued>, IndexError> {
        self.read(move |txn| {
            let (queues, messages) = (txn.open_table(QUEUES)?, txn.open_table(MESSAGES)?);
            let Some(from) = after.checked_add(1) else {
                return Ok(Page::none());
            };
            let mut rows = queues.range((user.0, from)..=(user.0, u64::MAX))?;
            let mut items = Vec::new();
            for row in rows.by_ref().take(limit) {
                let (key, place) = row?;
                let (of, number) = place.value();
                let Some(found) = messages.get((of, number))? else {
                    return Err(redb::Error::Corrupted(format!(
                        "message {number} of conversation {of} is queued and missing"
                    )));
                };
                items.push(Queued {
                    sequence: key.value().1,
                    message: message(ConversationId(of), number, found.value())?,
                });
            }
            let more = rows.next().is_some();
            Ok(Page { items, more })
        })
        .await
    }
}

impl<T> Page<T> {
    fn none() -> Page<T> {
        Page {
            items: Vec::new(),
            more: false,
        }
    }
}

fn user(txn: &ReadTransaction, id: UserId) -> Result<Option<User>, redb::Error> {
    match txn.open_table(USERS)?.get(id.0)? {
        Some(row) => decode(row.value()).map(Some),
        None => Ok(None),
    }
}

fn conversation(
    txn: &ReadTransaction,
    id: ConversationId,
) -> Result<Option<Conversation>, redb::Error> {
    match txn.open_table(CONVERSATIONS)?.get(id.0)? {
        Some(row) => decode(row.value()).map(Some),
        None => Ok(None),
    }
}

fn message(of: ConversationId, number: u64, row: &[u8]) -> Result<Message, redb::Error> {
    let stored: Stored<'_> = decode(row)?;
    Ok(Message {
        conversation: of,
        number,
        sender: stored.sender,
        sent: stored.sent,
        text: stored.text.to_owned(),
    })
}

fn last_sequence(
    queues: &ReadOnlyTable<(u64, u64), (u64, u64)>,
    user: UserId,
) -> Result<u64, redb::Error> {
    let mut rows = queues.range((user.0, 0)..=(user.0, u64::MAX))?;
    let last = rows.next_back().transpose()?;
    Ok(last.map_or(0, |(key, _)| key.value().1))
}
