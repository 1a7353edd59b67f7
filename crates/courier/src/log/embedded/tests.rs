//! Tests of the log alone.

use super::*;
use crate::command::CommandResult;
use crate::model::{ConversationId, SessionId, UserId};
use crossbeam_channel::{Receiver, bounded};
use std::time::Duration;
use tokio::sync::oneshot;

/// Returns a command that differs for each number.
fn command(number: u64) -> Command {
    let mut session = [0; 16];
    session[..8].copy_from_slice(&number.to_le_bytes());
    Command::CloseSession {
        user: UserId(number),
        session: SessionId(session),
    }
}

fn open(dir: &Path, after: u64) -> (Embedded, Receiver<Vec<Entry>>, JoinHandle<()>) {
    let (feed, entries) = bounded(1 << 10);
    let prepared = OpenedLog::open(Some(dir), after).unwrap();
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
    // The index has applied 40 entries.
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
    let prepared = OpenedLog::open(Some(dir.path()), 0).unwrap();
    let (log, thread) = prepared.start(feed, groups.clone()).unwrap();
    for number in 1..=10_000 {
        log.submit(command(number), oneshot::channel().0).unwrap();
    }
    let mut came = 0;
    while came < 10_000 {
        came += entries.recv_timeout(Duration::from_secs(20)).unwrap().len();
    }
    // A commit for each command would be ten thousand.
    assert!(groups.get() < 2_000, "{}", groups.get());
    log.close();
    thread.join().unwrap();
}

/// Returns the files of the log in order.
fn files(data: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(data.join(DIRECTORY)).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// A command that takes 256 KiB.
fn long() -> Command {
    Command::SetTitle {
        by: UserId(1),
        conversation: ConversationId(1),
        title: "x".repeat(256 << 10),
    }
}

/// Submits commands, each in a separate group. Returns the position of the last.
fn submit_one_by_one(
    log: &Embedded,
    entries: &Receiver<Vec<Entry>>,
    commands: impl Iterator<Item = Command>,
) -> u64 {
    let mut last = 0;
    for command in commands {
        log.submit(command, oneshot::channel().0).unwrap();
        let came = entries.recv_timeout(Duration::from_secs(20)).unwrap();
        last = came.last().unwrap().position;
    }
    last
}

#[test]
fn files_that_are_not_needed_are_removed_and_the_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    // Three files of 16 MiB and a part of a fourth.
    let last = submit_one_by_one(&log, &entries, (0..200).map(|_| long()));
    let all = files(dir.path());
    assert_eq!(all.len(), 4);
    let begin = |path: &Path| -> u64 {
        let name = path.file_stem().unwrap().to_str().unwrap();
        name.parse().unwrap()
    };
    // Only the last entry of the second file is needed.
    let known = begin(&all[2]) - 2;
    log.forget(known);
    assert_eq!(
        submit_one_by_one(&log, &entries, std::iter::once(command(9))),
        last + 1
    );
    assert_eq!(files(dir.path()), all[1..]);
    log.close();
    thread.join().unwrap();
    let (log, entries, thread) = open(dir.path(), known);
    log.forget(last);
    log.submit(command(10), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    let left = rest(&entries);
    let positions = left.iter().map(|&(position, _)| position);
    assert!(positions.eq(known + 1..=last + 2));
    assert_eq!(
        left[left.len() - 2..],
        [(last + 1, command(9)), (last + 2, command(10))]
    );
    assert_eq!(files(dir.path()), all[3..]);
}

// Guarantee: courier-11.
#[test]
fn a_file_that_is_lost_is_missed_wherever_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    submit_one_by_one(&log, &entries, (0..140).map(|_| long()));
    log.close();
    thread.join().unwrap();
    let all = files(dir.path());
    assert_eq!(all.len(), 3);
    for (lost, wanted) in all
        .iter()
        .zip(["expected entry 1", "expected entry", "is missing"])
    {
        let aside = dir.path().join("aside");
        std::fs::rename(lost, &aside).unwrap();
        let said = OpenedLog::open(Some(dir.path()), 0).map(drop).unwrap_err();
        assert!(said.to_string().contains(wanted), "{said}");
        std::fs::rename(&aside, lost).unwrap();
    }
    assert!(OpenedLog::open(Some(dir.path()), 0).is_ok());
}

