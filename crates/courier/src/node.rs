//! A node: the log, the index of it, the hub, and what goes between them.

use crate::acknowledgements::{Acknowledgements, PATIENCE};
use crate::command::{Command, Done, Refusal};
use crate::error::StartError;
use crate::hub::{Hub, Order, Parts, lock};
use crate::index::{Index, IndexError, Opened};
use crate::limits::Limits;
use crate::log::embedded::Embedded;
use crate::log::jetstream::{Connected, without_secrets};
use crate::log::{Log, LogError};
use crate::metrics::Metrics;
use crate::password::Passwords;
use crate::presence::Presence;
use crate::presence::shared::SharedPresence;
use crate::rates::Rates;
use crate::sessions::{Bearer, Sessions};
use crate::token::Token;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How often rates of users who have not asked for long are forgotten.
const TIDY: Duration = Duration::from_secs(60);

/// How a node is to run.
#[derive(Clone, Default)]
pub struct Options {
    /// Where the data are. Without it they are in memory, and gone with the process.
    pub data: Option<PathBuf>,
    /// The URL of a NATS server with JetStream, where several nodes share one log.
    pub nats: Option<String>,
    /// Origins from which browsers may connect, besides the one they were served from.
    pub origins: Vec<String>,
    /// What is refused.
    pub limits: Limits,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may hold a password.
        let nats = self.nats.as_deref().map(without_secrets);
        f.debug_struct("Options")
            .field("data", &self.data)
            .field("nats", &nats)
            .field("origins", &self.origins)
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
    sessions: Arc<Sessions>,
    pub passwords: Passwords,
    pub presence: Arc<Presence>,
    acknowledgements: Arc<Acknowledgements>,
    pub metrics: Metrics,
    pub rates: Rates,
    pub limits: Limits,
    pub origins: Vec<String>,
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
        let Options {
            data,
            nats,
            origins,
            limits,
        } = options;
        if let Some(dir) = &data {
            std::fs::create_dir_all(dir).map_err(|source| StartError::Directory {
                path: dir.clone(),
                source,
            })?;
        }
        let dir = data.clone();
        let mut opened = blocking(move || Opened::open(dir.as_deref())).await?;
        let presence = Arc::new(Presence::default());
        let acknowledgements = Arc::new(Acknowledgements::default());
        let metrics = Metrics::new();
        let sessions = Arc::new(Sessions::default());
        let parts = Parts::new(
            presence.clone(),
            acknowledgements.clone(),
            metrics.clone(),
            limits.clone(),
        );
        // Groups of entries that may wait to be applied.
        let (feed, entries) = crossbeam_channel::bounded(64);
        let after = opened.position();
        let closing = watch::Sender::new(false);
        let mut threads = Vec::new();
        let log: Arc<dyn Log> = match nats {
            None => {
                opened.adopt(0)?;
                let groups = metrics.groups.clone();
                let open = move || Embedded::open(data.as_deref(), after, feed, groups);
                let (log, thread) = blocking(open).await?;
                threads.push(thread);
                Arc::new(log)
            }
            Some(url) => {
                let connected = Connected::connect(&url).await?;
                opened.adopt(connected.identity())?;
                let shared =
                    SharedPresence::new(presence.clone(), connected.client(), connected.origin());
                let mut closed = closing.subscribe();
                tokio::spawn(shared.run(async move {
                    let _ = closed.wait_for(|&closing| closing).await;
                }));
                Arc::new(connected.follow(after, feed)?)
            }
        };
        let weak = Arc::downgrade(&log);
        let forget = move |position| {
            if let Some(log) = weak.upgrade() {
                log.forget(position);
            }
        };
        let (index, thread) = opened.start(entries, parts.deliverer(sessions.clone()), forget)?;
        threads.push(thread);
        let hub = parts.start(index.clone())?;
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
            limits,
            origins,
            threads: Mutex::new(threads),
            closing,
        });
        // What was durable before is there before anybody asks.
        let _ = inner.caught_up().await;
        tokio::spawn(write_acknowledgements(inner.clone()));
        tokio::spawn(tell(inner.clone()));
        tokio::spawn(tidy(inner.clone()));
        Ok(Node { inner })
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

    /// Waits until everything is applied that was durable, on any node, before this was called.
    pub async fn caught_up(&self) -> Result<(), Failure> {
        let end = self.log.end().await?;
        Ok(self.index.reached(end).await?)
    }

    /// Whose token this is.
    pub async fn bearer(&self, token: &Token) -> Result<Option<Bearer>, Failure> {
        if let Some(bearer) = self.sessions.find(token, &self.index).await? {
            return Ok(Some(bearer));
        }
        // It may have been given out by another node a moment ago.
        Box::pin(self.caught_up()).await?;
        Ok(self.sessions.find(token, &self.index).await?)
    }

    /// How far a session has acknowledged, and the last sequence its user has.
    pub async fn position(&self, bearer: &Bearer) -> Result<(u64, u64), Failure> {
        self.caught_up().await?;
        let noted = self.acknowledgements.of(bearer.session);
        let position = self.index.position(bearer.user, bearer.session).await?;
        Ok((position.acknowledged.max(noted), position.last))
    }

    /// Whether commands are taken now.
    pub fn is_up(&self) -> bool {
        self.log.is_up() && self.index.is_up() && self.hub.is_up() && !*self.closing.borrow()
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

/// Does what may block on a thread that may.
async fn blocking<T: Send + 'static>(
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

/// Tells everybody who comes and goes.
async fn tell(node: Arc<Inner>) {
    let mut pause = Duration::ZERO;
    while wait(&node, pause).await {
        let (tidings, next) = node.presence.tidings();
        pause = next;
        if let Some(tidings) = tidings
            && node.hub.order(Order::Tell(tidings)).await.is_err()
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
async fn wait(node: &Inner, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = node.closing() => false,
    }
}
