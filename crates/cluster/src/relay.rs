//! Connections for what goes to the first process while the run goes on, beside votes and events.

use crate::lines::said_broken;
use crate::supervisor::Health;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// The longest batch that is believed.
const LONGEST: usize = 1 << 30;

/// A connection between the first process and another one, for batches of bytes in one direction.
#[derive(Debug)]
pub struct RelaySocket {
    process: usize,
    stream: TcpStream,
    name: Arc<str>,
    health: Health,
}

impl RelaySocket {
    pub(crate) fn new(process: usize, stream: TcpStream, name: &str, health: Health) -> Self {
        RelaySocket {
            process,
            stream,
            name: Arc::from(name),
            health,
        }
    }

    /// The process at the other side.
    pub fn process(&self) -> usize {
        self.process
    }

    /// Sends a batch, however long the other side takes.
    ///
    /// # Errors
    /// If the connection is broken, for which the run is lost.
    pub fn send(&mut self, batch: &[u8]) -> io::Result<()> {
        let length = (batch.len() as u32).to_le_bytes();
        let sent = (self.stream.write_all(&length)).and_then(|()| self.stream.write_all(batch));
        sent.inspect_err(|error| self.broken(error))
    }

    /// Waits for the next batch.
    ///
    /// # Errors
    /// If the connection is broken, for which the run is lost.
    pub fn receive(&mut self, batch: &mut Vec<u8>) -> io::Result<()> {
        let mut length = [0; 4];
        let stream = &mut self.stream;
        let received = stream.read_exact(&mut length).and_then(|()| {
            let length = u32::from_le_bytes(length) as usize;
            if length > LONGEST {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a batch is too long",
                ));
            }
            batch.clear();
            // As much memory as comes.
            match stream.take(length as u64).read_to_end(batch)? {
                read if read == length => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        });
        received.inspect_err(|error| self.broken(error))
    }

    /// The run is lost for all, for this reason, unless there was one before.
    pub fn fail(&self, why: String) {
        self.health.fail(why);
    }

    fn broken(&self, error: &io::Error) {
        said_broken(&self.health, &self.name, &error.to_string());
    }
}
