//! Runs the same scripts on the real kernel's loopback and on a simulated host; every observed line must be equal.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]
#![allow(unsafe_code, reason = "calls the C library, like simulated programs")]

use corsair_host::{Sim, SimError};
use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Runs a script on this machine and on a host, and compares their lines.
fn compare(sim: &mut Sim, script: fn() -> Vec<String>) -> Result<(), SimError> {
    let real = script();
    sim.host("host", move || {
        script().iter().for_each(|line| println!("{line}"))
    });
    sim.run_until(Duration::from_secs(60))?;
    let simulated: Vec<String> = sim.lines().into_iter().map(|line| line.text).collect();
    for (real, simulated) in real.iter().zip(&simulated) {
        assert_eq!(real, simulated, "real and simulated");
    }
    assert_eq!(real.len(), simulated.len());
    Ok(())
}

fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

fn seen<T: Debug>(what: &str, result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{what}: {value:?}"),
        Err(error) => format!("{what}: {error}"),
    }
}

fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn tcp() -> Vec<String> {
    let mut lines = vec![];
    let mut buffer = [0u8; 16];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    lines.push(seen("bind twice", TcpListener::bind(address).map(drop)));
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    lines.push(seen(
        "connect to a closed port",
        TcpStream::connect(closed).map(drop),
    ));
    lines.push(seen(
        "bind a foreign address",
        TcpListener::bind("192.0.2.1:0").map(drop),
    ));

    let (mut client, server) = pair(&listener);
    drop(server);
    pause();
    lines.push(seen("read after a close", client.read(&mut buffer)));
    lines.push(seen("write after a close", client.write(b"x")));
    pause();
    lines.push(seen("write again", client.write(b"x")));
    lines.push(seen("read again", client.read(&mut buffer)));
    lines.push(seen(
        "error",
        client
            .take_error()
            .map(|error| error.map(|error| error.kind())),
    ));

    let (mut client, server) = pair(&listener);
    client.write_all(b"unread").unwrap();
    pause();
    drop(server);
    pause();
    lines.push(seen(
        "read after a close with unread data",
        client.read(&mut buffer),
    ));
    lines.push(seen("then", client.read(&mut buffer)));
    lines.push(seen("write then", client.write(b"x")));

    let (mut client, mut server) = pair(&listener);
    server.write_all(b"tail").unwrap();
    client.write_all(b"unread").unwrap();
    pause();
    drop(server);
    pause();
    lines.push(seen("data before a reset", client.read(&mut buffer)));

    let (mut client, mut server) = pair(&listener);
    client.write_all(b"abc").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    lines.push(seen("write after shutdown", client.write(b"x")));
    let mut all = vec![];
    lines.push(seen("half-closed", server.read_to_end(&mut all)));
    server.write_all(&all).unwrap();
    drop(server);
    lines.push(seen("answer", client.read_to_end(&mut all)));

    let (mut client, mut server) = pair(&listener);
    client
        .set_read_timeout(Some(Duration::from_millis(30)))
        .unwrap();
    lines.push(seen("read time-out", client.read(&mut buffer)));
    server.write_all(b"hello").unwrap();
    pause();
    lines.push(seen("peek", client.peek(&mut buffer)));
    lines.push(seen("read", client.read(&mut buffer)));
    client.set_nonblocking(true).unwrap();
    lines.push(seen("non-blocking read", client.read(&mut buffer)));
    let big = vec![0u8; 1 << 20];
    let mut written = 0;
    let end = loop {
        match client.write(&big) {
            Ok(count) => written += count,
            Err(error) => break error,
        }
    };
    lines.push(format!("fill the buffer: {} then {end}", written > 60_000));
    lines.push(seen(
        "shutdown for reading",
        server.shutdown(Shutdown::Read),
    ));

    let (mut client, server) = pair(&listener);
    let agree = client.local_addr().unwrap() == server.peer_addr().unwrap();
    lines.push(format!("addresses agree: {agree}"));
    lines.push(seen(
        "no delay",
        client.set_nodelay(true).and_then(|()| client.nodelay()),
    ));
    lines.push(seen(
        "time to live",
        client.set_ttl(12).and_then(|()| client.ttl()),
    ));
    lines.push(seen("linger", client.set_nonblocking(false)));
    client.shutdown(Shutdown::Both).unwrap();
    lines.push(seen("shutdown twice", client.shutdown(Shutdown::Both)));
    pause();
    lines.push(seen("read after shutdown", client.read(&mut buffer)));
    drop(server);
    listener.set_nonblocking(true).unwrap();
    lines.push(seen("non-blocking accept", listener.accept().map(drop)));
    lines
}

