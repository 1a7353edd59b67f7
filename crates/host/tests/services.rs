//! Unmodified services: axum, hyper, tokio's default runtime, and locks of parking_lot.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use corsair_host::{Fault, HostState, Sim, SimError};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

const MINUTE: Duration = Duration::from_secs(60);

/// The main function of a service.
#[tokio::main]
async fn server() {
    let hits = Arc::new(AtomicU64::new(0));
    let answer = |Path(number): Path<u64>, State(hits): State<Arc<AtomicU64>>| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        format!("{number} after {}", hits.fetch_add(1, Ordering::Relaxed))
    };
    let routes = Router::new()
        .route("/item/{number}", get(answer))
        .with_state(hits);
    let listener = tokio::net::TcpListener::bind("0.0.0.0:80").await.unwrap();
    axum::serve(listener, routes).await.unwrap();
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn ask(number: u64) -> Result<String, Failure> {
    let stream = tokio::net::TcpStream::connect("server:80").await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = hyper::Request::get(format!("/item/{number}"))
        .header("host", "server")
        .body(Empty::<hyper::body::Bytes>::new())?;
    let body = sender
        .send_request(request)
        .await?
        .into_body()
        .collect()
        .await?;
    Ok(String::from_utf8(body.to_bytes().to_vec())?)
}

#[tokio::main]
async fn client() {
    let mut answers = HashMap::new();
    let mut sides = [0, 0];
    for number in 0..30 {
        let (one, other) = (tokio::spawn(ask(number)), tokio::spawn(ask(number + 100)));
        let limit =
            tokio::time::timeout(Duration::from_secs(1), async { (one.await, other.await) });
        match limit.await {
            Ok((Ok(Ok(one)), Ok(Ok(other)))) => {
                answers.insert(number, (one, other));
            }
            Ok((Ok(one), Ok(other))) => {
                println!("{number}: {:?} {:?}", one.err(), other.err());
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            _ => println!("{number}: no answer in a second"),
        }
        tokio::select! {
            () = async {} => sides[0] += 1,
            () = async {} => sides[1] += 1,
        }
    }
    let set: HashSet<u32> = std::thread::spawn(|| (0..9).collect()).join().unwrap();
    println!("{answers:?} {set:?} {sides:?} {:?}", SystemTime::now());
}

// Guarantee: host-1.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn axum_and_hyper_survive_a_kill(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(20);
    let server = sim.host("server", server);
    let clients = sim.hosts("client", 2, |_| client());
    sim.at(Duration::from_millis(700), Fault::kill(&server));
    sim.at(Duration::from_millis(1_400), Fault::start(&server));
    sim.run_until(MINUTE)?;
    let log = sim.log();
    for client in &clients {
        assert_eq!(sim.state(client), HostState::Exited(0), "{log}");
    }
    assert!(log.contains("Connection refused"), "{log}");
    Ok(())
}

static TABLE: RwLock<Vec<u64>> = RwLock::new(vec![]);
static TURN: Mutex<u64> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();

/// Contends for locks of parking_lot, which uses a table that is hashed by address, and fair unlocking at certain
/// times.
fn contend() {
    let threads: Vec<_> = (0..6)
        .map(|thread| {
            std::thread::spawn(move || {
                let own: Vec<Mutex<u64>> = (0..20).map(Mutex::new).collect();
                for round in 0..60 {
                    let mut turn = TURN.lock();
                    *turn += 1;
                    CHANGED.notify_all();
                    if (*turn + thread).is_multiple_of(7) {
                        CHANGED.wait_for(&mut turn, Duration::from_micros(300));
                    }
                    drop(turn);
                    *own[round % 20].lock() += 1;
                    TABLE.write().push(thread);
                    if TABLE.read().len().is_multiple_of(5) {
                        std::thread::sleep(Duration::from_micros(thread * 10));
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    println!("{:?} {:?}", TABLE.read(), Instant::now());
}

#[corsair_host::test(seeds = 3, deterministic = true)]
fn locks_by_address_repeat(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(100);
    sim.hosts("host", 2, |_| contend());
    sim.run_until(MINUTE)
}
