//! The queue of every user: which message has which sequence.
//!
//! A queue is a list of *runs*: messages of one conversation, one after the other. A message that
//! continues the last run of a user makes it longer, which costs a step of a counter in memory and no
//! row; so a conversation of thousands costs a row for each of its members now and then, and not for
//! every message. The last run of a user is written when it is over, and at a checkpoint; until then
//! those who read take it from [`Tails`].

use super::tables::{QUEUES, Tables};
use crate::hub::lock;
use crate::model::{ConversationId, UserId};
use redb::{ReadTransaction, ReadableTable};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Conversation, number of the first message, count, and the checksum of all of it.
pub(super) type Row = (u64, u64, u64, u32);

/// Messages of one conversation that follow each other in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// The sequence of the first.
    pub first: u64,
    pub conversation: u64,
    /// The number of the first in its conversation.
    pub number: u64,
    pub count: u64,
}

impl Run {
    /// Of a queue in which nothing is.
    const NONE: Run = Run {
        first: 1,
        conversation: 0,
        number: 0,
        count: 0,
    };

    /// The sequence of the last.
    pub fn last(&self) -> u64 {
        self.first + self.count - 1
    }

    fn checksum(&self, user: u64) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        for part in [user, self.first, self.conversation, self.number, self.count] {
            hasher.update(&part.to_le_bytes());
        }
        hasher.finalize()
    }

    fn row(&self, user: u64) -> Row {
        (
            self.conversation,
            self.number,
            self.count,
            self.checksum(user),
        )
    }

    fn read((user, first): (u64, u64), row: Row) -> Result<Run, redb::Error> {
        let (conversation, number, count, check) = row;
        let run = Run {
            first,
            conversation,
            number,
            count,
        };
        if run.checksum(user) == check {
            return Ok(run);
        }
        Err(redb::Error::Corrupted(format!(
            "the queue of user {user} is damaged at {first}"
        )))
    }
}

/// The last run of a queue.
#[derive(Clone, Copy, Debug)]
struct Tail {
    run: Run,
    /// It is longer than its row says.
    unwritten: bool,
}

/// The last runs of queues, as far as they were used lately. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Tails(Arc<Mutex<FxHashMap<UserId, Tail>>>);

/// Makes queues longer.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub tails: Tails,
    /// Runs that are over and not written.
    over: VecDeque<((u64, u64), Row)>,
    /// Users with an unwritten tail.
    unwritten: Vec<UserId>,
}

impl Queues {
    /// Puts a message into the queues of these users, and tells the sequence that each gives it.
    pub fn push(
        &mut self,
        tables: &Tables<'_>,
        users: impl Iterator<Item = UserId>,
        conversation: ConversationId,
        number: u64,
        mut tell: impl FnMut(UserId, u64),
    ) -> Result<(), redb::Error> {
        let mut tails = lock(&self.tails.0);
        for user in users {
            let tail = match tails.get_mut(&user) {
                Some(tail) => tail,
                None => {
                    let run = last_run(&tables.queues, user)?.unwrap_or(Run::NONE);
                    let unwritten = false;
                    tails.entry(user).or_insert(Tail { run, unwritten })
                }
            };
            let run = &mut tail.run;
            if run.count > 0
                && run.conversation == conversation.0
                && run.number + run.count == number
            {
                run.count += 1;
            } else {
                if tail.unwritten && run.count > 0 {
                    self.over.push_back(((user.0, run.first), run.row(user.0)));
                }
                *run = Run {
                    first: run.last() + 1,
                    conversation: conversation.0,
                    number,
                    count: 1,
                };
            }
            if !std::mem::replace(&mut tail.unwritten, true) {
                self.unwritten.push(user);
            }
            tell(user, tail.run.last());
        }
        Ok(())
    }

    /// The last sequence of a user.
    pub fn last(&self, tables: &Tables<'_>, user: UserId) -> Result<u64, redb::Error> {
        if let Some(tail) = lock(&self.tails.0).get(&user) {
            return Ok(tail.run.last());
        }
        Ok(last_run(&tables.queues, user)?.map_or(0, |run| run.last()))
    }

    /// Rows that wait to be written.
    pub fn waiting(&self) -> usize {
        self.over.len()
    }

