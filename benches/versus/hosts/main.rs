//! Runs the same services on `corsair-host`, where they need no change, and on turmoil, where they must import its
//! sockets. Prints the median wall-clock time of each task; the runs of the two simulators alternate.
//!
//! turmoil advances in ticks of a millisecond, its default, because tokio's timers are not finer. The simulated
//! kernel of `corsair-host` has a resolution of a nanosecond and skips the time in which nothing happens. So the
//! requests are also measured with latencies of several ticks: turmoil polls all hosts in each tick.
#![allow(clippy::print_stdout, reason = "prints what it measures")]

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use corsair::network::{Fifo, Jitter};
use corsair_host::{Sim, init, simulate};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const REPETITIONS: usize = 5;
/// The latency of each packet in both simulators, if nothing else is said: one tick of turmoil.
const LATENCY: Duration = Duration::from_millis(1);
const BYTES: u32 = 20_000;
const REQUESTS: u32 = 2_000;

type Failure = Box<dyn Error>;

/// Answers each byte.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    let mut byte = [0];
    while stream.read(&mut byte).await? == 1 {
        stream.write_all(&byte).await?;
    }
    Ok(())
}

/// Sends a byte and waits for it, many times.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    for _ in 0..BYTES {
        let mut byte = [7];
        stream.write_all(&byte).await?;
        stream.read_exact(&mut byte).await?;
    }
    Ok(())
}

fn routes() -> Router {
    Router::new().route("/", get(async || "hello"))
}

/// Makes requests one after the other on one connection.
async fn request(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<(), Failure> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    for _ in 0..REQUESTS {
        let request = hyper::Request::get("/")
            .header("host", "server")
            .body(Empty::<Bytes>::new())?;
        let body = sender
            .send_request(request)
            .await?
            .into_body()
            .collect()
            .await?
            .to_bytes();
        assert_eq!(body, "hello");
    }
    Ok(())
}

/// The service and its client with tokio's sockets: hosts of corsair.
mod real {
    use super::{echo, exchange, request, routes};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn bytes_server() {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        loop {
            tokio::spawn(echo(listener.accept().await.unwrap().0));
        }
    }

    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn bytes_client() {
        tokio::time::sleep(super::LATENCY).await;
        exchange(TcpStream::connect("server:80").await.unwrap())
            .await
            .unwrap();
    }

    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn web_server() {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        axum::serve(listener, routes()).await.unwrap();
    }

    #[tokio::main(flavor = "current_thread")]
    pub(super) async fn web_client() {
        tokio::time::sleep(super::LATENCY).await;
        request(TcpStream::connect("server:80").await.unwrap())
            .await
            .unwrap();
    }
}

/// The service and its client with turmoil's sockets.
mod turmoil_hosts {
    use super::{echo, exchange, request, routes};
    use std::io;
    use std::net::SocketAddr;
    use turmoil::net::{TcpListener, TcpStream};

    pub(super) async fn bytes_server() -> turmoil::Result {
        let listener = TcpListener::bind("0.0.0.0:80").await?;
        loop {
            tokio::spawn(echo(listener.accept().await?.0));
        }
    }

    pub(super) async fn bytes_client() -> turmoil::Result {
        tokio::time::sleep(super::LATENCY).await;
        Ok(exchange(TcpStream::connect("server:80").await?).await?)
    }

    /// A listener that implements axum's trait.
    struct Listener(TcpListener);

    impl axum::serve::Listener for Listener {
        type Io = TcpStream;
        type Addr = SocketAddr;

        async fn accept(&mut self) -> (TcpStream, SocketAddr) {
            self.0.accept().await.unwrap()
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            self.0.local_addr()
        }
    }

    pub(super) async fn web_server() -> turmoil::Result {
        let listener = Listener(TcpListener::bind("0.0.0.0:80").await?);
        Ok(axum::serve(listener, routes()).await?)
    }

    pub(super) async fn web_client() -> turmoil::Result {
        tokio::time::sleep(super::LATENCY).await;
        request(TcpStream::connect("server:80").await?).await
    }
}

/// Runs a server and a client on corsair.
fn corsair_run(latency: Duration, server: fn(), client: fn()) {
    let run = simulate(
        1,
        NonZeroUsize::MIN,
        |sim: &mut Sim| -> Result<(), Failure> {
            sim.network(Fifo(Jitter::new(latency, latency)?));
            sim.host("server", server);
            let client = sim.host("client", client);
            while sim.state(&client) != corsair_host::HostState::Exited(0) {
                let next = sim.now().as_nanos() + 1_000_000_000;
                sim.run_until(Duration::from_nanos(next))?;
            }
            Ok(())
        },
    );
    assert_eq!(run.unwrap().0, None);
}

/// Runs a server and a client on turmoil.
fn turmoil_run<S, C>(latency: Duration, server: fn() -> S, client: fn() -> C)
where
    S: Future<Output = turmoil::Result> + 'static,
    C: Future<Output = turmoil::Result> + 'static,
{
    let mut sim = turmoil::Builder::new()
        .min_message_latency(latency)
        .max_message_latency(latency)
        .simulation_duration(Duration::from_secs(3_600))
        .build();
    sim.host("server", server);
    sim.client("client", client());
    sim.run().unwrap();
}

