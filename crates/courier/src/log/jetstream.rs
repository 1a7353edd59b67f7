//! The log of several nodes: a stream of NATS JetStream.
//!
//! The stream is the one order of all commands, and where they are durable. A node publishes a
//! command, and every node, that one as well, gets it back in the stream's order and applies it.
//! Whoever submitted it is answered when it has come back: so the answer is what every node will
//! say, and whoever has it can ask any node that has caught up.
//!
//! A publication that is not acknowledged is repeated under the same id, which JetStream stores
//! once. What is still not acknowledged after [`LONGEST`] may be stored or not, and the client is
//! told so.
//!
//! The node follows the stream from the position up to which it has applied it, and begins anew
//! from there whenever the connection is lost. Positions are the stream's sequences, which have no
//! gaps; one that is found is an error, and nothing after it is applied.

mod follow;

use super::{Feed, Log, LogError, Reply};
use crate::command::Command;
use crate::error::StartError;
use crate::hub::lock;
use async_nats::connection::State;
use async_nats::jetstream::context::Context;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType, Stream};
use async_nats::{Client, ConnectOptions};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

const STREAM: &str = "COURIER";
const SUBJECT: &str = "courier.log";
/// A command is published again and again for so long.
const LONGEST: Duration = Duration::from_secs(15);
/// How long one acknowledgement may take.
const ACK: Duration = Duration::from_secs(2);
/// Between two publications of one command.
const PAUSE: Duration = Duration::from_millis(100);
/// In which a publication under a known id is not stored again; longer than [`LONGEST`].
const DUPLICATES: Duration = Duration::from_secs(120);
/// At most so many commands are under way.
const MOST_WAITING: usize = 1 << 13;

/// A command as the stream keeps it.
#[derive(Serialize, Deserialize)]
struct Published {
    /// Which process published it, and its how-manieth it is.
    origin: u64,
    number: u64,
    command: Command,
}

/// A stream, before it is followed.
pub(crate) struct Connected {
    client: Client,
    context: Context,
    stream: Stream,
    url: String,
    origin: u64,
    identity: u64,
    last: u64,
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct JetStream {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    context: Context,
    stream: Stream,
    origin: u64,
    numbers: AtomicU64,
    /// Replies of commands that have not come back yet.
    waiting: Mutex<HashMap<u64, Reply>>,
    /// Following has failed for good.
    failed: AtomicBool,
    closed: watch::Sender<bool>,
}

impl Connected {
    /// Connects to the server, and makes the stream if there is none.
    pub async fn connect(url: &str) -> Result<Connected, StartError> {
        let public = without_secrets(url);
        let refused = |reason: String| StartError::Nats {
            url: public.clone(),
            reason,
        };
        let client = ConnectOptions::new()
            .name("corsair courier")
            .connection_timeout(Duration::from_secs(5))
            .request_timeout(Some(Duration::from_secs(5)))
            .connect(url)
            .await
            .map_err(|error| refused(format!("{error}; is nats-server running there?")))?;
        let mut context = async_nats::jetstream::new(client.clone());
        context.set_timeout(ACK);
        let config = Config {
            name: STREAM.to_owned(),
            subjects: vec![SUBJECT.to_owned()],
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            duplicate_window: DUPLICATES,
            deny_delete: true,
            deny_purge: true,
            ..Config::default()
        };
        let mut stream = context
            .get_or_create_stream(config)
            .await
            .map_err(|error| {
                refused(format!(
                    "{error}; start nats-server with -js, which keeps streams"
                ))
            })?;
        let info = stream.info().await.map_err(|e| refused(e.to_string()))?;
        let (identity, last) = (
            info.created.unix_timestamp_nanos() as u64,
            info.state.last_sequence,
        );
        let mut origin = [0; 8];
        getrandom::fill(&mut origin).map_err(|error| refused(error.to_string()))?;
        Ok(Connected {
            client,
            context,
            stream,
            url: public,
            origin: u64::from_le_bytes(origin),
            identity,
            last,
        })
    }

    /// A number that another stream does not have.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The process as other nodes know it.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Follows the stream from after this position on.
    pub fn follow(self, after: u64, feed: Feed) -> Result<JetStream, StartError> {
        if after > self.last {
            return Err(StartError::Nats {
                url: self.url,
                reason: format!(
                    "its stream {STREAM} ends at {}, and this node has applied {after}: the server has lost entries; bring back its data",
                    self.last
                ),
            });
        }
        let shared = Arc::new(Shared {
            client: self.client,
            context: self.context,
            stream: self.stream,
            origin: self.origin,
            numbers: AtomicU64::new(0),
            waiting: Mutex::default(),
            failed: AtomicBool::new(false),
            closed: watch::Sender::new(false),
        });
        tokio::spawn(follow::follow(shared.clone(), after, feed));
        Ok(JetStream { shared })
    }
}

impl Log for JetStream {
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError> {
        let shared = self.shared.clone();
        if *shared.closed.borrow() {
            return Err(LogError::Closed);
        }
        let number = shared.numbers.fetch_add(1, Relaxed);
        let published = Published {
            origin: shared.origin,
            number,
            command,
        };
        let bytes = postcard::to_extend(&published, Vec::new())
            .map_err(|error| LogError::Failed(error.to_string()))?;
        let mut waiting = lock(&shared.waiting);
        if waiting.len() >= MOST_WAITING {
            return Err(LogError::Busy(MOST_WAITING));
        }
        waiting.insert(number, reply);
        drop(waiting);
        tokio::spawn(async move {
            if let Err(error) = shared.publish(number, bytes.into()).await
                && let Some(reply) = lock(&shared.waiting).remove(&number)
            {
                let _ = reply.send(Err(LogError::Failed(error)));
            }
        });
        Ok(())
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = Result<u64, LogError>> + Send + '_>> {
        Box::pin(async {
            let info = timeout(ACK, self.shared.stream.get_info()).await;
            match info {
                Ok(Ok(info)) => Ok(info.state.last_sequence),
                Ok(Err(error)) => Err(LogError::Failed(error.to_string())),
                Err(_) => Err(LogError::Failed(
                    "the NATS server does not answer".to_owned(),
                )),
            }
        })
    }

    /// The stream keeps everything, for nodes that begin from nothing.
    fn forget(&self, _: u64) {}

    fn patience(&self) -> Option<Duration> {
        // Published, it still has to come back.
        Some(LONGEST + 2 * ACK)
    }

    fn is_up(&self) -> bool {
        let connected = self.shared.client.connection_state() == State::Connected;
        connected && !self.shared.failed.load(SeqCst)
    }

    fn close(&self) {
        self.shared.closed.send_replace(true);
    }
}

impl Shared {
    /// Publishes until it is acknowledged, or for too long.
    async fn publish(&self, number: u64, bytes: bytes::Bytes) -> Result<(), String> {
        let id = format!("{:016x}-{number}", self.origin);
        let end = Instant::now() + LONGEST;
        loop {
            let message = PublishMessage::build()
                .payload(bytes.clone())
                .message_id(&id);
            let published = timeout(ACK, async {
                let acknowledged = self.context.send_publish(SUBJECT, message).await;
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

/// A URL without what stands before the `@`.
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
