//! Tests of the index alone, with commands from the test.

mod checkpoints;
mod keeping;
mod lines;

use super::*;
use crate::command::{
    Acknowledgement, Command, CommandResult, Delivery, Outcome, Posting, Refusal,
};
use crate::error::StartError;
use crate::log::{Entry, LogError};
use crate::model::{ConversationId, Millis, SessionId, UserId};
use crossbeam_channel::Sender;
use parking_lot::Mutex;
use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, TableHandle};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The limit of a page without a limit.
const ALL: usize = usize::MAX;
const DAY: u64 = 24 * 60 * 60 * 1000;

/// Records deliveries.
#[derive(Clone, Default)]
pub(super) struct RecordedDeliveries(Arc<Mutex<Vec<Delivery>>>);

impl Effects for RecordedDeliveries {
    fn deliver(&mut self, deliveries: &mut Vec<Delivery>) {
        self.0.lock().append(deliveries);
    }

    fn session_closed(&mut self, _: UserId, _: SessionId) {}

    fn conversation_changed(&mut self, _: ConversationId, _: &[UserId]) {}
}

pub(super) struct TestIndex {
    pub index: Index,
    thread: JoinHandle<()>,
    feed: Sender<Vec<Entry>>,
    kept: RecordedDeliveries,
    position: u64,
    checkpoints: Arc<Mutex<Vec<u64>>>,
}

impl TestIndex {
    pub fn open(dir: Option<&Path>) -> TestIndex {
        TestIndex::start(OpenedIndex::open(dir).unwrap())
    }

    fn start(opened: OpenedIndex) -> TestIndex {
        let position = opened.applied();
        let (feed, entries) = crossbeam_channel::bounded(4);
        let (kept, checkpoints) = (
            RecordedDeliveries::default(),
            Arc::<Mutex<Vec<u64>>>::default(),
        );
        let told = checkpoints.clone();
        let checkpoint = move |position| told.lock().push(position);
        let (index, thread) = opened.start(entries, kept.clone(), checkpoint).unwrap();
        TestIndex {
            index,
            thread,
            feed,
            kept,
            position,
            checkpoints,
        }
    }

    /// Applies one command.
    pub async fn apply(&mut self, command: Command) -> Outcome {
        self.position += 1;
        let (reply, outcome) = oneshot::channel();
        let entry = Entry {
            position: self.position,
            taken: command.time().unwrap_or_default(),
            command: Some(command),
            reply: Some(reply),
        };
        self.feed.send(vec![entry]).unwrap();
        outcome.await.unwrap().unwrap()
    }

