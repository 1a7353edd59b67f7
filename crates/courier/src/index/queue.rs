//! The queue of every user, which maps sequence numbers to messages.
//!
//! A queue is a list of *ranges*: consecutive messages of one conversation. A message that continues the last range of
//! a user only extends this range: it increments a counter in memory and needs no row. So a message to a conversation
//! of thousands does not cost a row for each member. The last range of a user is written when it is complete, and at a
//! checkpoint; until then readers use [`Tails`].

use super::row::{decode, encode};
use super::tables::{QUEUES, Row, TAILS, Tables};
use crate::model::{ConversationId, UserId};
use parking_lot::Mutex;
use redb::{ReadTransaction, ReadableTable};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum number of tails that are stored compactly at a checkpoint instead of being written as rows.
const MOST_NOTED: usize = 1 << 15;
/// The number of tails in one row.
const TAILS_TOGETHER: usize = 1 << 10;
/// The number of rows of one queue that are removed at a time.
const MOST_REMOVED: usize = 1 << 10;

/// Consecutive messages of one conversation in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueueRange {
    /// The sequence number of the first message.
    pub first: u64,
    pub conversation: u64,
    /// The number of the first message in its conversation.
    pub number: u64,
    pub count: u64,
    /// The number of these messages that the user has sent.
    pub own: u64,
}

/// The number of bits for a row's count. The bits above them contain [`QueueRange::own`].
const COUNT_BITS: u32 = 32;

impl QueueRange {
    /// The range of an empty queue.
    const NONE: QueueRange = QueueRange {
        first: 1,
        conversation: 0,
        number: 0,
        count: 0,
        own: 0,
    };

    /// Returns the sequence number of the last message.
    pub fn last(&self) -> u64 {
        self.first + self.count - 1
    }

    /// Packs the number of the user's own messages and the total into a row's value.
    fn counts(&self) -> u64 {
        self.own << COUNT_BITS | self.count
    }

    fn checksum(&self, user: u64) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let counts = self.counts();
        for part in [user, self.first, self.conversation, self.number, counts] {
            hasher.update(&part.to_le_bytes());
        }
        hasher.finalize()
    }

    /// Returns the value of the range's row.
    pub fn row(&self, user: u64) -> Row {
        (
            self.conversation,
            self.number,
            self.counts(),
            self.checksum(user),
        )
    }

    /// True if a message of this conversation continues the range.
    fn goes_on(&self, conversation: u64, number: u64) -> bool {
        let is_next = self.conversation == conversation && self.number + self.count == number;
        self.count > 0 && is_next && self.count >> COUNT_BITS == 0
    }

    /// Reads and verifies a row.
    pub fn read((user, first): (u64, u64), row: Row) -> Result<QueueRange, redb::Error> {
        let (conversation, number, counts, check) = row;
        let run = QueueRange {
            first,
            conversation,
            number,
            count: counts & ((1 << COUNT_BITS) - 1),
            own: counts >> COUNT_BITS,
        };
        if run.checksum(user) == check {
            return Ok(run);
        }
        Err(redb::Error::Corrupted(format!(
            "the queue of user {user} is damaged at {first}"
        )))
    }
}

/// The last range of a queue.
#[derive(Clone, Copy, Debug)]
struct Tail {
    run: QueueRange,
    /// True if the range is longer than the stored row.
    unwritten: bool,
}

/// A cache of the last ranges of recently used queues. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Tails(Arc<Mutex<FxHashMap<UserId, Tail>>>);

/// Appends to queues.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub tails: Tails,
    /// Completed ranges that have not been written, with their keys.
    over: VecDeque<((u64, u64), Row)>,
    /// Users with an unwritten tail.
    unwritten: Vec<UserId>,
    /// The number of rows written since the last call of [`Queues::take_written`].
    written: usize,
}

impl Queues {
    /// Appends a message of this sender to the queues of these users, and returns the sequence number in each queue.
    ///
    /// Without `tables`, all of these users' tails must be [cached](Queues::knows).
    pub fn push(
        &mut self,
        tables: Option<&Tables<'_>>,
        users: impl Iterator<Item = UserId>,
        sender: UserId,
        (conversation, number): (ConversationId, u64),
        mut tell: impl FnMut(UserId, u64),
    ) -> Result<(), redb::Error> {
        let mut tails = self.tails.0.lock();
        for user in users {
            let tail = match tails.get_mut(&user) {
                Some(tail) => tail,
                None => {
                    let known = tables.map(|tables| last_run(&tables.queues, user));
                    let run = known.transpose()?.flatten().unwrap_or(QueueRange::NONE);
                    let unwritten = false;
                    tails.entry(user).or_insert(Tail { run, unwritten })
                }
            };
            let run = &mut tail.run;
            if run.goes_on(conversation.0, number) {
                run.count += 1;
            } else {
                if tail.unwritten && run.count > 0 {
                    self.over.push_back(((user.0, run.first), run.row(user.0)));
                }
                *run = QueueRange {
                    first: run.last() + 1,
                    conversation: conversation.0,
                    number,
                    count: 1,
                    own: 0,
                };
            }
            run.own += u64::from(user == sender);
            if !std::mem::replace(&mut tail.unwritten, true) {
                self.unwritten.push(user);
            }
            tell(user, tail.run.last());
        }
        Ok(())
    }

