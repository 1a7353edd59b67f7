//! Commands of the log, and their results.
//!
//! A command is any change of the service's data. The log defines one order of all commands, and they are applied in
//! this order. The result of a command depends only on the commands before it, so all nodes that apply the same log
//! have the same data.

use crate::model::{ConversationId, Message, Millis, SessionId, UserId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A change, as stored in the log. New variants are added at the end, with a new [version](Command::version), because
/// the index of a variant is part of the format. The effect of a variant never changes, because nodes of two versions
/// apply it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    CreateUser {
        name: String,
        /// The password's hash as a PHC string.
        password: String,
        at: Millis,
    },
    OpenSession {
        user: UserId,
        session: SessionId,
        proof: [u8; 32],
        expires: Millis,
    },
    CloseSession {
        user: UserId,
        session: SessionId,
    },
    CreateConversation {
        creator: UserId,
        recipients: Vec<UserId>,
        at: Millis,
    },
    Post(Posting),
    Acknowledge(Vec<Acknowledgement>),
    /// Opens a session. If the user has [`MOST_SESSIONS`] sessions, the one that expires first is closed.
    LogIn {
        user: UserId,
        session: SessionId,
        proof: [u8; 32],
        expires: Millis,
        at: Millis,
    },
    /// Closes all sessions of a user except one.
    CloseOtherSessions {
        user: UserId,
        kept: Option<SessionId>,
    },
    /// Changes the password, and closes all sessions except the session that requests the change.
    ChangePassword {
        user: UserId,
        /// The new password's hash as a PHC string.
        password: String,
        /// The PHC string against which the old password was checked.
        before: String,
        kept: SessionId,
    },
    /// Creates a conversation, or finds the conversation that was created earlier with the same key or for the same
    /// pair.
    BeginConversation {
        creator: UserId,
        recipients: Vec<UserId>,
        /// The title; empty if there is none.
        title: String,
        /// The hash of the idempotency key.
        key: Option<[u8; 16]>,
        /// True if the conversation is the only one of this kind between its two members.
        pair: bool,
        at: Millis,
    },
    /// Deletes an account: its name, password, sessions and memberships. Messages that the user has posted stay.
    DeleteUser {
        user: UserId,
        /// The PHC string against which the password was checked.
        before: String,
    },
    /// Posts a message that is also added to its sender's queue, for the sender's other devices.
    Send(Posting),
    /// Adds members to a conversation.
    AddMembers {
        by: UserId,
        conversation: ConversationId,
        users: Vec<UserId>,
        /// The maximum number of members after the change.
        most: u32,
    },
    /// Removes a member from a conversation: `by` itself, or another member if `by` has created the
    /// conversation.
    RemoveMember {
        by: UserId,
        conversation: ConversationId,
        user: UserId,
    },
    /// Changes the title of a conversation; an empty text removes it.
    SetTitle {
        by: UserId,
        conversation: ConversationId,
        title: String,
    },
    /// Removes the oldest messages: at most `most` of them, and none after the chunk `through`.
    Expire {
        through: u64,
        most: u32,
    },
    /// Creates a user, unless the name is taken or looks like the name of another user.
    RegisterUser {
        name: String,
        /// The password's hash as a PHC string.
        password: String,
        at: Millis,
    },
}

/// A message to be posted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Posting {
    pub sender: UserId,
    pub conversation: ConversationId,
    pub text: String,
    /// The hash of the idempotency key.
    pub key: Option<[u8; 16]>,
    pub at: Millis,
}

impl Posting {
    /// Returns the command that posts the message. If `to_sender` is true, the message is also added to the sender's
    /// queue; nodes of version 2 do not support this.
    pub fn command(self, to_sender: bool) -> Command {
        match to_sender {
            false => Command::Post(self),
            true => Command::Send(self),
        }
    }

    /// Returns the message with this number in its conversation.
    pub fn into_message(self, number: u64) -> Message {
        Message {
            conversation: self.conversation,
            number,
            sender: self.sender,
            sent: self.at,
            text: self.text,
        }
    }
}

/// The maximum number of sessions of a user. Another session closes the session that expires first.
pub(crate) const MOST_SESSIONS: usize = 100;

impl Command {
    /// True if the command posts a message that is also added to the sender's queue.
    pub fn is_own(&self) -> bool {
        matches!(self, Command::Send(_))
    }

