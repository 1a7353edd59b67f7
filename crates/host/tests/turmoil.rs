//! Behaviour that turmoil's tests of networks expect, on hosts with tokio's own sockets.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]

use corsair::network::{Constant, Fifo};
use corsair_host::{Fault, HostState, Sim, SimError};
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Runs two programs to their ends, with a latency of a millisecond.
fn pair(sim: &mut Sim, server: fn(), client: fn()) -> Result<(), SimError> {
    sim.network(Fifo(Constant::new(ms(1)).unwrap()));
    let server = sim.host("server", server);
    let client = sim.host("client", client);
    sim.run_until(Duration::from_secs(600))?;
    for host in [&server, &client] {
        assert_eq!(sim.state(host), HostState::Exited(0), "{}", sim.log());
    }
    Ok(())
}

/// Ports are given out, refused when they are taken, and free again when their socket is dropped.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn ports_are_taken_and_released(sim: &mut Sim) -> Result<(), SimError> {
    #[tokio::main(flavor = "current_thread")]
    async fn program() {
        let one = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let other = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let ports = [&one, &other].map(|listener| listener.local_addr().unwrap().port());
        assert!(ports[0] != ports[1] && ports.iter().all(|&port| port >= 32_768));
        assert_eq!(
            kind(TcpListener::bind(("0.0.0.0", ports[0])).await),
            Some(ErrorKind::AddrInUse)
        );
        assert_eq!(
            kind(TcpListener::bind(("127.0.0.1", ports[0])).await),
            Some(ErrorKind::AddrInUse)
        );
        drop(one);
        drop(TcpListener::bind(("0.0.0.0", ports[0])).await.unwrap());
        // TCP and UDP have ports of their own.
        drop(UdpSocket::bind(("0.0.0.0", ports[1])).await.unwrap());
        assert_eq!(
            kind(TcpListener::bind("192.0.2.7:80").await),
            Some(ErrorKind::AddrNotAvailable)
        );
        assert_eq!(
            kind(UdpSocket::bind("[fd00::99]:80").await),
            Some(ErrorKind::AddrNotAvailable)
        );
        // A connection releases its port as well.
        let mut used = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let stream = TcpStream::connect(other.local_addr().unwrap())
                .await
                .unwrap();
            let (accepted, _) = other.accept().await.unwrap();
            used.insert(stream.local_addr().unwrap().port());
            drop((stream, accepted));
        }
        assert_eq!(used.len(), 50);
    }
    pair(sim, program, program)
}

/// A host reaches itself by any of its addresses; others reach only what is bound to an address of the network.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn loopback_and_public_addresses(sim: &mut Sim) -> Result<(), SimError> {
    #[tokio::main(flavor = "current_thread")]
    async fn server() {
        for (bound, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("127.0.0.1:80", "localhost:80"),
            ("0.0.0.0:80", "server:80"),
            ("[::]:80", "[::1]:80"),
            ("[::1]:80", "[::1]:80"),
            ("[::]:80", "[fd00::1]:80"),
        ] {
            let listener = TcpListener::bind(bound).await.unwrap();
            let connect = TcpStream::connect(reached);
            let (accepted, connected) = tokio::join!(listener.accept(), connect);
            let (accepted, connected) = (accepted.unwrap(), connected.unwrap());
            assert_eq!(connected.local_addr().unwrap(), accepted.1);
            let udp = UdpSocket::bind(bound).await.unwrap();
            udp.send_to(b"self", reached).await.unwrap();
            let mut buffer = [0; 9];
            assert_eq!(
                udp.recv_from(&mut buffer).await.unwrap().0,
                4,
                "{bound} {reached}"
            );
        }
        let _local = TcpListener::bind("127.0.0.1:80").await.unwrap();
        let _sixth = TcpListener::bind("[::]:81").await.unwrap();
        sleep(ms(500)).await;
    }
    #[tokio::main(flavor = "current_thread")]
    async fn client() {
        sleep(ms(100)).await;
        assert_eq!(
            kind(TcpStream::connect("server:80").await),
            Some(ErrorKind::ConnectionRefused)
        );
        assert_eq!(
            kind(TcpStream::connect("[fd00::1]:80").await),
            Some(ErrorKind::ConnectionRefused)
        );
        let stream = TcpStream::connect("[fd00::1]:81").await.unwrap();
        assert!(stream.local_addr().unwrap().is_ipv6() && stream.peer_addr().unwrap().is_ipv6());
        assert_eq!(
            kind(TcpStream::connect("10.0.7.7:80").await),
            Some(ErrorKind::NetworkUnreachable)
        );
        assert!(TcpStream::connect("nobody:80").await.is_err());
    }
    pair(sim, server, client)
}

