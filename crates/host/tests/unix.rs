//! Unix sockets and signals: comparison with the real kernel, and tokio's interfaces to both.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]
#![allow(unsafe_code, reason = "calls the C library, like simulated programs")]

use corsair_host::{Fault, HostState, Sim, SimError};
use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// Returns the bits that `poll` reports for a descriptor, without waiting.
fn ready(file: &impl AsRawFd) -> String {
    let mut entry = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN | libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the array has one entry.
    let count = unsafe { libc::poll(&mut entry, 1, 0) };
    let names = [
        (libc::POLLIN, "in"),
        (libc::POLLOUT, "out"),
        (libc::POLLERR, "error"),
        (libc::POLLHUP, "hang-up"),
    ];
    let bits = names.map(|(bit, name)| if entry.revents & bit != 0 { name } else { "" });
    format!("ready {count} {}", bits.join(" "))
}

fn command(file: &impl AsRawFd, command: i32, argument: i32) -> String {
    // SAFETY: these commands take a number.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    let failure = io::Error::last_os_error();
    format!("fcntl {result} {:?}", (result < 0).then_some(failure))
}

/// A pipe with a name: opening with and without partners, pages, ends, attributes.
fn named_pipes(here: &Path) -> Vec<String> {
    let path = here.join("pipe");
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let open = |read: bool, write: bool, flags: i32| {
        let mut options = OpenOptions::new();
        options.read(read).write(write).custom_flags(flags);
        options.open(&path)
    };
    // SAFETY: the name ends with a zero byte.
    let make = || unsafe { libc::mkfifo(name.as_ptr(), 0o640) };
    let mut lines = vec![format!("make: {} {}", make(), make())];
    let attributes = std::fs::symlink_metadata(&path).unwrap();
    let kind = attributes.file_type();
    lines.push(format!("{} {:o}", kind.is_fifo(), attributes.mode()));
    let nonblocking = libc::O_NONBLOCK;
    lines.push(seen(
        "writer alone",
        open(false, true, nonblocking).map(drop),
    ));
    let mut reader = open(true, false, nonblocking).unwrap();
    let mut buffer = [0; 10_000];
    lines.push(ready(&reader));
    lines.push(seen("read without a writer", reader.read(&mut buffer)));
    lines.push(seen("write to a reader", reader.write(b"x")));
    let mut writer = open(false, true, nonblocking).unwrap();
    lines.push(seen("read from a writer", writer.read(&mut buffer)));
    lines.extend([ready(&reader), ready(&writer)]);
    lines.push(seen("read nothing", reader.read(&mut buffer)));
    lines.push(seen("write", writer.write(b"abc")));
    lines.push(seen("write", writer.write(b"def")));
    lines.extend([ready(&reader), command(&reader, libc::F_GETFL, 0)]);
    lines.push(command(&writer, libc::F_GETFL, 0));
    lines.push(seen("read", reader.read(&mut buffer[..4])));
    lines.push(format!("{:?}", &buffer[..4]));
    let mut second = open(false, true, 0).unwrap();
    lines.push(seen("second writer", second.write(b"gh")));
    drop(writer);
    lines.push(seen("read from both", reader.read(&mut buffer)));
    lines.push(command(&second, libc::F_GETPIPE_SZ, 0));
    lines.push(command(&second, libc::F_SETPIPE_SZ, 5000));
    second.write_all(&[1; 4000]).unwrap();
    second.write_all(&[2; 4000]).unwrap();
    lines.push(command(&second, libc::F_SETFL, nonblocking));
    lines.push(ready(&second));
    lines.push(seen(
        "more than the last page takes",
        second.write(&[3; 97]),
    ));
    lines.push(seen(
        "as much as the last page takes",
        second.write(&[3; 96]),
    ));
    lines.push(command(&second, libc::F_SETPIPE_SZ, 4096));
    lines.push(seen("less than a page", reader.read(&mut buffer[..3999])));
    lines.push(ready(&second));
    lines.push(seen("rest of the page", reader.read(&mut buffer[..1])));
    lines.push(ready(&second));
    lines.push(seen("more than fits", second.write(&[4; 10_000])));
    drop(second);
    lines.push(ready(&reader));
    lines.push(seen("the rest", reader.read(&mut buffer)));
    lines.push(ready(&reader));
    lines.push(seen("at the end", reader.read(&mut buffer)));
    drop(reader);
    let mut both = open(true, true, 0).unwrap();
    lines.push(ready(&both));
    lines.push(seen("write to itself", both.write(b"kept")));
    let last = open(false, true, 0).unwrap();
    drop(both);
    lines.push(ready(&last));
    lines.push(seen("without readers", (&last).write(b"x")));
    drop(last);

    // Both sides wait for each other. The write is larger than the pipe, and waits for all of it to be read.
    let other = path.clone();
    let writer = std::thread::spawn(move || {
        let mut writer = OpenOptions::new().write(true).open(other)?;
        writer.write(&[7; 150_000])
    });
    std::thread::sleep(Duration::from_millis(20));
    let mut reader = open(true, false, 0).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut all = vec![];
    lines.push(seen("read to the end", reader.read_to_end(&mut all)));
    lines.push(seen("large write", writer.join().unwrap()));
    lines
}

static BROKEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_broken(_: i32) {
    BROKEN.fetch_add(1, Ordering::Relaxed);
}

/// A write to a stream that nobody can read raises a signal, unless the call says otherwise.
fn broken_pipes(_: &Path) -> Vec<String> {
    let broken = |what: &str, result: isize| {
        let failure = io::Error::last_os_error();
        let count = BROKEN.swap(0, Ordering::Relaxed);
        format!("{what}: {result} {failure}, {count} signals")
    };
    // SAFETY: the handler only changes an atomic number; all descriptors are open, and the buffer has one byte.
    unsafe {
        let handler = count_broken as extern "C" fn(i32) as libc::sighandler_t;
        let before = libc::signal(libc::SIGPIPE, handler);
        let mut ends = [0; 2];
        libc::pipe(ends.as_mut_ptr());
        libc::close(ends[0]);
        let mut lines = vec![broken(
            "pipe",
            libc::write(ends[1], c"x".as_ptr().cast(), 1),
        )];
        let (left, right) = UnixStream::pair().unwrap();
        drop(right);
        let mut send = |what, flags| {
            let result = libc::send(left.as_raw_fd(), c"x".as_ptr().cast(), 1, flags);
            lines.push(broken(what, result));
        };
        send("socket", 0);
        send("socket without a signal", libc::MSG_NOSIGNAL);
        let fresh = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        lines.push(broken(
            "unconnected",
            libc::write(fresh, c"x".as_ptr().cast(), 1),
        ));
        libc::signal(libc::SIGPIPE, before);
        lines
    }
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
fn named_pipes_are_those_of_the_real_kernel(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "pipes", named_pipes)
}

#[corsair_host::test]
fn broken_pipes_are_those_of_the_real_kernel(sim: &mut Sim) -> Result<(), SimError> {
    compare(sim, "broken", broken_pipes)
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

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
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
        assert_eq!(HANDLED.load(Ordering::Relaxed), 2);
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
