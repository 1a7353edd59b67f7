//! The data model of the service: users, conversations, messages, sessions.

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};
use utoipa::ToSchema;

/// The number of a user. Numbers begin at 1 and are never reused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct UserId(pub u64);

/// The number of a conversation. Numbers begin at 1 and are never reused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct ConversationId(pub u64);

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// Returns the current time of the system's clock.
    pub fn now() -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Millis(since.map_or(0, |since| since.as_millis() as u64))
    }

    /// Returns the number of the day since 1970.
    pub(crate) fn day(self) -> u64 {
        self.0 / (24 * 60 * 60 * 1000)
    }
}

/// The stored data of a user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct User {
    pub name: String,
    /// The password's hash as a PHC string, with its salt and cost.
    pub password: String,
    pub created: Millis,
}

/// The public half of a token, which identifies its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SessionId(pub [u8; 16]);

impl SessionId {
    /// Parses the displayed form; `None` if the text is not a session id.
    pub fn parse(text: &str) -> Option<SessionId> {
        let mut id = [0; 16];
        match BASE64URL_NOPAD.decode_len(text.len()) {
            Ok(length) if length == id.len() => {}
            _ => return None,
        }
        let decoded = BASE64URL_NOPAD.decode_mut(text.as_bytes(), &mut id);
        decoded.ok().map(|_| SessionId(id))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64URL_NOPAD.encode(&self.0))
    }
}

/// The stored data of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub user: UserId,
    /// The hash of the token's secret half.
    pub proof: [u8; 32],
    pub expires: Millis,
    /// The time at which the session was opened, if that is known.
    pub opened: Option<Millis>,
}

/// A conversation and its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Conversation {
    pub creator: UserId,
    /// The members in ascending order, including the creator.
    pub members: Vec<UserId>,
    pub created: Millis,
}

impl Conversation {
    /// True if this user is a member.
    pub fn has(&self, user: UserId) -> bool {
        self.members.binary_search(&user).is_ok()
    }
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// The conversation of the message.
    pub conversation: ConversationId,
    /// The number of the message in the conversation, from 1.
    pub number: u64,
    /// The sender of the message.
    pub sender: UserId,
    /// The time at which the POST arrived, in milliseconds since 1970.
    pub sent: Millis,
    /// The text of the message.
    pub text: String,
}
