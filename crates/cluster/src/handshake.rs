//! How two processes come to trust a connection between them.
//!
//! ```text
//! connector ──▶ listener   what this is, version of the protocol, a random number
//! connector ◀── listener   the same
//! connector ──▶ listener   proof of the secret
//! connector ◀── listener   proof of the secret, or that the other proof was wrong
//! connector ──▶ listener   hello: who, for what, of which program and configuration, what memory it offers (a sealed frame)
//! connector ◀── listener   welcome, and whether it shares that memory; or why not (a sealed frame)
//! ```
//!
//! Until the proof, a connector costs the listener 116 bytes and five seconds at most, and learns its version.

use crate::rendezvous::Way;
use crate::secret::{Nonces, Secret, Side, random};
use crate::shared::{Memory, Offer};
use crate::wire::{Deadline, FrameReader, FrameWriter, frames, read_by, write_by};
use crate::{ClusterError, Origin};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// The version of all that processes say to each other.
pub(crate) const PROTOCOL: u32 = 4;
/// What every connection begins with.
const MAGIC: [u8; 16] = *b"corsair cluster\n";
const OPENING: usize = MAGIC.len() + 4 + 32;
/// How long a handshake takes at most.
const MOST_TIME: Duration = Duration::from_secs(5);
/// The longest description of a program.
const LONGEST_PROGRAM: usize = 200;
/// The longest name of a saved run.
const LONGEST_PLACE: usize = 4096;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// From each process to the first: who is there, who still is, results.
    Control,
    /// Between each two: votes and events.
    Data,
    /// From each process to the first: what actors tell.
    Relay,
}

/// What a process says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) purpose: Purpose,
    pub(crate) process: u32,
    pub(crate) processes: u32,
    pub(crate) workers: u32,
    /// The rendezvous that it is part of; 0 until it is told.
    pub(crate) session: u64,
    pub(crate) configuration: [u8; 32],
    pub(crate) program: String,
    /// Whether it has something to relay to the first process.
    pub(crate) relays: bool,
    /// Where it knows of that the run goes on from.
    pub(crate) origin: Option<Origin>,
    /// Memory for what this connection is to carry, if both processes are on one machine.
    pub(crate) offer: Option<Offer>,
}

/// What a process says to who has come.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Welcome { shares: bool },
    Refused(String),
}

impl Hello {
    fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("a hello can be written")
    }

    fn read(bytes: &[u8]) -> Option<Hello> {
        let (hello, rest): (Hello, &[u8]) = postcard::take_from_bytes(bytes).ok()?;
        let place = hello.origin.as_ref().map_or(0, |origin| origin.place.len());
        let fits = hello.program.len() <= LONGEST_PROGRAM && place <= LONGEST_PLACE;
        (fits && rest.is_empty()).then_some(hello)
    }

    /// Why a process that says this does not belong to one that says `self`.
    pub(crate) fn objection(&self, other: &Hello) -> Option<String> {
        if other.program != self.program {
            return Some(format!(
                "process {} runs {}, process {} runs {}; install the same program everywhere",
                other.process, other.program, self.process, self.program
            ));
        }
        if other.processes != self.processes {
            return Some(format!(
                "process {} has {} hosts, process {} has {}; give the same hosts everywhere",
                other.process, other.processes, self.process, self.processes
            ));
        }
        if other.workers != self.workers {
            return Some(format!(
                "process {} has {} workers, process {} has {}; give the same --workers everywhere",
                other.process, other.workers, self.process, self.workers
            ));
        }
        if other.configuration != self.configuration || other.relays != self.relays {
            return Some(format!(
                "processes {} and {} have different flags or definitions; give the same everywhere",
                self.process, other.process
            ));
        }
        None
    }
}

/// A connection whose other side has proved itself and said who it is.
pub(crate) struct Introduced {
    pub(crate) hello: Hello,
    pub(crate) stream: TcpStream,
    pub(crate) reader: FrameReader,
    pub(crate) writer: FrameWriter,
    /// What both processes have as memory, if they share any.
    pub(crate) memory: Option<Memory>,
}

impl Introduced {
    /// What carries events over this connection.
    pub(crate) fn into_way(self) -> Way {
        Way {
            stream: self.stream,
            memory: self.memory,
        }
    }

    /// Accepts the other side, and the memory that it offers if that can be opened; or says why not.
    pub(crate) fn answer(&mut self, objection: Option<&str>) -> io::Result<()> {
        let answer = match objection {
            Some(why) => Answer::Refused(why.to_owned()),
            None => {
                self.memory = self.hello.offer.as_ref().and_then(Memory::open);
                Answer::Welcome {
                    shares: self.memory.is_some(),
                }
            }
        };
        let answer = postcard::to_allocvec(&answer).expect("an answer can be written");
        self.writer.send(&answer, Deadline::after(MOST_TIME))
    }
}