    async fn user(&mut self, name: &str) -> UserId {
        let command = Command::CreateUser {
            name: name.to_owned(),
            password: "hash".to_owned(),
            at: Millis(0),
        };
        match self.apply(command).await {
            Ok(CommandResult::User(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    async fn room(&mut self, creator: UserId, recipients: &[UserId]) -> ConversationId {
        let command = Command::CreateConversation {
            creator,
            recipients: recipients.to_vec(),
            at: Millis(0),
        };
        match self.apply(command).await {
            Ok(CommandResult::Conversation(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    /// Creates three users, a conversation of the first user with both others, and one with the second only.
    pub async fn rooms(&mut self) -> ([UserId; 3], ConversationId, ConversationId) {
        let users = [
            self.user("a").await,
            self.user("b").await,
            self.user("c").await,
        ];
        let [a, b, c] = users;
        let both = self.room(a, &[b, c]).await;
        let only = self.room(a, &[b]).await;
        (users, both, only)
    }

    pub async fn post(
        &mut self,
        by: UserId,
        room: ConversationId,
        key: Option<u8>,
        at: u64,
    ) -> Outcome {
        let command = Command::Post(Posting {
            sender: by,
            conversation: room,
            text: "ahoy".to_owned(),
            key: key.map(|key| [key; 16]),
            at: Millis(at),
        });
        self.apply(command).await
    }

    pub fn close(self) {
        drop((self.index, self.feed));
        self.thread.join().unwrap();
    }
}

fn number(outcome: &Outcome) -> (u64, bool) {
    match outcome {
        Ok(CommandResult::Posted {
            number, repeated, ..
        }) => (*number, *repeated),
        other => panic!("{other:?}"),
    }
}

// Guarantee: courier-2.
#[tokio::test]
async fn each_recipients_sequences_have_no_gaps_whatever_the_conversation() {
    let mut fed = TestIndex::open(None);
    let ([a, b, c], both, only) = fed.rooms().await;
    for room in [both, only, both, only, only] {
        fed.post(a, room, None, 0).await.unwrap();
    }
    let page = fed.index.queue(b, 2, 2, ALL).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|queued| queued.sequence).collect();
    assert_eq!((found, page.more), (vec![3, 4], true));
    let kept = fed.kept.clone();
    // Answers come first. All messages are delivered when the thread ends.
    fed.close();
    let sequences = |of: UserId| -> Vec<u64> {
        let all = kept.0.lock();
        let own = all.iter().filter(|delivery| delivery.to == of);
        own.map(|delivery| delivery.sequence).collect()
    };
    assert_eq!(sequences(b), [1, 2, 3, 4, 5]);
    assert_eq!(sequences(c), [1, 2]);
    assert_eq!(sequences(a), [0; 0]);
}

#[tokio::test]
async fn a_reader_sees_what_was_applied_before() {
    let mut fed = TestIndex::open(None);
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    for expected in 1..=50 {
        fed.post(a, room, None, 0).await.unwrap();
        let page = fed.index.messages(room, 0, 100, ALL).await.unwrap();
        assert_eq!(page.items.len(), expected);
    }
    fed.close();
}

#[tokio::test]
async fn many_messages_of_several_conversations_are_all_there_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    let ([a, b, c], both, only) = fed.rooms().await;
    fed.post(a, only, Some(1), 7).await.unwrap();
    // More rows than are collected, in turn.
    for turn in 0..2500 {
        let room = if turn % 2 == 0 { both } else { only };
        fed.post(a, room, None, 8).await.unwrap();
    }
    // The message of a key may be unwritten, or may have been written long ago.
    fed.post(a, both, Some(2), 9).await.unwrap();
    for (room, key, expected, at) in [(only, 1, 1, 7), (both, 2, 1251, 9)] {
        let outcome = fed.post(a, room, Some(key), 10).await;
        let repeated = CommandResult::Posted {
            number: expected,
            sent: Millis(at),
            repeated: true,
        };
        assert_eq!(outcome, Ok(repeated));
    }
    fed.close();
    let fed = TestIndex::open(Some(dir.path()));
    for (room, count) in [(both, 1251), (only, 1251)] {
        let page = fed.index.messages(room, 0, 9999, ALL).await.unwrap();
        let numbers: Vec<_> = page.items.iter().map(|message| message.number).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>());
    }
    for (user, count) in [(b, 2502), (c, 1251)] {
        let page = fed.index.queue(user, 0, 9999, ALL).await.unwrap();
        let sequences: Vec<_> = page.items.iter().map(|queued| queued.sequence).collect();
        assert_eq!(sequences, (1..=count).collect::<Vec<_>>());
    }
    fed.close();
}

#[tokio::test]
async fn what_was_not_written_to_disk_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    fed.post(a, room, None, 0).await.unwrap();
    // As if the process were killed: only the data of a checkpoint are on disk.
    let copy = tempfile::tempdir().unwrap();
    let first = fed.checkpoints.lock().last().copied().unwrap_or(0);
    std::fs::copy(dir.path().join(FILE), copy.path().join(FILE)).unwrap();
    assert_eq!(
        OpenedIndex::open(Some(copy.path())).unwrap().applied(),
        first
    );
    let position = fed.position;
    let checkpoints = fed.checkpoints.clone();
    fed.close();
    assert_eq!(checkpoints.lock().last(), Some(&position));
    let fed = TestIndex::open(Some(dir.path()));
    assert_eq!(fed.position, position);
    assert_eq!(fed.index.queue(b, 0, 9, ALL).await.unwrap().items.len(), 1);
    fed.close();
}

#[tokio::test]
async fn keys_are_remembered_for_a_day_and_forgotten_after_three() {
    let mut fed = TestIndex::open(None);
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    for (key, at, expected) in [
        (1, 0, (1, false)),
        (1, DAY - 1, (1, true)),
        (2, DAY, (2, false)),
        (1, DAY, (1, true)),
        // A clock that goes back forgets no keys.
        (2, 0, (2, true)),
        (3, 2 * DAY, (3, false)),
        (1, 2 * DAY, (1, true)),
        (4, 3 * DAY, (4, false)),
        (1, 3 * DAY, (5, false)),
        (2, 3 * DAY, (2, true)),
    ] {
        let found = number(&fed.post(a, room, Some(key), at).await);
        assert_eq!(found, expected, "key {key} at {at}");
    }
    fed.close();
}

// Guarantee: courier-4.
#[tokio::test]
async fn a_clock_that_is_three_days_ahead_once_empties_no_keys() {
    let mut fed = TestIndex::open(None);
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    assert_eq!(number(&fed.post(a, room, Some(1), DAY).await), (1, false));
    assert_eq!(
        number(&fed.post(a, room, Some(2), 4 * DAY).await),
        (2, false)
    );
    assert_eq!(
        number(&fed.post(a, room, Some(1), DAY + 1).await),
        (1, true)
    );
    assert_eq!(
        number(&fed.post(a, room, Some(3), DAY + 1).await),
        (3, false)
    );
    assert_eq!(
        number(&fed.post(a, room, Some(1), 2 * DAY).await),
        (1, true)
    );
    fed.close();
}

// Guarantee: courier-4.
#[tokio::test]
async fn after_a_clock_that_was_a_year_ahead_keys_are_forgotten_as_before() {
    let mut fed = TestIndex::open(None);
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    let days = [1, 2, 367, 2, 3, 2, 367, 3, 4, 5, 6];
    for (place, day) in (0u8..).zip(days) {
        fed.post(a, room, Some(place), day * DAY).await.unwrap();
    }
    let keys = |txn: &ReadTransaction| {
        let tables = txn.list_tables()?;
        let names = tables.map(|table| table.name().to_owned());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("keys_")).collect();
        names.sort();
        Ok(names)
    };
    let tables = fed.index.read(keys).await.unwrap();
    assert_eq!(tables, ["keys_4", "keys_5", "keys_6"]);
    assert_eq!(
        number(&fed.post(a, room, Some(8), 6 * DAY).await),
        (9, true)
    );
    assert_eq!(
        number(&fed.post(a, room, Some(0), 6 * DAY).await),
        (12, false)
    );
    fed.close();
}

#[tokio::test]
async fn readers_find_all_tables_before_anything_was_applied() {
    let opened = OpenedIndex::open(None).unwrap();
    let txn = opened.database.begin_read().unwrap();
    assert!(txn.open_table(tables::NAMES).is_ok());
}

#[tokio::test]
async fn of_too_many_sessions_the_one_that_ends_first_goes() {
    let mut fed = TestIndex::open(None);
    let user = fed.user("a").await;
    let most = crate::command::MOST_SESSIONS as u8;
    for number in 0..=most {
        // The third session ends before the others.
        let ends = if number == 2 {
            1
        } else {
            1000 - u64::from(number)
        };
        let command = Command::LogIn {
            user,
            session: SessionId([number; 16]),
            proof: [0; 32],
            expires: Millis(ends),
            at: Millis(0),
        };
        fed.apply(command).await.unwrap();
    }
    let all = fed.index.sessions(user).await.unwrap();
    assert_eq!(all.len(), usize::from(most));
    assert!(all.iter().all(|(id, _)| *id != SessionId([2; 16])));
    fed.apply(Command::CloseOtherSessions {
        user,
        kept: Some(SessionId([5; 16])),
    })
    .await
    .unwrap();
    let left = fed.index.sessions(user).await.unwrap();
    assert_eq!(left[0].0, SessionId([5; 16]));
    assert_eq!(left.len(), 1);
    fed.close();
}

// Guarantee: courier-10.
#[tokio::test]
async fn a_message_to_many_costs_no_row_for_each_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    let mut users = Vec::new();
    for number in 0..50 {
        users.push(fed.user(&format!("user{number}")).await);
    }
    let room = fed.room(users[0], &users[1..]).await;
    let other = fed.room(users[1], &[users[2]]).await;
    let mut expected = 0;
    for turn in 0..600 {
        fed.post(users[0], room, None, 0).await.unwrap();
        expected += 1;
        if turn % 200 == 100 {
            fed.post(users[1], other, None, 0).await.unwrap();
            expected += 1;
            // Rows that have not been written can be read.
            let page = fed.index.queue(users[2], 0, 9999, ALL).await.unwrap();
            assert_eq!(page.items.len(), expected);
        }
    }
    fed.close();
    let fed = TestIndex::open(Some(dir.path()));
    let page = fed.index.queue(users[2], 0, 9999, ALL).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|queued| queued.sequence).collect();
    assert_eq!(found, (1..=expected as u64).collect::<Vec<_>>());
    let last = page.items.last().unwrap();
    assert_eq!(
        (last.message.conversation, last.message.number),
        (room, 600)
    );
    for after in 0..expected as u64 {
        let page = fed.index.queue(users[2], after, 1, ALL).await.unwrap();
        assert_eq!(page.items[0].sequence, after + 1);
    }
    let rows = |txn: &ReadTransaction| Ok(txn.open_table(tables::QUEUES)?.iter()?.count());
    let rows = fed.index.read(rows).await.unwrap();
    // One range for each recipient, and three more rows for each of the two users with other messages.
    assert!(rows < 70, "{rows} rows for {} deliveries", 600 * 49);
    fed.close();
}

#[tokio::test]
async fn a_page_is_bounded_in_bytes_and_has_one_item_at_least() {
    let mut fed = TestIndex::open(None);
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    for _ in 0..10 {
        let command = Command::Post(Posting {
            sender: a,
            conversation: room,
            text: "\u{1}".repeat(1000),
            key: None,
            at: Millis(0),
        });
        fed.apply(command).await.unwrap();
    }
    // As JSON each message has six thousand bytes.
    let page = fed.index.messages(room, 0, 500, 20_000).await.unwrap();
    assert_eq!((page.items.len(), page.more), (3, true));
    let page = fed.index.messages(room, 9, 500, 1).await.unwrap();
    assert_eq!((page.items.len(), page.more), (1, false));
    let page = fed.index.queue(b, 0, 500, 20_000).await.unwrap();
    assert_eq!((page.items.len(), page.more), (3, true));
    fed.close();
}

// Guarantee: courier-13.
#[tokio::test]
async fn a_damaged_row_is_an_error_and_not_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    fed.post(a, room, None, 0).await.unwrap();
    fed.close();
    let database = Database::create(dir.path().join(FILE)).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let mut messages = txn.open_table(tables::MESSAGES).unwrap();
        let mut row = messages.get((room.0, 1)).unwrap().unwrap().value().to_vec();
        *row.last_mut().unwrap() ^= 1;
        messages.insert((room.0, 1), row.as_slice()).unwrap();
    }
    txn.commit().unwrap();
    drop(database);
    let fed = TestIndex::open(Some(dir.path()));
    let said = fed.index.messages(room, 0, 9, ALL).await.unwrap_err();
    assert!(
        said.to_string().contains("damaged: message [1, 1]"),
        "{said}"
    );
    assert!(fed.index.queue(b, 0, 9, ALL).await.is_err());
    fed.close();
}

