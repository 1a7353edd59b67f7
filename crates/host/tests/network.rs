//! Networks between hosts: datagrams, IPv6, loss, partitions, power loss, and what programs see of the machine.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]

use corsair::network::{Jitter, Lossy};
use corsair_host::{Fault, HostState, Sim, SimError};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[corsair_host::test(deterministic = true)]
fn datagrams_travel_and_a_closed_port_refuses(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("server", || {
        let socket = UdpSocket::bind("0.0.0.0:53").unwrap();
        let mut buffer = [0; 100];
        let (count, peer) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..count], peer).unwrap();
        std::thread::sleep(ms(100));
    });
    sim.host("client", || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect("server:53").unwrap();
        std::thread::sleep(ms(10));
        socket.send(b"question").unwrap();
        let mut buffer = [0; 4];
        assert_eq!(socket.recv(&mut buffer).unwrap(), 4, "the rest is cut");
        socket.connect("server:54").unwrap();
        socket.send(b"anybody?").unwrap();
        std::thread::sleep(ms(10));
        assert_eq!(
            socket.recv(&mut buffer).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        socket.set_read_timeout(Some(ms(25))).unwrap();
        assert_eq!(
            socket.recv(&mut buffer).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
    });
    sim.run_until(MINUTE)
}

/// Sends a mebibyte to a server that returns it.
fn exchange(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let sent: Vec<u8> = (0..1 << 20).map(|n: u32| (n % 251) as u8).collect();
    let mut reader = stream.try_clone().unwrap();
    let thread = std::thread::spawn(move || {
        let mut received = vec![];
        reader.read_to_end(&mut received).unwrap();
        received
    });
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(thread.join().unwrap() == sent);
}

fn mirror() {
    let listener = TcpListener::bind("[::]:7").unwrap();
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 10_000];
        while let count @ 1.. = stream.read(&mut buffer).unwrap() {
            stream.write_all(&buffer[..count]).unwrap();
        }
    }
}

#[corsair_host::test(deterministic = true)]
fn streams_over_both_protocols_arrive_whole(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("server", mirror);
    let four = sim.host("four", || exchange("10.0.0.1:7"));
    let six = sim.host("six", || exchange("[fd00::1]:7"));
    let own = sim.host("own", || {
        std::thread::spawn(mirror);
        std::thread::sleep(ms(1));
        exchange("localhost:7");
    });
    sim.run_until(MINUTE)?;
    for host in [four, six, own] {
        assert_eq!(sim.state(&host), HostState::Exited(0), "{}", sim.log());
    }
    Ok(())
}

#[corsair_host::test(seeds = 3, deterministic = true)]
fn streams_survive_loss_and_reordering(sim: &mut Sim) -> Result<(), SimError> {
    let jitter = Jitter::new(ms(1), ms(20)).unwrap();
    sim.network(Lossy::new(jitter, 0.05).unwrap());
    sim.host("server", mirror);
    let client = sim.host("client", || exchange("server:7"));
    sim.run_until(Duration::from_secs(600))?;
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    Ok(())
}

