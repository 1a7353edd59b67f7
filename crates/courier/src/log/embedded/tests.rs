//! The log by itself.

use super::*;
use crate::command::Done;
use crate::model::SessionId;
use crossbeam_channel::{Receiver, bounded};
use std::time::Duration;
use tokio::sync::oneshot;

/// A command that can be told from others.
fn command(number: u64) -> Command {
    let mut session = [0; 16];
    session[..8].copy_from_slice(&number.to_le_bytes());
    Command::CloseSession {
        user: crate::model::UserId(number),
        session: SessionId(session),
    }
}

fn open(dir: &Path, after: u64) -> (Embedded, Receiver<Vec<Entry>>, JoinHandle<()>) {
    let (feed, entries) = bounded(1 << 10);
    let prepared = Prepared::open(Some(dir), after).unwrap();
    let (log, thread) = prepared.start(feed, Counter::default()).unwrap();
    (log, entries, thread)
}

/// Takes entries until the feed ends.
fn rest(entries: &Receiver<Vec<Entry>>) -> Vec<(u64, Command)> {
    let all = entries.iter().flatten();
    all.map(|entry| (entry.position, entry.command.unwrap()))
        .collect()
}

fn expected(positions: std::ops::RangeInclusive<u64>) -> Vec<(u64, Command)> {
    positions
        .map(|position| (position, command(position)))
        .collect()
}

#[test]
fn what_was_submitted_comes_out_in_order_and_again_after_it_was_opened_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    for number in 1..=100 {
        log.submit(command(number), oneshot::channel().0).unwrap();
    }
    log.close();
    thread.join().unwrap();
    assert_eq!(rest(&entries), expected(1..=100));
    // The index had come to 40.
    let (log, entries, thread) = open(dir.path(), 40);
    log.submit(command(101), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    assert_eq!(rest(&entries), expected(41..=101));
}

#[test]
fn many_commands_become_durable_together() {
    let dir = tempfile::tempdir().unwrap();
    let (feed, entries) = bounded(1 << 14);
    let groups = Counter::default();
    let prepared = Prepared::open(Some(dir.path()), 0).unwrap();
    let (log, thread) = prepared.start(feed, groups.clone()).unwrap();
    for number in 1..=10_000 {
        log.submit(command(number), oneshot::channel().0).unwrap();
    }
    let mut came = 0;
    while came < 10_000 {
        came += entries.recv_timeout(Duration::from_secs(20)).unwrap().len();
    }
    // A commit each would be ten thousand.
    assert!(groups.get() < 2_000, "{}", groups.get());
    log.close();
    thread.join().unwrap();
}

#[test]
fn segments_that_are_not_needed_are_dropped_and_the_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    let count = (3 << SEGMENT_BITS) + 10;
    for number in 1..=count {
        log.submit(command(number), oneshot::channel().0).unwrap();
    }
    let mut came = 0;
    while came < count {
        came += entries.recv_timeout(Duration::from_secs(60)).unwrap().len() as u64;
    }
    let known = (2 << SEGMENT_BITS) + LARGEST_GROUP as u64;
    log.forget(known);
    log.submit(command(count + 1), oneshot::channel().0)
        .unwrap();
    log.close();
    thread.join().unwrap();
    drop(entries);
    let path = dir.path().join(FILE);
    let database = Database::create(&path).unwrap();
    let txn = database.begin_read().unwrap();
    let mut names: Vec<_> = txn
        .list_tables()
        .unwrap()
        .map(|table| table.name().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["log_2", "log_3", "meta"]);
    drop(txn);
    drop(database);
    let (log, entries, thread) = open(dir.path(), known);
    log.close();
    thread.join().unwrap();
    let last = rest(&entries);
    assert_eq!(last.first().unwrap().0, known + 1);
    assert_eq!(last.last().unwrap().0, count + 1);
    // What an earlier process had no time to drop goes with the next group.
    let (log, _entries, thread) = open(dir.path(), count + 1 + LARGEST_GROUP as u64);
    log.submit(command(0), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    let database = Database::create(&path).unwrap();
    let txn = database.begin_read().unwrap();
    assert_eq!(txn.list_tables().unwrap().count(), 2);
}

#[test]
fn a_gap_in_the_log_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _entries, thread) = open(dir.path(), 5);
    log.submit(command(6), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    // An index that knows less than the log once forgot.
    let said = Prepared::open(Some(dir.path()), 2).map(drop).unwrap_err();
    assert!(said.to_string().contains("goes on at 6 where 3"), "{said}");
}

#[tokio::test]
async fn what_is_submitted_after_the_end_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    let (reply, outcome) = oneshot::channel();
    log.submit(command(1), reply).unwrap();
    log.close();
    thread.join().unwrap();
    let entry = entries.recv().unwrap().pop().unwrap();
    entry.reply.unwrap().send(Ok(Ok(Done::Noted))).unwrap();
    assert!(outcome.await.unwrap().is_ok());
    let (reply, outcome) = oneshot::channel();
    let refused = log.submit(command(2), reply).is_err();
    assert!(refused || outcome.await.is_err());
}

#[test]
fn a_log_keeps_its_identity_and_no_other_log_has_it() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let identity = |dir: &Path| Prepared::open(Some(dir), 0).unwrap().identity();
    let first = identity(one.path());
    assert_eq!(identity(one.path()), first);
    assert_ne!(identity(other.path()), first);
}

#[test]
fn a_damaged_entry_is_found_when_the_log_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _entries, thread) = open(dir.path(), 0);
    log.submit(command(1), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    let database = Database::create(dir.path().join(FILE)).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let mut table = txn.open_table(segment("log_0")).unwrap();
        let mut row = table.get(1).unwrap().unwrap().value().to_vec();
        *row.last_mut().unwrap() ^= 1;
        table.insert(1, row.as_slice()).unwrap();
    }
    txn.commit().unwrap();
    drop(database);
    let said = Prepared::open(Some(dir.path()), 0).map(drop).unwrap_err();
    assert!(
        said.to_string().contains("entry 1 of the log is damaged"),
        "{said}"
    );
}