#[test]
fn an_index_that_has_applied_more_than_its_log_holds_is_refused() {
    let mut opened = OpenedIndex::open(None).unwrap();
    opened.state.position = 7;
    assert!(opened.follows(7).is_ok());
    let said = opened.follows(6).unwrap_err().to_string();
    assert!(said.contains("has lost entries"), "{said}");
}

// Guarantee: courier-3.
#[tokio::test]
async fn acknowledgements_only_go_forward_and_never_ahead() {
    let mut fed = TestIndex::open(None);
    let (a, b) = (fed.user("a").await, fed.user("b").await);
    let room = fed.room(a, &[b]).await;
    for _ in 0..5 {
        fed.post(a, room, None, 0).await.unwrap();
    }
    let (one, other) = (SessionId([1; 16]), SessionId([2; 16]));
    let open = |session| Command::OpenSession {
        user: b,
        session,
        proof: [0; 32],
        expires: Millis(1),
    };
    fed.apply(open(one)).await.unwrap();
    for (sequence, expected) in [(3, 3), (2, 3), (6, 3), (5, 5)] {
        let acknowledgement = Acknowledgement {
            user: b,
            session: one,
            sequence,
        };
        let command = Command::Acknowledge(vec![acknowledgement]);
        fed.apply(command).await.unwrap();
        let position = fed.index.position(b, one).await.unwrap();
        assert_eq!((position.acknowledged, position.last), (expected, 5));
    }
    // A new session of the user resumes at the highest acknowledgement.
    fed.apply(open(other)).await.unwrap();
    let position = fed.index.position(b, other).await.unwrap();
    assert_eq!(position.acknowledged, 5);
    fed.close();
}

