//! Programs on hosts: threads, clocks, sockets, tokio, faults.

#![allow(clippy::print_stdout, reason = "what programs print is the log")]

use corsair_host::{Fault, HostState, Sim, SimError};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

const MINUTE: Duration = Duration::from_secs(60);

fn echo_server() {
    let listener = TcpListener::bind("0.0.0.0:7").unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                stream.write_all(&buffer[..count]).unwrap();
            }
        });
    }
}

fn echo_client() {
    let started = Instant::now();
    let mut stream = TcpStream::connect("server:7").unwrap();
    stream.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
    let map: HashMap<u32, u32> = (0..20).map(|n| (n, n)).collect();
    println!(
        "{:?} at {:?}: {:?}",
        started.elapsed(),
        SystemTime::now(),
        map.keys()
    );
}

// Guarantee: host-1.
#[corsair_host::test(seeds = 3, deterministic = true)]
fn a_program_of_std_talks_to_another(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("server", echo_server);
    let client = sim.host("client", echo_client);
    sim.run_until(MINUTE)?;
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    Ok(())
}

// Guarantee: host-2.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn the_set_up_sees_nothing_of_the_machine(sim: &mut Sim) -> Result<(), SimError> {
    let state = || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let processors = std::thread::available_parallelism().unwrap().get();
        let map: HashMap<u32, u32> = (0..20).map(|n| (n, n)).collect();
        let keys: Vec<u32> = map.into_keys().collect();
        format!("{now:?} {processors} {keys:?}")
    };
    let started = Instant::now();
    // Time advances by waiting alone.
    let (sender, receiver) = mpsc::channel::<()>();
    assert_eq!(
        receiver.recv_timeout(Duration::from_millis(20)),
        Err(mpsc::RecvTimeoutError::Timeout)
    );
    std::thread::sleep(Duration::from_millis(20));
    drop(sender);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let sleep = async { tokio::time::sleep(Duration::from_millis(20)).await };
    runtime.unwrap().block_on(sleep);
    let on_a_thread = std::thread::spawn(state).join().unwrap();
    assert!(state().starts_with("Ok(1735689600.06s) 2 "), "{}", state());
    assert_eq!(started.elapsed(), Duration::from_millis(60));
    // The heap of the thread that sets up the simulation is at a fixed address.
    let memory = vec![0u8; 1 << 20];
    let seen = format!("{} {on_a_thread} {:p}", state(), memory.as_ptr());
    sim.host("host", move || println!("{seen}"));
    sim.run_until(MINUTE)?;
    assert!(sim.log().contains("Ok(1735689600.06s) 2 "), "{}", sim.log());
    Ok(())
}

// Guarantee: host-9.
#[corsair_host::test]
fn time_passes_by_sleeping_alone(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("sleeper", || {
        let started = Instant::now();
        std::thread::sleep(Duration::from_secs(5));
        assert_eq!(started.elapsed(), Duration::from_secs(5));
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1500));
            sender.send(7).unwrap();
        });
        assert!(receiver.recv_timeout(Duration::from_secs(1)).is_err());
        assert_eq!(receiver.recv(), Ok(7));
        thread.join().unwrap();
        assert_eq!(started.elapsed(), Duration::from_millis(6500));
    });
    sim.run_until(MINUTE)
}

#[corsair_host::test]
fn a_panic_fails_the_simulation_with_the_log(sim: &mut Sim) {
    sim.host("unlucky", || {
        println!("before");
        panic!("there is no number");
    });
    let error = sim.run_until(MINUTE).unwrap_err().to_string();
    assert!(error.contains("host unlucky panicked"), "{error}");
    assert!(
        error.contains("there is no number") && error.contains("before"),
        "{error}"
    );
}

fn tokio_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("0.0.0.0:80").await.unwrap();
        loop {
            let (mut stream, peer) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut buffer = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    if stream.write_all(&buffer[..count]).await.is_err() {
                        println!("{peer} has gone");
                    }
                }
            });
        }
    });
}

fn tokio_client() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut done = 0;
        while done < 20 {
            let attempt = async {
                let mut stream = tokio::net::TcpStream::connect("server:80").await?;
                for number in 0..20u8 {
                    stream.write_all(&[number]).await?;
                    let mut answer = [0];
                    stream.read_exact(&mut answer).await?;
                    done = number + 1;
                }
                Ok::<(), std::io::Error>(())
            };
            match tokio::time::timeout(Duration::from_secs(2), attempt).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => println!("failed: {error}"),
                Err(_) => println!("failed: time-out"),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        println!("done");
    });
}

#[corsair_host::test(seeds = 3, deterministic = true)]
fn tokio_survives_a_kill(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(20);
    let server = sim.host("server", tokio_server);
    let clients = sim.hosts("client", 3, |_| tokio_client());
    sim.at(Duration::from_millis(500), Fault::kill(&server));
    sim.at(Duration::from_millis(1500), Fault::start(&server));
    sim.run_until(MINUTE)?;
    let log = sim.log();
    for client in &clients {
        assert_eq!(sim.state(client), HostState::Exited(0), "{log}");
    }
    assert!(log.contains("Connection refused (os error 111)"), "{log}");
    Ok(())
}

#[corsair_host::test]
fn programs_have_their_own_arguments(sim: &mut Sim) -> Result<(), SimError> {
    let show = || println!("{:?}", std::env::args().collect::<Vec<_>>());
    let one = sim.host("one", show);
    sim.host("other", show);
    sim.args(&one, ["prog", "serve", "--listen", "0.0.0.0:80"]);
    sim.run_until(MINUTE)?;
    let seen: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    let wanted = [
        r#"["prog", "serve", "--listen", "0.0.0.0:80"]"#,
        r#"["other"]"#,
    ];
    assert_eq!(seen, wanted);
    Ok(())
}
