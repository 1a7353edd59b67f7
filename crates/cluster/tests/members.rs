//! Processes, simulated by threads, compare their terms and send mail to the first process.

use corsair::cluster::{Carrier, ThreadCarrier, thread_carriers};
use corsair_cluster::{Agreement, ClusterError, Member, Terms, Topic};
use std::num::NonZeroUsize;
use std::thread;

const TERMS: Terms<'_> = Terms {
    program: "corsair 1",
    configuration: b"-a fsm",
    workers: NonZeroUsize::new(2),
    failure: None,
};

fn members(processes: usize) -> Vec<Member<ThreadCarrier>> {
    let carriers = thread_carriers(processes).into_iter().enumerate();
    let member = |(process, carrier)| Member::new(carrier, process, processes);
    carriers.map(member).collect()
}

/// Returns the agreement of each of three processes, of which the second one has the terms `second`.
fn agree(second: Terms<'_>) -> Vec<Result<Agreement, ClusterError>> {
    let terms = [TERMS, second, TERMS];
    thread::scope(|scope| {
        let threads: Vec<_> = members(3)
            .into_iter()
            .zip(&terms)
            .map(|(mut member, terms)| scope.spawn(move || member.agree(terms)))
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

// Guarantee: cluster-2.
#[test]
fn processes_with_the_same_terms_have_workers_and_a_session_in_common() {
    let agreed: Vec<_> = agree(TERMS).into_iter().map(Result::unwrap).collect();
    assert_eq!(agreed[0].workers.get(), 2);
    assert!(agreed.iter().all(|other| *other == agreed[0]));
}

// Guarantee: cluster-2.
#[test]
fn every_process_names_the_one_that_differs_and_in_what() {
    let cases = [
        (
            Terms {
                program: "corsair 2",
                ..TERMS
            },
            "different versions",
        ),
        (
            Terms {
                configuration: b"-a netflix",
                ..TERMS
            },
            "different flags",
        ),
        (
            Terms {
                workers: NonZeroUsize::new(3),
                ..TERMS
            },
            "different numbers of workers",
        ),
        (
            Terms {
                workers: None,
                ..TERMS
            },
            "different numbers of workers",
        ),
    ];
    for (second, what) in cases {
        for result in agree(second) {
            let said = result.unwrap_err().to_string();
            assert!(
                said.starts_with("process 1 and process 0") && said.contains(what),
                "{said}"
            );
        }
    }
}

// Guarantee: cluster-2.
#[test]
fn a_process_that_cannot_run_its_part_ends_all_with_its_sentence() {
    let cannot = Terms {
        failure: Some("x.json: no such file"),
        ..TERMS
    };
    for result in agree(cannot) {
        let said = result.unwrap_err().to_string();
        assert_eq!(said, "process 1: x.json: no such file");
    }
}

// Guarantee: cluster-2.
#[test]
fn a_program_that_sends_something_else_is_another_version() {
    let mut members = members(2);
    let (second, first) = (members.pop(), members.pop());
    let (mut second, mut first) = (second.unwrap(), first.unwrap());
    thread::scope(|scope| {
        scope.spawn(move || {
            second.exchange(&mut [b"GET /".to_vec(), vec![]], &mut [vec![], vec![]])
        });
        let said = first.agree(&TERMS).unwrap_err().to_string();
        assert!(
            said.contains("process 1") && said.contains("different versions"),
            "{said}"
        );
    });
}

// Guarantee: cluster-3.
#[test]
fn a_process_that_is_gone_ends_the_others() {
    let mut members = members(2);
    drop(members.pop());
    let mut first = members.pop().unwrap();
    assert!(matches!(first.agree(&TERMS), Err(ClusterError::Lost)));
    let ended = first.end(Vec::new(), Vec::new());
    assert!(matches!(ended, Err(ClusterError::Lost)));
}

// Guarantee: cluster-5.
#[test]
fn mail_arrives_in_order_from_all_processes_before_the_end() {
    thread::scope(|scope| {
        let mut all = members(3);
        for mut member in all.drain(1..) {
            scope.spawn(move || {
                let mailbox = member.mailbox();
                for window in 0..50u8 {
                    mailbox.post(Topic::Records, &[window]);
                    let (mut out, mut inbox) = (vec![vec![window; 100]; 3], vec![vec![]; 3]);
                    member.exchange(&mut out, &mut inbox).unwrap();
                }
                mailbox.post(Topic::Records, b"last");
                member.end(vec![7], vec![8]).unwrap();
            });
        }
        let mut first = all.pop().unwrap();
        let records = first.receiver(Topic::Records);
        let reader = scope.spawn(move || records.into_iter().collect::<Vec<_>>());
        for window in 0..50u8 {
            let (mut out, mut inbox) = (vec![vec![]; 3], vec![vec![]; 3]);
            first.exchange(&mut out, &mut inbox).unwrap();
            assert_eq!(inbox[1..], [vec![window; 100], vec![window; 100]]);
        }
        let ends = first.end(Vec::new(), Vec::new()).unwrap();
        assert_eq!(
            (ends.len(), &ends[2].part, &ends[2].actor_report),
            (3, &vec![7], &vec![8])
        );
        assert!(ends[1].exchange.sent > 5000, "{:?}", ends[1].exchange);
        let records = reader.join().unwrap();
        for process in 1..3 {
            let from = records.iter().filter(|(from, _)| *from == process);
            let expected = (0..50).map(|window| vec![window]).chain([b"last".to_vec()]);
            assert!(from.map(|(_, record)| record.clone()).eq(expected));
        }
    });
}
