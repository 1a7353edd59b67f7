//! What a command does. The only place where the index changes.
//!
//! [`Machine::apply`] is a function of the commands so far: no clock, no random numbers, no other
//! node. What it keeps beside the tables is a cache of them.

use super::conversations::NewConversation;
use super::expiry::{Chunk, Growing, first_kept};
use super::keys::{Days, Recent};
use super::pending::Pending;
use super::queue::{Queues, Tails};
use super::row::{checked, decode, encode, number, session_key};
use super::sessions::{acknowledged_by_user, close, close_all_but, forget_acknowledged, make_room};
use super::tables::{STATE, Tables};
use crate::command::{Acknowledgement, Command, Delivery, Done, Outcome, Refusal};
use crate::log::Digest;
use crate::model::{
    Conversation, ConversationId, Message, Millis, Session, SessionId, User, UserId,
};
use redb::{ReadTransaction, ReadableTable};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Caches are emptied when they hold about this many entries.
const CACHED: usize = 1 << 20;
/// Runs of queues that are over and wait until there are as many, to be neighbours when they are written.
const MANY_RUNS: usize = 1 << 12;
/// As many are written at a time, so that what comes meanwhile need not wait for all.
const SLICE: usize = 1 << 7;
/// If there are more, they are written at once: those who make them are too fast.
const MOST_RUNS: usize = 1 << 19;

/// The counters, kept in the index along with what they count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub format: u32,
    /// The identity of the log that was applied.
    pub log: u64,
    /// The log entry applied last.
    pub position: u64,
    pub digest: Digest,
    pub users: u64,
    pub conversations: u64,
    pub days: Days,
    /// Bytes of the messages that are kept.
    pub bytes: u64,
    pub growing: Growing,
    /// The newest version of a command that was applied.
    pub version: u8,
}

/// What applied entries cause beside their outcomes.
#[derive(Debug, Default)]
pub(super) struct Caused {
    pub deliveries: Vec<Delivery>,
    /// Sessions that are over.
    pub closed: Vec<(UserId, SessionId)>,
    /// Conversations that were changed, and who is to hear of it.
    pub changed: Vec<(ConversationId, Vec<UserId>)>,
}

impl Caused {
    /// Forgets it.
    pub fn clear(&mut self) {
        self.deliveries.clear();
        self.closed.clear();
        self.changed.clear();
    }
}

/// What of a log entry is to be known beside its command.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub position: u64,
    pub digest: Digest,
    /// When the log took it.
    pub taken: Millis,
}

/// A message as it lies in the table.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored<'a> {
    pub sender: UserId,
    pub sent: Millis,
    pub text: &'a str,
}

/// Applies commands. See the [module](self).
#[derive(Default)]
pub(super) struct Machine {
    pub state: State,
    pub(super) numbers: HashMap<ConversationId, u64>,
    pub(super) queues: Queues,
    pub(super) members: HashMap<ConversationId, Arc<[UserId]>>,
    pub(super) pending: Pending,
    pub(super) scratch: Vec<u8>,
}

impl Machine {
    /// Goes on where the index in this transaction stands.
    pub fn new(state: State, txn: &ReadTransaction) -> Result<Machine, redb::Error> {
        let mut machine = Machine {
            state,
            ..Machine::default()
        };
        machine.queues.read_tails(txn)?;
        Ok(machine)
    }

    /// The last runs of queues.
    pub fn tails(&self) -> Tails {
        self.queues.tails.clone()
    }

    /// Goes on in place of another one that has come as far.
    pub fn replace(&mut self, mut with: Machine) {
        let tails = self.tails();
        tails.take_over(&with.queues.tails);
        with.queues.tails = tails;
        *self = with;
    }

    /// How many rows of queues were written since this was last asked.
    pub fn take_written(&mut self) -> usize {
        self.queues.take_written()
    }

    /// Whether no more may be applied before what was is written.
    pub fn is_full(&self) -> bool {
        self.pending.are_too_many() || self.queues.waiting() >= MOST_RUNS
    }