fn patient_client() {
    for attempt in 0..6 {
        let address = "10.0.0.1:7".parse().unwrap();
        match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
            Ok(_) => println!("attempt {attempt}: connected"),
            Err(error) => println!("attempt {attempt}: {:?}", error.kind()),
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn attempts(sim: &Sim) -> Vec<String> {
    sim.lines().into_iter().map(|line| line.text).collect()
}

#[corsair_host::test(deterministic = true)]
fn a_partition_is_silent_until_it_heals(sim: &mut Sim) -> Result<(), SimError> {
    let server = sim.host("server", mirror);
    let client = sim.host("client", patient_client);
    sim.at(ms(500), Fault::partition(&[server], &[client]));
    sim.at(ms(4_500), Fault::heal(&[server], &[client]));
    sim.run_until(MINUTE)?;
    let seen = attempts(sim);
    assert_eq!(seen[0], "attempt 0: connected");
    assert_eq!(seen[1], "attempt 1: TimedOut");
    assert_eq!(seen[5], "attempt 5: connected");
    Ok(())
}

#[corsair_host::test(deterministic = true)]
fn power_loss_is_silent_and_a_kill_refuses(sim: &mut Sim) -> Result<(), SimError> {
    let server = sim.host("server", mirror);
    sim.host("client", patient_client);
    sim.at(ms(500), Fault::power_loss(&server));
    sim.at(ms(2_500), Fault::start(&server));
    sim.at(ms(3_500), Fault::kill(&server));
    sim.run_until(MINUTE)?;
    let seen = attempts(sim);
    assert_eq!(seen[1], "attempt 1: TimedOut");
    assert_eq!(seen[2], "attempt 2: connected");
    assert_eq!(seen[3], "attempt 3: ConnectionRefused");
    Ok(())
}

// Guarantee: host-2.
#[corsair_host::test]
fn nothing_of_the_machine_is_seen(sim: &mut Sim) -> Result<(), SimError> {
    sim.env("MODE", "test");
    let host = sim.host("island", || {
        assert_eq!(std::thread::available_parallelism().unwrap().get(), 2);
        assert_eq!(std::process::id(), 100);
        let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
        for name in &names {
            assert!(
                ["HOME", "LANG", "PATH", "TZ", "MODE"].contains(&name.as_str())
                    || name.starts_with("RUST_"),
                "{name}"
            );
        }
        assert!(std::fs::read("/etc/hostname").is_err() && std::fs::read_dir("/usr").is_err());
        assert_eq!(std::env::current_dir().unwrap().to_str(), Some("/"));
        assert!(std::net::TcpStream::connect("nowhere:1").is_err());
        assert!(std::net::TcpStream::connect("192.0.2.1:1").is_err());
    });
    sim.run_until(MINUTE)?;
    assert_eq!(sim.state(&host), HostState::Exited(0), "{}", sim.log());
    Ok(())
}

/// Sets an environment variable of the simulation's process, which has one thread.
#[allow(unsafe_code, reason = "sets an environment variable")]
fn set(name: &str, value: &str) {
    // SAFETY: a simulation that has not begun has one thread.
    unsafe { std::env::set_var(name, value) };
}

#[corsair_host::test]
fn packets_and_calls_are_shown_on_request(sim: &mut Sim) -> Result<(), SimError> {
    let path = std::env::temp_dir().join(format!("corsair-{}.pcap", std::process::id()));
    set("PCAP", path.to_str().unwrap());
    set("STRACE", "client");
    sim.host("server", mirror);
    sim.host("client", || exchange("10.0.0.1:7"));
    sim.run_until(MINUTE)?;
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(file[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    assert!(file.len() > 2 << 20, "a mebibyte in each direction");
    let log = sim.log();
    assert!(log.contains("connect(") && log.contains("waits"), "{log}");
    assert!(!log.contains("accept4("), "the server is not traced: {log}");
    Ok(())
}

#[corsair_host::test]
fn a_wrong_request_of_debugging_is_an_error(sim: &mut Sim) {
    set("STOP", "web-1@soon");
    sim.host("server", || ());
    let error = sim.run_until(MINUTE).unwrap_err().to_string();
    assert!(
        error.contains("STOP=web-1@soon is not a host and a time"),
        "{error}"
    );
}

/// Accepts connections at a port that two listeners share, and prints how many each got.
fn shared_port() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let listen = || {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_reuseport(true).unwrap();
            assert!(socket.reuseport().unwrap());
            socket.bind("0.0.0.0:80".parse().unwrap()).unwrap();
            socket.listen(64).unwrap()
        };
        let (one, other) = (listen(), listen());
        let alone = tokio::net::TcpSocket::new_v4().unwrap();
        let refused = alone.bind("0.0.0.0:80".parse().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
        let mut counts = [0, 0];
        for _ in 0..40 {
            tokio::select! {
                accepted = one.accept() => { accepted.unwrap(); counts[0] += 1; }
                accepted = other.accept() => { accepted.unwrap(); counts[1] += 1; }
            }
        }
        println!("{}", counts[0] > 5 && counts[1] > 5);
        drop(one);
        // What is left of the port is the other listener.
        let accepted = other.accept().await.unwrap();
        drop(accepted);
        println!("the other");
    });
}

/// As in Linux, connections are shared among the listeners of one port.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn listeners_share_a_port(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("server", shared_port);
    sim.host("client", || {
        std::thread::sleep(ms(1));
        for _ in 0..41 {
            std::net::TcpStream::connect("server:80").unwrap();
            std::thread::sleep(ms(1));
        }
    });
    sim.run_until(ms(10_000))?;
    let lines: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    assert_eq!(lines, ["true", "the other"], "{}", sim.log());
    Ok(())
}