/// The listener's side, up to the hello. What is no process of this cluster gets an error, which says for whoever waits
/// what was the matter.
pub(crate) fn listen(stream: TcpStream, secret: &Secret) -> Result<Introduced, String> {
    let by = Deadline::after(MOST_TIME);
    let failed = |error: io::Error| format!("it broke off: {error}");
    let system = |error: ClusterError| error.to_string();
    stream.set_nodelay(true).map_err(failed)?;
    let theirs =
        read_opening(&stream, by).map_err(|_| "it was no process of a cluster".to_owned())?;
    let mine = random().map_err(system)?;
    write_opening(&stream, &mine, by).map_err(failed)?;
    if theirs.0 != PROTOCOL {
        return Err(format!(
            "it speaks version {} of the protocol, this process version {PROTOCOL}",
            theirs.0
        ));
    }
    let nonces = Nonces {
        connector: theirs.1,
        listener: mine,
    };
    let mut proof = [0; 32];
    read_by(&stream, &mut proof, by).map_err(failed)?;
    // Hashes are compared in constant time.
    if secret.proof(Side::Connector, &nonces) != blake3::Hash::from(proof) {
        // It is told, if it still listens, and nothing depends on that.
        let _ = write_by(&stream, &[0; 33], by);
        return Err("it had another secret".to_owned());
    }
    let mut answer = [1; 33];
    answer[1..].copy_from_slice(secret.proof(Side::Listener, &nonces).as_bytes());
    write_by(&stream, &answer, by).map_err(failed)?;
    let (mut reader, writer) = frames(&stream, secret, Side::Listener, &nonces).map_err(failed)?;
    let hello = reader.receive(by).map_err(failed)?;
    let hello = Hello::read(&hello).ok_or("its hello made no sense")?;
    Ok(Introduced {
        hello,
        stream,
        reader,
        writer,
        memory: None,
    })
}

/// Why a connection was not made.
pub(crate) enum Failure {
    /// It may work in a while.
    Passing(String),
    /// It never will.
    Final(ClusterError),
}

/// The connector's side, which offers memory if the connection is to have it. Returns when the listener has accepted this
/// process.
pub(crate) fn connect(
    stream: TcpStream,
    secret: &Secret,
    hello: &Hello,
    shares_memory: bool,
    by: Deadline,
    address: &str,
) -> Result<Introduced, Failure> {
    let by = by.earlier(Deadline::after(MOST_TIME));
    let passing = |error: io::Error| Failure::Passing(format!("the handshake broke off: {error}"));
    let address = || address.to_owned();
    stream.set_nodelay(true).map_err(passing)?;
    let mine = random().map_err(Failure::Final)?;
    write_opening(&stream, &mine, by).map_err(passing)?;
    let theirs = read_opening(&stream, by).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::Final(ClusterError::NotCorsair { address: address() })
        }
        _ => passing(error),
    })?;
    if theirs.0 != PROTOCOL {
        return Err(Failure::Final(ClusterError::Protocol {
            address: address(),
            theirs: theirs.0,
            ours: PROTOCOL,
        }));
    }
    let nonces = Nonces {
        connector: mine,
        listener: theirs.1,
    };
    let wrong_secret = || Failure::Final(ClusterError::WrongSecret { address: address() });
    write_by(
        &stream,
        secret.proof(Side::Connector, &nonces).as_bytes(),
        by,
    )
    .map_err(passing)?;
    let mut answer = [0; 33];
    read_by(&stream, &mut answer, by).map_err(passing)?;
    let proof: [u8; 32] = answer[1..].try_into().expect("33 bytes");
    if answer[0] != 1 || secret.proof(Side::Listener, &nonces) != blake3::Hash::from(proof) {
        return Err(wrong_secret());
    }
    let (mut reader, mut writer) =
        frames(&stream, secret, Side::Connector, &nonces).map_err(passing)?;
    let mut hello = hello.clone();
    let memory = shares_memory.then(Memory::new).flatten();
    let memory = memory.map(|(memory, offer)| {
        hello.offer = Some(offer);
        memory
    });
    writer.send(&hello.to_bytes(), by).map_err(passing)?;
    let answer = reader.receive(by).map_err(passing)?;
    let nonsense = |_| Failure::Passing("its answer made no sense".to_owned());
    match postcard::from_bytes(&answer).map_err(nonsense)? {
        Answer::Refused(why) => Err(Failure::Final(ClusterError::Refused {
            process: hello.process as usize,
            address: address(),
            why,
        })),
        Answer::Welcome { shares } => Ok(Introduced {
            hello,
            stream,
            reader,
            writer,
            memory: memory.filter(|_| shares),
        }),
    }
}

fn write_opening(stream: &TcpStream, nonce: &[u8; 32], by: Deadline) -> io::Result<()> {
    let mut opening = [0; OPENING];
    opening[..16].copy_from_slice(&MAGIC);
    opening[16..20].copy_from_slice(&PROTOCOL.to_le_bytes());
    opening[20..].copy_from_slice(nonce);
    write_by(stream, &opening, by)
}

/// The version and the random number of the other side.
fn read_opening(stream: &TcpStream, by: Deadline) -> io::Result<(u32, [u8; 32])> {
    let mut magic = [0; MAGIC.len()];
    // What begins otherwise is not waited for.
    for place in 0..MAGIC.len() {
        read_by(stream, &mut magic[place..=place], by)?;
        if magic[place] != MAGIC[place] {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let (mut version, mut nonce) = ([0; 4], [0; 32]);
    read_by(stream, &mut version, by)?;
    read_by(stream, &mut nonce, by)?;
    Ok((u32::from_le_bytes(version), nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_come_out_as_they_went_in() {
        let hello = Hello {
            purpose: Purpose::Data,
            process: 1,
            processes: 3,
            workers: 2,
            session: 77,
            configuration: [9; 32],
            program: "corsair 0.1.0".to_owned(),
            relays: true,
            origin: Some(Origin {
                time: 3,
                place: "saved/000003".to_owned(),
            }),
            offer: None,
        };
        let bytes = hello.to_bytes();
        for length in 0..bytes.len() {
            assert_eq!(Hello::read(&bytes[..length]), None);
        }
        assert_eq!(Hello::read(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(Hello::read(&[&[3][..], &bytes[1..]].concat()), None);
        let long = Hello {
            program: "a".repeat(LONGEST_PROGRAM + 1),
            ..hello.clone()
        };
        assert_eq!(Hello::read(&long.to_bytes()), None);
        assert_eq!(Hello::read(&bytes), Some(hello));
    }
}
