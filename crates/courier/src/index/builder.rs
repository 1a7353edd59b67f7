//! Builds an index from [lines](super::lines), and checks each of them.

use super::chunk::{Chunk, OpenChunk};
use super::keys::{Days, UserKey};
use super::lines::{LINES, Line, from_hexadecimal};
use super::lookalikes;
use super::machine::{MessageRow, State};
use super::opened::CACHE;
use super::queue::QueueRange;
use super::replacement;
use super::row::{checked, encode, number, session_key};
use super::tables::{FORMAT, STATE, Tables, open_keys};
use crate::limits::LONGEST_NAME;
use crate::model::{Conversation, Millis, Session, SessionId, User, UserId};
use redb::{Database, Durability, Error, ReadableTable, WriteTransaction};
use std::path::Path;

/// The maximum number of lines in one transaction.
const TOGETHER: usize = 1 << 12;
/// The maximum bytes of texts in one transaction.
const TOGETHER_BYTES: usize = 4 << 20;

/// Builds an index. See the [module](self).
pub(crate) struct IndexBuilder {
    database: Database,
    state: State,
    /// The lines that have not been written yet, and the bytes of their texts.
    lines: Vec<Line>,
    bytes: usize,
    /// The number of lines written.
    written: u64,
    /// The place of the last line, which later lines must follow.
    last: (u8, u64, u64),
    /// The number that must follow in the current conversation.
    next: u64,
    scratch: Vec<u8>,
}

/// Returns the error for a line that is not part of an index.
fn wrong(reason: &str) -> Error {
    Error::Corrupted(reason.to_owned())
}

fn require(is_met: bool, reason: &str) -> Result<(), Error> {
    match is_met {
        true => Ok(()),
        false => Err(wrong(reason)),
    }
}

