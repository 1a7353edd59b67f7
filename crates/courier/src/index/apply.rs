//! Applies commands to the index. No other code changes the index.
//!
//! [`Machine::apply`] is a function of the commands so far; it uses no clock, no random numbers and no other node. Its
//! fields besides the tables are a cache of the tables.

use super::chunk::Chunk;
use super::conversations::NewConversation;
use super::expiry::first_kept;
use super::keys::{Recent, fingerprint};
use super::lookalikes::{self, is_taken};
use super::machine::{At, Machine, MessageRow, SideEffects};
use super::row::{checked, decode, encode, number, session_key};
use super::sessions::{acknowledged_by_user, close, close_all_but, forget_acknowledged, make_room};
use super::tables::Tables;
use crate::command::{Acknowledgement, Command, CommandResult, Outcome, Posting, Refusal};
use crate::model::{ConversationId, Millis, Session, User, UserId};
use redb::ReadableTable;

impl Machine {
    /// Applies a log entry, and adds its side effects.
    pub fn apply(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        entry: At,
        command: Command,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        self.skip(entry);
        self.state.version = self.state.version.max(command.version());
        let own = command.is_own();
        match command {
            Command::CreateUser { name, password, at } => {
                self.create_user(tables, name, password, at)
            }
            Command::RegisterUser { name, password, at } => {
                if tables.names.get(name.as_str())?.is_none() && is_taken(tables, &name)? {
                    return Ok(Err(Refusal::NameLooksTaken(name)));
                }
                self.create_user(tables, name, password, at)
            }
            Command::OpenSession {
                user,
                session,
                proof,
                expires,
            } => {
                let opened = Session {
                    user,
                    proof,
                    expires,
                    opened: None,
                };
                self.open_session(tables, session, &opened)
            }
            Command::LogIn {
                user,
                session,
                proof,
                expires,
                at,
            } => {
                let opened = Session {
                    user,
                    proof,
                    expires,
                    opened: Some(at),
                };
                make_room(tables, user, caused)?;
                self.open_session(tables, session, &opened)
            }
            Command::CloseSession { user, session } => {
                close(tables, user, session, caused)?;
                Ok(Ok(CommandResult::Noted))
            }
            Command::CloseOtherSessions { user, kept } => {
                close_all_but(tables, user, kept, caused)?;
                Ok(Ok(CommandResult::Noted))
            }
            Command::ChangePassword {
                user,
                password,
                before,
                kept,
            } => self.change_password(tables, user, kept, password, &before, caused),
            Command::CreateConversation {
                creator,
                recipients,
                at,
            } => self.create_conversation(tables, creator, recipients, at),
            Command::BeginConversation {
                creator,
                recipients,
                title,
                key,
                pair,
                at,
            } => {
                let new = NewConversation {
                    creator,
                    recipients,
                    title,
                    key: key.map(|key| (key, entry.taken.day())),
                    pair,
                    at,
                };
                self.begin_conversation(tables, recent, new)
            }
            Command::DeleteUser { user, before } => self.delete_user(tables, user, &before, caused),
            Command::Post(posting) | Command::Send(posting) => {
                self.post(tables, recent, entry, posting, own, caused)
            }
            Command::AddMembers {
                by,
                conversation,
                users,
                most,
            } => self.add_members(tables, by, conversation, users, most, caused),
            Command::RemoveMember {
                by,
                conversation,
                user,
            } => self.remove_member(tables, by, conversation, user, caused),
            Command::SetTitle {
                by,
                conversation,
                title,
            } => self.set_title(tables, by, conversation, &title, caused),
            Command::Expire { through, most } => self.expire(tables, Chunk(through), most),
            Command::Acknowledge(all) => {
                for acknowledgement in all {
                    self.acknowledge(tables, acknowledgement, entry.taken)?;
                }
                Ok(Ok(CommandResult::Noted))
            }
        }
    }