/// A contender of a task.
type Contender = (String, Box<dyn Fn()>);

/// Prints the median time of one of `count` operations for each contender.
fn compare(task: &str, count: u32, contenders: Vec<Contender>) {
    let mut times: Vec<Vec<Duration>> = vec![vec![]; contenders.len()];
    for _ in 0..REPETITIONS {
        for ((_, run), times) in contenders.iter().zip(&mut times) {
            let started = Instant::now();
            run();
            times.push(started.elapsed() / count);
        }
    }
    let medians: Vec<Duration> = times
        .iter_mut()
        .map(|times| {
            times.sort_unstable();
            times[times.len() / 2]
        })
        .collect();
    for ((name, _), median) in contenders.iter().zip(&medians) {
        let ratio = median.as_secs_f64() / medians[0].as_secs_f64();
        println!("{task:38} {name:22} {median:>12.2?} {ratio:>7.2} times");
    }
}

fn against_turmoil<S, C>(
    task: &str,
    count: u32,
    latency: Duration,
    own: [fn(); 2],
    server: fn() -> S,
    client: fn() -> C,
) where
    S: Future<Output = turmoil::Result> + 'static,
    C: Future<Output = turmoil::Result> + 'static,
{
    let [own_server, own_client] = own;
    let contenders: Vec<Contender> = vec![
        (
            "corsair".to_owned(),
            Box::new(move || corsair_run(latency, own_server, own_client)),
        ),
        (
            "turmoil".to_owned(),
            Box::new(move || turmoil_run(latency, server, client)),
        ),
    ];
    compare(task, count, contenders);
}

/// Runs hosts that wait for a timer, again and again. Returns their memory in KiB.
fn timers(count: usize, virtual_time: Duration) -> u64 {
    let run = simulate(
        1,
        NonZeroUsize::MIN,
        |sim: &mut Sim| -> Result<(), Failure> {
            sim.hosts("host", count, |_| {
                loop {
                    std::thread::sleep(Duration::from_secs(1));
                }
            });
            sim.run_until(virtual_time)?;
            // The result of a simulation is the text of a failure.
            Err(memory().to_string().into())
        },
    );
    let (text, _) = run.unwrap();
    text.unwrap().parse().unwrap()
}

/// Returns the memory of all processes of this program in KiB; pages that several share are divided among them.
fn memory() -> u64 {
    let own = std::fs::read_link("/proc/self/exe").ok();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_program =
        processes.filter(|entry| std::fs::read_link(entry.path().join("exe")).ok() == own);
    let share = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("smaps_rollup")).ok()?;
        let line = text.lines().find(|line| line.starts_with("Pss:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    of_program.filter_map(share).sum()
}

/// Runs nine hosts that compute and sleep, on this number of workers.
fn busy(workers: usize) {
    let workers = NonZeroUsize::new(workers).unwrap();
    let run = simulate(1, workers, |sim: &mut Sim| -> Result<(), Failure> {
        sim.network(Fifo(Jitter::new(LATENCY, LATENCY)?));
        let hosts = sim.hosts("host", 9, |_| {
            let mut sum = 0u64;
            for round in 0..200 {
                sum =
                    (0..200_000).fold(sum, |sum, n| std::hint::black_box(sum.wrapping_mul(31) ^ n));
                std::thread::sleep(Duration::from_millis(1 + round % 3));
            }
            assert_ne!(sum, 0);
        });
        sim.run_until(Duration::from_secs(60))?;
        assert!(
            hosts
                .iter()
                .all(|host| sim.state(host) == corsair_host::HostState::Exited(0))
        );
        Ok(())
    });
    assert_eq!(run.unwrap().0, None);
}

fn main() {
    init().unwrap_or_else(|error| panic!("{error}"));
    against_turmoil(
        "a byte to another host and back",
        BYTES,
        LATENCY,
        [real::bytes_server, real::bytes_client],
        turmoil_hosts::bytes_server,
        turmoil_hosts::bytes_client,
    );
    for ticks in [1, 5, 20, 50] {
        against_turmoil(
            &format!("a request, latency of {ticks} ms"),
            REQUESTS,
            LATENCY * ticks,
            [real::web_server, real::web_client],
            turmoil_hosts::web_server,
            turmoil_hosts::web_client,
        );
    }
    let own = |run: fn()| -> Vec<Contender> { vec![("corsair".to_owned(), Box::new(run))] };
    compare(
        "an hour of three hosts with timers",
        1,
        own(|| assert!(timers(3, Duration::from_secs(3_600)) > 0)),
    );
    compare(
        "start and end of an idle host",
        1_000,
        own(|| assert!(timers(1_000, Duration::from_millis(10)) > 0)),
    );
    let kilobytes = timers(1_000, Duration::from_millis(10));
    println!(
        "memory of an idle host, of 1,000: {} KiB",
        kilobytes / 1_000
    );
    let workers = |count: usize| -> Contender {
        (
            format!("corsair, {count} workers"),
            Box::new(move || busy(count)),
        )
    };
    compare("nine busy hosts", 1, vec![workers(1), workers(2)]);
}
