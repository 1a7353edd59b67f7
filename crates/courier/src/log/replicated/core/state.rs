//! The state of the thread of a replicated log.

use crate::log::replicated::frame::Frame;
use crate::log::replicated::membership::{Base, Changed};
use crate::log::replicated::shared::{Shared, Work};
use crate::log::replicated::store::Store;
use crate::log::{Feed, LogError, Reply};
use crossbeam_channel::Receiver;
use prometheus_client::metrics::counter::Counter;
use raft::{Config, RawNode, StateRole};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The least number of ticks without a leader after which a member becomes a candidate. Each member waits for a random
/// number of ticks below twice this number.
const ELECTION: usize = 20;
/// The number of ticks between two heartbeats of the leader.
const HEARTBEAT: usize = 3;
/// The maximum size of the entries in a message in bytes. At most 64 messages are on their way to a member.
const LARGEST_MESSAGE: u64 = 256 << 10;
/// The maximum bytes of entries that are not committed.
const MOST_UNCOMMITTED: u64 = 64 << 20;
/// The maximum number and bytes of commands that are proposed together.
pub(super) const LARGEST_GROUP: usize = 4096;
pub(super) const LARGEST_RECORD: usize = 1 << 20;

/// Reads that wait for the position of the leader.
#[derive(Default)]
pub(super) struct Reads {
    pub number: u64,
    /// The number of ticks since the current request.
    pub age: u32,
    /// The reads that the current request answers.
    pub asked: Vec<oneshot::Sender<Result<u64, LogError>>>,
    /// Later reads.
    pub waiting: Vec<oneshot::Sender<Result<u64, LogError>>>,
}

/// A command of this process that was not applied yet.
pub(super) struct Pending {
    pub reply: Reply,
    /// The encoded command until it is committed.
    pub data: Option<Vec<u8>>,
    /// The term in which it was proposed; 0 if it was not.
    pub term: u64,
}

/// A change of the members that was not applied yet.
pub(super) struct Changing {
    pub node: u64,
    pub position: u64,
    pub term: u64,
    pub reply: oneshot::Sender<Changed>,
}

/// The thread of a replicated log. See the [module](super).
pub(in crate::log::replicated) struct Core {
    pub(super) raft: RawNode<Store>,
    pub(super) shared: Arc<Shared>,
    pub(super) works: Receiver<Work>,
    pub(super) feed: Option<Feed>,
    pub(super) origin: u64,
    /// The number of the last command.
    pub(super) numbered: u64,
    pub(super) pending: BTreeMap<u64, Pending>,
    /// Commands that have not been proposed in the current term.
    pub(super) unproposed: VecDeque<u64>,
    /// The number of the last command that was sent to the leader of this term.
    pub(super) sent: u64,
    /// The number of ticks since a command of this process was committed, or sent again.
    pub(super) idle: u32,
    /// The number of ticks without a leader.
    pub(super) lost: u32,
    /// Members for which a message was not sent; `true` if it was about a snapshot.
    pub(super) unsent: Vec<(u64, bool)>,
    /// The last number that each process has proposed to this leader in this term.
    pub(super) proposed: HashMap<u64, u64>,
    pub(super) links: HashMap<u64, mpsc::Sender<Frame>>,
    pub(super) reads: Reads,
    pub(super) changing: Vec<Changing>,
    /// The state of the cluster after the last committed entry.
    pub(super) current: Base,
    /// The last entry that was passed to the index, and the last one that may be.
    pub(super) fed: u64,
    pub(super) committed: u64,
    pub(super) term: u64,
    /// The number of ticks since this node was asked to stop.
    pub(super) closing: Option<u32>,
    pub(super) groups: Counter,
}

impl Core {
    pub fn new(
        store: Store,
        shared: Arc<Shared>,
        works: Receiver<Work>,
        feed: Feed,
        applied: u64,
        groups: Counter,
    ) -> Result<Core, String> {
        let current = store.base().clone();
        let config = Config {
            id: store.node(),
            election_tick: ELECTION,
            heartbeat_tick: HEARTBEAT,
            applied: current.position,
            max_size_per_msg: LARGEST_MESSAGE,
            max_inflight_msgs: 64,
            check_quorum: true,
            pre_vote: true,
            max_uncommitted_size: MOST_UNCOMMITTED,
            max_committed_size_per_ready: 8 << 20,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raft = RawNode::new(&config, store, &logger).map_err(|error| error.to_string())?;
        let mut core = Core {
            raft,
            origin: shared.origin,
            shared,
            works,
            feed: Some(feed),
            numbered: 0,
            pending: BTreeMap::new(),
            unproposed: VecDeque::new(),
            sent: 0,
            idle: 0,
            lost: 0,
            unsent: Vec::new(),
            proposed: HashMap::new(),
            links: HashMap::new(),
            reads: Reads::default(),
            changing: Vec::new(),
            committed: current.position,
            current,
            fed: applied,
            term: 0,
            closing: None,
            groups,
        };
        // A member without others need not wait for them.
        if core.is_alone() {
            let _ = core.raft.campaign();
        }
        Ok(core)
    }

    pub(super) fn is_alone(&self) -> bool {
        let mut voters = self.current.voters();
        let node = self.raft.raft.id;
        voters.next().is_some_and(|one| one.id == node) && voters.next().is_none()
    }

    pub(super) fn is_leader(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }

    pub(super) fn stop(&mut self, reason: String) {
        tracing::error!("this node has stopped: {reason}");
        let _ = self.shared.stopped.set(reason.clone());
        self.give_up(&LogError::Stopped(reason));
        self.feed = None;
    }

    pub(super) fn give_up(&mut self, error: &LogError) {
        for (_, pending) in std::mem::take(&mut self.pending) {
            let _ = pending.reply.send(Err(error.clone()));
        }
        while let Ok(work) = self.works.try_recv() {
            if let Work::Submit(_, reply) = work {
                let _ = reply.send(Err(error.clone()));
            }
        }
    }
}