    fn create_user(
        &mut self,
        tables: &mut Tables<'_>,
        name: String,
        password: String,
        created: Millis,
    ) -> Result<Outcome, redb::Error> {
        if tables.names.get(name.as_str())?.is_some() {
            return Ok(Err(Refusal::NameTaken(name)));
        }
        self.state.users += 1;
        let id = self.state.users;
        tables.names.insert(name.as_str(), id)?;
        lookalikes::add(tables, &name)?;
        let user = User {
            name,
            password,
            created,
        };
        let row = encode(&[id], &user, &mut self.scratch);
        tables.users.insert(id, row)?;
        Ok(Ok(CommandResult::User(UserId(id))))
    }

    /// Stores a message. If `own` is true, it is also added to the sender's queue.
    fn post(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        entry: At,
        posting: Posting,
        own: bool,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        let (conversation, sender) = (posting.conversation, posting.sender);
        let members = match self.members(tables, conversation)? {
            Some(members) if members.binary_search(&sender).is_ok() => members,
            _ => return Ok(Err(Refusal::UnknownConversation(conversation))),
        };
        let number = match posting.key {
            None => self.next_number(tables, conversation)?,
            Some(key) => {
                if recent.turn_to(entry.taken.day())? {
                    self.state.days = recent.days();
                }
                let fingerprint = fingerprint(&posting.text);
                let row = (sender.0, key);
                if let Some((of, number, before)) = recent.get(row)? {
                    if of != conversation.0 || before != fingerprint {
                        return Ok(Err(Refusal::KeyReused));
                    }
                    // The message may not be in its table yet.
                    self.write(tables)?;
                    let sent = sent_at(tables, conversation, number)?.unwrap_or(posting.at);
                    return Ok(Ok(CommandResult::Posted {
                        number,
                        sent,
                        repeated: true,
                    }));
                }
                let number = self.next_number(tables, conversation)?;
                recent.insert(row, (conversation.0, number, fingerprint))?;
                number
            }
        };
        let message = posting.into_message(number);
        self.store(Some(&*tables), entry, message, &members, own, caused)
    }

    pub(super) fn acknowledge(
        &mut self,
        tables: &mut Tables<'_>,
        acknowledgement: Acknowledgement,
        at: Millis,
    ) -> Result<(), redb::Error> {
        let Acknowledgement {
            user,
            session,
            sequence,
        } = acknowledgement;
        if sequence > self.queues.last(tables, user)? {
            return Ok(());
        }
        let before = acknowledged_by_user(tables, user)?.unwrap_or(0);
        if sequence > before {
            let row = number(&[user.0], sequence);
            tables.user_acks.insert(user.0, row)?;
        }
        // A session that was closed in the meantime stays closed.
        if tables.sessions.get(session.0)?.is_some() {
            let key = session_key(session.0);
            let row = tables.session_acks.get(session.0)?.map(|at| at.value());
            let before = row.map(|row| checked("place of session", &key, row));
            if sequence > before.transpose()?.unwrap_or(0) {
                let row = number(&key, sequence);
                tables.session_acks.insert(session.0, row)?;
                return forget_acknowledged(tables, user, sequence, at);
            }
        }
        Ok(())
    }

    fn next_number(
        &mut self,
        tables: &Tables<'_>,
        conversation: ConversationId,
    ) -> Result<u64, redb::Error> {
        if let Some(&last) = self.numbers.get(&conversation) {
            return Ok(last + 1);
        }
        let of = conversation.0;
        let mut rows = tables.messages.range((of, 0)..=(of, u64::MAX))?;
        let last = rows.next_back().transpose()?;
        let last = last.map_or(0, |(key, _)| key.value().1);
        // All messages may have been removed.
        let first = first_kept(&tables.firsts, conversation)?;
        Ok((last + 1).max(first))
    }
}

/// Returns the send time of a message, if it exists.
fn sent_at(
    tables: &Tables<'_>,
    conversation: ConversationId,
    number: u64,
) -> Result<Option<Millis>, redb::Error> {
    match tables.messages.get((conversation.0, number))? {
        Some(row) => {
            let key = [conversation.0, number];
            let stored: MessageRow<'_> = decode("message", &key, row.value())?;
            Ok(Some(stored.sent))
        }
        None => Ok(None),
    }
}
