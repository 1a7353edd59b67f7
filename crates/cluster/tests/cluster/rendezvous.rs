//! Who is let in, who is turned away, and what is said of it.

use crate::cluster::{members, met, sentences, start};
use corsair_cluster::{CarrierBuilder, ClusterError, Host, Hosts, Secret};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(700);

#[test]
fn processes_that_fit_find_each_other_whoever_comes_first() {
    for processes in [1, 2, 3, 5] {
        let (_, members) = members(processes);
        let mut meets = Vec::new();
        for member in members.into_iter().rev() {
            meets.extend(start([member]));
            thread::sleep(Duration::from_millis(20));
        }
        let mut meshes = met(meets);
        meshes.reverse();
        for (process, mesh) in meshes.iter().enumerate() {
            assert_eq!(
                (mesh.process(), mesh.processes(), mesh.workers()),
                (process, processes, 1)
            );
        }
        let finish = |mesh: corsair_cluster::Mesh| {
            let (builders, run) = mesh.connect().unwrap();
            let part = vec![run.process() as u8; 3 << 20];
            thread::spawn(move || {
                drop(
                    builders
                        .into_iter()
                        .map(CarrierBuilder::build)
                        .collect::<Vec<_>>(),
                );
                run.finish(part).unwrap()
            })
        };
        let parts: Vec<_> = meshes.into_iter().map(finish).collect();
        let parts: Vec<_> = parts.into_iter().map(|part| part.join().unwrap()).collect();
        assert_eq!(parts[0].len(), processes);
        for (process, part) in parts[0].iter().enumerate() {
            assert!(part.len() == 3 << 20 && part.iter().all(|byte| usize::from(*byte) == process));
        }
        assert!(parts[1..].iter().all(Vec::is_empty));
    }
}

// Guarantee: cluster-2.
#[test]
fn strays_do_not_keep_processes_from_each_other() {
    let (at, members) = members(3);
    let mut members = members.into_iter();
    let mut meets = start(members.by_ref().take(1));
    // One that says nothing and stays, one that leaves, one that speaks HTTP, one that begins well and stops.
    let silent = TcpStream::connect(at[0]).unwrap();
    drop(TcpStream::connect(at[0]).unwrap());
    let mut browser = TcpStream::connect(at[0]).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut slow = TcpStream::connect(at[0]).unwrap();
    slow.write_all(b"corsair cluster\n\x01\0\0").unwrap();
    meets.extend(start(members));
    met(meets);
    drop((silent, browser, slow));
}

#[test]
fn a_browser_is_closed_and_told_nothing() {
    let (at, members) = members(2);
    let mut members = members.into_iter();
    let mut meets = start(members.by_ref().take(1));
    let mut browser = TcpStream::connect(at[0]).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut told = Vec::new();
    // Closed with what was sent unread, the system may call that a reset.
    let _ = browser.read_to_end(&mut told);
    assert_eq!(told, b"");
    meets.extend(start(members));
    met(meets);
}

// Guarantee: cluster-2.
#[test]
fn another_secret_is_told_on_both_sides_and_stops_nobody_else() {
    let (at, mut all) = members(3);
    for member in &mut all {
        member.limits.rendezvous = SHORT;
    }
    all[2].secret = Secret::new(b"another secret of them").unwrap();
    let said = sentences(start(all));
    let first = at[0].to_string();
    assert!(
        said[2].contains(&format!("the process at {first} has another secret")),
        "{said:?}"
    );
    for said in &said[..2] {
        assert!(
            said.contains(&format!("process 2 at {} did not come within 700ms", at[2])),
            "{said}"
        );
        assert!(
            said.contains("turned away (from 127.0.0.1: it had another secret)"),
            "{said}"
        );
    }
}

#[test]
fn a_secret_that_only_the_other_side_has_wrong_is_noticed() {
    // What answers accepts every proof and does not know the secret itself.
    let (at, mut all) = members(2);
    let impostor = all[0].listener.take().unwrap();
    let answers = thread::spawn(move || {
        let (mut stream, _) = impostor.accept().unwrap();
        let mut opening = [0; 52];
        stream.read_exact(&mut opening).unwrap();
        // Its own number sent back, and its own proof.
        stream.write_all(&opening).unwrap();
        let mut proof = [1; 33];
        stream.read_exact(&mut proof[1..]).unwrap();
        stream.write_all(&proof).unwrap();
        stream
    });
    let said = sentences(start(all.into_iter().skip(1)));
    assert!(
        said[0].contains(&format!("the process at {} has another secret", at[0])),
        "{said:?}"
    );
    answers.join().unwrap();
}

