//! Connections between members: HTTP connections that are upgraded, and sealed with the common key.
//!
//! Both sides send a [`Hello`] with a random number. The keys of the two directions are hashes of both messages with
//! the cluster's key, so neither an earlier connection nor a part of it can be replayed. Each message is preceded by
//! its length and by a keyed hash of its number and its bytes. Contents are not encrypted, except by TLS.

use super::wire::{FORMAT, Hello};
use crate::seal::Key;
use crate::tls::Secure;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::header::{CONNECTION, HOST, UPGRADE};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The protocol to which a connection is upgraded.
pub(crate) const PROTOCOL: &str = "corsair-courier-cluster";
/// The path of the request.
pub(crate) const PATH: &str = "/cluster";
/// The time limit for opening a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum length of a message before the other side has proved that it has the key.
const SHORT: usize = 4 << 10;
/// The maximum length of any other message.
const LONGEST: usize = 72 << 20;
/// The length of a keyed hash.
const HASH: usize = 16;
/// The purposes of keys.
const CONTEXT: &str = "corsair-courier 2026-11 connections of a cluster";

/// A stream of bytes.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// The key of one direction, and the number of the next message.
#[derive(Clone)]
struct Direction {
    key: [u8; 32],
    number: u64,
}

impl Direction {
    /// Returns the hash of the next message.
    fn seal(&mut self, bytes: &[u8]) -> [u8; HASH] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.number.to_le_bytes());
        hasher.update(bytes);
        self.number += 1;
        let mut hash = [0; HASH];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..HASH]);
        hash
    }
}

/// The sending half of a connection.
pub(crate) struct Writer {
    stream: BufWriter<WriteHalf<Box<dyn Io>>>,
    direction: Direction,
}

/// The receiving half of a connection.
pub(crate) struct Reader {
    stream: BufReader<ReadHalf<Box<dyn Io>>>,
    direction: Direction,
    longest: usize,
}

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

impl Writer {
    /// Appends a message to the buffer.
    pub async fn write(&mut self, message: &impl Serialize) -> io::Result<()> {
        let bytes = postcard::to_allocvec(message).map_err(io::Error::other)?;
        let hash = self.direction.seal(&bytes);
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        self.stream.write_all(&length.to_le_bytes()).await?;
        self.stream.write_all(&hash).await?;
        self.stream.write_all(&bytes).await
    }

    pub async fn flush(&mut self) -> io::Result<()> {
        self.stream.flush().await
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.write(message).await?;
        self.flush().await
    }
}

impl Reader {
    /// Receives a message.
    ///
    /// # Errors
    /// The connection has ended, or the message was not sealed with the common key.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut head = [0; 4 + HASH];
        self.stream.read_exact(&mut head).await?;
        let (length, hash) = head.split_at(4);
        let length = u32::from_le_bytes(length.try_into().map_err(io::Error::other)?) as usize;
        if length > self.longest {
            return Err(invalid(format!("a message has {length} bytes")));
        }
        let mut bytes = Vec::new();
        // The memory grows with the bytes that have arrived.
        let mut part = (&mut self.stream).take(length as u64);
        if part.read_to_end(&mut bytes).await? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !bool::from(self.direction.seal(&bytes).as_slice().ct_eq(hash)) {
            return Err(invalid(
                "the other node has another --cluster-key, or the connection was changed on its way",
            ));
        }
        self.longest = LONGEST;
        postcard::from_bytes(&bytes)
            .map_err(|error| invalid(format!("a message cannot be read: {error}")))
    }
}

/// An open connection.
pub(crate) struct Link {
    pub writer: Writer,
    pub reader: Reader,
    /// The first message of the other node.
    pub hello: Hello,
}

async fn send_hello(stream: &mut Box<dyn Io>, hello: &Hello) -> io::Result<Vec<u8>> {
    let bytes = postcard::to_allocvec(hello).map_err(io::Error::other)?;
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(bytes)
}

