//! The log of several nodes, replicated by Raft: the library `raft` decides, and this module stores and sends.
//!
//! Every node has a copy of the log. A command is durable when a majority of the members has synced it. Then every node
//! applies it, and the node that received the request answers. A node that does not lead passes its commands to the
//! leader.
//!
//! **Why `raft` and not `openraft`.** (1) It has pre-votes, a check of the quorum, reads at the leader's position and
//! transfers of the leadership in a release; `openraft` has them in an alpha version, of which 0.10.0-alpha.2 could
//! lose data. (2) It is a state machine that is driven by one thread, which is how this service already groups writes;
//! nothing depends on the order of tasks. (3) TiKV has run it for years. (4) The storage and the transport are ours in
//! both. (5) Its price is old code for protocol buffers, which reads only messages of authenticated members.
//!
//! Reads ask the leader for its position, which confirms with a majority that it still leads, so a reader sees every
//! message that was acknowledged before its request.

mod core;
mod entry;
mod frame;
mod membership;
mod shared;
mod store;

pub(crate) use frame::Frame;
pub(crate) use membership::{Base, Change, Member};
pub(crate) use shared::{Shared, Status, Work};
pub(crate) use store::{Store, is_in, remove};

use super::ends::Ends;
use super::{Feed, Log, LogError, Reply};
use crate::command::Command;
use crate::seal::{CommonVersion, FIRST_OF_CLUSTERS};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

/// The time limit of a command.
const PATIENCE: Duration = Duration::from_secs(15);
/// The reason of a refusal while there is no leader.
const NO_LEADER: &str = "a majority of the nodes cannot be reached";
/// The maximum number of commands in progress.
const MOST_WAITING: usize = 1 << 16;

/// The log of several nodes. See the [module](self).
pub(crate) struct Replicated {
    shared: Arc<Shared>,
    common: Mutex<Option<CommonVersion>>,
    ends: Ends,
}

impl Replicated {
    /// Starts the log, for an index that has applied everything up to `applied`.
    ///
    /// # Errors
    /// The log and the index do not match.
    pub fn start(
        store: Store,
        origin: u64,
        feed: Feed,
        applied: u64,
        groups: Counter,
    ) -> Result<(Replicated, JoinHandle<()>), String> {
        let (works, received) = crossbeam_channel::unbounded();
        let base = store.base();
        if applied < base.position {
            return Err(format!(
                "the log begins after entry {}, and the index ends at {applied}",
                base.position
            ));
        }
        let shared = Shared::new(&store, origin, works);
        let core = core::Core::new(store, shared.clone(), received, feed, applied, groups)?;
        let thread = std::thread::Builder::new()
            .name("courier log".to_owned())
            .spawn(move || core.run())
            .map_err(|error| error.to_string())?;
        let log = Replicated {
            shared,
            common: Mutex::new(None),
            ends: Ends::default(),
        };
        Ok((log, thread))
    }

    /// Returns the state that the thread shares.
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Sets the newest version that all nodes can read.
    pub fn agree_on(&self, common: CommonVersion) {
        *self.common.lock() = Some(common);
    }

    fn alive(&self) -> Result<(), LogError> {
        match self.shared.stopped.get() {
            Some(reason) => Err(LogError::Stopped(reason.clone())),
            None if self.shared.closed.load(Relaxed) => Err(LogError::Closed),
            None => Ok(()),
        }
    }
}

impl Log for Replicated {
    fn submit(&self, command: Command, reply: Reply) -> Result<(), LogError> {
        self.alive()?;
        if self.shared.lost.load(Relaxed) {
            return Err(LogError::Unreachable(NO_LEADER.to_owned()));
        }
        if command.version() > self.reads() {
            return Err(LogError::OlderNodes);
        }
        if self.shared.backlog() + self.shared.waiting.load(Relaxed) >= MOST_WAITING {
            return Err(LogError::Busy(MOST_WAITING));
        }
        let data = entry::encode(self.shared.origin, &command)?;
        let sent = self.shared.works.send(Work::Submit(data, reply));
        sent.map_err(|_| LogError::Closed)
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = Result<u64, LogError>> + Send + '_>> {
        Box::pin(async {
            self.alive()?;
            if self.shared.leader.load(Relaxed) == 0 {
                return Err(LogError::Unreachable(NO_LEADER.to_owned()));
            }
            let ask = || async {
                self.shared
                    .ask(Work::Read)
                    .await
                    .unwrap_or(Err(LogError::Closed))
            };
            self.ends.ask(ask).await
        })
    }

    fn forget(&self, position: u64) {
        self.shared.pass(Work::Forget(position));
    }

    fn patience(&self) -> Option<Duration> {
        Some(PATIENCE)
    }

    fn reads(&self) -> u8 {
        self.common
            .lock()
            .as_ref()
            .map_or(FIRST_OF_CLUSTERS, CommonVersion::get)
    }

    fn is_up(&self) -> bool {
        let shared = &self.shared;
        shared.leader.load(Relaxed) != 0 && !shared.failed.load(Relaxed) && self.alive().is_ok()
    }

    fn has_stopped(&self) -> bool {
        self.shared.stopped.get().is_some()
    }

    fn close(&self) {
        self.shared.closed.store(true, Relaxed);
        self.shared.pass(Work::Close);
    }
}