/// The backlog keeps the order; a client that has gone is accepted and read to its end.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn connections_wait_to_be_accepted(sim: &mut Sim) -> Result<(), SimError> {
    #[tokio::main(flavor = "current_thread")]
    async fn server() {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        sleep(ms(200)).await;
        for expected in [&b"one"[..], b"two", b"three"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = vec![];
            stream.read_to_end(&mut text).await.unwrap();
            assert_eq!(text, expected);
        }
        // The queue of a dropped listener is reset, and its port refuses.
        sleep(ms(100)).await;
        drop(listener);
        sleep(ms(200)).await;
        // The program binds the port again, and sends before it has received anything.
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move { stream.write_all(b"welcome").await });
        }
        sleep(ms(100)).await;
    }
    #[tokio::main(flavor = "current_thread")]
    async fn client() {
        sleep(ms(10)).await;
        for text in ["one", "two", "three"] {
            let mut stream = TcpStream::connect("server:80").await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
        }
        sleep(ms(250)).await;
        let mut queued = TcpStream::connect("server:80").await.unwrap();
        assert_eq!(
            kind(queued.read(&mut [0]).await),
            Some(ErrorKind::ConnectionReset)
        );
        assert_eq!(
            kind(TcpStream::connect("server:80").await),
            Some(ErrorKind::ConnectionRefused)
        );
        sleep(ms(300)).await;
        let mut streams = vec![];
        for _ in 0..3 {
            streams.push(TcpStream::connect("server:80").await.unwrap());
        }
        for stream in &mut streams {
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "welcome");
        }
    }
    pair(sim, server, client)
}

/// Reads, peeks and writes of all sizes, half-closed connections, and a peer that is dropped.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn streams_read_peek_write_and_shut(sim: &mut Sim) -> Result<(), SimError> {
    #[tokio::main(flavor = "current_thread")]
    async fn server() {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(stream.peek(&mut buffer[..3]).await.unwrap(), 3);
        assert_eq!(stream.peek(&mut buffer).await.unwrap(), 11);
        assert_eq!(stream.read(&mut []).await.unwrap(), 0);
        assert_eq!(stream.read(&mut buffer[..5]).await.unwrap(), 5);
        assert_eq!(&buffer[..5], b"hello");
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 6);
        assert_eq!(
            kind(stream.try_read(&mut buffer)),
            Some(ErrorKind::WouldBlock)
        );
        // The client has shut its side; this one still writes.
        let mut rest = vec![];
        assert_eq!(stream.read_to_end(&mut rest).await.unwrap(), 0);
        stream.write_all(b"still here").await.unwrap();
        drop(stream);
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut buffer[..1]).await.unwrap();
        drop(stream);
        sleep(ms(100)).await;
    }
    #[tokio::main(flavor = "current_thread")]
    async fn client() {
        sleep(ms(10)).await;
        let mut stream = TcpStream::connect("server:80").await.unwrap();
        assert_eq!(stream.write(b"").await.unwrap(), 0);
        stream.write_all(b"hello world").await.unwrap();
        sleep(ms(50)).await;
        stream.shutdown().await.unwrap();
        assert_eq!(kind(stream.write(b"x").await), Some(ErrorKind::BrokenPipe));
        let (mut read, _write) = stream.split();
        let mut text = String::new();
        read.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "still here");
        // The server drops this connection with a byte that it has not read.
        let mut stream = TcpStream::connect("server:80").await.unwrap();
        stream.write_all(b"xy").await.unwrap();
        assert_eq!(
            kind(stream.read(&mut [0]).await),
            Some(ErrorKind::ConnectionReset)
        );
    }
    pair(sim, server, client)
}

