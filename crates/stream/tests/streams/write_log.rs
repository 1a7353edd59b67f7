//! Tests of the write-ahead log: replayed writes, and refused logs.

use crate::http::Service;
use axum::http::{Method, StatusCode};
use corsair::edge::Overflow;
use corsair_journal::{Journal, Record};
use corsair_stream::engine::{Durability, EngineSnapshot, LogError, TaskOptions, Write};
use corsair_stream::line::Precision;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SUM: &str = "stream | from('m') | window(10s, every 10s) | sum(v) | log('sum')";
const INTERVAL: Durability = Durability::Interval(Duration::from_millis(10));

/// A service with a log in this directory and the task `sum`, restored from a state.
async fn service(
    directory: &Path,
    saved: Option<EngineSnapshot>,
    durability: Durability,
) -> Service {
    let service = Service::new();
    if let Some(saved) = saved {
        service.engine.restore(saved);
    }
    service.task("sum", SUM).await;
    let opened = service.engine.open_log(directory.join("log"), durability);
    opened.await.unwrap();
    service
}

/// The files of a log, the oldest first.
fn files(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory.join("log")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Copies a log as a killed process leaves it.
fn crash(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("log")).unwrap();
    for file in files(from) {
        fs::copy(&file, to.join("log").join(file.file_name().unwrap())).unwrap();
    }
}

// Guarantee: stream-9.
#[tokio::test]
async fn writes_behind_a_checkpoint_are_given_again_and_those_before_it_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a"), dir.path().join("b"));
    let before = service(&first, None, INTERVAL).await;
    before.write("m v=1i 1\nm v=2i 2\n").await;
    let saved = before.engine.checkpoint().await;
    before.write("m v=4i 3\n").await;
    let to = "/write?db=db&precision=s";
    let (status, _) = before.request(Method::POST, to, "m v=8i 4\nbad\n").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    crash(&first, &second);
    let after = service(&second, Some(saved), INTERVAL).await;
    after.write("m v=16i 11\n").await;
    assert_eq!(
        after.logged().await,
        ["m sum=15i 10000000000", "m sum=16i 20000000000"]
    );
}

#[tokio::test]
async fn a_task_gets_no_points_that_were_written_before_it_was_added() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a"), dir.path().join("b"));
    let before = service(&first, None, INTERVAL).await;
    let saved = before.engine.checkpoint().await;
    before.write("m v=1i 1\n").await;
    crash(&first, &second);
    let after = Service::new();
    after.engine.restore(saved);
    after.task("sum", SUM).await;
    // The task is not in the saved state, so it did not exist when the point was written.
    after.task("new", &SUM.replace("sum')", "new')")).await;
    let opened = after.engine.open_log(second.join("log"), INTERVAL);
    assert_eq!(opened.await.unwrap(), 1);
    after.write("m v=2i 2\nm v=3i 11\n").await;
    let mut logged = after.logged().await;
    logged.sort();
    assert_eq!(
        logged,
        [
            "m sum=2i 10000000000",
            "m sum=3i 10000000000",
            "m sum=3i 20000000000",
            "m sum=3i 20000000000"
        ]
    );
}

// Guarantee: stream-10.
#[tokio::test]
async fn a_torn_record_is_left_out_and_damage_before_it_is_refused_or_ends_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("a");
    let before = service(&first, None, Durability::Always).await;
    let saved = before.engine.checkpoint().await.to_bytes();
    let mut ends = vec![];
    for at in 1..=3 {
        before.write(&format!("m v={at}i {at}\n")).await;
        let bytes = fs::read(&files(&first)[0]).unwrap();
        ends.push(bytes.iter().rposition(|byte| *byte != 0).unwrap());
    }
    for (damaged, durability, expected) in [
        (2, Durability::Always, Some("m sum=3i 10000000000")),
        (1, Durability::Always, None),
        (1, INTERVAL, Some("m sum=1i 10000000000")),
    ] {
        let second = dir.path().join(format!("{damaged}{durability:?}"));
        crash(&first, &second);
        let file = &files(&second)[0];
        let mut bytes = fs::read(file).unwrap();
        bytes[ends[damaged] - 4] ^= 1;
        fs::write(file, bytes).unwrap();
        let saved = EngineSnapshot::from_bytes(&saved).unwrap();
        let Some(expected) = expected else {
            let after = Service::new();
            after.engine.restore(saved);
            let opened = after.engine.open_log(second.join("log"), durability).await;
            let said = opened.unwrap_err().to_string();
            assert!(said.contains("entry 2 is damaged"), "{said}");
            continue;
        };
        let after = service(&second, Some(saved), durability).await;
        assert_eq!(after.logged().await, [expected], "{damaged} {durability:?}");
    }
}