#[tokio::test]
async fn what_is_refused_changes_nothing() {
    let mut fed = TestIndex::open(None);
    let (a, b, c) = (
        fed.user("a").await,
        fed.user("b").await,
        fed.user("c").await,
    );
    let room = fed.room(a, &[b]).await;
    let refused = fed.post(c, room, None, 0).await;
    assert_eq!(refused, Err(Refusal::UnknownConversation(room)));
    let nowhere = ConversationId(9);
    let refused = fed.post(a, nowhere, Some(1), 0).await;
    assert_eq!(refused, Err(Refusal::UnknownConversation(nowhere)));
    assert_eq!(number(&fed.post(a, room, Some(1), 0).await), (1, false));
    assert_eq!(number(&fed.post(a, room, None, 0).await), (2, false));
    fed.close();
}

// Guarantee: courier-11.
#[test]
fn an_index_that_has_applied_nothing_belongs_to_the_log_that_it_has_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = OpenedIndex::open(Some(dir.path())).unwrap();
    opened.adopt(7).unwrap();
    drop(opened);
    let mut opened = OpenedIndex::open(Some(dir.path())).unwrap();
    opened.adopt(8).unwrap();
    opened.record_log().unwrap();
    drop(opened);
    let mut opened = OpenedIndex::open(Some(dir.path())).unwrap();
    opened.adopt(8).unwrap();
    let said = opened.adopt(9).unwrap_err().to_string();
    assert!(said.contains("another log"), "{said}");
}

#[tokio::test]
async fn an_index_belongs_to_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    fed.user("a").await;
    fed.close();
    let mut opened = OpenedIndex::open(Some(dir.path())).unwrap();
    opened.adopt(0).unwrap();
    let said = opened.adopt(7).unwrap_err().to_string();
    assert!(said.contains("another log"), "{said}");
}

#[test]
fn an_index_is_open_once() {
    let dir = tempfile::tempdir().unwrap();
    let _open = OpenedIndex::open(Some(dir.path())).unwrap();
    let said = OpenedIndex::open(Some(dir.path())).map(drop).unwrap_err();
    assert!(matches!(said, StartError::InUse { .. }), "{said}");
}

#[test]
fn a_file_that_is_no_index_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE), "not a database".repeat(1000)).unwrap();
    let said = OpenedIndex::open(Some(dir.path())).map(drop).unwrap_err();
    assert!(said.to_string().contains(FILE), "{said}");
}
