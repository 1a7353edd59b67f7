//! Tests of removed and retained data: expiry, queues, compaction, copies.

use super::*;
use crate::model::SessionId;
use std::time::Duration;

const HOUR: u64 = 60 * 60 * 1000;

impl TestIndex {
    async fn send(&mut self, by: UserId, room: ConversationId, text: &str, at: u64) -> u64 {
        let command = Command::Send(Posting {
            sender: by,
            conversation: room,
            text: text.to_owned(),
            key: None,
            at: Millis(at),
        });
        number(&self.apply(command).await).0
    }

    async fn expire(&mut self, through: u64, most: u32) -> u32 {
        match self.apply(Command::Expire { through, most }).await {
            Ok(CommandResult::Expired(count)) => count,
            other => panic!("{other:?}"),
        }
    }

    async fn session(&mut self, user: UserId, number: u8, expires: u64) -> SessionId {
        let session = SessionId([number; 16]);
        let command = Command::OpenSession {
            user,
            session,
            proof: [0; 32],
            expires: Millis(expires),
        };
        self.apply(command).await.unwrap();
        session
    }

    async fn acknowledge(&mut self, user: UserId, session: SessionId, sequence: u64) {
        let acknowledged = Acknowledgement {
            user,
            session,
            sequence,
        };
        let command = Command::Acknowledge(vec![acknowledged]);
        self.apply(command).await.unwrap();
    }

    async fn rows(&self, of: UserId) -> usize {
        let rows = move |txn: &ReadTransaction| {
            let queues = txn.open_table(tables::QUEUES)?;
            Ok(queues.range((of.0, 0)..=(of.0, u64::MAX))?.count())
        };
        self.index.read(rows).await.unwrap()
    }

    async fn history(&self, room: ConversationId) -> Vec<u64> {
        let page = self.index.messages(room, 0, ALL, ALL).await.unwrap();
        page.items.iter().map(|message| message.number).collect()
    }

    /// Returns everything that a client could request.
    async fn all(&self, users: u64, rooms: u64) -> String {
        let mut all = String::new();
        for user in (1..=users).map(UserId) {
            let queue = self.index.queue(user, 0, ALL, ALL).await.unwrap();
            let name = self.index.name(user).await.unwrap();
            let rooms = self.index.conversations(user, ConversationId(0), ALL, ALL);
            all += &format!("{name:?} {queue:?} {:?}\n", rooms.await.unwrap());
        }
        for room in (1..=rooms).map(ConversationId) {
            let page = self.index.messages(room, 0, ALL, ALL).await.unwrap();
            all += &format!("{page:?}\n");
        }
        all + &format!("{:?}", self.index.stock().await.unwrap())
    }
}

// Guarantee: courier-16.
#[tokio::test]
async fn the_oldest_messages_go_and_numbers_and_sequences_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    let ([a, b, c], both, only) = fed.rooms().await;
    for turn in 0..10 {
        let at = (1 + turn) * HOUR;
        fed.send(a, both, "ahoy", at).await;
        fed.send(b, only, "ahoy", at).await;
    }
    let Stock { bytes, oldest } = fed.index.stock().await.unwrap();
    assert_eq!(oldest, Some((Chunk(1), Millis(HOUR))));
    // Messages are removed in bounded steps.
    assert_eq!(fed.expire(4, 3).await, 3);
    assert_eq!(fed.expire(4, 3).await, 3);
    assert_eq!(fed.expire(4, 3).await, 2);
    assert_eq!(fed.expire(4, 3).await, 0);
    assert_eq!(fed.history(both).await, (5..=10).collect::<Vec<_>>());
    assert_eq!(fed.history(only).await, (5..=10).collect::<Vec<_>>());
    let stock = fed.index.stock().await.unwrap();
    assert_eq!(stock.oldest, Some((Chunk(5), Millis(5 * HOUR))));
    assert_eq!(stock.bytes, bytes * 12 / 20);
    // A queue skips removed messages, and says up to which sequence number.
    let page = fed.index.queue(c, 0, 2, ALL).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|queued| queued.sequence).collect();
    assert_eq!((found, page.reached), (vec![5, 6], 6));
    let (unread, more) = fed.index.unread(b).await.unwrap();
    assert_eq!(unread.into_iter().collect::<Vec<_>>(), [(both, 6)]);
    assert!(!more);
    // All messages are removed. The numbers continue, also after a restart.
    while fed.expire(u64::MAX, 256).await > 0 {}
    let page = fed.index.queue(c, 0, 2, ALL).await.unwrap();
    assert_eq!((page.items.len(), page.reached), (0, 10));
    assert!(fed.index.unread(b).await.unwrap().0.is_empty());
    fed.close();
    let mut fed = TestIndex::open(Some(dir.path()));
    let stock = fed.index.stock().await.unwrap();
    assert_eq!((stock.bytes, stock.oldest), (0, None));
    assert_eq!(fed.send(a, both, "ahoy", 11 * HOUR).await, 11);
    let page = fed.index.queue(c, 0, 2, ALL).await.unwrap();
    assert_eq!(page.items[0].sequence, 11);
    fed.close();
}

