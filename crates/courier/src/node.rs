//! A node: the log, the index of it, the hub, and what goes between them.

use crate::acknowledgements::{Acknowledgements, PATIENCE};
use crate::command::{Command, Done, Refusal};
use crate::disk::Disk;
use crate::error::StartError;
use crate::http::Unread;
use crate::hub::{Hub, HubRequest, Parts, lock};
use crate::index::{Index, IndexError, Opened};
use crate::limits::{Limits, MOST_FANOUT};
use crate::log::embedded::Prepared;
use crate::log::jetstream::{Connected, Names, Server, without_secrets};
use crate::log::{Log, LogError};
use crate::metrics::Metrics;
use crate::password::Passwords;
use crate::presence::Presence;
use crate::presence::shared::SharedPresence;
use crate::rates::Rates;
use crate::recipients::Recipients;
use crate::retention::Retention;
use crate::seal::Key;
use crate::sessions::{Bearer, Sessions};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};

/// How often rates of users who have not asked for long are forgotten.
const TIDY: Duration = Duration::from_secs(60);

/// How a node is to run.
#[derive(Clone, Default)]
pub struct Options {
    /// Where the data are. Without it they are in memory, and gone with the process.
    pub data: Option<PathBuf>,
    /// The URL of a NATS server with JetStream, where several nodes share one log.
    pub nats: Option<String>,
    /// A file with the key that those nodes have in common: they believe no others.
    pub nats_key: Option<PathBuf>,
    /// The stream that they share; without it one that all services on that server share.
    pub nats_stream: Option<String>,
    /// Servers that keep a copy of it.
    pub nats_replicas: Option<u8>,
    /// A file with `USER:PASSWORD` or a token for the server.
    pub nats_credentials: Option<PathBuf>,
    /// A file with the certificates of whoever vouches for the server.
    pub nats_ca: Option<PathBuf>,
    /// Origins from which browsers may connect, besides the one they were served from.
    pub origins: Vec<String>,
    /// Who may make an account.
    pub registration: Registration,
    /// Messages older than this are removed.
    pub keep: Option<Duration>,
    /// The oldest messages are removed while all have more bytes than this.
    pub keep_bytes: Option<u64>,
    /// What is refused.
    pub limits: Limits,
}

/// Who may make an account.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Registration {
    /// Everybody.
    #[default]
    Open,
    /// Those who know this secret.
    Token(String),
    /// No one.
    Closed,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A secret is not printed.
        f.write_str(match self {
            Registration::Open => "Open",
            Registration::Token(_) => "Token(…)",
            Registration::Closed => "Closed",
        })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a password.
        let nats = self.nats.as_deref().map(without_secrets);
        f.debug_struct("Options")
            .field("data", &self.data)
            .field("nats", &nats)
            .field("nats_key", &self.nats_key)
            .field("nats_stream", &self.nats_stream)
            .field("nats_replicas", &self.nats_replicas)
            .field("nats_credentials", &self.nats_credentials)
            .field("nats_ca", &self.nats_ca)
            .field("origins", &self.origins)
            .field("registration", &self.registration)
            .field("keep", &self.keep)
            .field("keep_bytes", &self.keep_bytes)
            .field("limits", &self.limits)
            .finish()
    }
}

/// A running node. Clones are the same node.
#[derive(Clone)]
pub struct Node {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    log: Arc<dyn Log>,
    pub index: Index,
    pub hub: Hub,
    pub sessions: Arc<Sessions>,
    pub passwords: Passwords,
    pub presence: Arc<Presence>,
    acknowledgements: Arc<Acknowledgements>,
    pub metrics: Metrics,
    pub rates: Rates,
    disk: Disk,
    pub unread: Unread,
    /// Recipients of messages that are on their way, other than messages to few.
    pub fanout: Arc<Semaphore>,
    pub recipients: Arc<Recipients>,
    pub limits: Limits,
    pub origins: Arc<[String]>,
    pub registration: Registration,
    /// The OpenAPI document.
    pub document: axum::body::Bytes,
    /// With which it was started.
    pub options: Options,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Whether the node is shutting down.
    closing: watch::Sender<bool>,
}

/// Why a node has not done what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(
        "this was not stored within {} s; whether it will be is not known, so try again with the same Idempotency-Key", .0.as_secs()
    )]
    Late(Duration),
}

