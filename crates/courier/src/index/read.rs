//! Reads of the index.

use super::chunk::Chunk;
use super::expiry::first_kept;
use super::handle::{Index, IndexError};
use super::machine::MessageRow;
use super::queue::{last_sequence, visit, visit_runs};
use super::row::{checked, decode, session_key};
use super::tables::{
    CHUNKS, CONVERSATIONS, FIRSTS, MEMBERSHIPS, MESSAGES, NAMES, SESSION_ACKS, SESSIONS, TITLES,
    USER_ACKS, USER_SESSIONS, USERS,
};
use crate::frame::{ENVELOPE, UserInfo, encoded};
use crate::model::{
    Conversation, ConversationId, Message, Millis, Session, SessionId, User, UserId,
};
use redb::{AccessGuard, ReadTransaction, ReadableTable, StorageError};
use std::collections::BTreeMap;

/// The maximum work for counting unread messages: the number of ranges of a queue, plus the number of messages in
/// partly acknowledged ranges.
const MOST_UNREAD_RUNS: usize = 10_000;

/// The number of removed messages of a queue that are skipped at a time.
const MOST_PASSED: usize = 10_000;

/// A part of a longer list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    pub items: Vec<T>,
    /// True if there are more items after the page.
    pub more: bool,
}

/// A part of a user's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuePage {
    pub items: Vec<QueuedMessage>,
    /// True if there are more messages after the page.
    pub more: bool,
    /// The sequence number up to which the page is complete.
    pub reached: u64,
}

/// Statistics about the stored messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stock {
    /// The bytes of all messages.
    pub bytes: u64,
    /// The oldest chunk, and the arrival time of its newest message.
    pub oldest: Option<(Chunk, Millis)>,
}

/// A message in a user's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedMessage {
    pub sequence: u64,
    pub message: Message,
}

/// The position of a session in its user's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The last sequence number that the session has acknowledged.
    pub acknowledged: u64,
    /// The last sequence number of the queue.
    pub last: u64,
}

impl Index {
    /// Returns the user with this name.
    pub async fn user_named(&self, name: String) -> Result<Option<(UserId, User)>, IndexError> {
        self.read(move |txn| {
            let Some(id) = txn.open_table(NAMES)?.get(name.as_str())? else {
                return Ok(None);
            };
            let id = UserId(id.value());
            match user(txn, id)? {
                Some(user) if user.name == name => Ok(Some((id, user))),
                _ => Err(damaged(format!("name {name:?}"))),
            }
        })
        .await
    }

    /// Returns users whose names begin with a prefix and follow a given name, in the order of bytes.
    pub async fn users_named_like(
        &self,
        prefix: String,
        after: String,
        limit: usize,
    ) -> Result<Page<UserInfo>, IndexError> {
        self.read(move |txn| {
            let mut page = Building::new(limit, usize::MAX);
            let from = prefix.as_str().max(after.as_str());
            for row in txn.open_table(NAMES)?.range(from..)? {
                let (name, id) = row?;
                let name = name.value();
                if !name.starts_with(&prefix) {
                    break;
                }
                let id = UserId(id.value());
                let info = UserInfo {
                    id,
                    name: name.into(),
                };
                if name > after.as_str() && !page.add(info, 0) {
                    break;
                }
            }
            Ok(page.done())
        })
        .await
    }

    /// Returns those of the given users that exist.
    pub async fn users(&self, ids: Vec<UserId>) -> Result<Vec<UserInfo>, IndexError> {
        self.read(move |txn| {
            let found = ids.into_iter().filter_map(|id| match user(txn, id) {
                // A deleted user has no name.
                Ok(found) => found.filter(|user| !user.name.is_empty()).map(|user| {
                    let name = user.name.into();
                    Ok(UserInfo { id, name })
                }),
                Err(error) => Some(Err(error)),
            });
            found.collect()
        })
        .await
    }

