//! Connects messages to sockets: a run of the core in which every online user is an actor.
//!
//! The run uses the tokio runtime of the HTTP server; a separate thread waits for the end of the run. Its
//! [`Root`](root::Root) assigns an [actor](user) to every online user. The actor owns the user's connections, writes
//! messages to them, and reads the client's frames. Actors are reused for other users, so their number is the maximum
//! number of users that were online at the same time.
//!
//! **Nothing is lost, and nothing accumulates.** A message for an online user goes through the actor's mailbox, which
//! holds [`MAILBOX`] units of 2 KiB. Then it goes through a queue for each socket, which holds [`connection::OUTBOX`]
//! frames and is also bounded in bytes. A frame that does not fit is skipped. The frame is still in the user's durable
//! queue, and the actor reads it from there when the socket has capacity again. A gap in the sequence numbers shows
//! that a frame was skipped. If no later message shows the gap, [`OnlineUser::overflowed`] does. So a slow reader
//! causes a few reads of pages from the index, and has no effect on other users.

mod connection;
mod root;
mod user;

pub(crate) use connection::Attachment;

use crate::acknowledgements::Acknowledgements;
use crate::command::Delivery;
use crate::counts::{Counts, Reservation};
use crate::error::StartError;
use crate::frame::{Outgoing, ServerFrame, UserInfo};
use crate::index::{Effects, Index};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::model::{ConversationId, SessionId, UserId};
use crate::presence::{Presence, PresenceUpdate};
use crate::recipients::Recipients;
use crate::sessions::Sessions;
use axum::extract::ws::Utf8Bytes;
use corsair::{Addr, Config, Overflow, Report, RunError};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// The capacity of an actor's mailbox in units. A message uses one unit, plus one for every 2 KiB.
pub(crate) const MAILBOX: u32 = 128;
/// The maximum number of requests that wait for the root.
const REQUESTS: usize = 1024;
/// The maximum number of messages that are passed to the root at a time, so that other requests are handled in between.
const TOGETHER: usize = 512;

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
    user: Arc<OnlineUser>,
    sequence: u64,
    message: Arc<Outgoing>,
}

/// The state of a user who is online on this node.
#[derive(Debug)]
pub(crate) struct OnlineUser {
    info: UserInfo,
    /// The actor that serves the user.
    actor: Addr,
    /// The sequence number of the last message for this user.
    latest: AtomicU64,
    /// The number of mailbox units in use.
    waiting: AtomicU32,
    /// True if a message did not fit into the mailbox since the actor's last check.
    overflowed: AtomicBool,
    requests: Mutex<Requests>,
}

/// Requests to an actor that bypass its mailbox, which may be full.
#[derive(Debug, Default)]
struct Requests {
    attached: Vec<Attachment>,
    closed_sessions: Vec<SessionId>,
    /// True if the node is shutting down.
    close: bool,
}

/// The state shared between the run and the rest of the node.
pub(crate) struct HubState {
    online: RwLock<FxHashMap<UserId, Arc<OnlineUser>>>,
    /// The user to whom each actor is assigned next.
    assigned: Mutex<HashMap<Addr, Arc<OnlineUser>>>,
    free: Mutex<Vec<Addr>>,
    /// The number of sockets of each user, including sockets that are about to be accepted.
    sockets: Counts<UserId>,
    pub presence: Arc<Presence>,
    pub acknowledgements: Arc<Acknowledgements>,
    pub metrics: Metrics,
    pub limits: Limits,
    index: OnceLock<Index>,
}

/// The handle through which the rest of the node reaches the hub.
pub(crate) struct Hub {
    state: Arc<HubState>,
    requests: mpsc::Sender<HubRequest>,
    run: Mutex<Option<JoinHandle<Result<Report, RunError>>>>,
}

/// The hub's interface for the index.
pub(crate) struct Deliverer {
    requests: mpsc::Sender<HubRequest>,
    state: Arc<HubState>,
    sessions: Arc<Sessions>,
    recipients: Arc<Recipients>,
}

/// The node is shutting down.
#[derive(Debug)]
pub(crate) struct Closed;

/// The parts of the hub. [`Parts::start`] starts the run once the index exists.
pub(crate) struct Parts {
    requests: mpsc::Sender<HubRequest>,
    received: mpsc::Receiver<HubRequest>,
    state: Arc<HubState>,
}

impl Parts {
    pub fn new(
        presence: Arc<Presence>,
        acknowledgements: Arc<Acknowledgements>,
        metrics: Metrics,
        limits: Limits,
    ) -> Parts {
        let (requests, received) = mpsc::channel(REQUESTS);
        let state = Arc::new(HubState {
            online: RwLock::default(),
            assigned: Mutex::default(),
            free: Mutex::default(),
            sockets: Counts::new(),
            presence,
            acknowledgements,
            metrics,
            limits,
            index: OnceLock::new(),
        });
        Parts {
            requests,
            received,
            state,
        }
    }