impl Node {
    /// Starts a node.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(options: Options) -> Result<Node, StartError> {
        Node::start_counting(options, Metrics::new()).await
    }

    /// Starts a node that goes on counting.
    pub(crate) async fn start_counting(
        options: Options,
        metrics: Metrics,
    ) -> Result<Node, StartError> {
        let again = options.clone();
        let Options {
            data,
            nats,
            nats_key,
            nats_stream,
            nats_replicas,
            nats_credentials,
            nats_ca,
            origins,
            registration,
            keep,
            keep_bytes,
            limits,
        } = options;
        limits.check().map_err(StartError::Setting)?;
        if let Some(dir) = &data {
            private_directory(dir).map_err(|source| StartError::Directory {
                path: dir.clone(),
                source,
            })?;
        }
        let disk = Disk::new(data.as_deref(), limits.reserve);
        let dir = data.clone();
        let mut opened = blocking(move || Opened::open(dir.as_deref())).await?;
        let presence = Arc::new(Presence::default());
        let acknowledgements = Arc::new(Acknowledgements::default());
        let sessions = Arc::new(Sessions::default());
        let parts = Parts::new(
            presence.clone(),
            acknowledgements.clone(),
            metrics.clone(),
            limits.clone(),
        );
        // Groups of entries that may wait to be applied.
        let (feed, entries) = crossbeam_channel::bounded(64);
        let applied = opened.applied();
        let closing = watch::Sender::new(false);
        let mut threads = Vec::new();
        let mut following = None;
        let log: Arc<dyn Log> = match nats {
            None => {
                let after = applied.position;
                let prepared = blocking(move || Prepared::open(data.as_deref(), after)).await?;
                opened.adopt(prepared.identity())?;
                opened.follows(prepared.last())?;
                let (log, thread) = prepared.start(feed, metrics.groups.clone())?;
                threads.push(thread);
                Arc::new(log)
            }
            Some(url) => {
                let key = key(nats_key.as_deref())?;
                let server = Server {
                    url,
                    names: Names::new(nats_stream.as_deref())?,
                    replicas: nats_replicas,
                    credentials: nats_credentials,
                    ca: nats_ca,
                };
                let connected = Connected::connect(server, key.clone(), metrics.clone()).await?;
                opened.adopt(connected.identity())?;
                let shared = SharedPresence::new(
                    presence.clone(),
                    connected.client(),
                    key,
                    metrics.clone(),
                    (connected.names().presence.clone(), connected.origin()),
                    opened.version(),
                );
                let common = shared.common();
                let mut closed = closing.subscribe();
                tokio::spawn(shared.run(async move {
                    let _ = closed.wait_for(|&closing| closing).await;
                }));
                let (log, ended) = connected.follow(applied, feed, common).await?;
                following = Some(ended);
                Arc::new(log)
            }
        };
        let weak = Arc::downgrade(&log);
        let forget = move |position| {
            if let Some(log) = weak.upgrade() {
                log.forget(position);
            }
        };
        let recipients = Arc::new(Recipients::default());
        let deliverer = parts.deliverer(sessions.clone(), recipients.clone());
        let (index, thread) = opened.start(entries, deliverer, forget)?;
        threads.push(thread);
        let hub = parts.start(index.clone())?;
        let document = crate::http::document(&limits);
        let inner = Arc::new(Inner {
            log,
            index,
            hub,
            sessions,
            passwords: Passwords::new(limits.password_memory),
            presence,
            acknowledgements,
            metrics,
            rates: Rates::new(&limits),
            disk,
            unread: Unread::new(),
            fanout: Arc::new(Semaphore::new(MOST_FANOUT as usize)),
            recipients,
            limits,
            origins: origins.into(),
            registration,
            document,
            options: again,
            threads: Mutex::new(threads),
            closing,
        });
        // What was durable before is there before the first request.
        let _ = inner.caught_up().await;
        if let Some(following) = following {
            let inner = inner.clone();
            tokio::spawn(async move {
                // Its clients have to go elsewhere when the log cannot be followed any more.
                let _ = following.await;
                inner.hub.close().await;
            });
        }
        tokio::spawn(write_acknowledgements(inner.clone()));
        tokio::spawn(tell(inner.clone()));
        tokio::spawn(tidy(inner.clone()));
        if keep.is_some() || keep_bytes.is_some() {
            let retention = Retention::new(keep, keep_bytes);
            tokio::spawn(retention.run(inner.clone()));
        }
        let node = Node { inner };
        if let Some(data) = &node.inner.options.data {
            crate::control::listen(&node, data);
        }
        Ok(node)
    }

    /// Closes all sockets.
    pub(crate) async fn close_sockets(&self) {
        self.inner.closing.send_replace(true);
        self.inner.hub.close().await;
    }

    /// Closes all sockets, has what was taken made durable, and ends what the node runs.
    pub async fn close(&self) {
        let inner = &self.inner;
        self.close_sockets().await;
        inner.flush_acknowledgements().await;
        inner.log.close();
        let threads = std::mem::take(&mut *lock(&inner.threads));
        let join = move || {
            for thread in threads {
                // One that panicked has said so.
                let _ = thread.join();
            }
        };
        let _ = tokio::task::spawn_blocking(join).await;
    }
}

