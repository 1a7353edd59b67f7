//! What is asked of the index.

use super::apply::Stored;
use super::queue::{last_sequence, visit};
use super::row::{decode, session_key};
use super::tables::{CONVERSATIONS, MEMBERSHIPS, MESSAGES, NAMES, SESSION_ACKS, SESSIONS, USERS};
use super::{Index, IndexError};
use crate::frame::{ENVELOPE, encoded};
use crate::model::{Conversation, ConversationId, Message, Session, SessionId, User, UserId};
use redb::ReadTransaction;

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
            Some(row) => decode("session", &session_key(id.0), row.value()).map(Some),
            None => Ok(None),
        })
        .await
    }

    /// Where a session of this user stands.
    pub async fn position(&self, user: UserId, session: SessionId) -> Result<Position, IndexError> {
        let tail = self.tails.of(user);
        self.read(move |txn| {
            let own = txn.open_table(SESSION_ACKS)?.get(session.0)?;
            Ok(Position {
                acknowledged: own.map_or(0, |at| at.value()),
                last: last_sequence(txn, user, tail)?,
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

    /// The conversations of a user after one of them, in ascending order: at most `limit`, and of
    /// about `bytes` as JSON, but one at least.
    pub async fn conversations(
        &self,
        user: UserId,
        after: ConversationId,
        limit: usize,
        bytes: usize,
    ) -> Result<Page<(ConversationId, Conversation)>, IndexError> {
        self.read(move |txn| {
            let memberships = txn.open_table(MEMBERSHIPS)?;
            let Some(from) = after.0.checked_add(1) else {
                return Ok(Page::none());
            };
            let mut page = Building::new(limit, bytes);
            for row in memberships.range((user.0, from)..=(user.0, u64::MAX))? {
                let id = ConversationId(row?.0.value().1);
                let Some(found) = conversation(txn, id)? else {
                    continue;
                };
                // A number has 20 digits at most, and a comma.
                let length = ENVELOPE + 21 * found.members.len();
                if !page.add((id, found), length) {
                    break;
                }
            }
            Ok(page.done())
        })
        .await
    }

    /// The messages of a conversation after one of them, in order: at most `limit`, and of about
    /// `bytes` as JSON, but one at least.
    pub async fn messages(
        &self,
        of: ConversationId,
        after: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Page<Message>, IndexError> {
        self.read(move |txn| {
            let messages = txn.open_table(MESSAGES)?;
            let Some(from) = after.checked_add(1) else {
                return Ok(Page::none());
            };
            let mut page = Building::new(limit, bytes);
            for row in messages.range((of.0, from)..=(of.0, u64::MAX))? {
                let (key, value) = row?;
                let message = message(of, key.value().1, value.value())?;
                let length = ENVELOPE + encoded(&message.text);
                if !page.add(message, length) {
                    break;
                }
            }
            Ok(page.done())
        })
        .await
    }

    /// What lies in a user's queue after this sequence, in order: at most `limit`, and of about
    /// `bytes` as JSON, but one at least.
    pub async fn queue(
        &self,
        user: UserId,
        after: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Page<Queued>, IndexError> {
        let tail = self.tails.of(user);
        self.read(move |txn| {
            let messages = txn.open_table(MESSAGES)?;
            let mut page = Building::new(limit, bytes);
            visit(txn, user, after, tail, |sequence, of, number| {
                // The tail may know of a message that is only just being applied.
                let Some(found) = messages.get((of.0, number))? else {
                    return match tail.is_some_and(|tail| sequence >= tail.first) {
                        true => Ok(false),
                        false => Err(redb::Error::Corrupted(format!(
                            "message {number} of conversation {of} is queued and missing"
                        ))),
                    };
                };
                let message = message(of, number, found.value())?;
                let length = ENVELOPE + encoded(&message.text);
                Ok(page.add(Queued { sequence, message }, length))
            })?;
            Ok(page.done())
        })
        .await
    }
}

/// A page that is being put together.
struct Building<T> {
    page: Page<T>,
    limit: usize,
    /// Bytes that are left.
    bytes: usize,
}

impl<T> Building<T> {
    fn new(limit: usize, bytes: usize) -> Building<T> {
        let page = Page::none();
        Building { page, limit, bytes }
    }

    /// Adds an item, unless the page is full.
    fn add(&mut self, item: T, length: usize) -> bool {
        let items = &mut self.page.items;
        if items.len() >= self.limit || (length > self.bytes && !items.is_empty()) {
            self.page.more = true;
            return false;
        }
        items.push(item);
        self.bytes = self.bytes.saturating_sub(length);
        true
    }

    fn done(self) -> Page<T> {
        self.page
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
        Some(row) => decode("user", &[id.0], row.value()).map(Some),
        None => Ok(None),
    }
}

fn conversation(
    txn: &ReadTransaction,
    id: ConversationId,
) -> Result<Option<Conversation>, redb::Error> {
    match txn.open_table(CONVERSATIONS)?.get(id.0)? {
        Some(row) => decode("conversation", &[id.0], row.value()).map(Some),
        None => Ok(None),
    }
}

fn message(of: ConversationId, number: u64, row: &[u8]) -> Result<Message, redb::Error> {
    let stored: Stored<'_> = decode("message", &[of.0, number], row)?;
    Ok(Message {
        conversation: of,
        number,
        sender: stored.sender,
        sent: stored.sent,
        text: stored.text.to_owned(),
    })
}
