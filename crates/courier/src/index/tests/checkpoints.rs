//! Tests of answers while a checkpoint is being written to disk.

use super::*;
use crate::index::machine::State;
use crate::index::opened::make_tables;
use crate::model::SessionId;
use parking_lot::Condvar;
use redb::StorageBackend;
use redb::backends::InMemoryBackend;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A disk that syncs only while the gate is open.
#[derive(Clone, Debug, Default)]
struct Gate(Arc<(Mutex<Syncs>, Condvar)>);

#[derive(Debug, Default)]
struct Syncs {
    closed: bool,
    waiting: bool,
}

impl Gate {
    fn close(&self) {
        self.0.0.lock().closed = true;
    }

    fn open(&self) {
        self.0.0.lock().closed = false;
        self.0.1.notify_all();
    }

    /// Waits until a sync is blocked.
    fn reached(&self) {
        let mut syncs = self.0.0.lock();
        while !syncs.waiting {
            self.0.1.wait(&mut syncs);
        }
    }

    fn pass(&self) {
        let mut syncs = self.0.0.lock();
        while syncs.closed {
            syncs.waiting = true;
            self.0.1.notify_all();
            self.0.1.wait(&mut syncs);
        }
        syncs.waiting = false;
    }
}

#[derive(Debug)]
struct SlowDisk {
    memory: InMemoryBackend,
    gate: Gate,
}

impl StorageBackend for SlowDisk {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.memory.write(offset, data)
    }
}

/// Creates an index on a disk whose syncs can be blocked.
fn on_slow_disk() -> (TestIndex, Gate) {
    let gate = Gate::default();
    let disk = SlowDisk {
        memory: InMemoryBackend::new(),
        gate: gate.clone(),
    };
    let database = Database::builder().create_with_backend(disk).unwrap();
    make_tables(&database).unwrap();
    let opened = OpenedIndex {
        path: PathBuf::from("(slow)"),
        cache: CACHE,
        in_memory: true,
        database,
        state: State::default(),
    };
    (TestIndex::start(opened), gate)
}

impl TestIndex {
    /// Starts a checkpoint, which cannot end while the gate is closed.
    async fn begin_checkpoint(&mut self, gate: &Gate) {
        // Enough entries without effect for a checkpoint.
        let nothing = |position| Entry {
            position,
            taken: Millis(0),
            command: None,
            reply: None,
        };
        let many = self.position + 1..=self.position + (1 << 16);
        self.position = *many.end();
        self.feed.send(many.map(nothing).collect()).unwrap();
        // The current transaction ends, and the next one must go to disk.
        self.index.reached(self.position).await.unwrap();
        self.index.read(|_| Ok(())).await.unwrap();
        gate.close();
        self.position += 1;
        self.feed.send(vec![nothing(self.position)]).unwrap();
        gate.reached();
    }

    /// Submits a command whose outcome is read later.
    fn submit(&mut self, command: Command) -> oneshot::Receiver<Result<Outcome, LogError>> {
        self.position += 1;
        let (reply, outcome) = oneshot::channel();
        let entry = Entry {
            position: self.position,
            taken: Millis(0),
            command: Some(command),
            reply: Some(reply),
        };
        self.feed.send(vec![entry]).unwrap();
        outcome
    }
}

