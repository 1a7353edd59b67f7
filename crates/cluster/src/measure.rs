//! What an exchange costs on this machine, measured where it will be used.

use crate::{
    CarrierBuilder, ClusterCarrier, ClusterError, Host, Hosts, Limits, Membership, Secret,
};
use corsair::cluster::Carrier;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

/// How many windows without events are measured, and how many before that are not.
const WINDOWS: usize = 400;
const WARM_UP: usize = 100;
/// How many bytes a window has that is measured for them, and how many such windows there are.
const BYTES: usize = 1 << 20;
const LARGE: usize = 40;
const PIECE: usize = 1 << 16;
/// The bytes of a vote, and how many further workers are measured.
const VOTE: usize = 34;
const PEERS: usize = 16;

/// What an exchange costs between two processes of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeCost {
    /// Of a window in which nothing is sent but votes.
    pub window: Duration,
    /// Of each further worker of another process, to which a vote is sent and from which one comes.
    pub peer: Duration,
    /// Of a byte that one sends the other, in seconds.
    pub byte: f64,
}

/// Measures it, over the loopback network, with the connections of a run: a rendezvous, two workers and the threads
/// between them.
///
/// # Errors
/// See [`ClusterError`].
pub fn measure_exchange() -> Result<ExchangeCost, ClusterError> {
    let mut listeners = Vec::new();
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(ClusterError::system("no port is free"))?;
        let at = listener.local_addr();
        hosts.push(Host::from(
            at.map_err(ClusterError::system("a port is gone"))?,
        ));
        listeners.push(listener);
    }
    let hosts = Hosts::new(hosts).map_err(ClusterError::Lost)?;
    let secret = Secret::new(&crate::secret::random::<32>()?)?;
    let member = |(process, listener)| Membership {
        hosts: hosts.clone(),
        process,
        workers: 1,
        secret: secret.clone(),
        program: String::new(),
        configuration: [0; 32],
        listener: Some(listener),
        parent: None,
        limits: Limits::default(),
        origin: None,
        relays: false,
        shares_memory: false,
    };
    let members = listeners.into_iter().enumerate().map(member);
    let run = |member: Membership| {
        let (builders, run) = member.meet()?.connect()?;
        let me = run.process();
        let measured = builders.into_iter().next().map(CarrierBuilder::build);
        let measured = measured.and_then(|mut carrier| measure(&mut carrier, 1 - me));
        run.finish(Vec::new())?;
        measured
            .ok_or_else(|| ClusterError::Lost("a measurement of the exchange broke off".to_owned()))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = members
            .map(|member| scope.spawn(move || run(member)))
            .collect();
        let mut costs = Vec::new();
        for thread in threads {
            costs.push(
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
            );
        }
        Ok(costs[0])
    })
}

/// Exchanges with the other one.
fn measure(carrier: &mut ClusterCarrier, other: usize) -> Option<ExchangeCost> {
    let mut piece = Vec::new();
    let mut median = |windows: usize, pieces: usize, bytes: usize| {
        let mut times = Vec::new();
        for _ in 0..windows {
            let began = Instant::now();
            exchange(carrier, other, pieces, bytes, &mut piece)?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    };
    median(WARM_UP, 1, VOTE)?;
    let window = median(WINDOWS, 1, VOTE)?;
    let many = median(WINDOWS, 1 + PEERS, VOTE)?;
    let large = median(LARGE, BYTES / PIECE, PIECE)?;
    let byte = large.saturating_sub(window).as_secs_f64() / BYTES as f64;
    let peer = many.saturating_sub(window) / PEERS as u32;
    Some(ExchangeCost { window, peer, byte })
}

/// A window in which each sends the other so many pieces of so many bytes; none if the connection broke.
fn exchange(
    carrier: &mut ClusterCarrier,
    other: usize,
    pieces: usize,
    bytes: usize,
    piece: &mut Vec<u8>,
) -> Option<()> {
    carrier.begin();
    for _ in 0..pieces {
        piece.resize(bytes, 7);
        carrier.send(other, piece);
    }
    for _ in 0..pieces {
        carrier
            .receive(other, &mut |piece| assert_eq!(piece.len(), bytes))
            .ok()?;
    }
    carrier.end();
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_takes_some_time_and_so_do_bytes() {
        let cost = measure_exchange().unwrap();
        assert!(
            cost.window > Duration::ZERO && cost.byte >= 0.0 && cost.byte < 1e-3,
            "{cost:?}"
        );
    }
}