// Guarantee: courier-16.
#[tokio::test]
async fn what_all_sessions_have_acknowledged_leaves_the_queue() {
    let mut fed = TestIndex::open(None);
    let ([a, b, _], both, only) = fed.rooms().await;
    let phone = fed.session(b, 1, 100).await;
    let desk = fed.session(b, 2, 50).await;
    for _ in 0..20 {
        fed.send(a, both, "ahoy", 1).await;
        fed.send(a, only, "ahoy", 1).await;
    }
    let before = fed.rows(b).await;
    assert!(before >= 38, "{before}");
    fed.acknowledge(b, phone, 30).await;
    assert_eq!(fed.rows(b).await, before);
    fed.acknowledge(b, desk, 20).await;
    assert_eq!(fed.rows(b).await, before - 20);
    let page = fed.index.queue(b, 0, 1, ALL).await.unwrap();
    assert_eq!(page.items[0].sequence, 21);
    let page = fed.index.queue(b, 25, 1, ALL).await.unwrap();
    assert_eq!(page.items[0].sequence, 26);
    // An expired session retains no messages. The log's time decides whether it has expired.
    fed.position += 1;
    let acknowledged = Acknowledgement {
        user: b,
        session: phone,
        sequence: 40,
    };
    let entry = Entry {
        position: fed.position,
        taken: Millis(60),
        command: Some(Command::Acknowledge(vec![acknowledged])),
        reply: None,
    };
    fed.feed.send(vec![entry]).unwrap();
    fed.index.reached(fed.position).await.unwrap();
    assert_eq!(fed.rows(b).await, 1);
    // The next sequence number is unchanged by the removal.
    fed.send(a, both, "ahoy", 1).await;
    let page = fed.index.queue(b, 0, ALL, ALL).await.unwrap();
    assert_eq!(page.items.last().unwrap().sequence, 41);
    fed.close();
}

// Guarantee: courier-17.
#[tokio::test]
async fn a_compaction_gives_room_back_and_loses_nothing_that_is_applied_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    let ([a, b, _], both, only) = fed.rooms().await;
    // Twelve megabytes give a file of at least sixteen, however many entries were applied at a time.
    let text = "x".repeat(4000);
    for turn in 0..3000 {
        fed.send(a, both, &text, turn).await;
    }
    while fed.expire(2, 256).await > 0 {}
    let index = fed.index.clone();
    let compaction = tokio::spawn(async move { index.compact().await });
    let mut last = 0;
    while !compaction.is_finished() {
        last = fed.send(b, only, "ahoy", 0).await;
        fed.send(a, both, "ahoy", 0).await;
        // A slow compaction must not be prolonged by new messages.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (before, after) = compaction.await.unwrap().unwrap();
    assert!(after < before * 2 / 3, "{before} {after}");
    assert_eq!(fed.history(only).await, (1..=last).collect::<Vec<_>>());
    fed.send(b, only, "ahoy", 0).await;
    let seen = fed.all(3, 2).await;
    fed.close();
    let fed = TestIndex::open(Some(dir.path()));
    assert_eq!(fed.all(3, 2).await, seen);
    assert_eq!(fed.history(only).await.len() as u64, last + 1);
    assert!(!dir.path().join("index.compact").exists());
    fed.close();
}