// Guarantee: courier-15.
#[tokio::test]
async fn messages_are_taken_while_a_checkpoint_waits_for_the_disk() {
    let (mut fed, gate) = on_slow_disk();
    let ([a, b, c], both, only) = fed.rooms().await;
    fed.post(a, both, Some(1), 0).await.unwrap();
    fed.post(b, only, Some(2), 0).await.unwrap();
    fed.begin_checkpoint(&gate).await;
    // The disk is blocked, but these posts are answered.
    for turn in 2..=20 {
        assert_eq!(number(&fed.post(a, both, None, 0).await), (turn, false));
        let key = Some(100 + turn as u8);
        assert_eq!(number(&fed.post(b, only, key, 0).await), (turn, false));
    }
    // An acknowledgement is deferred, and later posts do not wait for it.
    let session = SessionId([7; 16]);
    let acknowledged = Acknowledgement {
        user: c,
        session,
        sequence: 3,
    };
    let noted = fed.submit(Command::Acknowledge(vec![acknowledged]));
    assert_eq!(number(&fed.post(a, both, None, 0).await), (21, false));
    // The check of a used key needs the table of messages, so it and all later commands wait.
    let command = |key: u8| {
        Command::Post(Posting {
            sender: b,
            conversation: only,
            text: "ahoy".to_owned(),
            key: Some([key; 16]),
            at: Millis(0),
        })
    };
    let mut again = fed.submit(command(105));
    let user = fed.submit(Command::CreateUser {
        name: "d".to_owned(),
        password: String::new(),
        at: Millis(0),
    });
    let after = fed.submit(command(200));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(again.try_recv().is_err());
    gate.open();
    assert_eq!(number(&again.await.unwrap().unwrap()), (5, true));
    assert_eq!(
        user.await.unwrap().unwrap(),
        Ok(CommandResult::User(UserId(4)))
    );
    assert_eq!(number(&after.await.unwrap().unwrap()), (21, false));
    assert_eq!(noted.await.unwrap().unwrap(), Ok(CommandResult::Noted));
    // Each message is in the tables once.
    for (room, last) in [(both, 21), (only, 21)] {
        let page = fed.index.messages(room, 0, ALL, ALL).await.unwrap();
        let found: Vec<_> = page.items.iter().map(|message| message.number).collect();
        assert_eq!(found, (1..=last).collect::<Vec<_>>());
    }
    let page = fed.index.queue(c, 0, ALL, ALL).await.unwrap();
    let found: Vec<_> = page.items.iter().map(|queued| queued.sequence).collect();
    assert_eq!(found, (1..=21).collect::<Vec<_>>());
    let (unread, _) = fed.index.unread(c).await.unwrap();
    assert_eq!(unread.into_iter().collect::<Vec<_>>(), [(both, 18)]);
    fed.close();
}

// Guarantee: courier-15.
#[tokio::test]
async fn what_was_taken_beside_the_last_checkpoint_can_be_read_and_is_there_after_it() {
    let (mut fed, gate) = on_slow_disk();
    let ([a, b, _], _, only) = fed.rooms().await;
    fed.post(a, only, Some(1), 0).await.unwrap();
    fed.begin_checkpoint(&gate).await;
    fed.post(a, only, Some(2), 0).await.unwrap();
    let index = fed.index.clone();
    let read = tokio::spawn(async move { index.queue(b, 0, ALL, ALL).await });
    gate.open();
    assert_eq!(read.await.unwrap().unwrap().items.len(), 2);
    assert_eq!(number(&fed.post(a, only, Some(2), 0).await), (2, true));
    fed.close();
}

// Guarantee: courier-15.
#[tokio::test]
async fn messages_are_taken_beside_a_checkpoint_that_is_due_while_nothing_comes() {
    let (mut fed, gate) = on_slow_disk();
    let ([a, _, _], both, _) = fed.rooms().await;
    fed.post(a, both, None, 0).await.unwrap();
    gate.close();
    gate.reached();
    for turn in 2..=20 {
        let posted = tokio::time::timeout(Duration::from_secs(20), fed.post(a, both, None, 0));
        assert_eq!(number(&posted.await.unwrap()), (turn, false));
    }
    gate.open();
    fed.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_taken_beside_the_commit_that_a_copy_begins_with_and_are_not_in_it() {
    let (mut fed, gate) = on_slow_disk();
    let ([a, _, _], both, _) = fed.rooms().await;
    fed.post(a, both, None, 0).await.unwrap();
    let known = fed.position;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    gate.close();
    let index = fed.index.clone();
    let copying = tokio::spawn(async move { index.copy_to(&path).await });
    gate.reached();
    for turn in 2..=20 {
        assert_eq!(number(&fed.post(a, both, None, 0).await), (turn, false));
    }
    gate.open();
    assert_eq!(copying.await.unwrap().unwrap(), known);
    let page = fed.index.messages(both, 0, ALL, ALL).await.unwrap();
    assert_eq!(page.items.len(), 20);
    fed.close();
    let copy = OpenedIndex::open(Some(dir.path())).unwrap();
    assert_eq!(copy.applied(), known);
}
