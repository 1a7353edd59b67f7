//! A separate program that runs simulations. It restarts itself, and each seed has one digest on any number of workers.
//! It prints the cost of simulated calls (`cargo test -p corsair-host --test program`).
#![allow(clippy::print_stdout, reason = "prints what it measures")]

use corsair_host::{Sim, SimError, init, simulate};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 2_000;

fn hour() -> Duration {
    Duration::from_secs(3_600)
}

/// Two threads wake each other.
fn threads(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("host", || {
        let ((send, receive), (answer, answered)) = (channel::<u32>(), channel());
        let thread = std::thread::spawn(move || receive.iter().try_for_each(|n| answer.send(n)));
        for round in 0..ROUNDS {
            send.send(round).unwrap();
            assert_eq!(answered.recv(), Ok(round));
        }
        drop(send);
        thread.join().unwrap().unwrap();
    });
    sim.run_until(hour())
}

/// A byte is sent to another host and back.
fn bytes(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("server", || {
        let (mut stream, _) = TcpListener::bind("0.0.0.0:7").unwrap().accept().unwrap();
        let mut byte = [0];
        while stream.read(&mut byte).unwrap() == 1 {
            stream.write_all(&byte).unwrap();
        }
    });
    sim.host("client", || {
        std::thread::sleep(Duration::from_millis(1));
        let mut stream = TcpStream::connect("server:7").unwrap();
        for _ in 0..ROUNDS {
            let mut byte = [7];
            stream.write_all(&byte).unwrap();
            stream.read_exact(&mut byte).unwrap();
        }
    });
    sim.run_until(hour())
}

/// A program sleeps for a millisecond, repeatedly.
fn sleeps(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("host", || {
        (0..ROUNDS).for_each(|_| std::thread::sleep(Duration::from_millis(1)))
    });
    sim.run_until(hour())
}

/// A host is started and ended, repeatedly.
fn starts(sim: &mut Sim) -> Result<(), SimError> {
    sim.hosts("host", 20, |_| ());
    sim.run_until(hour())
}

type Body = fn(&mut Sim) -> Result<(), SimError>;

fn main() {
    if let Err(error) = init() {
        panic!("{error}");
    }
    let cases: [(&str, u32, Body); 4] = [
        ("two hand-overs between threads", ROUNDS, threads),
        ("a byte to another host and back", ROUNDS, bytes),
        ("a sleep", ROUNDS, sleeps),
        ("a host, from start to end", 20, starts),
    ];
    for (name, count, body) in cases {
        let digests = [1, 2, 4].map(|workers| {
            let workers = NonZeroUsize::new(workers).unwrap();
            let started = Instant::now();
            let (failure, digest) = simulate(1, workers, body).unwrap();
            let cost = started.elapsed() / count;
            println!("{name}: {cost:?} on {workers} workers");
            assert_eq!(failure, None, "{name}");
            digest
        });
        assert!(
            digests.iter().all(|&digest| digest == digests[0]),
            "{name}: {digests:x?}"
        );
    }
}
