//! The tables of the index.

use super::row::Number;
use redb::{ReadableTableMetadata, Table, TableDefinition, WriteTransaction};

/// The key of the one row of [`META`], which contains the counters.
pub(super) const STATE: &str = "state";

/// The version of this layout. An index of one of the three earlier versions is [upgraded](super::upgrade); others are
/// refused.
pub(super) const FORMAT: u32 = 5;

/// The version of the layout, in one row: [`STATE`] → [`FORMAT`].
pub(super) const FORMATS: TableDefinition<&str, u32> = TableDefinition::new("format");
pub(super) const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");
/// User → [`User`](crate::model::User).
pub(super) const USERS: TableDefinition<u64, &[u8]> = TableDefinition::new("users");
pub(super) const NAMES: TableDefinition<&str, u64> = TableDefinition::new("names");
/// Skeleton of names → the number of users with such a name in ASCII, and the number with other such names. See
/// [`lookalikes`](super::lookalikes).
pub(super) const LOOKALIKES: TableDefinition<&str, (u64, u64)> = TableDefinition::new("lookalikes");
/// Session → [`Session`](crate::model::Session).
pub(super) const SESSIONS: TableDefinition<[u8; 16], &[u8]> = TableDefinition::new("sessions");
/// The sessions of each user, as keys (user, session).
pub(super) const USER_SESSIONS: TableDefinition<(u64, [u8; 16]), ()> =
    TableDefinition::new("user_sessions");
/// Session → the last sequence number that it has acknowledged.
pub(super) const SESSION_ACKS: TableDefinition<[u8; 16], Number> =
    TableDefinition::new("acknowledged_by_session");
/// User → the last sequence number that any session has acknowledged.
pub(super) const USER_ACKS: TableDefinition<u64, Number> =
    TableDefinition::new("acknowledged_by_user");
/// Conversation → [`Conversation`](crate::model::Conversation).
pub(super) const CONVERSATIONS: TableDefinition<u64, &[u8]> = TableDefinition::new("conversations");
/// Conversation → its title, if it has one.
pub(super) const TITLES: TableDefinition<u64, &[u8]> = TableDefinition::new("titles");
/// Two users, the smaller number first → their conversation.
pub(super) const PAIRS: TableDefinition<(u64, u64), Number> = TableDefinition::new("pairs");
/// The conversations of each user, as keys (user, conversation).
pub(super) const MEMBERSHIPS: TableDefinition<(u64, u64), ()> = TableDefinition::new("memberships");
/// (Conversation, number) → [`MessageRow`](super::MessageRow).
pub(super) const MESSAGES: TableDefinition<(u64, u64), &[u8]> = TableDefinition::new("messages");
/// Conversation, number of the first message, [counts](super::queue::QueueRange::counts), and the checksum of the row.
pub(super) type Row = (u64, u64, u64, u32);

/// (User, sequence number of the first message) → [`QueueRange`](super::queue::QueueRange).
pub(super) const QUEUES: TableDefinition<(u64, u64), Row> = TableDefinition::new("queues");

/// Number → many users with the last [`QueueRange`](super::queue::QueueRange) of each, for users whose last range has
/// no row yet.
pub(super) const TAILS: TableDefinition<u64, &[u8]> = TableDefinition::new("tails");
/// (Chunk, conversation) → the number of the last message of the conversation in that chunk.
pub(super) const MARKS: TableDefinition<(u64, u64), Number> = TableDefinition::new("marks");
/// Chunk → the time at which the log accepted its newest message.
pub(super) const CHUNKS: TableDefinition<u64, Number> = TableDefinition::new("chunks");
/// Conversation → the number of its first message, if earlier ones were removed.
pub(super) const FIRSTS: TableDefinition<u64, Number> = TableDefinition::new("firsts");

/// (User, hashed key) → (conversation, number, fingerprint of the text), for the messages of a day.
pub(super) type Keys<'t> = Table<'t, (u64, [u8; 16]), (u64, u64, u64)>;

/// The name of the table of a day's idempotency keys.
pub(super) fn keys_of_day(day: u64) -> String {
    format!("keys_{day}")
}

/// Opens the table of a day's idempotency keys.
pub(super) fn open_keys(txn: &WriteTransaction, day: u64) -> Result<Keys<'_>, redb::TableError> {
    txn.open_table(TableDefinition::new(&keys_of_day(day)))
}

/// All tables, open for changes.
pub(super) struct Tables<'t> {
    pub meta: Table<'t, &'static str, &'static [u8]>,
    pub users: Table<'t, u64, &'static [u8]>,
    pub names: Table<'t, &'static str, u64>,
    pub lookalikes: Table<'t, &'static str, (u64, u64)>,
    pub sessions: Table<'t, [u8; 16], &'static [u8]>,
    pub user_sessions: Table<'t, (u64, [u8; 16]), ()>,
    pub session_acks: Table<'t, [u8; 16], Number>,
    pub user_acks: Table<'t, u64, Number>,
    pub conversations: Table<'t, u64, &'static [u8]>,
    pub titles: Table<'t, u64, &'static [u8]>,
    pub pairs: Table<'t, (u64, u64), Number>,
    pub memberships: Table<'t, (u64, u64), ()>,
    pub messages: Table<'t, (u64, u64), &'static [u8]>,
    pub queues: Table<'t, (u64, u64), Row>,
    pub tails: Table<'t, u64, &'static [u8]>,
    pub marks: Table<'t, (u64, u64), Number>,
    pub chunks: Table<'t, u64, Number>,
    pub firsts: Table<'t, u64, Number>,
}

impl<'t> Tables<'t> {
    /// Opens all tables, and creates missing ones.
    pub fn open(txn: &'t WriteTransaction) -> Result<Tables<'t>, redb::TableError> {
        let mut formats = txn.open_table(FORMATS)?;
        if formats.is_empty().map_err(storage)? {
            formats.insert(STATE, FORMAT).map_err(storage)?;
        }
        Ok(Tables {
            meta: txn.open_table(META)?,
            users: txn.open_table(USERS)?,
            names: txn.open_table(NAMES)?,
            lookalikes: txn.open_table(LOOKALIKES)?,
            sessions: txn.open_table(SESSIONS)?,
            user_sessions: txn.open_table(USER_SESSIONS)?,
            session_acks: txn.open_table(SESSION_ACKS)?,
            user_acks: txn.open_table(USER_ACKS)?,
            conversations: txn.open_table(CONVERSATIONS)?,
            titles: txn.open_table(TITLES)?,
            pairs: txn.open_table(PAIRS)?,
            memberships: txn.open_table(MEMBERSHIPS)?,
            messages: txn.open_table(MESSAGES)?,
            queues: txn.open_table(QUEUES)?,
            tails: txn.open_table(TAILS)?,
            marks: txn.open_table(MARKS)?,
            chunks: txn.open_table(CHUNKS)?,
            firsts: txn.open_table(FIRSTS)?,
        })
    }
}

fn storage(error: redb::StorageError) -> redb::TableError {
    redb::TableError::Storage(error)
}