// Guarantee: stream-10.
#[tokio::test]
async fn a_log_of_another_state_and_one_that_lacks_entries_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a"), dir.path().join("b"));
    let one = service(&first, None, INTERVAL).await;
    one.write("m v=1i 1\n").await;
    let other = service(&second, None, INTERVAL).await;
    other.write("m v=1i 1\n").await;
    let saved = one.engine.checkpoint().await;
    let after = Service::new();
    after.engine.restore(saved);
    let copy = dir.path().join("c");
    crash(&second, &copy);
    let opened = after.engine.open_log(copy.join("log"), INTERVAL).await;
    assert!(
        matches!(opened, Err(LogError::OtherState { .. })),
        "{opened:?}"
    );
    // The state is missing, and the log begins behind it.
    let third = dir.path().join("d");
    fs::create_dir_all(third.join("log")).unwrap();
    let moved = third.join("log").join("00000000000000000007.entries");
    fs::copy(&files(&copy)[0], moved).unwrap();
    let opened = Service::new();
    let opened = opened.engine.open_log(third.join("log"), INTERVAL).await;
    let said = opened.unwrap_err().to_string();
    assert!(
        said.contains("continues at entry 7; expected entry 1"),
        "{said}"
    );
}

#[tokio::test]
async fn a_log_of_another_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut journal = Journal::create(&log, 7, 1, &[]).unwrap();
    let mut record = Record::default();
    record.begin();
    // Earlier versions logged the lines as they were received, after the name of the database.
    record.bytes().extend_from_slice(b"\x02db\x00m v=1i 1\n");
    journal.append(&mut record, 1, 1).unwrap();
    drop(journal);
    let opened = Service::new().engine.open_log(&log, INTERVAL).await;
    let said = opened.unwrap_err().to_string();
    assert!(
        said.contains("entry 1 cannot be read: it was written by another version of corsair-stream; to start without it, move the directory away"),
        "{said}"
    );
}

