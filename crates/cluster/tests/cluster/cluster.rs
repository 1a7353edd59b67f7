//! Processes as threads of a test.

use corsair_cluster::{ClusterError, Host, Hosts, Limits, Membership, Mesh, Secret};
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub const LIMITS: Limits = Limits {
    rendezvous: Duration::from_secs(20),
    silence: Duration::from_secs(10),
    stall: Duration::from_secs(20),
};

/// A member for each of a number of processes, all of which fit each other.
pub fn members(processes: usize) -> (Vec<SocketAddr>, Vec<Membership>) {
    let bind = |_| TcpListener::bind("127.0.0.1:0").unwrap();
    let listeners: Vec<TcpListener> = (0..processes).map(bind).collect();
    let at: Vec<SocketAddr> = listeners
        .iter()
        .map(|at| at.local_addr().unwrap())
        .collect();
    let hosts = Hosts::new(at.iter().copied().map(Host::from).collect()).unwrap();
    let member = |(process, listener)| Membership {
        hosts: hosts.clone(),
        process,
        workers: 1,
        secret: Secret::new(b"a secret of the tests").unwrap(),
        program: "corsair 1".to_owned(),
        configuration: [7; 32],
        listener: Some(listener),
        parent: None,
        limits: LIMITS,
        origin: None,
        relays: false,
        shares_memory: true,
    };
    (at, listeners.into_iter().enumerate().map(member).collect())
}

type Meets = JoinHandle<Result<Mesh, ClusterError>>;

/// Lets each of them meet the others.
pub fn start(members: impl IntoIterator<Item = Membership>) -> Vec<Meets> {
    let start = |member: Membership| thread::spawn(move || member.meet());
    members.into_iter().map(start).collect()
}

/// All meshes, if they have met.
pub fn met(meets: Vec<Meets>) -> Vec<Mesh> {
    meets
        .into_iter()
        .map(|meets| meets.join().unwrap().unwrap())
        .collect()
}

/// What each says that has not met the others.
pub fn sentences(meets: Vec<Meets>) -> Vec<String> {
    let sentence = |meets: Meets| meets.join().unwrap().unwrap_err().to_string();
    meets.into_iter().map(sentence).collect()
}
