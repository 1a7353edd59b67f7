//! The state that the thread of a replicated log shares with others, and the work that it takes from them.

use super::frame::Frame;
use super::membership::{Base, Change, Changed};
use super::store::Store;
use crate::log::{LogError, Reply};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot, watch};

/// The state of a cluster, as a node knows it.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub node: u64,
    /// The leader; 0 if there is none.
    pub leader: u64,
    pub term: u64,
    pub committed: u64,
    /// The position of each member, if this node leads.
    pub matched: Vec<(u64, u64)>,
    pub current: Base,
}

/// Work for the thread of the log.
pub(crate) enum Work {
    Submit(Vec<u8>, Reply),
    /// A frame of another member.
    Frame(u64, Frame),
    /// The link to a member was opened or has ended.
    Link(u64, Option<mpsc::Sender<Frame>>),
    Read(oneshot::Sender<Result<u64, LogError>>),
    Change(Change, oneshot::Sender<Changed>),
    /// Moves the leadership to a member, or to the most advanced one.
    Transfer(Option<u64>),
    BaseAt(u64, oneshot::Sender<Option<Base>>),
    Status(oneshot::Sender<Status>),
    Forget(u64),
    /// The leader has said that this node is not a member any more.
    Removed,
    /// Ends the feed, so that the node starts again from a snapshot.
    Restart,
    Close,
}

/// The state that the thread of the log shares with others.
pub(crate) struct Shared {
    pub node: u64,
    /// The identity of this process.
    pub origin: u64,
    /// The leader; 0 if there is none.
    pub leader: AtomicU64,
    /// True if this node leads, and knows all committed changes of the members.
    pub leads: AtomicBool,
    /// The number of commands that are not applied.
    pub(super) waiting: AtomicUsize,
    /// True if there was no leader for some seconds.
    pub(super) lost: AtomicBool,
    pub(super) failed: AtomicBool,
    pub(super) closed: AtomicBool,
    /// The reason why the node has stopped.
    pub(super) stopped: OnceLock<String>,
    /// The cluster after the last committed change of its members.
    pub current: watch::Sender<Arc<Base>>,
    /// A member that has asked this node to start from a snapshot.
    pub wants_snapshot: watch::Sender<Option<u64>>,
    pub(super) works: crossbeam_channel::Sender<Work>,
}

impl Shared {
    pub(super) fn new(
        store: &Store,
        origin: u64,
        works: crossbeam_channel::Sender<Work>,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            node: store.node(),
            origin,
            leader: AtomicU64::new(0),
            leads: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            stopped: OnceLock::new(),
            current: watch::Sender::new(Arc::new(store.base().clone())),
            wants_snapshot: watch::Sender::new(None),
            works,
        })
    }

    /// Passes work to the thread. After the end of the thread, the work is dropped.
    pub fn pass(&self, work: Work) {
        let _ = self.works.send(work);
    }

    /// Returns the amount of work that the thread has not begun.
    pub fn backlog(&self) -> usize {
        self.works.len()
    }

    /// Passes a question to the thread, and returns the answer; `None` after the end of the thread.
    pub async fn ask<T>(&self, work: impl FnOnce(oneshot::Sender<T>) -> Work) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.pass(work(reply));
        answer.await.ok()
    }
}