// Guarantee: courier-17.
#[tokio::test]
async fn a_copy_knows_what_was_applied_when_it_was_begun() {
    let dir = tempfile::tempdir().unwrap();
    let mut fed = TestIndex::open(Some(dir.path()));
    let ([a, b, _], both, only) = fed.rooms().await;
    for turn in 0..500 {
        fed.send(a, both, &turn.to_string(), turn * HOUR).await;
        fed.post(b, only, Some((turn % 200) as u8), turn * HOUR)
            .await
            .unwrap();
    }
    fed.expire(100, 77).await;
    let seen = fed.all(3, 2).await;
    let there = tempfile::tempdir().unwrap();
    let path = there.path().join(FILE);
    fed.index.copy_to(&path).await.unwrap();
    fed.send(a, both, "later", 0).await;
    fed.close();
    let copy = OpenedIndex::open(Some(there.path())).unwrap();
    copy.verify().unwrap();
    drop(copy);
    let copy = TestIndex::open(Some(there.path()));
    assert_eq!(copy.all(3, 2).await, seen);
    copy.close();
}

// Guarantee: courier-18.
#[tokio::test]
async fn members_come_and_go_and_a_pair_stays_two() {
    let mut fed = TestIndex::open(None);
    let ([a, b, c], _, room) = fed.rooms().await;
    let add = |by, users: &[UserId]| Command::AddMembers {
        by,
        conversation: room,
        users: users.to_vec(),
        most: 3,
    };
    let remove = |by, user| Command::RemoveMember {
        by,
        conversation: room,
        user,
    };
    let title = |by| Command::SetTitle {
        by,
        conversation: room,
        title: "the bay".to_owned(),
    };
    let unknown = Err(Refusal::UnknownConversation(room));
    for command in [add(c, &[c]), remove(c, c), title(c)] {
        assert_eq!(fed.apply(command).await, unknown);
    }
    let nobody = UserId(99);
    let refused = fed.apply(add(a, &[c, nobody])).await;
    assert_eq!(refused, Err(Refusal::UnknownUser(nobody)));
    fed.apply(add(b, &[c, a])).await.unwrap();
    fed.apply(title(c)).await.unwrap();
    let d = fed.user("d").await;
    let refused = fed.apply(add(a, &[d])).await;
    assert_eq!(refused, Err(Refusal::TooManyMembers(3)));
    fed.send(a, room, "ahoy", 0).await;
    let page = fed.index.queue(c, 0, ALL, ALL).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(fed.apply(remove(b, a)).await, Err(Refusal::NotCreator));
    fed.apply(remove(a, b)).await.unwrap();
    let refused = fed.apply(remove(a, b)).await;
    assert_eq!(refused, Err(Refusal::UnknownMember(b)));
    assert_eq!(fed.post(b, room, None, 0).await, unknown);
    fed.apply(remove(c, c)).await.unwrap();
    fed.send(a, room, "anybody?", 0).await;
    let page = fed.index.queue(c, 0, ALL, ALL).await.unwrap();
    assert_eq!(page.items.len(), 1);
    let titled = fed.index.title(room).await.unwrap();
    assert_eq!(titled.as_deref(), Some("the bay"));
    let pair = Command::BeginConversation {
        creator: a,
        recipients: vec![b],
        title: String::new(),
        key: None,
        pair: true,
        at: Millis(0),
    };
    let Ok(CommandResult::Conversation(pair)) = fed.apply(pair).await else {
        panic!("a new one")
    };
    let more = Command::AddMembers {
        by: a,
        conversation: pair,
        users: vec![c],
        most: 9,
    };
    assert_eq!(fed.apply(more).await, Err(Refusal::Pair));
    fed.close();
}
