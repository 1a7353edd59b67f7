//! What ends processes that have met.

use crate::cluster::{LIMITS, members, met, start};
use corsair_cluster::{CarrierBuilder, Health, Limits, Mesh};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Waits until a process knows that the run is lost, and returns why.
fn lost(health: &Health) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if let Some(why) = health.lost() {
            return why.to_owned();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing was noticed");
}

fn meshes(processes: usize, limits: Limits) -> Vec<Mesh> {
    let (_, mut all) = members(processes);
    all.iter_mut().for_each(|member| member.limits = limits);
    met(start(all))
}

// Guarantee: cluster-3.
#[test]
fn one_that_gives_up_ends_all_with_one_sentence() {
    let mut meshes = meshes(3, LIMITS);
    let health: Vec<Health> = meshes
        .iter()
        .map(|mesh| mesh.supervisor().health())
        .collect();
    drop(meshes.remove(1));
    let said: Vec<String> = health.iter().map(lost).collect();
    assert!(said[0].starts_with("process 1 at 127.0.0.1:"), "{said:?}");
    assert!(said[0].ends_with("has given up"), "{said:?}");
    assert!(said.iter().all(|sentence| *sentence == said[0]), "{said:?}");
    let (builders, run) = meshes.remove(0).connect().unwrap();
    drop(
        builders
            .into_iter()
            .map(CarrierBuilder::build)
            .collect::<Vec<_>>(),
    );
    let error = run.finish(Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), said[0]);
}

#[test]
fn what_one_notices_all_say() {
    let meshes = meshes(3, LIMITS);
    let health: Vec<Health> = meshes
        .iter()
        .map(|mesh| mesh.supervisor().health())
        .collect();
    health[2].fail("actor captain was spawned by closure".to_owned());
    health[2].fail("something later".to_owned());
    for health in &health {
        assert_eq!(lost(health), "actor captain was spawned by closure");
    }
}

// Guarantee: cluster-3.
#[test]
fn windows_that_do_not_end_are_noticed_with_the_process_that_is_last() {
    let stall = Duration::from_millis(600);
    let meshes = meshes(2, Limits { stall, ..LIMITS });
    let health: Vec<Health> = meshes
        .iter()
        .map(|mesh| mesh.supervisor().health())
        .collect();
    for _ in 0..3 {
        for health in &health {
            health.meets();
            health.met();
        }
    }
    health[0].meets();
    for health in &health {
        let said = lost(health);
        assert!(
            said.starts_with("process 1 at ") && said.contains("in one window for 600ms"),
            "{said}"
        );
    }
}

// Guarantee: cluster-3.
#[test]
fn a_run_that_does_not_notice_is_ended_from_outside() {
    let meshes = meshes(2, LIMITS);
    let (tell, told) = channel();
    meshes[0]
        .supervisor()
        .on_hang(move |why| tell.send(why.to_owned()).unwrap());
    meshes[1]
        .supervisor()
        .health()
        .fail("it is over".to_owned());
    assert_eq!(
        told.recv_timeout(Duration::from_secs(15)).unwrap(),
        "it is over"
    );
}

#[test]
fn one_that_comes_too_late_is_told_so() {
    let (at, all) = members(2);
    let hosts = all[0].hosts.clone();
    let meshes = met(start(all));
    let (_, mut late) = members(1);
    let mut late = late.remove(0);
    (late.hosts, late.process) = (hosts, 1);
    let said = late.meet().unwrap_err().to_string();
    assert!(said.contains("the run has begun without it"), "{said}");
    // And the others go on.
    assert!(meshes[0].supervisor().health().lost().is_none());
    drop(TcpStream::connect(at[0]).unwrap());
    assert!(meshes[0].supervisor().health().lost().is_none());
}
