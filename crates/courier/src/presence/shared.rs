//! Presence of several nodes, which need not survive a node.
//!
//! A node sends all others numbered changes, and every second the number of its last change. A node that misses a number, or
//! does not know the sender, asks the sender for all its users. A node that is silent for [`SILENCE`] is gone, and so
//! are its users. Lists are sent in parts of at most [`PART`] users.

use super::{Changes, NodeId, Presence};
use crate::cluster::Cluster;
use crate::frame::UserInfo;
use crate::metrics::Metrics;
use crate::model::UserId;
use crate::seal::{CommonVersion, FIRST_OF_CLUSTERS, NEWEST};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// The interval at which changes are published.
const TICK: Duration = Duration::from_millis(100);
/// The number of ticks between two signs of life.
const HEARTBEAT: u64 = 10;
/// The silence after which a node counts as gone.
const SILENCE: Duration = Duration::from_secs(5);
/// The maximum number of users in one publication, which is at most 80 KB.
const PART: usize = 1000;
/// The number of heartbeats after which all running nodes have sent a message.
const HEARD: u64 = 2;
/// The maximum number of users that another node may report.
const MOST_USERS: usize = 1 << 20;

/// A message between nodes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum PresenceMessage {
    /// Changes; `number` counts the changes that were published before.
    Change {
        number: u64,
        came: Vec<UserInfo>,
        left: Vec<UserId>,
    },
    /// The number of changes that were published.
    Alive { number: u64 },
    /// A part of the list of all users, as of this number of changes.
    All {
        number: u64,
        first: bool,
        last: bool,
        users: Vec<UserInfo>,
    },
    /// Asks for the users of a node; [`EVERY_NODE`] asks all nodes.
    Ask { node: NodeId },
    /// The sending node is shutting down.
    Gone,
    /// The newest version that the sending node can read. Nodes of the first version do not send this message, and
    /// ignore it.
    Reads { version: u8 },
}

/// A number that no node has; in a request it stands for all nodes.
const EVERY_NODE: NodeId = 0;

/// The known state of another node.
#[derive(Debug)]
struct Peer {
    heard: Instant,
    known: PeerPresence,
    /// The newest version that the node can read.
    reads: u8,
}

#[derive(Debug)]
enum PeerPresence {
    /// The complete list was requested; the parts that have arrived so far.
    Asked(Vec<UserInfo>),
    /// All changes up to this number are known.
    All(u64),
}

/// The exchange of presence with other nodes. See the [module](self).
pub(crate) struct SharedPresence {
    presence: Arc<Presence>,
    cluster: Arc<Cluster>,
    metrics: Metrics,
    me: NodeId,
    /// The number of changes published so far.
    published: u64,
    peers: HashMap<NodeId, Peer>,
    common: CommonVersion,
    /// The newest version in the log at the time when this node started.
    written: u8,
    /// True if messages from all other running nodes have arrived.
    listened: bool,
}

impl SharedPresence {
    pub fn new(
        presence: Arc<Presence>,
        cluster: Arc<Cluster>,
        metrics: Metrics,
        me: NodeId,
        written: u8,
    ) -> SharedPresence {
        let written = written.clamp(FIRST_OF_CLUSTERS, NEWEST);
        SharedPresence {
            presence,
            cluster,
            metrics,
            me,
            published: 0,
            peers: HashMap::new(),
            common: CommonVersion::new(written),
            written,
            listened: false,
        }
    }

    /// Returns the version that all nodes can read.
    pub fn common(&self) -> CommonVersion {
        self.common.clone()
    }

    /// Updates the common version.
    fn agree(&self) {
        let peers = self.peers.values().map(|peer| peer.reads);
        let common = match self.listened {
            true => peers.fold(NEWEST, u8::min),
            false => self.written,
        };
        self.common.set(common);
    }

    /// Publishes and listens until `closing` returns.
    pub async fn run(
        mut self,
        mut received: mpsc::Receiver<Vec<u8>>,
        closing: impl Future<Output = ()>,
    ) {
        tokio::select! {
            () = self.exchange(&mut received) => {}
            () = closing => {}
        }
        self.publish(&PresenceMessage::Gone);
    }

    async fn exchange(&mut self, received: &mut mpsc::Receiver<Vec<u8>>) {
        self.publish_version();
        self.publish(&PresenceMessage::Ask { node: EVERY_NODE });
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 0u64;
        loop {
            tokio::select! {
                message = received.recv() => {
                    let Some(message) = message else { return };
                    match postcard::from_bytes::<(NodeId, PresenceMessage)>(&message) {
                        Ok((node, message)) if node != self.me => {
                            self.receive(node, message);
                            self.agree();
                        }
                        Ok(_) => {}
                        Err(_) => self.metrics.refuse("unknown_presence"),
                    }
                }
                _ = ticks.tick() => {
                    tick += 1;
                    self.publish_changes();
                    if tick.is_multiple_of(HEARTBEAT) {
                        self.listened |= tick >= HEARD * HEARTBEAT;
                        let number = self.published;
                        self.publish_version();
                        self.publish(&PresenceMessage::Alive { number });
                        self.expire_peers();
                        self.agree();
                    }
                }
            }
        }
    }

