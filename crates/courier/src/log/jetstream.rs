//! The log of several nodes: a stream of NATS JetStream.
//!
//! The stream defines the order of all commands, and makes them durable. A node publishes a command. Every node,
//! including the publisher, receives the command in the stream's order and applies it. The client is answered when the
//! publisher has received the command. So the answer is the one that every node would give, and the client can then ask
//! any node that has read the stream up to the command.
//!
//! A publication that is not acknowledged is repeated with the same id, and JetStream stores it once. If a publication
//! is not acknowledged within [`LONGEST`], its outcome is unknown, and the client gets this answer.
//!
//! The node follows the stream from the position that it has applied, and restarts from there whenever the connection
//! is lost. Positions are the stream's sequences, which have no gaps. If there is a gap because the stream was trimmed,
//! the node restarts from a [snapshot](snapshots). Any other gap is an error, after which nothing is applied.
//!
//! Before it follows the stream, a node checks that the stream is the one that it has applied: that it is long enough,
//! and that it contains the last applied entry. A server that returns with an older store has lost entries. A node that
//! has applied these entries stops serving and reports the loss, before histories diverge.
//!
//! Entries are [sealed](crate::seal) with a key that all nodes share. Messages that another client of the server
//! publishes are skipped and counted.
//!
//! Nodes of two versions can run at the same time. A node publishes only commands that all nodes from which it receives
//! messages can [read](crate::presence::shared::CommonVersion). A node stops if it receives a command that it cannot
//! read.

mod connect;
mod end;
mod follow;
mod snapshots;

pub(crate) use connect::{Connected, Names, Server};
pub(crate) use snapshots::{Snapshot, Snapshots};

use super::{Digest, Log, LogError, Reply};
use crate::command::Command;
use crate::metrics::Metrics;
use crate::presence::shared::CommonVersion;
use crate::seal::Key;
use async_nats::Client;
use async_nats::connection::State;
use async_nats::jetstream::context::Context;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Info, Stream};
use end::Ends;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The time for which publishing a command is repeated.
const LONGEST: Duration = Duration::from_secs(15);
/// The time limit for one acknowledgement.
const ACK: Duration = Duration::from_secs(2);
/// The pause between two publications of a command.
const PAUSE: Duration = Duration::from_millis(100);
/// The time during which JetStream ignores a second publication with the same id; longer than [`LONGEST`].
const DUPLICATES: Duration = Duration::from_secs(120);
/// The maximum number of commands in progress.
const MOST_WAITING: usize = 1 << 13;

/// A command as stored in the stream.
#[derive(Serialize, Deserialize)]
struct StreamCommand {
    /// The process that published the command, and the number of the command in that process.
    origin: u64,
    number: u64,
    command: Command,
}

/// The log of several nodes. See the [module](self).
#[derive(Clone)]
pub(crate) struct JetStream {
    state: Arc<StreamState>,
}

struct StreamState {
    client: Client,
    context: Context,
    stream: Stream,
    key: Key,
    metrics: Metrics,
    origin: u64,
    identity: u64,
    common: CommonVersion,
    names: Names,
    /// The number of times that the client has connected.
    connections: watch::Receiver<u64>,
    ends: Ends,
    numbers: AtomicU64,
    /// The replies of commands that have not been received yet.
    waiting: Mutex<HashMap<u64, Reply>>,
    /// The reason why the node stopped following the stream.
    stopped: OnceLock<String>,
    closed: watch::Sender<bool>,
}

/// The entry that was applied last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Applied {
    pub position: u64,
    pub digest: Digest,
}

/// The reasons why the stream cannot be followed.
enum Attach {
    /// A temporary failure.
    Broken(String),
    /// The stream differs from the stream that the index has applied.
    Wrong(String),
    /// The stream was trimmed beyond the applied position.
    Behind(String),
}

fn identity(info: &Info) -> u64 {
    info.created.unix_timestamp_nanos() as u64
}

/// Returns the digest that identifies an entry.
fn digest(payload: &[u8]) -> Digest {
    let mut digest = Digest::default();
    digest.copy_from_slice(&blake3::hash(payload).as_bytes()[..16]);
    digest
}

impl Log for JetStream {
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError> {
        let state = self.state.clone();
        state.alive()?;
        if *state.closed.borrow() {
            return Err(LogError::Closed);
        }
        if command.version() > state.common.get() {
            return Err(LogError::OlderNodes);
        }
        let number = state.numbers.fetch_add(1, Relaxed);
        let published = StreamCommand {
            origin: state.origin,
            number,
            command,
        };
        let version = published.command.version();
        let bytes = state.key.seal(version, &published);
        let bytes = bytes.map_err(|error| LogError::Failed(error.to_string()))?;
        let mut waiting = state.waiting.lock();
        if waiting.len() >= MOST_WAITING {
            return Err(LogError::Busy(MOST_WAITING));
        }
        waiting.insert(number, reply);
        drop(waiting);
        tokio::spawn(async move {
            if let Err(error) = state.publish(number, bytes.into()).await
                && let Some(reply) = state.waiting.lock().remove(&number)
            {
                let _ = reply.send(Err(LogError::Failed(error)));
            }
        });
        Ok(())
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = Result<u64, LogError>> + Send + '_>> {
        Box::pin(async {
            self.state.alive()?;
            if !self.state.is_connected() {
                let reason = "the NATS server cannot be reached";
                return Err(LogError::Unreachable(reason.to_owned()));
            }
            self.state.ends.ask(|| self.state.ask_for_end()).await
        })
    }

