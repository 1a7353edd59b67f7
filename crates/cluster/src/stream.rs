//! The sockets between processes, as timely_communication uses them.
//!
//! Its threads panic if a socket fails. These sockets never fail before the workers have let go of them: what
//! is written to a broken one is thrown away, and who reads from one waits until the run is over here, too. So
//! a broken connection is one sentence and no panic.

use crate::supervisor::Health;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use timely_communication::allocator::zero_copy::stream::Stream;

/// The last that is written to a connection whose run has come to its end: a header of zeros.
const FAREWELL: usize = 48;
/// How long the supervisor may take to say why a connection broke, before that is all there is to say.
const VERDICT: Duration = Duration::from_secs(2);

/// What went over the sockets of a process, and how many of its workers use them.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
    users: AtomicUsize,
}

/// A worker uses the sockets as long as it has this.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Traffic>);

impl InUse {
    pub(crate) fn new(traffic: &Arc<Traffic>) -> InUse {
        traffic.users.fetch_add(1, Ordering::AcqRel);
        InUse(Arc::clone(traffic))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A socket to another process.
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    /// What the other process is called in sentences.
    pub(crate) name: Arc<str>,
    pub(crate) health: Health,
    pub(crate) traffic: Arc<Traffic>,
    /// How many zeros the last that was read ends with.
    pub(crate) zeros: usize,
}

/// The connection with a process is broken: says so if nothing else does.
pub(crate) fn said_broken(health: &Health, name: &str, why: &str) {
    let until = Instant::now() + VERDICT;
    while health.lost().is_none() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    health.fail(format!("the connection with {name} broke: {why}"));
}

impl Socket {
    fn broken(&self, why: &str) {
        said_broken(&self.health, &self.name, why);
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let why = loop {
            match self.stream.read(buffer) {
                Ok(0) if self.zeros >= FAREWELL => return Ok(0),
                Ok(0) => break "it was closed".to_owned(),
                Ok(read) => {
                    let zeros = buffer[..read]
                        .iter()
                        .rev()
                        .take_while(|byte| **byte == 0)
                        .count();
                    self.zeros = if zeros == read {
                        self.zeros + zeros
                    } else {
                        zeros
                    };
                    self.traffic
                        .received
                        .fetch_add(read as u64, Ordering::Relaxed);
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error.to_string(),
            }
        };
        self.broken(&why);
        while self.traffic.users.load(Ordering::Acquire) > 0 {
            thread::sleep(Duration::from_millis(5));
        }
        // Without a word: it was said already.
        std::panic::resume_unwind(Box::new("the run is lost"))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.health.lost().is_some() {
            return Ok(bytes.len());
        }
        match self.stream.write(bytes) {
            Ok(written) => {
                self.traffic
                    .sent
                    .fetch_add(written as u64, Ordering::Relaxed);
                Ok(written)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.broken(&error.to_string());
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Socket {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Socket {
            stream: self.stream.try_clone()?,
            name: Arc::clone(&self.name),
            health: self.health.clone(),
            traffic: Arc::clone(&self.traffic),
            zeros: 0,
        })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.stream.set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        // A connection that is broken need not be shut down.
        let _ = self.stream.shutdown(how);
        Ok(())
    }
}
