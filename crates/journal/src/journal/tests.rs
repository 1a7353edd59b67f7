//! Tests of deferred rotation, with the files in the states in which a crash can leave them.

use super::*;
use crate::{Recovery, Tail, truncate};

const IDENTITY: u64 = 7;

/// Appends entries with these positions, each of which fills a file.
fn append(journal: &mut Journal, positions: std::ops::RangeInclusive<u64>) {
    let mut record = Record::default();
    for position in positions {
        record.begin();
        record.bytes().resize(1000, position as u8);
        journal.append(&mut record, position, 1).unwrap();
    }
}

fn deferred(directory: &Path) -> Journal {
    let mut journal = Journal::create(directory, IDENTITY, 1, &[]).unwrap();
    journal = journal.defer_rotation();
    journal.largest = 100;
    journal
}

/// Returns the positions that can be read, and what else the reading has found.
fn read(directory: &Path) -> (Vec<u64>, Recovery) {
    let mut found = Vec::new();
    let visit = |first, _, bytes: &[u8]| {
        assert!(bytes.iter().all(|byte| u64::from(*byte) == first));
        found.push(first);
        Ok(())
    };
    let recovery = Recovery::read(directory, 0, Tail::Unsynced, visit);
    (found, recovery.unwrap().unwrap())
}

/// Opens the journal, continues it, and returns all positions.
fn continued(directory: &Path) -> Vec<u64> {
    let (_, recovery) = read(directory);
    let next = recovery.next();
    let mut journal = recovery.open(directory).unwrap();
    assert!(!directory.join(PART).exists());
    append(&mut journal, next..=next);
    journal.sync().unwrap();
    read(directory).0
}

fn names(directory: &Path) -> Vec<u64> {
    firsts(directory).unwrap().into()
}

#[test]
fn a_file_gets_its_name_when_its_records_are_synced() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let mut journal = deferred(&directory);
    append(&mut journal, 1..=2);
    assert_eq!(names(&directory), [1]);
    journal.unsynced().sync().unwrap();
    assert_eq!(names(&directory), [1, 2]);
    // A second rotation completes the first one.
    append(&mut journal, 3..=4);
    assert_eq!(names(&directory), [1, 2, 3]);
    assert_eq!(read(&directory).0, [1, 2, 3, 4]);
}

#[test]
fn a_kill_loses_nothing() {
    let parent = tempfile::tempdir().unwrap();
    for last in 1..=4 {
        let directory = parent.path().join(last.to_string());
        append(&mut deferred(&directory), 1..=last);
        assert_eq!(read(&directory).1.discarded(), 0);
        let expected: Vec<u64> = (1..=last + 1).collect();
        assert_eq!(continued(&directory), expected);
    }
}

#[test]
fn a_power_failure_leaves_a_prefix() {
    let parent = tempfile::tempdir().unwrap();
    // Entries 2 and 3 are not on disk: any part of their files may be lost.
    type Damage = fn(&Path, &Path);
    let damages: [(Damage, u64); 6] = [
        (|_, part| fs::remove_file(part).unwrap(), 2),
        (|_, part| cut(part, 0), 2),
        (|_, part| cut(part, HEADER as u64 - 1), 2),
        (|_, part| cut(part, HEADER as u64 + 500), 2),
        (|old, _| cut(old, HEADER as u64), 1),
        (|old, _| cut(old, HEADER as u64 + 500), 1),
    ];
    for (number, (damage, last)) in damages.into_iter().enumerate() {
        let directory = parent.path().join(number.to_string());
        let mut journal = deferred(&directory);
        append(&mut journal, 1..=2);
        journal.sync().unwrap();
        append(&mut journal, 3..=3);
        damage(&path(&directory, 2), &directory.join(PART));
        let expected: Vec<u64> = (1..=last).collect();
        assert_eq!(read(&directory).0, expected, "{number}");
        let expected: Vec<u64> = (1..=last + 1).collect();
        assert_eq!(continued(&directory), expected, "{number}");
    }
}

fn cut(path: &Path, length: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

#[test]
fn damage_before_the_last_sync_is_an_error() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let mut journal = deferred(&directory);
    append(&mut journal, 1..=3);
    cut(&path(&directory, 1), 500);
    let read = Recovery::read(&directory, 0, Tail::Unsynced, |_, _, _| Ok(()));
    assert!(read.is_err());
}

#[test]
fn the_file_before_an_unnamed_one_is_kept() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let mut journal = deferred(&directory);
    append(&mut journal, 1..=3);
    journal.discard_through(3);
    assert_eq!(names(&directory), [2]);
    journal.sync().unwrap();
    journal.discard_through(3);
    assert_eq!(names(&directory), [3]);
    append(&mut journal, 4..=4);
    assert_eq!(read_after(&directory, 2), [3, 4]);
}

fn read_after(directory: &Path, after: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let visit = |first, _, _: &[u8]| {
        found.push(first);
        Ok(())
    };
    Recovery::read(directory, after, Tail::Unsynced, visit).unwrap();
    found
}

#[test]
fn truncation_removes_an_unnamed_file_after_the_position() {
    let parent = tempfile::tempdir().unwrap();
    for through in 0..=3 {
        let directory = parent.path().join(through.to_string());
        append(&mut deferred(&directory), 1..=3);
        truncate(&directory, through).unwrap();
        let expected: Vec<u64> = (1..=through).collect();
        assert_eq!(read(&directory).0, expected);
        let expected: Vec<u64> = (1..=through + 1).collect();
        assert_eq!(continued(&directory), expected);
    }
}
