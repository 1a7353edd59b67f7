//! The state of the connections of a node to other members.

use super::request::{Credentials, hello};
use super::wire::Hello;
use crate::log::replicated::{Frame, Member, Shared};
use crate::metrics::Metrics;
use crate::seal::Key;
use crate::tls::Secure;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::{Semaphore, mpsc, watch};

/// The connections of this node to other members. See the [module](super).
pub(crate) struct Cluster {
    pub shared: Arc<Shared>,
    pub(super) key: Key,
    pub(super) secure: Option<Secure>,
    pub(super) identity: u64,
    /// The address at which this node listens.
    pub(super) address: String,
    pub(super) data: PathBuf,
    /// The open connections over which this node sends.
    pub(super) links: Mutex<HashMap<u64, mpsc::Sender<Frame>>>,
    /// The addresses of nodes that are not known as members.
    pub(super) strangers: Mutex<HashMap<u64, String>>,
    pub(super) presence: mpsc::Sender<Vec<u8>>,
    pub(super) metrics: Metrics,
    /// The permit to make a copy of the index.
    pub(super) copies: Semaphore,
    /// True if the node has ended.
    pub(super) over: watch::Sender<bool>,
}

impl Cluster {
    pub fn new(
        shared: Arc<Shared>,
        credentials: Credentials,
        data: &Path,
        presence: mpsc::Sender<Vec<u8>>,
        metrics: Metrics,
    ) -> Cluster {
        let identity = shared.current.borrow().cluster;
        let Credentials {
            key,
            secure,
            address,
        } = credentials;
        Cluster {
            shared,
            key,
            secure,
            identity,
            address,
            data: data.to_owned(),
            links: Mutex::default(),
            strangers: Mutex::default(),
            presence,
            metrics,
            copies: Semaphore::new(1),
            over: watch::Sender::new(false),
        }
    }

    /// True if connections must have a certificate of the cluster's authority.
    pub fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    pub(super) fn hello(&self) -> io::Result<Hello> {
        hello(self.identity, self.shared.node, &self.address)
    }

    /// Ends all connections.
    pub fn close(&self) {
        self.over.send_replace(true);
    }

    /// Returns when all connections must end.
    pub async fn is_over(&self) {
        let _ = self.over.subscribe().wait_for(|&over| over).await;
    }

    /// Sends a message about the online users to all members.
    pub fn broadcast(&self, message: &[u8]) {
        for link in self.links.lock().values() {
            // A member that misses a message asks for all users.
            let _ = link.try_send(Frame::Presence(message.to_vec()));
        }
    }

    pub(super) fn leads(&self) -> bool {
        self.shared.leads.load(Relaxed)
    }

    pub(super) fn has(&self, node: u64) -> bool {
        self.shared.current.borrow().member(node).is_some()
    }

    pub(super) fn leader(&self) -> Option<Member> {
        let leader = self.shared.leader.load(Relaxed);
        self.shared.current.borrow().member(leader).cloned()
    }
}
