//! How processes of this machine end that one of them has started.

use corsair_cluster::LocalProcesses;
use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Starts two processes, the first of which does one thing and the second another, and waits for them.
fn ended(first: &str, second: &str) -> corsair_cluster::Ended {
    let script = format!("case $CORSAIR_CLUSTER in 0*) {first};; *) {second};; esac");
    let args = ["-c", &script].map(OsString::from);
    let processes = LocalProcesses::start(Path::new("/bin/sh"), &args, 2, None).unwrap();
    let (done, ended) = mpsc::channel();
    thread::spawn(move || done.send(processes.wait()));
    let ended = ended.recv_timeout(Duration::from_secs(30));
    ended.expect("it waits for a process that is stopped")
}

// Guarantee: cluster-3.
#[test]
fn a_process_that_is_stopped_when_the_others_have_ended_is_not_waited_for() {
    let lost = thread::spawn(|| ended("kill -STOP $$", "exit 0"));
    // The first has told what came of the run.
    let told = ended("exit 0", "kill -STOP $$");
    assert_eq!((told.code, told.is_lost), (2, false), "{told:?}");
    let said = told.complaints.join(" ");
    assert!(said.contains("process 1 was stopped"), "{said}");
    // It has not: the run may go on from where it was saved.
    let lost = lost.join().unwrap();
    assert_eq!((lost.code, lost.is_lost), (2, true), "{lost:?}");
    assert!(lost.complaints[0].contains("process 0 was stopped"));
}

#[test]
fn a_process_that_takes_longer_than_the_others_is_waited_for() {
    let slow = ended("sleep 6", "exit 0");
    assert_eq!((slow.code, slow.is_lost), (0, false), "{slow:?}");
    assert!(slow.complaints.is_empty());
}