fn udp() -> Vec<String> {
    let mut lines = vec![];
    let mut buffer = [0u8; 4];
    let one = UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    lines.push(seen(
        "bind twice",
        UdpSocket::bind(one.local_addr().unwrap()).map(drop),
    ));
    lines.push(seen("send without a peer", one.send(b"x")));
    lines.push(seen("peer", one.peer_addr().map(drop)));
    lines.push(seen(
        "send",
        one.send_to(b"long datagram", other.local_addr().unwrap()),
    ));
    lines.push(seen("empty", one.send_to(b"", other.local_addr().unwrap())));
    pause();
    lines.push(seen("peek", other.peek(&mut buffer)));
    lines.push(seen("cut", other.recv(&mut buffer)));
    lines.push(seen("empty", other.recv(&mut buffer)));
    other
        .set_read_timeout(Some(Duration::from_millis(30)))
        .unwrap();
    lines.push(seen("time-out", other.recv(&mut buffer)));
    let gone = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    one.connect(gone).unwrap();
    lines.push(seen("send to nobody", one.send(b"x")));
    pause();
    lines.push(seen("then", one.send(b"x")));
    pause();
    one.set_nonblocking(true).unwrap();
    lines.push(seen("then receive", one.recv(&mut buffer)));
    lines.push(seen("and again", one.recv(&mut buffer)));
    lines.push(seen("too long", other.send_to(&[0; 65_508], gone)));
    lines
}

/// Returns the ready events of an epoll object, without waiting.
fn events(epoll: RawFd) -> String {
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
    // SAFETY: the array has eight entries.
    let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), 8, 0) };
    let mut seen: Vec<(u64, u32)> = events[..count as usize]
        .iter()
        .map(|event| (event.u64, event.events))
        .collect();
    seen.sort_unstable();
    format!("{seen:x?}")
}

fn watch(epoll: RawFd, operation: i32, fd: RawFd, events: i32, data: u64) -> i32 {
    let mut event = libc::epoll_event {
        events: events as u32,
        u64: data,
    };
    // SAFETY: the event is valid for reads.
    unsafe { libc::epoll_ctl(epoll, operation, fd, &mut event) }
}

