//! Actors of the engine beside real programs: streams and datagrams to them and from them.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]

use corsair_host::{Fault, HostState, Net, Sim, SimError};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

const MINUTE: Duration = Duration::from_secs(60);
const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A real server on tokio that answers each line with its length.
#[tokio::main]
async fn line_server() {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:80").await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while let Ok(1..) = stream.read_line(&mut line).await {
                let answer = format!("{} {}", line.trim_end().len(), line);
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    break;
                }
                line.clear();
            }
        });
    }
}

async fn ask(net: &Net, text: &str) -> io::Result<()> {
    let mut stream = BufReader::new(net.connect("server:80").await?);
    stream.write_all(format!("{text}\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_line(&mut answer).await?;
    match answer == format!("{} {text}\n", text.len()) {
        true => Ok(()),
        false => Err(io::Error::other(format!("{answer:?} to {text:?}"))),
    }
}

/// The variable `CLIENTS` sets the number of clients; `ci/host.sh whole` sets it to 10,000.
// Guarantee: host-10.
#[corsair_host::test(deterministic = true)]
fn a_thousand_actors_are_clients_of_one_program(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("server", line_server);
    let count = std::env::var("CLIENTS").ok();
    let count = count.and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let clients = sim.actors("client", count, |number, net| async move {
        net.sleep(ms(1 + number as u64 % 50)).await;
        for round in 0..2 {
            ask(&net, &format!("{} {number} {round}", net.name())).await?;
        }
        Ok::<(), io::Error>(())
    });
    sim.run_until(MINUTE)?;
    for client in &clients {
        assert_eq!(sim.state(client), HostState::Exited(0), "{}", sim.log());
    }
    Ok(())
}

// Guarantee: host-10.
#[corsair_host::test(seeds = 3, deterministic = true)]
fn an_actor_sees_a_kill_and_a_partition_as_a_program_does(sim: &mut Sim) -> Result<(), SimError> {
    let server = sim.host("server", line_server);
    let client = sim.actor("client", |net| async move {
        let mut answered = 0;
        for round in 0..40 {
            match net
                .timeout(ms(300), ask(&net, &format!("round {round}")))
                .await
            {
                Some(Ok(())) => answered += 1,
                Some(Err(error)) => net.log(&format!("failed: {error}")),
                None => net.log("failed: time-out"),
            }
            net.sleep(ms(100)).await;
        }
        net.log(&format!("answered {answered}"));
    });
    sim.at(ms(500), Fault::kill(&server));
    sim.at(ms(1_000), Fault::start(&server));
    sim.at(ms(1_500), Fault::partition(&[server], &[client]));
    sim.at(ms(2_500), Fault::heal(&[server], &[client]));
    sim.run_until(ms(20_000))?;
    let log = sim.log();
    for part in [
        "Connection refused (os error 111)",
        "failed: time-out",
        "answered ",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert_eq!(sim.state(&client), HostState::Exited(0), "{log}");
    Ok(())
}

/// A real client reads a megabyte from an actor and sends it back.
#[corsair_host::test(deterministic = true)]
fn a_program_is_a_client_of_an_actor(sim: &mut Sim) -> Result<(), SimError> {
    const SIZE: usize = 1 << 20;
    fn byte(index: usize) -> u8 {
        (index * 7 % 251) as u8
    }
    sim.actor("server", |net| async move {
        let listener = net.listen(9)?;
        let mut stream = listener.accept().await;
        let bytes: Vec<u8> = (0..SIZE).map(byte).collect();
        stream.write_all(&bytes).await?;
        stream.shutdown().await?;
        let mut back = vec![];
        stream.read_to_end(&mut back).await?;
        assert!(back == bytes, "{} bytes", back.len());
        // The next client is refused, because the listener was dropped.
        drop(listener);
        net.sleep(MINUTE).await;
        Ok::<(), io::Error>(())
    });
    let client = sim.host("client", || {
        std::thread::sleep(ms(5));
        let mut stream = TcpStream::connect("server:9").unwrap();
        let mut bytes = vec![];
        stream.read_to_end(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
        drop(stream);
        std::thread::sleep(ms(100));
        let refused = TcpStream::connect("server:9").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    });
    sim.run_until(MINUTE / 2)?;
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    Ok(())
}

#[corsair_host::test(deterministic = true)]
fn datagrams_go_both_ways(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("echo", || {
        let socket = UdpSocket::bind("0.0.0.0:7").unwrap();
        let mut buffer = [0; 100];
        loop {
            let (count, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&buffer[..count], from).unwrap();
        }
    });
    let actor = sim.actor("actor", |net| async move {
        net.sleep(ms(1)).await;
        let socket = net.bind(0)?;
        for number in 0..10u8 {
            socket.send_to(&[number], "echo:7")?;
            let (data, from) = socket.recv_from().await;
            assert_eq!((data, from.port()), (vec![number], 7));
        }
        assert!(socket.send_to(&[], "nobody:7").is_err());
        Ok::<(), io::Error>(())
    });
    sim.run_until(ms(500))?;
    assert_eq!(sim.state(&actor), HostState::Exited(0), "{}", sim.log());
    Ok(())
}

/// Serves hundreds of connections from programs in one actor, with futures that it spawns.
#[corsair_host::test(deterministic = true)]
fn an_actor_serves_connections_side_by_side(sim: &mut Sim) -> Result<(), SimError> {
    sim.actor("server", |net| async move {
        let listener = net.listen(7)?;
        loop {
            let (mut stream, own) = (listener.accept().await, net.clone());
            net.spawn(async move {
                own.sleep(ms(10)).await;
                let (mut read, mut write) = tokio::io::split(&mut stream);
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
        #[allow(unreachable_code, reason = "says the type")]
        Ok::<(), io::Error>(())
    });
    let clients = sim.hosts("client", 3, |_| {
        std::thread::sleep(ms(2));
        let streams = (0..100).map(|_| TcpStream::connect("server:7").unwrap());
        for mut stream in streams.collect::<Vec<_>>() {
            stream.write_all(b"hello").unwrap();
            let mut answer = [0; 5];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"hello");
        }
        let local = TcpListener::bind("0.0.0.0:0");
        assert!(local.is_ok());
    });
    sim.run_until(ms(5_000))?;
    for client in &clients {
        assert_eq!(sim.state(client), HostState::Exited(0), "{}", sim.log());
    }
    Ok(())
}

/// Returns the state of an actor that fails, and the text of the error.
fn failure<B>(sim: &mut Sim, body: impl Fn(Net) -> B + Send + Sync + 'static) -> (HostState, String)
where
    B: Future<Output: corsair_host::Outcome> + Send + 'static,
{
    let actor = sim.actor("unlucky", body);
    let error = sim.run_until(MINUTE).unwrap_err().to_string();
    (sim.state(&actor), error)
}

// Guarantee: host-4.
#[corsair_host::test]
fn a_panic_of_an_actor_fails_the_simulation(sim: &mut Sim) {
    let (state, text) = failure(sim, |net| async move {
        net.sleep(ms(3)).await;
        assert!(net.now().as_nanos() == 0, "the time has come");
    });
    assert_eq!(state, HostState::Panicked, "{text}");
    assert!(text.contains("panicked: the time has come"), "{text}");
}

#[corsair_host::test]
fn an_error_of_an_actor_fails_the_simulation(sim: &mut Sim) {
    let (state, text) = failure(
        sim,
        |net| async move { net.connect("nobody:1").await.map(drop) },
    );
    assert_eq!(state, HostState::Exited(1), "{text}");
    assert!(text.contains("there is no host 'nobody'"), "{text}");
}

#[corsair_host::test]
fn an_actor_that_awaits_something_else_is_named(sim: &mut Sim) {
    let (state, text) = failure(sim, |net| async move {
        net.sleep(ms(1)).await;
        std::future::pending::<()>().await;
    });
    assert_eq!(state, HostState::Deadlocked, "{text}");
    assert!(text.contains("host unlucky is deadlocked"), "{text}");
    assert!(text.contains("await only futures of Net"), "{text}");
}

#[corsair_host::test]
fn an_actor_that_never_waits_is_stopped(sim: &mut Sim) {
    let (state, text) = failure(sim, |_| {
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            std::task::Poll::<()>::Pending
        })
    });
    assert_eq!(state, HostState::Stuck, "{text}");
}