// Guarantee: cluster-2.
#[test]
fn what_does_not_fit_ends_the_rendezvous_for_all_with_one_sentence() {
    type Change = fn(&mut corsair_cluster::Membership);
    let cases: [(Change, &str); 4] = [
        (
            |member| member.program = "corsair 2".to_owned(),
            "process 1 runs corsair 2, process 0 runs corsair 1",
        ),
        (
            |member| member.configuration = [8; 32],
            "different flags or definitions",
        ),
        (
            |member| member.workers = 2,
            "process 1 has 2 workers, process 0 has 1",
        ),
        (
            |member| {
                let hosts = member.hosts.iter().take(2).cloned().collect();
                member.hosts = Hosts::new(hosts).unwrap();
            },
            "process 1 has 2 hosts, process 0 has 3",
        ),
    ];
    for (change, part) in cases {
        let (_, mut all) = members(3);
        change(&mut all[1]);
        let other = all.remove(1);
        let mut meets = start(all);
        thread::sleep(Duration::from_millis(300));
        meets.extend(start([other]));
        for said in sentences(meets) {
            assert!(said.contains(part), "{said:?} lacks {part:?}");
        }
    }
}

#[test]
fn two_of_one_number_are_refused_and_the_first_stays() {
    let (at, mut all) = members(3);
    let twin = all.pop().unwrap();
    let mut twin_of_one = twin;
    twin_of_one.process = 1;
    for member in all.iter_mut().chain([&mut twin_of_one]) {
        member.limits.rendezvous = SHORT;
    }
    let meets = start(all);
    thread::sleep(Duration::from_millis(100));
    let said = sentences(start([twin_of_one]));
    assert!(
        said[0].contains("refuses process 1: process 1 is there already"),
        "{said:?}"
    );
    for said in sentences(meets) {
        assert!(
            said.contains(&format!("process 2 at {} did not come", at[2])),
            "{said}"
        );
    }
}

#[test]
fn one_that_left_before_the_start_may_come_again() {
    let (_, mut all) = members(3);
    let late = all.pop().unwrap();
    let again = all.pop().unwrap();
    let first = start(all);
    // The first try of process 1 gives up before process 2 is there.
    let (_, mut spare) = members(1);
    let mut try_one = spare.pop().unwrap();
    try_one.hosts = again.hosts.clone();
    try_one.process = 1;
    try_one.limits.rendezvous = SHORT;
    let said = sentences(start([try_one]));
    assert!(said[0].contains("did not come within 700ms"), "{said:?}");
    let mut meets = first;
    meets.extend(start([again, late]));
    met(meets);
}

#[test]
fn a_process_that_nobody_is_there_for_says_who_and_why() {
    let (at, mut all) = members(2);
    let mut alone = all.pop().unwrap();
    alone.limits.rendezvous = SHORT;
    drop(all);
    let said = sentences(start([alone]));
    let part = format!("process 0 at {} cannot be reached within 700ms", at[0]);
    assert!(
        said[0].contains(&part) && said[0].contains("refused"),
        "{said:?}"
    );
}

#[test]
fn what_answers_may_be_something_else() {
    let (at, mut all) = members(2);
    let server: TcpListener = all[0].listener.take().unwrap();
    let serves = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        stream
    });
    let said = sentences(start(all.into_iter().skip(1)));
    assert!(
        said[0].contains(&format!("what answers at {} is no process", at[0])),
        "{said:?}"
    );
    serves.join().unwrap();
    // One that speaks a later version of this.
    let (at, mut all) = members(2);
    let later: TcpListener = all[0].listener.take().unwrap();
    let serves = thread::spawn(move || {
        let (mut stream, _) = later.accept().unwrap();
        stream.write_all(b"corsair cluster\n\x09\0\0\0").unwrap();
        stream.write_all(&[5; 32]).unwrap();
        stream
    });
    let said = sentences(start(all.into_iter().skip(1)));
    assert!(
        said[0].contains(&at[0].to_string()) && said[0].contains("version 9"),
        "{said:?}"
    );
    serves.join().unwrap();
}

#[test]
fn a_port_that_is_taken_and_a_number_that_is_none_are_refused() {
    let (at, mut all) = members(2);
    let taken = all[0].listener.take().unwrap();
    let error = all.remove(0).meet().unwrap_err();
    assert!(matches!(&error, ClusterError::Listen { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains(&format!("cannot listen at {}", at[0])),
        "{error}"
    );
    drop(taken);
    let mut none = all.remove(0);
    none.process = 2;
    let said = none.meet().unwrap_err().to_string();
    assert!(
        said.contains("no process 2 of 2") && said.contains("0 to 1"),
        "{said}"
    );
    let (_, mut all) = members(1);
    let mut unknown = all.remove(0);
    unknown.listener = None;
    unknown.limits.rendezvous = SHORT;
    let host = Hosts::parse("no-such-host.invalid").unwrap();
    assert_eq!(
        host.get(0).map(Host::to_string),
        Some("no-such-host.invalid:7351".to_owned())
    );
    unknown.hosts = host;
    let said = unknown.meet().unwrap_err().to_string();
    assert!(
        said.contains("cannot listen at no-such-host.invalid:7351"),
        "{said}"
    );
}