fn epoll() -> Vec<String> {
    let mut lines = vec![];
    let mut buffer = [0u8; 16];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: the call takes no pointers.
    let epoll = unsafe { libc::epoll_create1(0) };
    let (add, modify, delete) = (
        libc::EPOLL_CTL_ADD,
        libc::EPOLL_CTL_MOD,
        libc::EPOLL_CTL_DEL,
    );
    let input = libc::EPOLLIN | libc::EPOLLRDHUP;
    watch(epoll, add, listener.as_raw_fd(), input, 1);
    lines.push(format!("nothing: {}", events(epoll)));
    let (mut client, mut server) = pair(&listener);
    pause();
    lines.push(format!("accepted already: {}", events(epoll)));
    lines.push(format!(
        "add twice: {}",
        watch(epoll, add, listener.as_raw_fd(), input, 1)
    ));
    lines.push(format!(
        "change unknown: {}",
        watch(epoll, modify, server.as_raw_fd(), input, 2)
    ));

    watch(epoll, add, server.as_raw_fd(), input, 2);
    client.write_all(b"ab").unwrap();
    pause();
    lines.push(format!("level: {}", events(epoll)));
    lines.push(format!("level again: {}", events(epoll)));
    lines.push(seen("read", server.read(&mut buffer)));
    lines.push(format!("level after: {}", events(epoll)));

    watch(epoll, modify, server.as_raw_fd(), input | libc::EPOLLET, 3);
    client.write_all(b"ab").unwrap();
    pause();
    lines.push(format!("edge: {}", events(epoll)));
    lines.push(format!("edge again: {}", events(epoll)));
    client.write_all(b"ab").unwrap();
    pause();
    lines.push(format!("edge of more: {}", events(epoll)));
    watch(epoll, modify, server.as_raw_fd(), input | libc::EPOLLET, 4);
    lines.push(format!("edge after a change: {}", events(epoll)));

    watch(
        epoll,
        modify,
        server.as_raw_fd(),
        input | libc::EPOLLONESHOT,
        5,
    );
    lines.push(format!("once: {}", events(epoll)));
    client.write_all(b"ab").unwrap();
    pause();
    lines.push(format!("not again: {}", events(epoll)));
    watch(epoll, modify, server.as_raw_fd(), input | libc::EPOLLOUT, 6);
    lines.push(format!("armed again: {}", events(epoll)));
    client.shutdown(Shutdown::Write).unwrap();
    pause();
    lines.push(format!("half-closed: {}", events(epoll)));
    drop(client);
    pause();
    lines.push(format!("closed: {}", events(epoll)));
    lines.push(format!(
        "delete: {}",
        watch(epoll, delete, server.as_raw_fd(), 0, 0)
    ));
    lines.push(format!("deleted: {}", events(epoll)));

    // SAFETY: the only pointer leads to an array of two descriptors.
    let (counter, ends) = unsafe {
        let mut ends = [0; 2];
        libc::pipe2(ends.as_mut_ptr(), libc::O_NONBLOCK);
        (libc::eventfd(0, libc::EFD_NONBLOCK), ends)
    };
    watch(epoll, add, counter, libc::EPOLLIN, 7);
    watch(epoll, add, ends[0], libc::EPOLLIN, 8);
    watch(epoll, add, ends[1], libc::EPOLLOUT | libc::EPOLLET, 9);
    lines.push(format!("event and pipe: {}", events(epoll)));
    let one = 1u64.to_ne_bytes();
    // SAFETY: the buffers are valid for their lengths.
    let counts = unsafe {
        [
            libc::write(counter, one.as_ptr().cast(), 8),
            libc::write(ends[1], b"abc".as_ptr().cast(), 3),
        ]
    };
    lines.push(format!("written {counts:?}: {}", events(epoll)));
    // SAFETY: the buffer is valid for its length.
    let counts = unsafe {
        [
            libc::read(counter, buffer.as_mut_ptr().cast(), 8),
            libc::read(counter, buffer.as_mut_ptr().cast(), 8),
            libc::read(ends[0], buffer.as_mut_ptr().cast(), 16),
            libc::close(ends[1]) as isize,
        ]
    };
    lines.push(format!("read {counts:?}: {}", events(epoll)));
    lines
}

fn socket_pair() -> Vec<String> {
    let mut lines = vec![];
    let mut buffer = [0u8; 16];
    let (mut one, mut other) = UnixStream::pair().unwrap();
    let ready = |stream: &UnixStream| {
        let events = libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP;
        let mut list = libc::pollfd {
            fd: stream.as_raw_fd(),
            events,
            revents: 0,
        };
        // SAFETY: the list has one entry.
        let count = unsafe { libc::poll(&mut list, 1, 0) };
        format!("{count} {:x}", list.revents)
    };
    lines.push(format!("new: {}", ready(&one)));
    one.write_all(b"abc").unwrap();
    lines.push(format!("written: {}", ready(&other)));
    lines.push(seen("read", other.read(&mut buffer)));
    one.shutdown(Shutdown::Write).unwrap();
    lines.push(format!(
        "half-closed: {} and {}",
        ready(&one),
        ready(&other)
    ));
    lines.push(seen("write", one.write(b"x")));
    lines.push(seen("read at the end", other.read(&mut buffer)));
    other.write_all(b"tail").unwrap();
    drop(other);
    lines.push(format!("closed: {}", ready(&one)));
    lines.push(seen("read the tail", one.read(&mut buffer)));
    lines.push(seen("read at the end", one.read(&mut buffer)));
    lines.push(seen("write to nobody", one.write(b"x")));
    one.set_nonblocking(true).unwrap();
    lines.push(format!("at last: {}", ready(&one)));
    lines
}

#[corsair_host::test]
fn socket_pairs_are_those_of_the_real_kernel(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, socket_pair)
}

// Guarantee: host-8.
#[corsair_host::test]
fn tcp_is_that_of_the_real_loopback(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, tcp)
}

#[corsair_host::test]
fn udp_is_that_of_the_real_loopback(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, udp)
}

#[corsair_host::test]
fn epoll_is_that_of_the_real_kernel(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, epoll)
}
