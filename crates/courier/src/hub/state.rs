//! The messages, the requests and the state that the parts of the hub share.

use crate::acknowledgements::Acknowledgements;
use crate::counts::{Counts, Reservation};
use crate::frame::{Outgoing, UserInfo};
use crate::index::Index;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::model::{Millis, SessionId, UserId};
use crate::presence::{Presence, PresenceUpdate};
use axum::extract::ws::{Utf8Bytes, WebSocket};
use corsair::Addr;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

/// The capacity of an actor's mailbox in units. A message uses one unit, plus one for every 2 KiB.
pub(super) const MAILBOX: u32 = 128;

/// An accepted socket that is passed to its user's actor.
pub(crate) struct Attachment {
    pub user: UserId,
    pub name: Arc<str>,
    pub session: SessionId,
    /// The time at which the session's token expires.
    pub expires: Millis,
    /// The sequence number up to which the client has received all messages.
    pub after: u64,
    /// The sequence number up to which the session has acknowledged all messages.
    pub acknowledged: u64,
    /// True if the client receives presence frames.
    pub presence: bool,
    pub socket: WebSocket,
    /// A guard that counts the socket while it is open.
    pub counted: Reservation<UserId>,
    /// A guard that counts the connection while it is open.
    pub connection: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attachment")
            .field("user", &self.user)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

/// Messages of the root to actors of users.
#[derive(Debug)]
pub(crate) enum HubMessage {
    /// A message for the actor's user.
    Message {
        user: UserId,
        sequence: u64,
        message: Arc<Outgoing>,
        /// The number of mailbox units that the message uses.
        weight: u32,
    },
    /// Users who came online and went offline.
    Presence {
        user: UserId,
        update: Arc<PresenceUpdate>,
    },
    /// A frame whose loss is harmless.
    Hint { user: UserId, frame: Utf8Bytes },
    /// Asks the actor to check the state of its [`OnlineUser`].
    Look,
}

impl corsair::Message for HubMessage {
    const KINDS: &'static [&'static str] = &["Message", "Presence", "Hint", "Look"];

    fn kind(&self) -> usize {
        match self {
            HubMessage::Message { .. } => 0,
            HubMessage::Presence { .. } => 1,
            HubMessage::Hint { .. } => 2,
            HubMessage::Look => 3,
        }
    }

    fn fingerprint(&self) -> u64 {
        match self {
            HubMessage::Message { sequence, .. } => *sequence,
            _ => 0,
        }
    }
}

/// Requests to the root from outside the run.
pub(crate) enum HubRequest {
    Attach(Box<Attachment>),
    Deliver(Vec<Dispatch>),
    CloseSession(UserId, SessionId),
    Tell(Arc<PresenceUpdate>),
    /// Sends these users a frame whose loss is harmless.
    Hint(Vec<Arc<OnlineUser>>, Utf8Bytes),
    /// Closes all sockets. The run ends when they are closed or the time limit has passed.
    Close,
}

/// A message for an actor.
pub(crate) struct Dispatch {
    pub(super) user: Arc<OnlineUser>,
    pub(super) sequence: u64,
    pub(super) message: Arc<Outgoing>,
}

/// The state of a user who is online on this node.
#[derive(Debug)]
pub(crate) struct OnlineUser {
    pub(super) info: UserInfo,
    /// The actor that serves the user.
    pub(super) actor: Addr,
    /// The sequence number of the last message for this user.
    pub(super) latest: AtomicU64,
    /// The number of mailbox units in use.
    pub(super) waiting: AtomicU32,
    /// True if a message did not fit into the mailbox since the actor's last check.
    pub(super) overflowed: AtomicBool,
    pub(super) requests: Mutex<Requests>,
}

/// Requests to an actor that bypass its mailbox, which may be full.
#[derive(Debug, Default)]
pub(super) struct Requests {
    pub attached: Vec<Attachment>,
    pub closed_sessions: Vec<SessionId>,
    /// True if the node is shutting down.
    pub close: bool,
}

/// The state shared between the run and the rest of the node.
pub(crate) struct HubState {
    pub(super) online: RwLock<FxHashMap<UserId, Arc<OnlineUser>>>,
    /// The user to whom each actor is assigned next.
    pub(super) assigned: Mutex<HashMap<Addr, Arc<OnlineUser>>>,
    pub(super) free: Mutex<Vec<Addr>>,
    /// The number of sockets of each user, including sockets that are about to be accepted.
    pub(super) sockets: Counts<UserId>,
    pub presence: Arc<Presence>,
    pub acknowledgements: Arc<Acknowledgements>,
    pub metrics: Metrics,
    pub limits: Limits,
    pub(super) index: OnceLock<Index>,
}

impl HubState {
    pub(super) fn online(&self) -> RwLockReadGuard<'_, FxHashMap<UserId, Arc<OnlineUser>>> {
        self.online.read()
    }

    pub(super) fn online_mut(&self) -> RwLockWriteGuard<'_, FxHashMap<UserId, Arc<OnlineUser>>> {
        self.online.write()
    }

    pub(super) fn index(&self) -> &Index {
        self.index.get().expect("set before the run starts")
    }

    /// Removes a user from the list.
    pub(super) fn leave(&self, user: &OnlineUser) {
        self.presence.left(user.info.clone());
        self.metrics.online.dec();
    }
}
