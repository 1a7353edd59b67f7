//! The parts of a running node, and its operations.

use crate::acknowledgements::Acknowledgements;
use crate::backup::{self, BackupError};
use crate::cluster::Cluster;
use crate::command::{Command, CommandResult, Refusal};
use crate::counts::Unread;
use crate::disk::{Disk, blocking};
use crate::hub::Hub;
use crate::index::{Index, IndexError};
use crate::limits::Limits;
use crate::log::{Log, LogError};
use crate::metrics::Metrics;
use crate::model::{Conversation, ConversationId, UserId};
use crate::options::{Options, Registration};
use crate::password::Passwords;
use crate::presence::Presence;
use crate::rates::Rates;
use crate::readiness::Readiness;
use crate::recipients::Recipients;
use crate::sessions::{Bearer, Sessions};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot, watch};

/// The parts of a running node. See the [module](self).
pub(crate) struct Inner {
    pub log: Arc<dyn Log>,
    /// The other members, if this node is a member of a cluster.
    pub cluster: Option<Arc<Cluster>>,
    pub index: Index,
    pub hub: Hub,
    pub sessions: Arc<Sessions>,
    pub passwords: Passwords,
    pub presence: Arc<Presence>,
    pub acknowledgements: Arc<Acknowledgements>,
    pub metrics: Metrics,
    pub rates: Rates,
    pub readiness: Readiness,
    pub disk: Disk,
    pub unread: Unread,
    /// The permits for recipients of messages in flight. Messages to few recipients need no permits.
    pub fanout: Arc<Semaphore>,
    pub recipients: Arc<Recipients>,
    pub limits: Limits,
    pub origins: Arc<[String]>,
    pub registration: Registration,
    /// The OpenAPI document, which is created on the first request.
    pub document: OnceLock<bytes::Bytes>,
    /// The start options.
    pub options: Options,
    pub threads: Mutex<Vec<JoinHandle<()>>>,
    /// True if the node is shutting down.
    pub closing: watch::Sender<bool>,
}

/// The reasons why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(
        "the change was not stored within {} s, but may be stored later, so try again with the same Idempotency-Key", .0.as_secs()
    )]
    Late(Duration),
}

impl Inner {
    /// Makes a command durable, applies it, and returns its result.
    pub async fn command(&self, command: Command) -> Result<CommandResult, Failure> {
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
        let outcome = outcome.map_err(|_| LogError::Closed)??;
        self.readiness.record_write();
        Ok(outcome?)
    }

    /// Returns the newest version of commands that all nodes can read.
    pub fn reads(&self) -> u8 {
        self.log.reads()
    }

    /// Waits until all entries that were durable on any node before this call are applied.
    pub async fn caught_up(&self) -> Result<(), Failure> {
        let end = self.log.end().await?;
        Ok(self.index.reached(end).await?)
    }

    /// Waits like [`Inner::caught_up`]. Returns `false` if the log cannot be reached; the node's data can still be read
    /// then.
    pub async fn catch_up_if_possible(&self) -> Result<bool, Failure> {
        match self.caught_up().await {
            Ok(()) => Ok(true),
            Err(Failure::Log(LogError::Unreachable(_))) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Returns a conversation of this user, and whether it is up to date. A node that cannot reach the log does not know all
    /// conversations, so it calls none unknown.
    pub async fn conversation_of(
        &self,
        user: UserId,
        id: ConversationId,
    ) -> Result<(Conversation, bool), Failure> {
        let find = async || {
            let found = self.index.conversation(id).await?;
            Ok::<_, IndexError>(found.filter(|found| found.has(user)))
        };
        let is_current = self.catch_up_if_possible().await?;
        if let Some(found) = find().await? {
            return Ok((found, is_current));
        }
        if is_current {
            return Err(Refusal::UnknownConversation(id).into());
        }
        self.caught_up().await?;
        let found = find().await?.ok_or(Refusal::UnknownConversation(id))?;
        Ok((found, true))
    }

    /// Returns the last acknowledged sequence of a session, and the last sequence of its user.
    pub async fn position(&self, bearer: &Bearer) -> Result<(u64, u64), Failure> {
        self.catch_up_if_possible().await?;
        let noted = self.acknowledgements.of(bearer.session);
        let position = self.index.position(bearer.user, bearer.session).await?;
        Ok((position.acknowledged.max(noted), position.last))
    }

    /// True if the node accepts commands now.
    pub fn is_up(&self) -> bool {
        self.disk.room().is_ok()
            && self.log.is_up()
            && self.index.is_up()
            && self.hub.is_up()
            && !*self.closing.borrow()
    }

    /// Waits until the node must reopen its files, because one of them could not be written or read.
    pub async fn failed(&self) {
        self.index.ended().await;
        if self.log.has_stopped() || *self.closing.borrow() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when the node begins to shut down.
    pub async fn closing(&self) {
        let mut closing = self.closing.subscribe();
        let _ = closing.wait_for(|&closing| closing).await;
    }

    pub async fn flush_acknowledgements(&self) {
        let write = async |command| self.command(command).await.is_ok();
        self.acknowledgements.flush(write).await;
    }

    /// Checks that a write became durable recently, with a probe if necessary.
    ///
    /// # Errors
    /// The time since the last durable write.
    pub async fn check_writes(self: &Arc<Self>) -> Result<(), Duration> {
        let start_probe = || drop(tokio::spawn(probe(self.clone())));
        self.readiness.check(start_probe).await
    }

    /// Copies everything acknowledged so far into a new file while the node serves. Returns the position of
    /// the last entry of the log in the copy.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub async fn backup(&self, to: &Path) -> Result<u64, BackupError> {
        let path = to.to_owned();
        let part = backup::part(to);
        let begun = blocking(move || Ok(backup::begin(&path))).await?;
        begun?;
        let copied = match self.caught_up().await {
            Ok(()) => {
                let copied = self.index.copy_to(&part).await;
                copied.map_err(Into::into)
            }
            Err(failure) => Err(BackupError::Refused(failure.to_string())),
        };
        backup::finish(copied, &part, to)
    }

    /// Removes unused space from the index while the node serves. Returns the bytes of the index before and after.
    ///
    /// # Errors
    /// If the copy cannot be written.
    pub async fn compact(&self) -> Result<(u64, u64), BackupError> {
        Ok(self.index.compact().await?)
    }
}

/// Writes a command that changes nothing.
async fn probe(node: Arc<Inner>) {
    let nothing = Command::Acknowledge(Vec::new());
    // If the write fails, the time of the last durable write is unchanged.
    let _ = node.command(nothing).await;
    node.readiness.end_probe();
}

/// Waits for a time. Returns `false` if the node is shutting down.
pub(crate) async fn wait(node: &Inner, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = node.closing() => false,
    }
}
