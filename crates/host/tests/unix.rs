//! Unix sockets and signals: comparison with the real kernel, and tokio's interfaces to both.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]
#![allow(unsafe_code, reason = "calls the C library, like simulated programs")]

use corsair_host::{Fault, HostState, Sim, SimError};
use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn seen<T: Debug>(what: &str, result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{what}: {value:?}"),
        Err(error) => format!("{what}: {error}"),
    }
}

/// Runs a script on this machine and on a host, and compares their lines.
fn compare(sim: &mut Sim, name: &str, script: fn(&Path) -> Vec<String>) -> Result<(), SimError> {
    let directory = std::env::temp_dir().join(format!("corsair-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::env::set_current_dir(&directory).unwrap();
    // The paths are relative, so that the addresses are equal.
    let real = script(Path::new("."));
    std::fs::remove_dir_all(&directory).unwrap();
    sim.host("host", move || {
        std::env::set_current_dir("/tmp").unwrap();
        let lines = script(Path::new("."));
        lines.iter().for_each(|line| println!("{line}"));
    });
    sim.run_until(MINUTE)?;
    let simulated: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    for (real, simulated) in real.iter().zip(&simulated) {
        assert_eq!(real, simulated, "real and simulated");
    }
    assert_eq!(real.len(), simulated.len());
    Ok(())
}

fn streams(here: &Path) -> Vec<String> {
    let path = here.join("socket");
    let mut buffer = [0; 16];
    let mut lines = vec![seen(
        "connect to nothing",
        UnixStream::connect(&path).map(drop),
    )];
    std::fs::write(here.join("file"), "").unwrap();
    lines.push(seen(
        "connect to a file",
        UnixStream::connect(here.join("file")).map(drop),
    ));
    let listener = UnixListener::bind(&path).unwrap();
    lines.push(seen("bind twice", UnixListener::bind(&path).map(drop)));
    lines.push(seen("address", listener.local_addr()));
    lines.push(seen("open", std::fs::File::open(&path).map(drop)));
    let mut client = UnixStream::connect(&path).unwrap();
    client.write_all(b"early").unwrap();
    let (mut server, address) = listener.accept().unwrap();
    lines.push(format!("{address:?}"));
    lines.push(seen("peer", client.peer_addr()));
    lines.push(seen("own", client.local_addr()));
    lines.push(seen("server's own", server.local_addr()));
    lines.push(seen("server's peer", server.peer_addr()));
    lines.push(seen("read", server.read(&mut buffer)));
    lines.push(seen("write", server.write(b"answer")));
    drop(server);
    lines.push(seen("read", client.read(&mut buffer)));
    lines.push(seen("end", client.read(&mut buffer)));
    lines.push(seen("write to nobody", client.write(b"x")));
    let waiting = UnixStream::connect(&path).unwrap();
    drop(listener);
    let mut waiting = waiting;
    lines.push(seen("never accepted", waiting.read(&mut buffer)));
    lines.push(seen("then", waiting.read(&mut buffer)));
    let (mut one, mut other) = UnixStream::pair().unwrap();
    one.write_all(b"unread").unwrap();
    other.write_all(b"tail").unwrap();
    drop(other);
    lines.push(seen("before a reset", one.read(&mut buffer)));
    lines.push(seen("write", one.write(b"x")));
    lines.push(seen("reset", one.read(&mut buffer)));
    lines.push(seen("end", one.read(&mut buffer)));
    lines.push(seen("closed", UnixStream::connect(&path).map(drop)));
    lines.push(seen("bind again", UnixListener::bind(&path).map(drop)));
    std::fs::remove_file(&path).unwrap();
    lines.push(seen("after removal", UnixListener::bind(&path).map(drop)));
    lines.push(seen(
        "is there",
        std::fs::symlink_metadata(&path).map(|data| data.is_file()),
    ));
    lines
}

fn datagrams(here: &Path) -> Vec<String> {
    let (one_path, other_path) = (here.join("one"), here.join("other"));
    let one = UnixDatagram::bind(&one_path).unwrap();
    let other = UnixDatagram::bind(&other_path).unwrap();
    let nameless = UnixDatagram::unbound().unwrap();
    let mut buffer = [0; 5];
    let mut lines = vec![
        seen("send", one.send_to(b"letter", &other_path)),
        seen("receive", other.recv_from(&mut buffer)),
        seen("without a name", nameless.send_to(b"hi", &one_path)),
        seen("from nobody", one.recv_from(&mut buffer)),
        seen("without a peer", one.send(b"x")),
        seen("to nothing", one.send_to(b"x", here.join("nothing"))),
        seen("connect", one.connect(&other_path)),
        seen("peer", one.peer_addr()),
        seen("send", one.send(b"")),
        seen("empty", other.recv(&mut buffer)),
        seen("own", nameless.local_addr()),
    ];
    other
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    lines.push(seen("time-out", other.recv(&mut buffer)));
    one.set_nonblocking(true).unwrap();
    let full = (0..1000).find_map(|_| one.send(b"x").err());
    lines.push(format!("full: {full:?}"));
    drop(other);
    lines.push(seen("to the closed", one.send(b"x")));
    let (left, right) = UnixDatagram::pair().unwrap();
    lines.push(seen("pair", left.send(b"abc")));
    lines.push(seen("pair", right.recv(&mut buffer)));
    drop(right);
    lines.push(seen("to the closed", left.send(b"abc")));
    lines
}

/// A thread sends signals to this process, which reads them from a descriptor.
fn signal_descriptor(_: &Path) -> Vec<String> {
    // SAFETY: the set is initialized before it is used; the buffer holds one record.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &set, libc::SFD_NONBLOCK);
        let mut info: libc::signalfd_siginfo = std::mem::zeroed();
        let size = size_of_val(&info);
        let mut read = || {
            let count = libc::read(fd, (&raw mut info).cast(), size);
            let error = io::Error::last_os_error()
                .raw_os_error()
                .filter(|_| count < 0);
            format!("{count} {error:?} {}", info.ssi_signo)
        };
        let mut lines = vec![read()];
        // Sent from this thread, to which the real kernel delivers it.
        libc::kill(libc::getpid(), libc::SIGUSR1);
        lines.extend([read(), read()]);
        lines
    }
}

// Guarantee: host-8.
#[corsair_host::test]
fn unix_streams_are_those_of_the_real_kernel(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "streams", streams)
}