// Guarantee: courier-1.
#[test]
fn a_log_that_ends_anywhere_has_the_groups_before_and_goes_on_after_them() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    submit_one_by_one(&log, &entries, (1..=12).map(command));
    log.close();
    thread.join().unwrap();
    let file = files(dir.path()).remove(0);
    let whole = std::fs::read(&file).unwrap();
    let mut before = 12;
    for length in (corsair_journal::HEADER..=whole.len()).rev() {
        std::fs::write(&file, &whole[..length]).unwrap();
        let last = OpenedLog::open(Some(dir.path()), 0).unwrap().last();
        assert!(last == before || last + 1 == before, "{length}");
        if last == before {
            continue;
        }
        before = last;
        // The remaining bytes of the record after the cut do not become part of the new record.
        let (log, entries, thread) = open(dir.path(), 0);
        log.submit(command(1000), oneshot::channel().0).unwrap();
        log.close();
        thread.join().unwrap();
        let mut wanted = expected(1..=last);
        wanted.push((last + 1, command(1000)));
        assert_eq!(rest(&entries), wanted);
        let again = OpenedLog::open(Some(dir.path()), 0).unwrap();
        assert_eq!(again.last(), last + 1);
    }
    assert_eq!(before, 0);
}

#[test]
fn a_node_that_is_killed_leaves_zeros_after_which_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    let last = submit_one_by_one(&log, &entries, (1..=3).map(command));
    // A copy of the files while the log is open.
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join(DIRECTORY)).unwrap();
    let file = files(dir.path()).remove(0);
    let to = copy.path().join(DIRECTORY).join(file.file_name().unwrap());
    std::fs::copy(&file, &to).unwrap();
    assert!(std::fs::metadata(&to).unwrap().len() >= 1 << 20);
    log.close();
    thread.join().unwrap();
    let (log, entries, thread) = open(copy.path(), 1);
    log.submit(command(last + 1), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    assert_eq!(rest(&entries), expected(2..=4));
}

// Guarantee: courier-1.
#[test]
fn what_a_log_of_an_earlier_version_holds_goes_on_in_files_even_if_that_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let groups = [
        vec![command(1), command(2)],
        vec![command(3)],
        vec![command(4), command(5)],
    ];
    before::tests::write(dir.path(), 77, &groups);
    let database = std::fs::read(dir.path().join(before::FILE)).unwrap();
    // The index has applied one entry.
    let (log, entries, thread) = open(dir.path(), 1);
    log.submit(command(6), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    assert_eq!(rest(&entries), expected(2..=6));
    assert!(!dir.path().join(before::FILE).exists());
    // The old file is still there, as if its removal had been interrupted.
    std::fs::write(dir.path().join(before::FILE), database).unwrap();
    assert_eq!(OpenedLog::open(Some(dir.path()), 1).unwrap().identity(), 77);
    let (log, entries, thread) = open(dir.path(), 2);
    log.close();
    thread.join().unwrap();
    assert_eq!(rest(&entries), expected(3..=6));
    assert!(!dir.path().join(before::FILE).exists());
}

#[test]
fn a_gap_in_the_log_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _entries, thread) = open(dir.path(), 5);
    log.submit(command(6), oneshot::channel().0).unwrap();
    log.close();
    thread.join().unwrap();
    // The index has applied fewer entries than the log has forgotten.
    let said = OpenedLog::open(Some(dir.path()), 2).map(drop).unwrap_err();
    assert!(
        said.to_string()
            .contains("continues at entry 6; expected entry 3"),
        "{said}"
    );
}

#[tokio::test]
async fn what_is_submitted_after_the_end_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    let (reply, outcome) = oneshot::channel();
    log.submit(command(1), reply).unwrap();
    log.close();
    thread.join().unwrap();
    let entry = entries.recv().unwrap().pop().unwrap();
    entry
        .reply
        .unwrap()
        .send(Ok(Ok(CommandResult::Noted)))
        .unwrap();
    assert!(outcome.await.unwrap().is_ok());
    let (reply, outcome) = oneshot::channel();
    let refused = log.submit(command(2), reply).is_err();
    assert!(refused || outcome.await.is_err());
}

#[test]
fn a_log_keeps_its_identity_and_no_other_log_has_it() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let identity = |dir: &Path| {
        let prepared = OpenedLog::open(Some(dir), 0).unwrap();
        let identity = prepared.identity();
        let (feed, _entries) = bounded(1);
        let (log, thread) = prepared.start(feed, Counter::default()).unwrap();
        log.close();
        thread.join().unwrap();
        identity
    };
    let first = identity(one.path());
    assert_eq!(identity(one.path()), first);
    assert_ne!(identity(other.path()), first);
}

// Guarantee: courier-13.
#[test]
fn a_damaged_entry_is_found_when_the_log_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let (log, entries, thread) = open(dir.path(), 0);
    submit_one_by_one(&log, &entries, (1..=3).map(command));
    log.close();
    thread.join().unwrap();
    let file = files(dir.path()).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[corsair_journal::HEADER + 30] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let said = OpenedLog::open(Some(dir.path()), 0).map(drop).unwrap_err();
    assert!(said.to_string().contains("entry 1 is damaged"), "{said}");
    bytes[4] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let said = OpenedLog::open(Some(dir.path()), 0).map(drop).unwrap_err();
    assert!(said.to_string().contains("header is damaged"), "{said}");
}
