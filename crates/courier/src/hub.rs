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
//! that a frame was skipped. If no later message shows the gap,
//! [`OnlineUser::overflowed`](state::OnlineUser::overflowed) does. So a slow reader causes a few reads of pages from the
//! index, and has no effect on other users.

mod connection;
mod root;
mod state;
mod user;

pub(crate) use state::{Attachment, HubRequest};

use crate::acknowledgements::Acknowledgements;
use crate::command::Delivery;
use crate::counts::{Counts, Reservation};
use crate::error::StartError;
use crate::frame::{Outgoing, ServerFrame};
use crate::index::{Effects, Index};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::model::{ConversationId, SessionId, UserId};
use crate::presence::Presence;
use crate::recipients::Recipients;
use crate::sessions::Sessions;
use corsair::{Config, Overflow, Report, RunError};
use parking_lot::{Mutex, RwLock};
use state::{Dispatch, HubState, MAILBOX};
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// The maximum number of requests that wait for the root.
const REQUESTS: usize = 1024;
/// The maximum number of messages that are passed to the root at a time, so that other requests are handled in between.
const TOGETHER: usize = 512;

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