/// A sender is stopped by a reader that does not read, and nothing is lost.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn a_slow_reader_stops_the_writer(sim: &mut Sim) -> Result<(), SimError> {
    #[tokio::main(flavor = "current_thread")]
    async fn server() {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        sleep(ms(500)).await;
        let mut count = 0;
        let mut buffer = vec![0; 4_096];
        loop {
            match stream.read(&mut buffer).await.unwrap() {
                0 => break,
                more => count += more,
            }
        }
        println!("{count}");
    }
    #[tokio::main(flavor = "current_thread")]
    async fn client() {
        sleep(ms(10)).await;
        let mut stream = TcpStream::connect("server:80").await.unwrap();
        let mut written = 0;
        loop {
            stream.writable().await.unwrap();
            match stream.try_write(&[7; 10_000]) {
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if timeout(ms(100), stream.writable()).await.is_err() {
                        break;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!((100_000..20_000_000).contains(&written), "{written}");
        stream.write_all(&[8; 100_000]).await.unwrap();
        println!("{}", written + 100_000);
    }
    pair(sim, server, client)?;
    let lines: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    assert_eq!(lines[0], lines[1]);
    Ok(())
}

/// Datagrams: clipped, filtered by the peer, refused, too large.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn datagrams_are_clipped_filtered_and_refused(sim: &mut Sim) -> Result<(), SimError> {
    #[tokio::main(flavor = "current_thread")]
    async fn server() {
        let socket = UdpSocket::bind("0.0.0.0:53").await.unwrap();
        let mut buffer = [0; 4];
        assert_eq!(
            kind(socket.try_recv_from(&mut buffer)),
            Some(ErrorKind::WouldBlock)
        );
        let (count, from) = socket.recv_from(&mut buffer).await.unwrap();
        assert_eq!((count, &buffer), (4, b"clip"));
        // The client is connected to another port, so only the second answer is received.
        let other = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        other.send_to(b"no", from).await.unwrap();
        sleep(ms(10)).await;
        socket.send_to(b"yes", from).await.unwrap();
        sleep(ms(100)).await;
    }
    #[tokio::main(flavor = "current_thread")]
    async fn client() {
        sleep(ms(10)).await;
        let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
        assert!(socket.send(b"nobody").await.is_err());
        let large = socket.send_to(&[0; 65_508], "server:53").await;
        assert_eq!(large.unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
        socket.connect("server:53").await.unwrap();
        socket.send(b"clipped").await.unwrap();
        let mut buffer = [0; 9];
        assert_eq!(socket.peek(&mut buffer).await.unwrap(), 3);
        assert_eq!(socket.recv(&mut buffer).await.unwrap(), 3);
        assert_eq!(&buffer[..3], b"yes");
        socket.connect("server:54").await.unwrap();
        socket.send(b"closed").await.unwrap();
        assert_eq!(
            kind(socket.recv(&mut buffer).await),
            Some(ErrorKind::ConnectionRefused)
        );
    }
    pair(sim, server, client)
}

/// Sends a number every 10 ms, and prints those that come back.
#[tokio::main(flavor = "current_thread")]
async fn pinger() {
    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    let mut ticks = tokio::time::interval(ms(10));
    for number in 0..90u8 {
        ticks.tick().await;
        socket.send_to(&[number], "server:53").await.unwrap();
        let mut byte = [0];
        if timeout(ms(5), socket.recv(&mut byte)).await.is_ok() {
            println!("back {}", byte[0]);
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn ponger() {
    let socket = UdpSocket::bind("0.0.0.0:53").await.unwrap();
    let mut byte = [0];
    while let Ok((_, from)) = socket.recv_from(&mut byte).await {
        println!("got {}", byte[0]);
        socket.send_to(&byte, from).await.unwrap();
    }
}

/// A partition in one direction: requests arrive and answers do not, or the reverse.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn a_partition_can_have_one_direction(sim: &mut Sim) -> Result<(), SimError> {
    sim.network(Fifo(Constant::new(ms(1)).unwrap()));
    let server = sim.host("server", ponger);
    let client = sim.host("client", pinger);
    sim.at(ms(200), Fault::partition_one_way(&[server], &[client]));
    sim.at(ms(400), Fault::heal(&[client], &[server]));
    sim.at(ms(600), Fault::partition_one_way(&[client], &[server]));
    sim.run_until(ms(900))?;
    let count = |word: &str| {
        let lines = sim.lines();
        lines
            .iter()
            .filter(|line| line.text.starts_with(word))
            .count()
    };
    let (got, back) = (count("got "), count("back "));
    // Answers are lost for 200 ms, then requests for 300 ms.
    assert_eq!((got, back), (60, 40), "{}", sim.log());
    Ok(())
}

/// A connection attempt during a partition fails after a time-out, and succeeds when the partition is healed in time.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn a_connection_is_opened_across_a_partition(sim: &mut Sim) -> Result<(), SimError> {
    #[tokio::main(flavor = "current_thread")]
    async fn server() {
        let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        println!("{text}");
    }
    #[tokio::main(flavor = "current_thread")]
    async fn client() {
        sleep(ms(10)).await;
        assert!(
            timeout(ms(500), TcpStream::connect("server:80"))
                .await
                .is_err()
        );
        let mut stream = TcpStream::connect("server:80").await.unwrap();
        stream.write_all(b"through").await.unwrap();
    }
    sim.network(Fifo(Constant::new(ms(1)).unwrap()));
    let server = sim.host("server", server);
    let client = sim.host("client", client);
    sim.at(ms(5), Fault::partition(&[server], &[client]));
    sim.at(ms(2_000), Fault::heal(&[server], &[client]));
    sim.run_until(Duration::from_secs(100))?;
    let lines: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    assert_eq!(lines, ["through"], "{}", sim.log());
    Ok(())
}