#[corsair_host::test]
fn unix_datagrams_are_those_of_the_real_kernel(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "datagrams", datagrams)
}

#[corsair_host::test]
fn signal_descriptors_are_those_of_the_real_kernel(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "signals", signal_descriptor)
}

/// A service that ends when it is requested to, over a Unix socket and by a signal.
#[tokio::main]
async fn graceful() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let listener = tokio::net::UnixListener::bind("/tmp/control").unwrap();
    let client = tokio::spawn(async {
        let mut stream = tokio::net::UnixStream::connect("/tmp/control")
            .await
            .unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    });
    let (mut stream, _) = listener.accept().await.unwrap();
    assert_eq!(stream.peer_cred().unwrap().uid(), 1000);
    let mut buffer = [0; 5];
    stream.read_exact(&mut buffer).await.unwrap();
    stream.write_all(b"bye").await.unwrap();
    drop(stream);
    println!("{}", client.await.unwrap());
    let started = tokio::time::Instant::now();
    terminate.recv().await;
    println!("asked to end after {:?}", started.elapsed().as_secs());
}

#[corsair_host::test(seeds = 3, deterministic = true)]
fn tokio_sees_signals_and_named_sockets(sim: &mut Sim) -> Result<(), SimError> {
    let host = sim.host("host", graceful);
    sim.at(Duration::from_secs(3), Fault::signal(&host, 15));
    sim.run_until(MINUTE)?;
    assert_eq!(sim.state(&host), HostState::Exited(0), "{}", sim.log());
    let lines: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    assert_eq!(lines, ["bye", "asked to end after 2"]);
    Ok(())
}

#[corsair_host::test]
fn a_program_without_a_handler_is_killed(sim: &mut Sim) -> Result<(), SimError> {
    let host = sim.host("host", || {
        std::thread::sleep(MINUTE);
    });
    sim.at(
        Duration::from_secs(1),
        Fault::signal(&host, libc::SIGTERM as u32),
    );
    sim.run_until(Duration::from_secs(2))?;
    assert_eq!(sim.state(&host), HostState::Killed);
    Ok(())
}

static HANDLED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

extern "C" fn count(_: i32) {
    HANDLED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

#[corsair_host::test]
fn a_handler_interrupts_a_wait(sim: &mut Sim) -> Result<(), SimError> {
    let host = sim.host("host", || {
        // SAFETY: the handler only counts; the array has one entry.
        unsafe {
            libc::signal(libc::SIGUSR2, count as *const () as usize);
            let (one, _other) = UnixStream::pair().unwrap();
            let mut list = libc::pollfd {
                fd: one.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            assert_eq!(libc::poll(&mut list, 1, 5_000), -1);
            assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EINTR));
            libc::raise(libc::SIGUSR2);
        }
        assert_eq!(HANDLED.load(std::sync::atomic::Ordering::Relaxed), 2);
        println!("handled");
    });
    sim.at(
        Duration::from_secs(1),
        Fault::signal(&host, libc::SIGUSR2 as u32),
    );
    sim.run_until(MINUTE)?;
    assert_eq!(sim.lines()[0].time.as_nanos() / 1_000_000, 1000);
    assert_eq!(sim.state(&host), HostState::Exited(0), "{}", sim.log());
    Ok(())
}