impl IndexBuilder {
    /// Creates the file of an index that belongs to the log with this identity.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, log: u64) -> Result<IndexBuilder, Error> {
        Ok(IndexBuilder {
            database: replacement::create(path, CACHE)?,
            state: State {
                format: FORMAT,
                log,
                ..State::default()
            },
            lines: Vec::new(),
            bytes: 0,
            written: 0,
            last: (0, 0, 0),
            next: 0,
            scratch: Vec::new(),
        })
    }

    /// Adds a line. A later call may check the line.
    ///
    /// # Errors
    /// A line is out of place, or the file cannot be written.
    pub fn push(&mut self, line: Line) -> Result<(), String> {
        self.bytes += match &line {
            Line::Message { text, .. } => text.len(),
            Line::Conversation { members, .. } => 8 * members.len(),
            _ => 0,
        };
        // An export of another version is refused before anything else in it.
        let is_due = matches!(line, Line::Begin { .. })
            || self.lines.len() + 1 >= TOGETHER
            || self.bytes >= TOGETHER_BYTES;
        self.lines.push(line);
        match is_due {
            true => self.write(Durability::None),
            false => Ok(()),
        }
    }

    /// Completes the index, and returns the position of its last entry.
    ///
    /// # Errors
    /// See [`IndexBuilder::push`].
    pub fn finish(mut self) -> Result<u64, String> {
        self.write(Durability::Immediate)?;
        match self.written {
            0 => Err("it has no lines".to_owned()),
            _ => Ok(self.state.position),
        }
    }

    fn write(&mut self, durability: Durability) -> Result<(), String> {
        let begun = self.written;
        let written = (|| {
            let mut txn = self.database.begin_write()?;
            txn.set_durability(durability).map_err(Error::from)?;
            txn.set_quick_repair(matches!(durability, Durability::Immediate));
            {
                let mut tables = Tables::open(&txn)?;
                for line in std::mem::take(&mut self.lines) {
                    self.written += 1;
                    self.add(&txn, &mut tables, line)?;
                }
                let row = encode(&[], &self.state, &mut self.scratch);
                tables.meta.insert(STATE, row)?;
            }
            txn.commit()?;
            Ok(())
        })();
        self.bytes = 0;
        written.map_err(|error| match error {
            Error::Corrupted(reason) if self.written > begun => {
                format!("line {}: {reason}", self.written)
            }
            other => other.to_string(),
        })
    }

    /// Checks that a line follows the previous one.
    fn follow(&mut self, place: (u8, u64, u64)) -> Result<(), Error> {
        require(
            self.last < place,
            "it repeats an earlier line, or is out of order",
        )?;
        self.last = place;
        Ok(())
    }

    /// Checks that a line follows the previous one, or has the same place.
    fn follow_or_join(&mut self, place: (u8, u64, u64)) -> Result<(), Error> {
        match self.last == place {
            true => Ok(()),
            false => self.follow(place),
        }
    }

    fn is_user(&self, id: u64) -> bool {
        (1..=self.state.users).contains(&id)
    }

    fn is_conversation(&self, id: u64) -> bool {
        (1..=self.state.conversations).contains(&id)
    }

    fn add(
        &mut self,
        txn: &WriteTransaction,
        tables: &mut Tables<'_>,
        line: Line,
    ) -> Result<(), Error> {
        require(
            matches!(line, Line::Begin { .. }) == (self.written == 1),
            "an export has one line of the kind 'begin', which is the first",
        )?;
        match line {
            Line::Begin {
                courier,
                position,
                version,
                chunk,
                days,
                day,
            } => {
                if courier != LINES {
                    return Err(Error::Corrupted(format!(
                        "the export has format {courier}, and this version reads format {LINES}; use the version that wrote it"
                    )));
                }
                self.state.position = position;
                self.state.version = version;
                self.state.growing = OpenChunk::after(Chunk(chunk));
                self.state.days = Days {
                    tables: days,
                    last: day,
                };
                for &day in &self.state.days.tables {
                    open_keys(txn, day)?;
                }
                Ok(())
            }
            Line::User {
                id,
                name,
                password,
                created,
                acknowledged,
            } => {
                self.follow((1, id, 0))?;
                require(
                    id == self.state.users + 1,
                    "the number of the user is not the next one",
                )?;
                require(name.len() <= LONGEST_NAME, "the name is too long")?;
                if !name.is_empty() {
                    let is_new = tables.names.insert(name.as_str(), id)?.is_none();
                    require(is_new, "another user has this name")?;
                    lookalikes::add(tables, &name)?;
                }
                if let Some(sequence) = acknowledged {
                    tables.user_acks.insert(id, number(&[id], sequence))?;
                }
                let user = User {
                    name,
                    password,
                    created: Millis(created),
                };
                tables
                    .users
                    .insert(id, encode(&[id], &user, &mut self.scratch))?;
                self.state.users = id;
                Ok(())
            }
            line @ Line::Session { .. } => self.add_session(tables, line),
            line @ Line::Conversation { .. } => self.add_conversation(tables, line),
            Line::Message {
                conversation,
                number: message,
                sender,
                sent,
                text,
            } => {
                if (self.last.0, self.last.1) != (4, conversation) {
                    require(
                        self.is_conversation(conversation),
                        "there is no such conversation",
                    )?;
                    self.next = self.first_kept(tables, conversation)?;
                }
                self.follow((4, conversation, message))?;
                require(
                    message == self.next,
                    "the number of the message is not the next one",
                )?;
                require(self.is_user(sender), "there is no such sender")?;
                self.next = message + 1;
                let row = MessageRow {
                    sender: UserId(sender),
                    sent: Millis(sent),
                    text: &text,
                };
                let key = [conversation, message];
                let row = encode(&key, &row, &mut self.scratch);
                self.state.bytes += row.len() as u64;
                tables.messages.insert((conversation, message), row)?;
                Ok(())
            }
            Line::Queue {
                user,
                first,
                conversation,
                number,
                count,
                own,
            } => {
                let run = QueueRange {
                    first,
                    conversation,
                    number,
                    count,
                    own,
                };
                self.add_range(tables, user, run)
            }
            Line::Chunk { chunk, newest } => {
                self.follow((6, chunk, 0))?;
                require(
                    chunk <= self.state.growing.chunk.0,
                    "the chunk is not counted in the first line",
                )?;
                tables.chunks.insert(chunk, number(&[chunk], newest))?;
                Ok(())
            }
            Line::Mark {
                chunk,
                conversation,
                last,
            } => {
                self.follow((7, chunk, conversation))?;
                require(
                    tables.chunks.get(chunk)?.is_some(),
                    "there is no such chunk",
                )?;
                require(
                    self.is_conversation(conversation),
                    "there is no such conversation",
                )?;
                let row = number(&[chunk, conversation], last);
                tables.marks.insert((chunk, conversation), row)?;
                Ok(())
            }
            Line::Key {
                day,
                user,
                key,
                conversation,
                number,
                fingerprint,
            } => {
                let order = self
                    .state
                    .days
                    .tables
                    .iter()
                    .position(|&known| known == day);
                let order =
                    order.ok_or_else(|| wrong("the day is not listed in the first line"))?;
                self.follow_or_join((8, order as u64, user))?;
                require(self.is_user(user), "there is no such user")?;
                require(
                    self.is_conversation(conversation),
                    "there is no such conversation",
                )?;
                let key = from_hexadecimal(&key)
                    .ok_or_else(|| wrong("the key is not 32 hexadecimal digits"))?;
                let place: UserKey = (user, key);
                let mut keys = open_keys(txn, day)?;
                let is_new = keys
                    .insert(place, (conversation, number, fingerprint))?
                    .is_none();
                require(is_new, "it repeats an earlier line")
            }
        }
    }

    fn add_session(&mut self, tables: &mut Tables<'_>, line: Line) -> Result<(), Error> {
        let Line::Session {
            id,
            user,
            proof,
            expires,
            opened,
            acknowledged,
        } = line
        else {
            return Ok(());
        };
        self.follow_or_join((2, 0, 0))?;
        let id =
            SessionId::parse(&id).ok_or_else(|| wrong("the id of the session is not valid"))?;
        let proof = from_hexadecimal(&proof)
            .ok_or_else(|| wrong("the proof is not 64 hexadecimal digits"))?;
        require(self.is_user(user), "there is no such user")?;
        let session = Session {
            user: UserId(user),
            proof,
            expires: Millis(expires),
            opened: opened.map(Millis),
        };
        let key = session_key(id.0);
        if let Some(sequence) = acknowledged {
            tables.session_acks.insert(id.0, number(&key, sequence))?;
        }
        let row = encode(&key, &session, &mut self.scratch);
        let before = tables.sessions.insert(id.0, row)?;
        require(before.is_none(), "it repeats an earlier line")?;
        tables.user_sessions.insert((user, id.0), ())?;
        Ok(())
    }

    fn add_conversation(&mut self, tables: &mut Tables<'_>, line: Line) -> Result<(), Error> {
        let Line::Conversation {
            id,
            creator,
            members,
            created,
            title,
            pair,
            first,
        } = line
        else {
            return Ok(());
        };
        self.follow((3, id, 0))?;
        require(
            id == self.state.conversations + 1,
            "the number of the conversation is not the next one",
        )?;
        require(self.is_user(creator), "there is no such creator")?;
        require(
            members.is_sorted_by(|one, next| one < next),
            "the members are not in ascending order",
        )?;
        require(
            members.iter().all(|&member| self.is_user(member)),
            "a member does not exist",
        )?;
        require(!pair || members.len() == 2, "a pair has two members")?;
        require(first > 0, "messages are numbered from 1")?;
        for &member in &members {
            tables.memberships.insert((member, id), ())?;
        }
        if pair {
            let place = [members[0], members[1]];
            let before = tables
                .pairs
                .insert((place[0], place[1]), number(&place, id))?;
            require(
                before.is_none(),
                "these members have another conversation that is a pair",
            )?;
        }
        if let Some(title) = title {
            tables
                .titles
                .insert(id, encode(&[id], &title, &mut self.scratch))?;
        }
        if first > 1 {
            tables.firsts.insert(id, number(&[id], first))?;
        }
        let conversation = Conversation {
            creator: UserId(creator),
            members: members.into_iter().map(UserId).collect(),
            created: Millis(created),
        };
        let row = encode(&[id], &conversation, &mut self.scratch);
        tables.conversations.insert(id, row)?;
        self.state.conversations = id;
        Ok(())
    }

    fn add_range(
        &mut self,
        tables: &mut Tables<'_>,
        user: u64,
        run: QueueRange,
    ) -> Result<(), Error> {
        let continues = (self.last.0, self.last.1) == (5, user);
        let next = self.next;
        self.follow((5, user, run.first))?;
        require(self.is_user(user), "there is no such user")?;
        require(
            self.is_conversation(run.conversation),
            "there is no such conversation",
        )?;
        let counted = run.count > 0 && run.count <= u64::from(u32::MAX) && run.own <= run.count;
        require(
            counted && run.first > 0 && run.number > 0,
            "the counts of the queue are not valid",
        )?;
        require(!continues || run.first == next, "the queue has a gap")?;
        let end = run.number.checked_add(run.count);
        let end = end.filter(|_| run.first.checked_add(run.count).is_some());
        let end = end.ok_or_else(|| wrong("the counts of the queue are not valid"))?;
        let place = (run.conversation, 0)..=(run.conversation, u64::MAX);
        let last = tables.messages.range(place)?.next_back().transpose()?;
        let last = match last.map(|(place, _)| place.value().1) {
            Some(last) => last,
            None => self.first_kept(tables, run.conversation)? - 1,
        };
        require(
            end <= last + 1,
            "the queue has messages that the conversation lacks",
        )?;
        self.next = run.last() + 1;
        tables.queues.insert((user, run.first), run.row(user))?;
        Ok(())
    }

    fn first_kept(&self, tables: &Tables<'_>, conversation: u64) -> Result<u64, Error> {
        let row = tables.firsts.get(conversation)?.map(|row| row.value());
        let first = row.map(|row| checked("first message", &[conversation], row));
        Ok(first.transpose()?.unwrap_or(1))
    }
}