    /// Returns a user.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, IndexError> {
        self.read(move |txn| user(txn, id)).await
    }

    /// Returns a user's name.
    pub async fn name(&self, id: UserId) -> Result<Option<String>, IndexError> {
        self.read(move |txn| Ok(user(txn, id)?.map(|user| user.name)))
            .await
    }

    /// Returns a session that has not ended.
    pub async fn session(&self, id: SessionId) -> Result<Option<Session>, IndexError> {
        self.read(move |txn| match txn.open_table(SESSIONS)?.get(id.0)? {
            Some(row) => decode("session", &session_key(id.0), row.value()).map(Some),
            None => Ok(None),
        })
        .await
    }

    /// Returns the open sessions of a user.
    pub async fn sessions(&self, user: UserId) -> Result<Vec<(SessionId, Session)>, IndexError> {
        self.read(move |txn| {
            let sessions = txn.open_table(SESSIONS)?;
            let ids = txn.open_table(USER_SESSIONS)?;
            let mut all = Vec::new();
            for row in ids.range((user.0, [0; 16])..=(user.0, [u8::MAX; 16]))? {
                let id = row?.0.value().1;
                let Some(row) = sessions.get(id)? else {
                    return Err(damaged(format!("a session of user {user}")));
                };
                let session: Session = decode("session", &session_key(id), row.value())?;
                all.push((SessionId(id), session));
            }
            Ok(all)
        })
        .await
    }

    /// Returns the position of a session of this user.
    pub async fn position(&self, user: UserId, session: SessionId) -> Result<Position, IndexError> {
        let tail = self.tails.of(user);
        self.read(move |txn| {
            let own = txn.open_table(SESSION_ACKS)?.get(session.0)?;
            let key = session_key(session.0);
            let own = own.map(|at| checked("place of session", &key, at.value()));
            Ok(Position {
                acknowledged: own.transpose()?.unwrap_or(0),
                last: last_sequence(txn, user, tail)?,
            })
        })
        .await
    }

    /// Returns a conversation, if it exists.
    pub async fn conversation(
        &self,
        id: ConversationId,
    ) -> Result<Option<Conversation>, IndexError> {
        self.read(move |txn| conversation(txn, id)).await
    }

    /// Returns the conversations of a user after one of them, in ascending order: at least one, at most `limit`, and
    /// about `bytes` as JSON.
    pub async fn conversations(
        &self,
        user: UserId,
        after: ConversationId,
        limit: usize,
        bytes: usize,
    ) -> Result<Page<(ConversationId, Conversation, Option<String>)>, IndexError> {
        self.read(move |txn| {
            let titles = txn.open_table(TITLES)?;
            let memberships = txn.open_table(MEMBERSHIPS)?;
            let Some(from) = after.0.checked_add(1) else {
                return Ok(Page::none());
            };
            let mut page = Building::new(limit, bytes);
            for row in memberships.range((user.0, from)..=(user.0, u64::MAX))? {
                let id = ConversationId(row?.0.value().1);
                let found = conversation(txn, id)?;
                let Some(found) = found.filter(|found| found.has(user)) else {
                    return Err(damaged(format!("conversation {id} of user {user}")));
                };
                // A number has at most 20 digits and a comma.
                let mut length = ENVELOPE + 21 * found.members.len();
                let title: Option<String> = match titles.get(id.0)? {
                    Some(row) => Some(decode("title", &[id.0], row.value())?),
                    None => None,
                };
                length += title.as_deref().map_or(0, encoded);
                if !page.add((id, found, title), length) {
                    break;
                }
            }
            Ok(page.done())
        })
        .await
    }

    /// Returns the messages of a conversation after one of them, in order: at least one, at most `limit`, and about
    /// `bytes` as JSON.
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
            let rows = messages.range((of.0, from)..=(of.0, u64::MAX))?;
            page_of(of, rows, limit, bytes)
        })
        .await
    }

    /// Returns the messages of a conversation before one of them, the newest first: at least one, at most `limit`, and
    /// about `bytes` as JSON.
    pub async fn messages_before(
        &self,
        of: ConversationId,
        before: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Page<Message>, IndexError> {
        self.read(move |txn| {
            let messages = txn.open_table(MESSAGES)?;
            let rows = messages.range((of.0, 0)..(of.0, before))?.rev();
            page_of(of, rows, limit, bytes)
        })
        .await
    }

    /// Returns, for each conversation, the number of messages in a user's queue that no session has acknowledged. Only
    /// the oldest [`MOST_UNREAD_RUNS`] ranges are counted. Also returns `true` if there are more.
    pub async fn unread(
        &self,
        user: UserId,
    ) -> Result<(BTreeMap<ConversationId, u64>, bool), IndexError> {
        let tail = self.tails.of(user);
        self.read(move |txn| {
            let row = txn.open_table(USER_ACKS)?.get(user.0)?;
            let row = row.map(|at| checked("place of user", &[user.0], at.value()));
            let after = row.transpose()?.unwrap_or(0);
            let messages = txn.open_table(MESSAGES)?;
            let firsts = txn.open_table(FIRSTS)?;
            let (mut counts, mut work, mut more) = (BTreeMap::new(), 0, false);
            let mut failed = Ok(());
            visit_runs(txn, user, after, tail, |run, first| {
                work += 1;
                let of = ConversationId(run.conversation);
                let counted = first_kept(&firsts, of).and_then(|kept| {
                    let begin = (run.number + first - run.first).max(kept);
                    let end = run.number + run.count;
                    if begin == run.number {
                        return Ok(run.count - run.own);
                    }
                    let mut others = 0;
                    for row in messages.range((of.0, begin)..(of.0, end.max(begin)))? {
                        let (key, row) = row?;
                        work += 1;
                        let message = message(of, key.value().1, row.value())?;
                        others += u64::from(message.sender != user);
                        if work > MOST_UNREAD_RUNS {
                            break;
                        }
                    }
                    Ok(others)
                });
                more = work > MOST_UNREAD_RUNS;
                match counted {
                    Ok(0) => {}
                    Ok(count) => *counts.entry(of).or_insert(0) += count,
                    Err(error) => failed = Err(error),
                }
                !more && failed.is_ok()
            })?;
            failed.map(|()| (counts, more))
        })
        .await
    }

    /// Returns the messages in a user's queue after this sequence, in order: at least one, at most `limit`,
    /// and about `bytes` as JSON.
    pub async fn queue(
        &self,
        user: UserId,
        after: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<QueuePage, IndexError> {
        let tail = self.tails.of(user);
        self.read(move |txn| {
            let messages = txn.open_table(MESSAGES)?;
            let firsts = txn.open_table(FIRSTS)?;
            let mut page = Building::new(limit, bytes);
            let (mut reached, mut passed) = (after, 0);
            visit(txn, user, after, tail, |sequence, of, number| {
                let Some(found) = messages.get((of.0, number))? else {
                    // The message was removed because of its age, or is just being applied.
                    if number < first_kept(&firsts, of)? {
                        reached = sequence;
                        passed += 1;
                        page.page.more = passed == MOST_PASSED;
                        return Ok(passed < MOST_PASSED);
                    }
                    return match tail.is_some_and(|tail| sequence >= tail.first) {
                        true => Ok(false),
                        false => Err(redb::Error::Corrupted(format!(
                            "message {number} of conversation {of} is queued and missing"
                        ))),
                    };
                };
                let message = message(of, number, found.value())?;
                let length = ENVELOPE + encoded(&message.text);
                let added = page.add(QueuedMessage { sequence, message }, length);
                if added {
                    reached = sequence;
                }
                Ok(added)
            })?;
            let Page { items, more } = page.done();
            Ok(QueuePage {
                items,
                more,
                reached,
            })
        })
        .await
    }

    /// Returns the number and the age of stored messages.
    pub async fn stock(&self) -> Result<Stock, IndexError> {
        self.read(move |txn| {
            let bytes = super::copy::state(txn)?.map_or(0, |state| state.bytes);
            let oldest = match txn.open_table(CHUNKS)?.first()? {
                Some((chunk, newest)) => {
                    let chunk = chunk.value();
                    let newest = checked("chunk", &[chunk], newest.value())?;
                    Some((Chunk(chunk), Millis(newest)))
                }
                None => None,
            };
            Ok(Stock { bytes, oldest })
        })
        .await
    }

    /// Returns the title of a conversation, if it has one.
    pub async fn title(&self, id: ConversationId) -> Result<Option<String>, IndexError> {
        self.read(move |txn| match txn.open_table(TITLES)?.get(id.0)? {
            Some(row) => decode("title", &[id.0], row.value()).map(Some),
            None => Ok(None),
        })
        .await
    }
}

/// A page that is being built.
struct Building<T> {
    page: Page<T>,
    limit: usize,
    /// The number of bytes that are left.
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

fn damaged(what: String) -> redb::Error {
    redb::Error::Corrupted(format!("a row of the index is damaged: {what}"))
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

/// Returns a page of these rows of messages.
fn page_of<'a>(
    of: ConversationId,
    rows: impl Iterator<
        Item = Result<(AccessGuard<'a, (u64, u64)>, AccessGuard<'a, &'static [u8]>), StorageError>,
    >,
    limit: usize,
    bytes: usize,
) -> Result<Page<Message>, redb::Error> {
    let mut page = Building::new(limit, bytes);
    for row in rows {
        let (key, value) = row?;
        let message = message(of, key.value().1, value.value())?;
        let length = ENVELOPE + encoded(&message.text);
        if !page.add(message, length) {
            break;
        }
    }
    Ok(page.done())
}

fn message(of: ConversationId, number: u64, row: &[u8]) -> Result<Message, redb::Error> {
    let stored: MessageRow<'_> = decode("message", &[of.0, number], row)?;
    Ok(Message {
        conversation: of,
        number,
        sender: stored.sender,
        sent: stored.sent,
        text: stored.text.to_owned(),
    })
}