    /// True if the tails of all of these users are cached.
    pub fn knows(&self, mut users: impl Iterator<Item = UserId>) -> bool {
        let tails = self.tails.0.lock();
        users.all(|user| tails.contains_key(&user))
    }

    /// Returns the last sequence number of a user's queue.
    pub fn last(&self, tables: &Tables<'_>, user: UserId) -> Result<u64, redb::Error> {
        if let Some(tail) = self.tails.0.lock().get(&user) {
            return Ok(tail.run.last());
        }
        Ok(last_run(&tables.queues, user)?.map_or(0, |run| run.last()))
    }

    /// Returns the number of rows that were written since the last call.
    pub fn take_written(&mut self) -> usize {
        std::mem::take(&mut self.written)
    }

    /// Returns the number of rows that wait to be written.
    pub fn waiting(&self) -> usize {
        self.over.len()
    }

    /// Writes all completed ranges.
    pub fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        self.write_some(tables, usize::MAX)
    }

    /// Writes at most `most` of the complete ranges, the oldest first.
    pub fn write_some(&mut self, tables: &mut Tables<'_>, most: usize) -> Result<(), redb::Error> {
        let count = self.over.len().min(most);
        let mut rows: Vec<_> = self.over.drain(..count).collect();
        rows.sort_unstable();
        self.written += rows.len();
        for (place, row) in rows {
            tables.queues.insert(place, row)?;
        }
        Ok(())
    }

    /// Writes all ranges. If `forget` is true, all tails are removed from the cache.
    pub fn write_all(&mut self, tables: &mut Tables<'_>, forget: bool) -> Result<(), redb::Error> {
        self.write(tables)?;
        let mut tails = self.tails.0.lock();
        self.unwritten.sort_unstable();
        for user in self.unwritten.drain(..) {
            if let Some(tail) = tails.get_mut(&user) {
                let place = (user.0, tail.run.first);
                tables.queues.insert(place, tail.run.row(user.0))?;
                tail.unwritten = false;
            }
        }
        if forget {
            tails.clear();
        }
        Ok(())
    }

    /// Writes all tails to disk in this transaction. If there are many, each gets a separate row.
    pub fn keep_tails(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        if self.unwritten.len() > MOST_NOTED {
            self.write_all(tables, false)?;
        }
        self.note_tails(tables)
    }

    /// Writes the tails that have no row yet, many in one row of [`TAILS`], because a message to thousands of users
    /// leaves thousands of tails.
    fn note_tails(&self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        let tails = self.tails.0.lock();
        let mut bytes = Vec::new();
        let mut number = 0;
        for some in self.unwritten.chunks(TAILS_TOGETHER) {
            let runs: Vec<(UserId, QueueRange)> = some
                .iter()
                .filter_map(|&user| Some((user, tails.get(&user)?.run)))
                .collect();
            tables
                .tails
                .insert(number, encode(&[number], &runs, &mut bytes))?;
            number += 1;
        }
        tables.tails.retain(|key, _| key < number)?;
        Ok(())
    }

    /// Reads the tails that [`Queues::note_tails`] has written.
    pub fn read_tails(&mut self, txn: &ReadTransaction) -> Result<(), redb::Error> {
        let mut tails = self.tails.0.lock();
        for (user, run) in noted_tails(txn)? {
            let unwritten = true;
            tails.insert(user, Tail { run, unwritten });
            self.unwritten.push(user);
        }
        Ok(())
    }

    /// True if the first row of a user ends at this sequence or before, and is not the last.
    pub fn begins_before(
        tables: &Tables<'_>,
        user: UserId,
        sequence: u64,
    ) -> Result<bool, redb::Error> {
        let mut rows = tables.queues.range((user.0, 0)..=(user.0, u64::MAX))?;
        let Some((place, row)) = rows.next().transpose()? else {
            return Ok(false);
        };
        let run = QueueRange::read(place.value(), row.value())?;
        Ok(run.last() <= sequence && rows.next().is_some())
    }

    /// Removes the rows of a user that end at or before this sequence number, except the last.
    pub fn remove(tables: &mut Tables<'_>, user: UserId, through: u64) -> Result<(), redb::Error> {
        let mut over = Vec::new();
        for row in tables.queues.range((user.0, 0)..=(user.0, u64::MAX))? {
            let (place, row) = row?;
            over.push(place.value());
            let run = QueueRange::read(place.value(), row.value())?;
            if run.last() > through || over.len() > MOST_REMOVED {
                break;
            }
        }
        // The last examined row stays.
        over.pop();
        for place in over {
            tables.queues.remove(place)?;
        }
        Ok(())
    }

    /// True if there are more tails than `most`.
    pub fn are_more_than(&self, most: usize) -> bool {
        self.tails.0.lock().len() > most
    }
}

