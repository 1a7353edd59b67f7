//! The effects of commands on conversations.

use super::keys::{Recent, fingerprint};
use super::machine::{Machine, SideEffects};
use super::row::{checked, decode, encode, number};
use super::tables::Tables;
use crate::command::{CommandResult, Outcome, Refusal};
use crate::model::{Conversation, ConversationId, Millis, UserId};
use redb::ReadableTable;

/// A conversation to be created or found.
pub(super) struct NewConversation {
    pub creator: UserId,
    pub recipients: Vec<UserId>,
    pub title: String,
    /// The hash of the idempotency key, and the day on which it arrived.
    pub key: Option<([u8; 16], u64)>,
    pub pair: bool,
    pub at: Millis,
}

impl Machine {
    pub(super) fn create_conversation(
        &mut self,
        tables: &mut Tables<'_>,
        creator: UserId,
        recipients: Vec<UserId>,
        created: Millis,
    ) -> Result<Outcome, redb::Error> {
        let unknown = |user: &&UserId| user.0 == 0 || user.0 > self.state.users;
        if let Some(&user) = recipients.iter().chain([&creator]).find(unknown) {
            return Ok(Err(Refusal::UnknownUser(user)));
        }
        let mut members = recipients;
        members.push(creator);
        members.sort_unstable();
        members.dedup();
        self.state.conversations += 1;
        let id = self.state.conversations;
        for member in &members {
            tables.memberships.insert((member.0, id), ())?;
        }
        let conversation = Conversation {
            creator,
            members,
            created,
        };
        let bytes = encode(&[id], &conversation, &mut self.scratch);
        tables.conversations.insert(id, bytes)?;
        Ok(Ok(CommandResult::Conversation(ConversationId(id))))
    }

    /// Creates a conversation, unless it already exists.
    pub(super) fn begin_conversation(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        new: NewConversation,
    ) -> Result<Outcome, redb::Error> {
        let NewConversation {
            creator,
            recipients,
            title,
            key,
            pair,
            at,
        } = new;
        let asked = fingerprint(&format!("{title:?} {recipients:?} {pair}"));
        let place = key.map(|(key, _)| (creator.0, key));
        if let (Some(place), Some((_, day))) = (place, key) {
            if recent.turn_to(day)? {
                self.state.days = recent.days();
            }
            if let Some((of, message, before)) = recent.get(place)? {
                return Ok(match message == 0 && before == asked {
                    true => Ok(CommandResult::Found(ConversationId(of))),
                    false => Err(Refusal::KeyReused),
                });
            }
        }
        let both = match (pair, recipients.as_slice()) {
            (true, &[other]) => Some((creator.0.min(other.0), creator.0.max(other.0))),
            _ => None,
        };
        let known = match both {
            Some(both) => tables.pairs.get(both)?.map(|row| row.value()),
            None => None,
        };
        let done = match (both, known) {
            (Some((one, other)), Some(row)) => {
                CommandResult::Found(ConversationId(checked("pair", &[one, other], row)?))
            }
            _ => match self.create_conversation(tables, creator, recipients, at)? {
                Ok(done) => done,
                refused => return Ok(refused),
            },
        };
        let (CommandResult::Conversation(id) | CommandResult::Found(id)) = done else {
            return Ok(Ok(done));
        };
        if let CommandResult::Conversation(_) = done {
            if !title.is_empty() {
                let row = encode(&[id.0], &title, &mut self.scratch);
                tables.titles.insert(id.0, row)?;
            }
            if let Some((one, other)) = both {
                let row = number(&[one, other], id.0);
                tables.pairs.insert((one, other), row)?;
            }
        }
        if let Some(place) = place {
            // Messages are numbered from 1, so 0 marks a conversation.
            recent.insert(place, (id.0, 0, asked))?;
        }
        Ok(Ok(done))
    }