async fn receive_hello(stream: &mut Box<dyn Io>) -> io::Result<(Hello, Vec<u8>)> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).await?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > SHORT {
        return Err(invalid("the first message is too long"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    let hello: Hello = postcard::from_bytes(&bytes)
        .map_err(|_| invalid("the other side is not a member of a cluster"))?;
    if hello.format != FORMAT {
        return Err(invalid(format!(
            "the other node uses version {} of the cluster's messages, and this one version {FORMAT}; upgrade the older one",
            hello.format
        )));
    }
    Ok((hello, bytes))
}

/// The sides of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// This side has opened the connection.
    Caller,
    /// This side has accepted the connection.
    Callee,
}

/// Exchanges the first messages.
///
/// # Errors
/// The other side is not a member, does not answer in time, or has another version.
pub(crate) async fn open(
    mut stream: Box<dyn Io>,
    key: &Key,
    hello: Hello,
    side: Side,
) -> io::Result<Link> {
    let exchange = async {
        let own = send_hello(&mut stream, &hello).await?;
        let (other, bytes) = receive_hello(&mut stream).await?;
        let (caller, callee) = match side {
            Side::Caller => (own, bytes),
            Side::Callee => (bytes, own),
        };
        let direction = |purpose: u8| {
            let mut hasher = key.of(CONTEXT).hasher();
            hasher.update(&[purpose]);
            hasher.update(&(caller.len() as u64).to_le_bytes());
            hasher.update(&caller);
            hasher.update(&callee);
            Direction {
                key: *hasher.finalize().as_bytes(),
                number: 0,
            }
        };
        let (from_caller, from_callee) = (direction(0), direction(1));
        io::Result::Ok(match side {
            Side::Caller => (other, from_caller, from_callee),
            Side::Callee => (other, from_callee, from_caller),
        })
    };
    let opened = timeout(PATIENCE, exchange).await;
    let (hello, sending, receiving) = opened.map_err(|_| io::ErrorKind::TimedOut)??;
    let (read, write) = tokio::io::split(stream);
    Ok(Link {
        writer: Writer {
            stream: BufWriter::with_capacity(64 << 10, write),
            direction: sending,
        },
        reader: Reader {
            stream: BufReader::new(read),
            direction: receiving,
            longest: SHORT,
        },
        hello,
    })
}

/// Connects to the member at an address.
///
/// # Errors
/// The member cannot be reached, or does not have the common key.
pub(crate) async fn connect(
    address: &str,
    secure: Option<&Secure>,
    key: &Key,
    hello: Hello,
) -> io::Result<Link> {
    let stream = timeout(PATIENCE, upgraded(address, secure)).await;
    let stream = stream.map_err(|_| io::ErrorKind::TimedOut)??;
    open(stream, key, hello, Side::Caller).await
}

async fn upgraded(address: &str, secure: Option<&Secure>) -> io::Result<Box<dyn Io>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match secure {
        Some(secure) => {
            let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
            upgrade(secure.connect(host, stream).await?, address).await
        }
        None => upgrade(stream, address).await,
    }
}

async fn upgrade(stream: impl Io + 'static, address: &str) -> io::Result<Box<dyn Io>> {
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    let driver = tokio::spawn(connection.with_upgrades());
    let request = Request::get(PATH)
        .header(HOST, address)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, PROTOCOL)
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = sender
        .send_request(request)
        .await
        .map_err(io::Error::other)?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let stream = hyper::upgrade::on(answer).await.map_err(io::Error::other)?;
        return Ok(Box::new(TokioIo::new(stream)));
    }
    let status = answer.status();
    let body = Limited::new(answer.into_body(), SHORT).collect().await;
    driver.abort();
    let body = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
    Err(invalid(format!(
        "it is not a member of a cluster: {status} {}",
        body.unwrap_or_default()
    )))
}
