//! What commands do to conversations.

use super::apply::{Machine, fingerprint};
use super::keys::Recent;
use super::row::{checked, encode, number};
use super::tables::Tables;
use crate::command::{Done, Outcome, Refusal};
use crate::model::{Conversation, ConversationId, Millis, UserId};
use redb::ReadableTable;

/// A conversation to be created or found.
pub(super) struct NewConversation {
    pub creator: UserId,
    pub recipients: Vec<UserId>,
    pub title: String,
    /// The hashed idempotency key, and the day on which it came.
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
        Ok(Ok(Done::Conversation(ConversationId(id))))
    }

    /// Creates a conversation, unless it was begun before.
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
                    true => Ok(Done::Found(ConversationId(of))),
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
                Done::Found(ConversationId(checked("pair", &[one, other], row)?))
            }
            _ => match self.create_conversation(tables, creator, recipients, at)? {
                Ok(done) => done,
                refused => return Ok(refused),
            },
        };
        let (Done::Conversation(id) | Done::Found(id)) = done else {
            return Ok(Ok(done));
        };
        if let Done::Conversation(_) = done {
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
            // Messages have numbers from 1 on.
            recent.insert(place, (id.0, 0, asked))?;
        }
        Ok(Ok(done))
    }
}