    /// Does nothing: the stream is trimmed when there is a snapshot for new nodes.
    fn forget(&self, _: u64) {}

    fn patience(&self) -> Option<Duration> {
        // A published command must also return through the stream.
        Some(LONGEST + 2 * ACK)
    }

    fn reads(&self) -> u8 {
        self.state.common.get()
    }

    fn is_up(&self) -> bool {
        self.state.is_connected() && self.state.alive().is_ok()
    }

    fn has_stopped(&self) -> bool {
        self.state.stopped.get().is_some()
    }

    fn close(&self) {
        self.state.closed.send_replace(true);
    }
}

impl StreamState {
    fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    fn alive(&self) -> Result<(), LogError> {
        match self.stopped.get() {
            Some(reason) => Err(LogError::Stopped(reason.clone())),
            None => Ok(()),
        }
    }

    /// Asks the server for the last entry of the stream.
    async fn ask_for_end(&self) -> Result<u64, LogError> {
        let info = timeout(ACK, self.stream.get_info()).await;
        match info {
            Ok(Ok(info)) => Ok(info.state.last_sequence),
            Ok(Err(error)) => Err(LogError::Unreachable(error.to_string())),
            Err(_) => Err(LogError::Unreachable(
                "the NATS server does not answer".to_owned(),
            )),
        }
    }

    /// Checks that the stream equals the applied stream, up to the applied position.
    async fn check(&self, applied: &Applied) -> Result<(), Attach> {
        let broken = |error: String| Attach::Broken(error);
        let stream = &self.names.stream;
        let info = timeout(ACK, self.stream.get_info()).await;
        let info = info.map_err(|_| broken("the NATS server does not answer".to_owned()))?;
        let info = info.map_err(|error| broken(error.to_string()))?;
        if identity(&info) != self.identity {
            return Err(Attach::Wrong(format!(
                "the stream {stream} is not the stream that this node has read before; restore the server's data"
            )));
        }
        let Applied { position, digest } = *applied;
        let last = info.state.last_sequence;
        if last < position {
            return Err(Attach::Wrong(format!(
                "the stream {stream} ends at {last}, and this node has applied {position}: the server has lost entries; restore its data"
            )));
        }
        let first = info.state.first_sequence;
        // Without the last applied entry it is unknown whether this is the same stream.
        if first > 1 && position < first {
            return Err(Attach::Behind(format!(
                "the stream {stream} begins at {first}, and this node has applied {position}: it restarts from a snapshot"
            )));
        }
        if position == 0 {
            return Ok(());
        }
        let entry = timeout(ACK, self.stream.get_raw_message(position)).await;
        let entry = entry.map_err(|_| broken("the NATS server does not answer".to_owned()))?;
        let entry = entry.map_err(|error| broken(error.to_string()))?;
        if self::digest(&entry.payload) != digest {
            return Err(Attach::Wrong(format!(
                "entry {position} of the stream {stream} is not the one that this node has applied: the server has lost entries and accepted others; restore its data"
            )));
        }
        Ok(())
    }

    /// Publishes a command until it is acknowledged or the time limit has passed.
    async fn publish(&self, number: u64, bytes: bytes::Bytes) -> Result<(), String> {
        let id = format!("{:016x}-{number}", self.origin);
        let end = Instant::now() + LONGEST;
        loop {
            let message = PublishMessage::build()
                .payload(bytes.clone())
                .message_id(&id);
            let published = timeout(ACK, async {
                let acknowledged = self
                    .context
                    .send_publish(self.names.log.clone(), message)
                    .await;
                acknowledged
                    .map_err(|e| e.to_string())?
                    .await
                    .map_err(|e| e.to_string())
            });
            let error = match published.await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(_) => "the NATS server does not answer".to_owned(),
            };
            if Instant::now() >= end {
                return Err(error);
            }
            sleep(PAUSE).await;
        }
    }
}

/// Returns a URL without its credentials.
pub(crate) fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_printed_without_its_password() {
        for (url, public) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("nats://me:secret@host:1", "nats://host:1"),
            ("tls://to@ken@host", "tls://host"),
        ] {
            assert_eq!(without_secrets(url), public);
        }
    }
}