    /// Adds members, who can read the history.
    pub(super) fn add_members(
        &mut self,
        tables: &mut Tables<'_>,
        by: UserId,
        id: ConversationId,
        users: Vec<UserId>,
        most: u32,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        let mut conversation = match conversation_of(tables, by, id)? {
            Ok(conversation) => conversation,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let unknown = |user: &&UserId| user.0 == 0 || user.0 > self.state.users;
        if let Some(&user) = users.iter().find(unknown) {
            return Ok(Err(Refusal::UnknownUser(user)));
        }
        if is_pair(tables, &conversation, id)? {
            return Ok(Err(Refusal::Pair));
        }
        let before = conversation.members.len();
        let mut new = users;
        new.retain(|&user| !conversation.has(user));
        new.sort_unstable();
        new.dedup();
        if before + new.len() > most as usize {
            return Ok(Err(Refusal::TooManyMembers(most)));
        }
        for user in &new {
            tables.memberships.insert((user.0, id.0), ())?;
        }
        if !new.is_empty() {
            conversation.members.extend(new);
            conversation.members.sort_unstable();
            self.keep_conversation(tables, id, &conversation)?;
            caused.changed.push((id, conversation.members));
        }
        Ok(Ok(CommandResult::Noted))
    }

    /// Removes a member, who can no longer read the conversation.
    pub(super) fn remove_member(
        &mut self,
        tables: &mut Tables<'_>,
        by: UserId,
        id: ConversationId,
        user: UserId,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        let mut conversation = match conversation_of(tables, by, id)? {
            Ok(conversation) => conversation,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if user != by && by != conversation.creator {
            return Ok(Err(Refusal::NotCreator));
        }
        if is_pair(tables, &conversation, id)? {
            return Ok(Err(Refusal::Pair));
        }
        if !conversation.has(user) {
            return Ok(Err(Refusal::UnknownMember(user)));
        }
        tables.memberships.remove((user.0, id.0))?;
        let told = conversation.members.clone();
        conversation.members.retain(|&member| member != user);
        self.keep_conversation(tables, id, &conversation)?;
        caused.changed.push((id, told));
        Ok(Ok(CommandResult::Noted))
    }

    /// Changes the title.
    pub(super) fn set_title(
        &mut self,
        tables: &mut Tables<'_>,
        by: UserId,
        id: ConversationId,
        title: &str,
        caused: &mut SideEffects,
    ) -> Result<Outcome, redb::Error> {
        let conversation = match conversation_of(tables, by, id)? {
            Ok(conversation) => conversation,
            Err(refusal) => return Ok(Err(refusal)),
        };
        match title.is_empty() {
            true => drop(tables.titles.remove(id.0)?),
            false => {
                let row = encode(&[id.0], &title, &mut self.scratch);
                tables.titles.insert(id.0, row)?;
            }
        }
        caused.changed.push((id, conversation.members));
        Ok(Ok(CommandResult::Noted))
    }

    fn keep_conversation(
        &mut self,
        tables: &mut Tables<'_>,
        id: ConversationId,
        conversation: &Conversation,
    ) -> Result<(), redb::Error> {
        let row = encode(&[id.0], conversation, &mut self.scratch);
        tables.conversations.insert(id.0, row)?;
        self.members.remove(&id);
        Ok(())
    }
}

/// Returns a conversation of which this user is a member.
fn conversation_of(
    tables: &Tables<'_>,
    user: UserId,
    id: ConversationId,
) -> Result<Result<Conversation, Refusal>, redb::Error> {
    let Some(row) = tables.conversations.get(id.0)? else {
        return Ok(Err(Refusal::UnknownConversation(id)));
    };
    let known: Conversation = decode("conversation", &[id.0], row.value())?;
    Ok(match known.has(user) {
        true => Ok(known),
        false => Err(Refusal::UnknownConversation(id)),
    })
}

/// True if the conversation is the pair conversation of its two members.
fn is_pair(
    tables: &Tables<'_>,
    conversation: &Conversation,
    id: ConversationId,
) -> Result<bool, redb::Error> {
    let &[one, other] = conversation.members.as_slice() else {
        return Ok(false);
    };
    let place = [one.0, other.0];
    let row = tables.pairs.get((one.0, other.0))?.map(|row| row.value());
    let pair = row.map(|row| checked("pair", &place, row)).transpose()?;
    Ok(pair == Some(id.0))
}