    /// Returns the first version of the service that knows the command.
    pub fn version(&self) -> u8 {
        match self {
            Command::CreateUser { .. }
            | Command::OpenSession { .. }
            | Command::CloseSession { .. }
            | Command::CreateConversation { .. }
            | Command::Post(_)
            | Command::Acknowledge(_) => 1,
            Command::LogIn { .. }
            | Command::CloseOtherSessions { .. }
            | Command::ChangePassword { .. }
            | Command::BeginConversation { .. }
            | Command::DeleteUser { .. } => 2,
            Command::Send(_)
            | Command::AddMembers { .. }
            | Command::RemoveMember { .. }
            | Command::SetTitle { .. }
            | Command::Expire { .. } => 3,
            Command::RegisterUser { .. } => 4,
        }
    }

    /// Returns the approximate memory of the command in bytes, in addition to its own size.
    pub fn weight(&self) -> usize {
        match self {
            Command::Post(posting) | Command::Send(posting) => posting.text.len(),
            Command::CreateConversation { recipients, .. }
            | Command::BeginConversation { recipients, .. } => 8 * recipients.len(),
            Command::AddMembers { users, .. } => 8 * users.len(),
            Command::Acknowledge(all) => size_of::<Acknowledgement>() * all.len(),
            // Names, titles and hashes of passwords are short.
            _ => 256,
        }
    }

    /// Returns the time of the command, if it has one.
    pub fn time(&self) -> Option<Millis> {
        match self {
            Command::CreateUser { at, .. }
            | Command::RegisterUser { at, .. }
            | Command::CreateConversation { at, .. }
            | Command::BeginConversation { at, .. }
            | Command::LogIn { at, .. } => Some(*at),
            Command::Post(posting) | Command::Send(posting) => Some(posting.at),
            _ => None,
        }
    }
}

/// The acknowledgement that a session has received everything up to this sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Acknowledgement {
    pub user: UserId,
    pub session: SessionId,
    pub sequence: u64,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandResult {
    /// A user was created.
    User(UserId),
    /// A conversation was created.
    Conversation(ConversationId),
    /// A conversation that had been created before.
    Found(ConversationId),
    /// A message was stored.
    Posted {
        number: u64,
        sent: Millis,
        /// True if the message had been stored before, under the same idempotency key.
        repeated: bool,
    },
    /// The command was applied and has no result: a session was opened or closed, acknowledgements recorded, or a
    /// conversation changed.
    Noted,
    /// This number of the oldest messages was removed.
    Expired(u32),
}

/// The reason why a command was refused. A refused command changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the name '{0}' is taken; choose another one, or log in")]
    NameTaken(String),
    #[error("the name '{0}' looks like the name of another user; choose another one")]
    NameLooksTaken(String),
    #[error("user {0} does not exist; GET /users/online lists users who are online")]
    UnknownUser(UserId),
    #[error("you are not a member of a conversation {0}; GET /conversations lists yours")]
    UnknownConversation(ConversationId),
    #[error(
        "user {0} is not a member of this conversation; GET /conversations/ID lists the members"
    )]
    UnknownMember(UserId),
    #[error(
        "this conversation is a pair and always has two members; create another conversation for more"
    )]
    Pair,
    #[error("only the creator of a conversation can remove other members; you can remove yourself")]
    NotCreator,
    #[error("a conversation has at most {0} members; create another one")]
    TooManyMembers(u32),
    #[error("the password was changed in the meantime; log in with the new password")]
    PasswordChanged,
    #[error(
        "this Idempotency-Key was used for another request; use a new key for a new message or conversation"
    )]
    KeyReused,
}

/// The result of a command, or its refusal.
pub(crate) type Outcome = Result<CommandResult, Refusal>;

/// A message for one recipient.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub to: UserId,
    /// The recipient's sequence number, from 1 on.
    pub sequence: u64,
    pub message: Arc<Message>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_are_written_as_version_one_wrote_them() {
        let posting = Posting {
            sender: UserId(7),
            conversation: ConversationId(300),
            text: "ahoy".to_owned(),
            key: Some([9; 16]),
            at: Millis(1),
        };
        let fields = [&[7, 172, 2, 4][..], b"ahoy", &[1], &[9; 16], &[1]].concat();
        for (command, variant) in [
            (posting.clone().command(false), 4),
            (posting.command(true), 11),
        ] {
            let bytes = postcard::to_allocvec(&command).unwrap();
            assert_eq!(bytes, [&[variant], &fields[..]].concat());
        }
    }
}