impl Inner {
    /// Makes a command durable, applies it, and says what came of it.
    pub async fn command(&self, command: Command) -> Result<Done, Failure> {
        if let Err(full) = self.disk.room() {
            self.metrics.refuse("disk_full");
            return Err(LogError::Full(full).into());
        }
        let (reply, outcome) = oneshot::channel();
        self.log.submit(command, reply)?;
        let outcome = match self.log.patience() {
            None => outcome.await,
            Some(patience) => tokio::time::timeout(patience, outcome)
                .await
                .map_err(|_| Failure::Late(patience))?,
        };
        match outcome {
            Ok(outcome) => Ok(outcome??),
            Err(_) => Err(LogError::Closed.into()),
        }
    }

    /// The newest version of commands that all nodes read.
    pub fn reads(&self) -> u8 {
        self.log.reads()
    }

    /// Waits until everything is applied that was durable, on any node, before this was called.
    pub async fn caught_up(&self) -> Result<(), Failure> {
        let end = self.log.end().await?;
        Ok(self.index.reached(end).await?)
    }

    /// As [`Inner::caught_up`]; if the log cannot be asked now, `false`: what the node knows can be
    /// read all the same.
    pub async fn catch_up_if_possible(&self) -> Result<bool, Failure> {
        match self.caught_up().await {
            Ok(()) => Ok(true),
            Err(Failure::Log(LogError::Unreachable(_))) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// How far a session has acknowledged, and the last sequence its user has.
    pub async fn position(&self, bearer: &Bearer) -> Result<(u64, u64), Failure> {
        self.catch_up_if_possible().await?;
        let noted = self.acknowledgements.of(bearer.session);
        let position = self.index.position(bearer.user, bearer.session).await?;
        Ok((position.acknowledged.max(noted), position.last))
    }

    /// Whether commands are taken now.
    pub fn is_up(&self) -> bool {
        self.disk.room().is_ok()
            && self.log.is_up()
            && self.index.is_up()
            && self.hub.is_up()
            && !*self.closing.borrow()
    }

    /// Returns when the node cannot go on with the files that it has open, because one of them could
    /// not be written or read.
    pub async fn failed(&self) {
        self.index.ended().await;
        // Opened anew, a log that is not what it was would be the same.
        if self.log.has_stopped() || *self.closing.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the node begins to shut down.
    pub async fn closing(&self) {
        let mut closing = self.closing.subscribe();
        let _ = closing.wait_for(|&closing| closing).await;
    }

    async fn flush_acknowledgements(&self) {
        let write = async |command| self.command(command).await.is_ok();
        self.acknowledgements.flush(write).await;
    }
}

/// Makes a directory that other users of the machine cannot look into. One that is there stays as it
/// is.
pub(crate) fn private_directory(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// The key in this file.
fn key(path: Option<&Path>) -> Result<Key, StartError> {
    const SHORTEST: usize = 16;
    let Some(path) = path else {
        return Err(StartError::Setting(
            "nodes that share a log need a key in common: give each --nats-key FILE with the same content; `head -c 32 /dev/urandom | base64 > FILE` makes one".to_owned(),
        ));
    };
    let refused = |reason: String| StartError::Key {
        path: path.to_owned(),
        reason,
    };
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let secret = text.trim_ascii();
    if secret.len() < SHORTEST {
        return Err(refused(format!(
            "it has {} bytes, and needs {SHORTEST} at least; `head -c 32 /dev/urandom | base64` makes a good one",
            secret.len()
        )));
    }
    Ok(Key::new(secret))
}

/// Does what may block on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StartError> + Send + 'static,
) -> Result<T, StartError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StartError::Thread(error.into()))?
}

/// Writes acknowledgements to the log, now and then.
async fn write_acknowledgements(node: Arc<Inner>) {
    while wait(&node, PATIENCE).await {
        node.flush_acknowledgements().await;
    }
}

/// Tells all users who comes and goes.
async fn tell(node: Arc<Inner>) {
    let mut pause = Duration::ZERO;
    while wait(&node, pause).await {
        let (update, next) = node.presence.update();
        pause = next;
        if let Some(update) = update
            && node.hub.request(HubRequest::Tell(update)).await.is_err()
        {
            return;
        }
    }
}

async fn tidy(node: Arc<Inner>) {
    while wait(&node, TIDY).await {
        node.rates.tidy();
    }
}

/// Waits; `false` if the node is shutting down.
pub(crate) async fn wait(node: &Inner, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = node.closing() => false,
    }
}