#[tokio::test]
async fn a_checkpoint_discards_the_files_of_the_log_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let service = service(dir.path(), None, INTERVAL).await;
    let lines = format!("m v=1i,s=\"{}\" 1\n", "x".repeat(900_000));
    // Three files of 32 MiB.
    for _ in 0..80 {
        service.write(&lines).await;
    }
    assert!(files(dir.path()).len() > 2);
    let saved = service.engine.checkpoint().await;
    assert_eq!(saved.position(), 80);
    service.engine.sync_files().unwrap();
    service.engine.discard_log(saved.position());
    assert_eq!(files(dir.path()).len(), 1);
    service.write("m v=1i 1\n").await;
    assert_eq!(service.engine.log_status(), Some((81, true)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_are_all_answered_while_the_log_is_synced_and_cut() {
    for durability in [INTERVAL, Durability::Always] {
        let dir = tempfile::tempdir().unwrap();
        let service = Arc::new(service(dir.path(), None, durability).await);
        let running = Arc::new(AtomicBool::new(true));
        let (engine, stop) = (service.engine.clone(), running.clone());
        let disturbing = std::thread::spawn(move || {
            while stop.load(Ordering::Relaxed) {
                engine.discard_log(0);
                engine.sync_files().unwrap();
            }
        });
        let writers = (0..16).map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    service.write("m v=1i 1\n").await;
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        for writer in writers {
            let answered = tokio::time::timeout(Duration::from_secs(60), writer).await;
            answered.expect("a write is never answered").unwrap();
        }
        running.store(false, Ordering::Relaxed);
        disturbing.join().unwrap();
        assert_eq!(service.engine.log_status(), Some((1_600, true)));
        service.engine.close().await.unwrap().unwrap();
        let closed = service.engine.write(&to_db(), b"m v=1i 1\n").await;
        assert!(closed.is_err());
    }
}

fn to_db() -> Write {
    Write {
        database: "db".into(),
        policy: None,
        precision: Precision::Seconds,
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_that_does_not_fit_on_the_disk_is_refused_and_the_next_one_that_fits_is_not() {
    // A limit of the size of files is the only full disk that needs no privileges, and is a process's own.
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 3000; trap '' XFSZ; exec \"$0\" --ignored --exact write_log::writes_with_a_limit"])
        .arg(program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[ignore = "run by the test above, with a limit"]
#[tokio::test]
async fn writes_with_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let before = service(dir.path(), None, INTERVAL).await;
    let saved = before.engine.checkpoint().await;
    let lines: String = (0..20_000).map(|at| format!("m v=1i {at}\n")).collect();
    let to = "/write?db=db&precision=h";
    let mut accepted = 0;
    let refused = loop {
        let (status, body) = before.request(Method::POST, to, &lines).await;
        match status {
            StatusCode::NO_CONTENT => accepted += 1,
            _ => break (status, body.to_string()),
        }
    };
    assert_eq!(refused.0, StatusCode::SERVICE_UNAVAILABLE, "{refused:?}");
    assert!(refused.1.contains("cannot be written"), "{refused:?}");
    // A small record fits after the large record was removed.
    let (status, _) = before.request(Method::POST, to, "m v=1i 20001\n").await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(before.engine.close().await.unwrap().is_ok());
    let after = Service::new();
    after.engine.restore(saved);
    let opened = after.engine.open_log(dir.path().join("log"), INTERVAL);
    assert_eq!(opened.await.unwrap(), accepted + 1);
}

/// Options of a task that drops points as soon as there are two.
fn dropping(overflow: Overflow) -> TaskOptions {
    TaskOptions {
        capacity: NonZeroUsize::MIN,
        overflow,
    }
}

// Guarantee: stream-9.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_drops_points_is_in_every_checkpoint() {
    let text = "stream | from('m') | eval(v * 2).as('w') | window().periodCount(1000000) | sum(w)";
    for overflow in [Overflow::DropOldest, Overflow::DropNewest] {
        let service = Service::new();
        let engine = &service.engine;
        engine.add("t", text, dropping(overflow)).await.unwrap();
        service.write("m v=1i 0\n").await;
        engine.settle().await;
        let (writing, stop) = (engine.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let writer = tokio::spawn(async move {
            let to = to_db();
            while !stopped.load(Ordering::SeqCst) {
                writing.write(&to, b"m v=1i 1\n").await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        for checkpoint in 0..100 {
            let saved = engine.checkpoint().await;
            assert!(saved.points() > 0, "{overflow}: checkpoint {checkpoint}");
        }
        stop.store(true, Ordering::SeqCst);
        writer.await.unwrap();
    }
}

// Guarantee: stream-9.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_drops_points_drops_none_when_the_log_is_read() {
    let text =
        "stream | from('m') | window().periodCount(301).everyCount(301) | count(v) | log('count')";
    for overflow in [Overflow::DropOldest, Overflow::DropNewest, Overflow::Abort] {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("a"), dir.path().join("b"));
        let before = service(&first, None, INTERVAL).await;
        let engine = &before.engine;
        engine.add("t", text, dropping(overflow)).await.unwrap();
        let saved = engine.checkpoint().await;
        for at in 0..300 {
            before.write(&format!("m v=1i {at}\n")).await;
            engine.settle().await;
        }
        crash(&first, &second);
        let after = Service::new();
        after.engine.restore(saved);
        let added = after.engine.add("t", text, dropping(overflow));
        added.await.unwrap();
        let opened = after.engine.open_log(second.join("log"), INTERVAL);
        assert_eq!(opened.await.unwrap(), 300);
        after.engine.settle().await;
        after.write("m v=1i 300\n").await;
        assert_eq!(
            after.logged().await,
            ["m count=301i 300000000000"],
            "{overflow}"
        );
    }
}