/// Returns the last ranges of queues that have no row yet.
pub(super) fn noted_tails(txn: &ReadTransaction) -> Result<Vec<(UserId, QueueRange)>, redb::Error> {
    let mut noted = Vec::new();
    for row in txn.open_table(TAILS)?.iter()? {
        let (number, runs) = row?;
        let runs: Vec<(UserId, QueueRange)> = decode("tails", &[number.value()], runs.value())?;
        noted.extend(runs);
    }
    Ok(noted)
}

/// Verifies the checksum of a row.
pub(super) fn check_row(place: (u64, u64), row: Row) -> Result<(), redb::Error> {
    QueueRange::read(place, row).map(drop)
}

fn last_run(
    queues: &impl ReadableTable<(u64, u64), Row>,
    user: UserId,
) -> Result<Option<QueueRange>, redb::Error> {
    let mut rows = queues.range((user.0, 0)..=(user.0, u64::MAX))?;
    match rows.next_back().transpose()? {
        Some((place, row)) => QueueRange::read(place.value(), row.value()).map(Some),
        None => Ok(None),
    }
}

impl Tails {
    /// Takes over the contents of another cache.
    pub fn take_over(&self, other: &Tails) {
        let taken = std::mem::take(&mut *other.0.lock());
        *self.0.lock() = taken;
    }

    /// Returns the last range of a user, if it is cached. Call it before a transaction begins.
    pub fn of(&self, user: UserId) -> Option<QueueRange> {
        self.0.lock().get(&user).map(|tail| tail.run)
    }
}

/// Returns the last sequence number in a user's queue.
pub(super) fn last_sequence(
    txn: &ReadTransaction,
    user: UserId,
    tail: Option<QueueRange>,
) -> Result<u64, redb::Error> {
    let written = last_run(&txn.open_table(QUEUES)?, user)?;
    let both = [written, tail].into_iter().flatten().map(|run| run.last());
    Ok(both.max().unwrap_or(0))
}

/// Calls `visit` with the sequence, the conversation and the number of each message in a user's queue after a sequence
/// number, in order, until it returns `false`.
pub(super) fn visit(
    txn: &ReadTransaction,
    user: UserId,
    after: u64,
    tail: Option<QueueRange>,
    mut visit: impl FnMut(u64, ConversationId, u64) -> Result<bool, redb::Error>,
) -> Result<(), redb::Error> {
    let mut failed = Ok(());
    visit_runs(txn, user, after, tail, |run, first| {
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

/// Calls `visit` with every range in a user's queue after a sequence number, in order, until it returns `false`. The
/// second argument is the first sequence number of the range that follows the given one.
///
/// The cached tail may be older or newer than the transaction. A range that only the cache or only the transaction has
/// is visited if no message before the range is missing. Otherwise the visit ends before that range.
pub(super) fn visit_runs(
    txn: &ReadTransaction,
    user: UserId,
    after: u64,
    tail: Option<QueueRange>,
    mut visit: impl FnMut(QueueRange, u64) -> bool,
) -> Result<(), redb::Error> {
    let queues = txn.open_table(QUEUES)?;
    let mut tail = tail.filter(|run| run.count > 0);
    let Some(mut next) = after.checked_add(1) else {
        return Ok(());
    };
    let mut go = |run: QueueRange, begins: bool| -> bool {
        if begins {
            next = next.max(run.first);
        }
        if next >= run.first && next <= run.last() {
            let first = next;
            next = run.last() + 1;
            return visit(run, first);
        }
        // If a range begins later than expected, the messages before it are not visible yet.
        next >= run.first
    };
    let begin = queues.range((user.0, 0)..=(user.0, after + 1))?.next_back();
    let begin = begin
        .transpose()?
        .map_or((user.0, 0), |(place, _)| place.value());
    // Messages that all sessions have acknowledged were removed, so the first row may begin later.
    let mut is_first = true;
    for row in queues.range(begin..=(user.0, u64::MAX))? {
        let (place, row) = row?;
        let mut run = QueueRange::read(place.value(), row.value())?;
        if let Some(last) = tail {
            if last.first < run.first && !go(last, false) {
                return Ok(());
            }
            if last.first <= run.first {
                tail = None;
            }
            if last.first == run.first {
                run = if run.count < last.count { last } else { run };
            }
        }
        if !go(run, std::mem::take(&mut is_first)) {
            return Ok(());
        }
    }
    if let Some(last) = tail {
        go(last, false);
    }
    Ok(())
}