    /// Writes the runs that are over.
    pub fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        self.write_some(tables, usize::MAX)
    }

    /// Writes at most `most` of the runs that are over, the oldest first.
    pub fn write_some(&mut self, tables: &mut Tables<'_>, most: usize) -> Result<(), redb::Error> {
        let count = self.over.len().min(most);
        let mut rows: Vec<_> = self.over.drain(..count).collect();
        rows.sort_unstable();
        for (place, row) in rows {
            tables.queues.insert(place, row)?;
        }
        Ok(())
    }

    /// Writes everything. Forgets all tails if there are more than `most`.
    pub fn write_all(&mut self, tables: &mut Tables<'_>, most: usize) -> Result<(), redb::Error> {
        self.write(tables)?;
        let mut tails = lock(&self.tails.0);
        self.unwritten.sort_unstable();
        for user in self.unwritten.drain(..) {
            if let Some(tail) = tails.get_mut(&user) {
                let place = (user.0, tail.run.first);
                tables.queues.insert(place, tail.run.row(user.0))?;
                tail.unwritten = false;
            }
        }
        if tails.len() > most {
            tails.clear();
        }
        Ok(())
    }

    /// Whether there are more tails than this.
    pub fn are_more_than(&self, most: usize) -> bool {
        lock(&self.tails.0).len() > most
    }
}

fn last_run(
    queues: &impl ReadableTable<(u64, u64), Row>,
    user: UserId,
) -> Result<Option<Run>, redb::Error> {
    let mut rows = queues.range((user.0, 0)..=(user.0, u64::MAX))?;
    match rows.next_back().transpose()? {
        Some((place, row)) => Run::read(place.value(), row.value()).map(Some),
        None => Ok(None),
    }
}

impl Tails {
    /// The last run of a user, if it is here. It is to be taken before a transaction is begun.
    pub fn of(&self, user: UserId) -> Option<Run> {
        lock(&self.0).get(&user).map(|tail| tail.run)
    }
}

/// The last sequence in a user's queue.
pub(super) fn last_sequence(
    txn: &ReadTransaction,
    user: UserId,
    tail: Option<Run>,
) -> Result<u64, redb::Error> {
    let written = last_run(&txn.open_table(QUEUES)?, user)?;
    let both = [written, tail].into_iter().flatten().map(|run| run.last());
    Ok(both.max().unwrap_or(0))
}

/// Calls `visit` with sequence, conversation and number of what lies in a user's queue after a
/// sequence, in order, until it returns `false`.
pub(super) fn visit(
    txn: &ReadTransaction,
    user: UserId,
    after: u64,
    tail: Option<Run>,
    mut visit: impl FnMut(u64, ConversationId, u64) -> Result<bool, redb::Error>,
) -> Result<(), redb::Error> {
    let mut failed = Ok(());
    visit_parts(txn, user, after, tail, |run, first| {
        for sequence in first..=run.last() {
            let number = run.number + (sequence - run.first);
            match visit(sequence, ConversationId(run.conversation), number) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    failed = Err(error);
                    return false;
                }
            }
        }
        true
    })?;
    failed
}

/// Calls `visit` with conversation and count of every run that lies in a user's queue after a sequence,
/// in order, until it returns `false`.
pub(super) fn visit_runs(
    txn: &ReadTransaction,
    user: UserId,
    after: u64,
    tail: Option<Run>,
    mut visit: impl FnMut(ConversationId, u64) -> bool,
) -> Result<(), redb::Error> {
    visit_parts(txn, user, after, tail, |run, first| {
        visit(ConversationId(run.conversation), run.last() - first + 1)
    })
}

/// Calls `visit` with every run, and the first sequence of it that comes after a sequence.
///
/// The tail may be older or newer than the transaction. What only one of them knows is visited if
/// nothing is missing before it; where something is, the queue ends for now.
fn visit_parts(
    txn: &ReadTransaction,
    user: UserId,
    after: u64,
    tail: Option<Run>,
    mut visit: impl FnMut(Run, u64) -> bool,
) -> Result<(), redb::Error> {
    let queues = txn.open_table(QUEUES)?;
    let mut tail = tail.filter(|run| run.count > 0);
    let Some(mut next) = after.checked_add(1) else {
        return Ok(());
    };
    let mut go = |run: Run| -> bool {
        if next >= run.first && next <= run.last() {
            let first = next;
            next = run.last() + 1;
            return visit(run, first);
        }
        // A run that begins later: what is before it is not here yet.
        next >= run.first
    };
    let begin = queues.range((user.0, 0)..=(user.0, after + 1))?.next_back();
    let begin = begin
        .transpose()?
        .map_or((user.0, 0), |(place, _)| place.value());
    for row in queues.range(begin..=(user.0, u64::MAX))? {
        let (place, row) = row?;
        let mut run = Run::read(place.value(), row.value())?;
        if let Some(last) = tail {
            if last.first < run.first && !go(last) {
                return Ok(());
            }
            if last.first <= run.first {
                tail = None;
            }
            if last.first == run.first {
                run.count = run.count.max(last.count);
            }
        }
        if !go(run) {
            return Ok(());
        }
    }
    if let Some(last) = tail {
        go(last);
    }
    Ok(())
}
