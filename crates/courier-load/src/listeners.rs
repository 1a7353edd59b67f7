//! Sockets of clients in histories: each shows every message of a conversation once and in order, whichever node it is
//! opened at.
//!
//! The frames are parsed here, because the keys that a library draws would be other ones in each run of a simulation. A
//! listener sends no frames.

use crate::histories::{Client, Environment};
use serde_json::Value;
use std::io::{self, Cursor};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

/// The time after which a socket without messages is replaced by one at another node.
const SILENCE: Duration = Duration::from_secs(2);

/// The messages that the sockets of a client have shown.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// The texts of the messages in their order.
    pub texts: Vec<u64>,
    /// The first contradiction.
    pub wrong: Option<String>,
}

impl Heard {
    /// Adds a message that a socket has shown after this sequence number. The client has one conversation, so the number of a
    /// message in its conversation is also its sequence number.
    fn add(&mut self, host: &str, after: u64, frame: &Value) -> Option<u64> {
        let sequence = frame["sequence"].as_u64()?;
        let number = frame["message"]["number"].as_u64()?;
        let text = frame["message"]["text"].as_str()?.parse().ok()?;
        let place = (number as usize).wrapping_sub(1);
        let known = self.texts.get(place);
        let is_expected = match known {
            Some(known) => *known == text,
            None => place == self.texts.len(),
        };
        if sequence != after + 1 || number != sequence || !is_expected {
            self.fail(format!(
                "{host} shows {text:x} as number {number} and sequence {sequence} after sequence {after}, where a socket showed {known:x?}"
            ));
        } else if known.is_none() {
            self.texts.push(text);
        }
        Some(sequence)
    }

    fn fail(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }
}

/// An open socket.
struct Socket<S> {
    stream: S,
    buffer: Vec<u8>,
}

impl<S: tokio::io::AsyncRead + Unpin> Socket<S> {
    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads the head of the answer.
    async fn head(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self
                .buffer
                .windows(4)
                .position(|bytes| bytes == b"\r\n\r\n")
            {
                let head = self.buffer.drain(..end + 4).collect();
                return String::from_utf8(head).map_err(io::Error::other);
            }
            self.read().await?;
        }
    }

    /// Reads the next frame with text.
    async fn frame(&mut self) -> io::Result<Value> {
        loop {
            let mut cursor = Cursor::new(&self.buffer[..]);
            let parsed = FrameHeader::parse(&mut cursor).map_err(io::Error::other)?;
            let begin = cursor.position() as usize;
            match parsed {
                Some((header, length)) if self.buffer.len() - begin >= length as usize => {
                    let frame: Vec<u8> = self.buffer.drain(..begin + length as usize).collect();
                    if header.opcode == OpCode::Data(Data::Text) {
                        return serde_json::from_slice(&frame[begin..]).map_err(io::Error::other);
                    }
                }
                _ => self.read().await?,
            }
        }
    }
}

impl<E: Environment> Client<E> {
    /// Listens until `is_over` returns true, at one node after the other, and passes what it hears to `note`.
    pub async fn listen(
        self,
        is_over: impl Fn() -> bool + Send,
        note: impl Fn(&mut dyn FnMut(&mut Heard)) + Send,
    ) {
        let (mut turn, mut last) = (self.process, 0);
        while !is_over() {
            turn += 1;
            let host = &self.hosts[turn as usize % self.hosts.len()];
            // Now and then everything is shown again.
            let mut after = if turn.is_multiple_of(4) { 0 } else { last };
            let opened = self.environment.timeout(SILENCE, self.open(host, after));
            let mut socket = match opened.await {
                Some(Ok(Ok(socket))) => socket,
                Some(Ok(Err(refusal))) => {
                    note(&mut |heard| {
                        heard.fail(format!("{host} refuses to resume after {after}: {refusal}"))
                    });
                    return;
                }
                _ => {
                    self.environment.sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            while !is_over() {
                let Some(Ok(frame)) = self.environment.timeout(SILENCE, socket.frame()).await
                else {
                    break;
                };
                note(&mut |heard| after = heard.add(host, after, &frame).unwrap_or(after));
                last = last.max(after);
            }
        }
    }

    /// Opens a socket; an answer that ends all attempts of a client is returned as text.
    async fn open(&self, host: &str, after: u64) -> io::Result<Result<Socket<E::Stream>, String>> {
        let mut stream = self.environment.connect(host).await?;
        let request = format!(
            "GET /ws?presence=false&after={after} HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer {}\r\n\r\n",
            self.token
        );
        stream.write_all(request.as_bytes()).await?;
        let buffer = Vec::new();
        let mut socket = Socket { stream, buffer };
        let head = socket.head().await?;
        let status = head.lines().next().unwrap_or_default();
        match status.split(' ').nth(1).unwrap_or_default() {
            "101" => Ok(Ok(socket)),
            "401" | "404" | "422" => Ok(Err(status.to_owned())),
            _ => Err(io::Error::other(status.to_owned())),
        }
    }
}