    fn publish(&self, message: &PresenceMessage) {
        // Other nodes request lost changes later.
        if let Ok(bytes) = postcard::to_allocvec(&(self.me, message)) {
            self.cluster.broadcast(&bytes);
        }
    }

    fn publish_changes(&mut self) {
        let changes = match self.presence.changes() {
            Changes::Some(changes) => changes,
            Changes::TooMany => return self.publish_all(),
        };
        // Only the last change of each user counts.
        let mut seen = HashSet::new();
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for (info, is_here) in changes.into_iter().rev() {
            if seen.insert(info.id) {
                match is_here {
                    true => came.push(info),
                    false => left.push(info.id),
                }
            }
        }
        while !came.is_empty() || !left.is_empty() {
            let number = self.published;
            self.published += 1;
            let came = came.split_off(came.len().saturating_sub(PART));
            let left = left.split_off(left.len().saturating_sub(PART));
            let change = PresenceMessage::Change { number, came, left };
            self.publish(&change);
        }
    }

    fn publish_version(&self) {
        let version = NEWEST;
        self.publish(&PresenceMessage::Reads { version });
    }

    fn publish_all(&mut self) {
        // The version is published first, so that other nodes do not take this node for one of the first version.
        self.publish_version();
        for message in all(self.published, self.presence.here()) {
            self.publish(&message);
        }
    }

    fn receive(&mut self, node: NodeId, message: PresenceMessage) {
        let before = self.peers.remove(&node);
        let mut reads = before.as_ref().map_or(FIRST_OF_CLUSTERS, |peer| peer.reads);
        let known = before.map(|peer| peer.known);
        let up_to_date = match &known {
            Some(PeerPresence::All(number)) => Some(*number),
            _ => None,
        };
        let known = match message {
            PresenceMessage::Gone => {
                self.presence.are_on(node, Vec::new());
                return;
            }
            PresenceMessage::Reads { version } => {
                reads = version;
                known
            }
            PresenceMessage::Ask { node: asked } => {
                if asked == self.me || asked == EVERY_NODE {
                    self.publish_all();
                }
                // The first heartbeat of the other node shows whether a request is necessary.
                known
            }
            PresenceMessage::All {
                number,
                first,
                last,
                users,
            } => {
                let mut parts = match known {
                    Some(PeerPresence::Asked(parts)) if !first => parts,
                    _ => Vec::new(),
                };
                parts.extend(users);
                parts.truncate(MOST_USERS);
                match last {
                    true => {
                        self.presence.are_on(node, parts);
                        Some(PeerPresence::All(number))
                    }
                    false => Some(PeerPresence::Asked(parts)),
                }
            }
            PresenceMessage::Change { number, came, left } if up_to_date == Some(number) => {
                for info in came {
                    self.presence.came_to(node, info);
                }
                for user in left {
                    self.presence.left_from(node, user);
                }
                Some(PeerPresence::All(number + 1))
            }
            PresenceMessage::Alive { number } if up_to_date == Some(number) => known,
            PresenceMessage::Change { .. } | PresenceMessage::Alive { .. } => {
                self.publish(&PresenceMessage::Ask { node });
                Some(PeerPresence::Asked(Vec::new()))
            }
        };
        let heard = Instant::now();
        let known = known.unwrap_or(PeerPresence::Asked(Vec::new()));
        let peer = Peer {
            heard,
            known,
            reads,
        };
        self.peers.insert(node, peer);
    }

    /// Removes the users of silent nodes from the list.
    fn expire_peers(&mut self) {
        let presence = &self.presence;
        self.peers.retain(|&node, peer| {
            let alive = peer.heard.elapsed() < SILENCE;
            if !alive {
                presence.are_on(node, Vec::new());
            }
            alive
        });
    }
}

/// Returns messages with all users of a node, in parts.
fn all(number: u64, users: Vec<UserInfo>) -> Vec<PresenceMessage> {
    let count = users.len().div_ceil(PART).max(1);
    let mut users = users.into_iter();
    let part = |place| PresenceMessage::All {
        number,
        first: place == 0,
        last: place + 1 == count,
        users: users.by_ref().take(PART).collect(),
    };
    (0..count).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: courier-9.
    #[test]
    fn users_with_the_longest_names_are_announced_in_short_parts() {
        let user = |id| UserInfo {
            id: UserId(u64::MAX - id),
            name: "x".repeat(crate::limits::LONGEST_NAME).into(),
        };
        for count in [0, 1, 1000, 16_500] {
            let parts = all(7, (0..count).map(user).collect());
            let mut told = 0;
            for (place, part) in parts.iter().enumerate() {
                let bytes = postcard::to_allocvec(&(1u64, part)).unwrap();
                assert!(bytes.len() < 100_000, "{}", bytes.len());
                let PresenceMessage::All {
                    first, last, users, ..
                } = part
                else {
                    panic!("{part:?}");
                };
                assert_eq!((*first, *last), (place == 0, place + 1 == parts.len()));
                told += users.len() as u64;
            }
            assert_eq!(told, count);
        }
    }
}