    /// Whether it is time to [write](Machine::write) what was applied.
    pub fn has_many_rows(&self) -> bool {
        self.pending.are_many() || self.queues.waiting() >= MOST_RUNS
    }

    /// Puts a part of what was applied into the tables, if there is much; before a commit, if there is more
    /// than such a part. Returns whether there still is.
    pub fn write_some(
        &mut self,
        tables: &mut Tables<'_>,
        before_commit: bool,
    ) -> Result<bool, redb::Error> {
        let much = if before_commit { SLICE } else { MANY_RUNS };
        if self.queues.waiting() >= much {
            self.queues.write_some(tables, SLICE)?;
        }
        Ok(self.queues.waiting() >= much)
    }

    /// Puts what was applied into the tables, as far as it is not there yet; of queues, what is over.
    pub fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        self.pending.write(tables)?;
        match self.queues.are_more_than(CACHED) {
            true => self.queues.write_all(tables, true)?,
            false => self.queues.write(tables)?,
        }
        // Not before: what is not in this cache is looked for in the table.
        bound(&mut self.numbers);
        Ok(())
    }

    /// Writes down how far it has come; if all of it is to go to disk, the tails of queues, too.
    pub fn save(&mut self, tables: &mut Tables<'_>, to_disk: bool) -> Result<(), redb::Error> {
        self.write(tables)?;
        if to_disk {
            self.queues.keep_tails(tables)?;
        }
        let Machine { state, scratch, .. } = self;
        tables.meta.insert(STATE, encode(&[], state, scratch))?;
        Ok(())
    }

    /// Applies a log entry, and adds what it causes.
    pub fn apply(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        entry: At,
        command: Command,
        caused: &mut Caused,
    ) -> Result<Outcome, redb::Error> {
        self.skip(entry);
        self.state.version = self.state.version.max(command.version());
        let own = command.is_own();
        match command {
            Command::CreateUser { name, password, at } => {
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
                Ok(Ok(Done::Noted))
            }
            Command::CloseOtherSessions { user, kept } => {
                close_all_but(tables, user, kept, caused)?;
                Ok(Ok(Done::Noted))
            }
            Command::ChangePassword {
                user,
                password,
                before,
                kept,
            } => self.change_password(tables, (user, kept), password, &before, caused),
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
            Command::Post {
                sender,
                conversation,
                text,
                key,
                at,
            }
            | Command::Send {
                sender,
                conversation,
                text,
                key,
                at,
            } => {
                let message = Message {
                    conversation,
                    number: 0,
                    sender,
                    sent: at,
                    text,
                };
                self.post(tables, recent, entry, message, key, own, caused)
            }
            Command::AddMembers {
                by,
                conversation,
                users,
                most,
            } => self.add_members(tables, (by, conversation), users, most, caused),
            Command::RemoveMember {
                by,
                conversation,
                user,
            } => self.remove_member(tables, (by, conversation), user, caused),
            Command::SetTitle {
                by,
                conversation,
                title,
            } => self.set_title(tables, (by, conversation), &title, caused),
            Command::Expire { through, most } => self.expire(tables, Chunk(through), most),
            Command::Acknowledge(all) => {
                for acknowledgement in all {
                    self.acknowledge(tables, acknowledgement, entry.taken)?;
                }
                Ok(Ok(Done::Noted))
            }
        }
    }

    /// Takes note of a log entry that does nothing.
    pub fn skip(&mut self, at: At) {
        self.state.position = at.position;
        self.state.digest = at.digest;
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
        let user = User {
            name,
            password,
            created,
        };
        let row = encode(&[id], &user, &mut self.scratch);
        tables.users.insert(id, row)?;
        Ok(Ok(Done::User(UserId(id))))
    }

    /// Stores a message; if it is the sender's `own`, too, for the sender's queue as well.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a command says, and where it goes"
    )]
    fn post(
        &mut self,
        tables: &mut Tables<'_>,
        recent: &mut Recent<'_>,
        entry: At,
        mut message: Message,
        key: Option<[u8; 16]>,
        own: bool,
        caused: &mut Caused,
    ) -> Result<Outcome, redb::Error> {
        let (conversation, sender) = (message.conversation, message.sender);
        let members = match self.members(tables, conversation)? {
            Some(members) if members.binary_search(&sender).is_ok() => members,
            _ => return Ok(Err(Refusal::UnknownConversation(conversation))),
        };
        let number = match key {
            None => self.next_number(tables, conversation)?,
            Some(key) => {
                if recent.turn_to(entry.taken.day())? {
                    self.state.days = recent.days();
                }
                let fingerprint = fingerprint(&message.text);
                let row = (sender.0, key);
                if let Some((of, number, before)) = recent.get(row)? {
                    if of != conversation.0 || before != fingerprint {
                        return Ok(Err(Refusal::KeyReused));
                    }
                    // It may not lie in its table yet.
                    self.write(tables)?;
                    let sent = sent_at(tables, conversation, number)?.unwrap_or(message.sent);
                    return Ok(Ok(Done::Posted {
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
        message.number = number;
        self.store(Some(&*tables), entry, message, &members, own, caused)
    }

    /// Takes a message with its number. Without `tables` the tails of its recipients are here.
    pub(super) fn store(
        &mut self,
        tables: Option<&Tables<'_>>,
        entry: At,
        message: Message,
        members: &[UserId],
        own: bool,
        caused: &mut Caused,
    ) -> Result<Outcome, redb::Error> {
        let (conversation, sender) = (message.conversation, message.sender);
        let number = message.number;
        let chunk = self.state.growing.add(entry.taken);
        let sent = message.sent;
        let stored = Stored {
            sender,
            sent,
            text: &message.text,
        };
        let bytes = encode(&[conversation.0, number], &stored, &mut self.scratch);
        self.state.bytes += bytes.len() as u64;
        let place = (conversation.0, number);
        self.pending.message(place, bytes, chunk, entry.taken);
        self.numbers.insert(conversation, number);
        let message = Arc::new(message);
        let members = members.iter().copied();
        let recipients = members.filter(|&member| own || member != sender);
        let (queues, deliveries) = (&mut self.queues, &mut caused.deliveries);
        let place = (conversation, number);
        queues.push(tables, recipients, sender, place, |to, sequence| {
            let message = message.clone();
            deliveries.push(Delivery {
                to,
                sequence,
                message,
            });
        })?;
        Ok(Ok(Done::Posted {
            number,
            sent,
            repeated: false,
        }))
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
        // One that was closed meanwhile stays closed.
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

    pub(super) fn members(
        &mut self,
        tables: &Tables<'_>,
        conversation: ConversationId,
    ) -> Result<Option<Arc<[UserId]>>, redb::Error> {
        if let Some(members) = self.members.get(&conversation) {
            return Ok(Some(members.clone()));
        }
        let Some(row) = tables.conversations.get(conversation.0)? else {
            return Ok(None);
        };
        let known: Conversation = decode("conversation", &[conversation.0], row.value())?;
        let members: Arc<[UserId]> = known.members.into();
        bound(&mut self.members);
        self.members.insert(conversation, members.clone());
        Ok(Some(members))
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
        // All of them may have been removed.
        let first = first_kept(&tables.firsts, conversation)?;
        Ok((last + 1).max(first))
    }
}

/// When a message was sent, if it is there.
fn sent_at(
    tables: &Tables<'_>,
    conversation: ConversationId,
    number: u64,
) -> Result<Option<Millis>, redb::Error> {
    match tables.messages.get((conversation.0, number))? {
        Some(row) => {
            let key = [conversation.0, number];
            let stored: Stored<'_> = decode("message", &key, row.value())?;
            Ok(Some(stored.sent))
        }
        None => Ok(None),
    }
}

pub(super) fn fingerprint(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    let (first, _) = hash.as_bytes().split_at(8);
    first
        .iter()
        .fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}

fn bound<K, V>(cache: &mut HashMap<K, V>) {
    if cache.len() >= CACHED {
        cache.clear();
    }
}