    /// Returns the interface for the index.
    pub fn deliverer(&self, sessions: Arc<Sessions>, recipients: Arc<Recipients>) -> Deliverer {
        Deliverer {
            requests: self.requests.clone(),
            state: self.state.clone(),
            sessions,
            recipients,
        }
    }

    /// Starts the run.
    pub fn start(self, index: Index) -> Result<Hub, StartError> {
        let Parts {
            requests,
            received,
            state,
        } = self;
        let _ = state.index.set(index);
        // The units in each mailbox are counted by user and limited, so this capacity is never reached.
        let config = Config {
            mailbox: NonZeroUsize::new(2 * MAILBOX as usize).expect("it is not 0"),
            overflow: Overflow::DropNewest,
            ..Config::default()
        };
        // The actors share the runtime with the tasks of the HTTP side, so an actor that a socket wakes runs where the
        // socket is polled.
        let runtime = Handle::current();
        let root = root::Root {
            requests: received,
            hub: state.clone(),
        };
        let run = std::thread::Builder::new()
            .name("courier hub".to_owned())
            .spawn(move || corsair::run_on(&runtime, &config, root))
            .map_err(StartError::Thread)?;
        let run = Mutex::new(Some(run));
        Ok(Hub {
            state,
            requests,
            run,
        })
    }
}

impl Hub {
    /// Sends a request to the root.
    pub async fn request(&self, request: HubRequest) -> Result<(), Closed> {
        self.requests.send(request).await.map_err(|_| Closed)
    }

    /// True if the run has not ended.
    pub fn is_up(&self) -> bool {
        !self.requests.is_closed()
    }

    /// Counts a further socket of a user on this node, unless the user has the maximum number.
    pub fn admit(&self, user: UserId) -> Option<Reservation<UserId>> {
        let most = self.state.limits.sockets;
        self.state.sockets.take(user, 1, most)
    }

    /// Closes all sockets and ends the run. The first caller gets the report.
    pub async fn close(&self) -> Option<Result<Report, RunError>> {
        let _ = self.request(HubRequest::Close).await;
        let run = self.run.lock().take()?;
        let ended = tokio::task::spawn_blocking(move || run.join()).await;
        ended.ok()?.ok()
    }
}

impl Effects for Deliverer {
    fn deliver(&mut self, deliveries: &mut Vec<Delivery>) {
        let mut messages = Vec::new();
        let mut last: Option<Arc<Outgoing>> = None;
        let online = self.state.online();
        for delivery in deliveries.drain(..) {
            let Some(user) = online.get(&delivery.to) else {
                continue;
            };
            let message = match last.take() {
                Some(message) if message.is(&delivery.message) => message,
                _ => Arc::new(Outgoing::new(delivery.message)),
            };
            last = Some(message.clone());
            user.latest.fetch_max(delivery.sequence, AcqRel);
            messages.push(Dispatch {
                user: user.clone(),
                sequence: delivery.sequence,
                message,
            });
        }
        drop(online);
        let mut messages = messages.into_iter().peekable();
        while messages.peek().is_some() {
            let some = messages.by_ref().take(TOGETHER).collect();
            // The request fails after the end of the run, when all users are offline.
            let _ = self.requests.blocking_send(HubRequest::Deliver(some));
        }
    }

    fn session_closed(&mut self, user: UserId, session: SessionId) {
        self.sessions.forget(session);
        let _ = self
            .requests
            .blocking_send(HubRequest::CloseSession(user, session));
    }

    fn conversation_changed(&mut self, conversation: ConversationId, members: &[UserId]) {
        self.recipients.forget(conversation);
        let online = self.state.online();
        let online = members.iter().filter_map(|user| online.get(user).cloned());
        let online: Vec<_> = online.collect();
        if !online.is_empty() {
            let frame = ServerFrame::Changed { conversation }.frame();
            let _ = self.requests.blocking_send(HubRequest::Hint(online, frame));
        }
    }
}

impl HubState {
    fn online(&self) -> RwLockReadGuard<'_, FxHashMap<UserId, Arc<OnlineUser>>> {
        self.online.read()
    }

    fn online_mut(&self) -> RwLockWriteGuard<'_, FxHashMap<UserId, Arc<OnlineUser>>> {
        self.online.write()
    }

    fn index(&self) -> &Index {
        self.index.get().expect("set before the run starts")
    }

    /// Removes a user from the list.
    fn leave(&self, user: &OnlineUser) {
        self.presence.left(user.info.clone());
        self.metrics.online.dec();
    }
}
