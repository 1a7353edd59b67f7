//! Bytes over a socket before a deadline, and frames that nobody else can have written.

use crate::secret::{Nonces, Secret, Side};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest content of a frame.
pub(crate) const LONGEST: usize = 1 << 20;
const MAC: usize = 32;

/// Until when something must have happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    /// What is left; an error if nothing is.
    pub(crate) fn left(self) -> io::Result<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long"));
        }
        Ok(left)
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_err()
    }

    pub(crate) fn later(self, by: Duration) -> Deadline {
        Deadline(self.0 + by)
    }

    pub(crate) fn earlier(self, other: Deadline) -> Deadline {
        Deadline(self.0.min(other.0))
    }
}

/// Fills the buffer before the deadline, however slowly the bytes come.
pub(crate) fn read_by(stream: &TcpStream, buffer: &mut [u8], by: Deadline) -> io::Result<()> {
    let mut filled = 0;
    let mut reader = stream;
    while filled < buffer.len() {
        stream.set_read_timeout(Some(by.left()?))?;
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all before the deadline.
pub(crate) fn write_by(stream: &TcpStream, mut bytes: &[u8], by: Deadline) -> io::Result<()> {
    let mut writer = stream;
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(by.left()?))?;
        match writer.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a call that failed like this is to be made again: its own time-out, or a signal.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// The keys and counts of the frames of one direction.
struct Sealing {
    key: [u8; 32],
    frames: u64,
}

impl Sealing {
    /// The mark of the next frame, which depends on all that was sent before it.
    fn mark(&mut self, content: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.frames.to_le_bytes()).update(content);
        self.frames += 1;
        hasher.finalize()
    }
}

/// Sends frames over a connection whose other side has proved itself.
pub(crate) struct FrameWriter {
    stream: TcpStream,
    sealing: Sealing,
}

/// Receives them.
pub(crate) struct FrameReader {
    stream: TcpStream,
    sealing: Sealing,
}

/// Both directions of a connection of which this is one side.
pub(crate) fn frames(
    stream: &TcpStream,
    secret: &Secret,
    side: Side,
    nonces: &Nonces,
) -> io::Result<(FrameReader, FrameWriter)> {
    let sealing = |side| Sealing {
        key: secret.key(side, nonces),
        frames: 0,
    };
    let reader = FrameReader {
        stream: stream.try_clone()?,
        sealing: sealing(side.other()),
    };
    let writer = FrameWriter {
        stream: stream.try_clone()?,
        sealing: sealing(side),
    };
    Ok((reader, writer))
}

impl FrameWriter {
    /// Sends a frame before the deadline.
    pub(crate) fn send(&mut self, content: &[u8], by: Deadline) -> io::Result<()> {
        debug_assert!(content.len() <= LONGEST);
        let mut frame = Vec::with_capacity(4 + content.len() + MAC);
        frame.extend_from_slice(&(content.len() as u32).to_le_bytes());
        frame.extend_from_slice(content);
        frame.extend_from_slice(self.sealing.mark(content).as_bytes());
        write_by(&self.stream, &frame, by)
    }

    /// Lets both directions end, so that whoever reads stops.
    pub(crate) fn close(&self) {
        // What is closed already is closed.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl FrameReader {
    /// The next frame, before the deadline.
    pub(crate) fn receive(&mut self, by: Deadline) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        read_by(&self.stream, &mut length, by)?;
        self.rest(length, by)
    }

    /// The next frame, whenever it begins; once begun it takes no longer than this.
    pub(crate) fn receive_next(&mut self, most: Duration) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.set_read_timeout(None)?;
        loop {
            match (&self.stream).read(&mut length[..1]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => break,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let by = Deadline::after(most);
        read_by(&self.stream, &mut length[1..], by)?;
        self.rest(length, by)
    }

    fn rest(&mut self, length: [u8; 4], by: Deadline) -> io::Result<Vec<u8>> {
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(invalid("a frame is too long"));
        }
        let mut content = vec![0; length];
        read_by(&self.stream, &mut content, by)?;
        let mut mark = [0; MAC];
        read_by(&self.stream, &mut mark, by)?;
        // Hashes are compared in constant time.
        if self.sealing.mark(&content) != blake3::Hash::from(mark) {
            return Err(invalid("a frame is forged or damaged"));
        }
        Ok(content)
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
