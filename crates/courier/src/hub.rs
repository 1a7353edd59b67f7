//! Where messages meet sockets: a run of the core in which every online user is an actor.
//!
//! The run shares the tokio runtime of the HTTP side; a thread of its own waits for its end. Its
//! root, the [`Harbour`](root::Harbour), gives users a [berth](berth) each: an actor that holds the
//! user's sockets, writes to them what comes, and reads from them what the client says. Actors outlive their users and serve others later, so that
//! there are as many as there ever were users online at once.
//!
//! **Nothing is lost on the way, and nothing piles up.** A message for a user who is online goes
//! through the actor's mailbox, which holds [`MAILBOX`] of them, and a queue of [`line::OUTBOX`]
//! frames for each socket. What finds no room in one of them is left out: it lies in the user's
//! durable queue, from where the actor takes it when the socket has room again. That something was
//! left out shows in the sequence numbers, which have no gaps, and where no later message would
//! show it, in [`Entry::overflowed`]. So a slow reader costs its own user a few pages read from the
//! index, and nobody else anything.

mod berth;
mod line;
mod root;

pub(crate) use line::Attachment;

use crate::acknowledgements::Acknowledgements;
use crate::command::Delivery;
use crate::error::StartError;
use crate::frame::{Face, Outgoing};
use crate::index::{Effects, Index};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::model::{SessionId, UserId};
use crate::presence::Presence;
use crate::sessions::Sessions;
use axum::extract::ws::Utf8Bytes;
use corsair::{Addr, Config, Overflow, Report, RunError};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Messages that may wait for one actor.
pub(crate) const MAILBOX: u32 = 128;
/// Orders that may wait for the root.
const ORDERS: usize = 1024;

/// What actors of the run say to each other: the root to berths.
/// There is no digest on the wall clock.
#[derive(Debug, corsair::Message)]
#[message(skip)]
pub(crate) enum Word {
    /// A message for this user.
    Message {
        user: UserId,
        sequence: u64,
        message: Arc<Outgoing>,
    },
    /// Who came and went.
    Tidings { user: UserId, tidings: Arc<Tidings> },
    /// Look at your [`Entry`].
    Look,
}

/// Frames about who came and went, the same for everybody.
#[derive(Debug)]
pub(crate) struct Tidings {
    pub frames: Vec<Utf8Bytes>,
}

/// What the root is asked to do from outside of the run.
pub(crate) enum Order {
    Attach(Box<Attachment>),
    Deliver(Vec<Parcel>),
    CloseSession(UserId, SessionId),
    Tell(Arc<Tidings>),
    /// Close all sockets, and end when they are closed or the time is over.
    Close,
}

/// A message for an actor.
pub(crate) struct Parcel {
    entry: Arc<Entry>,
    sequence: u64,
    message: Arc<Outgoing>,
}

/// What is known of a user who is online on this node.
#[derive(Debug)]
pub(crate) struct Entry {
    user: UserId,
    name: Arc<str>,
    /// Who serves this user.
    at: Addr,
    /// The last sequence that was to be delivered.
    latest: AtomicU64,
    /// Messages in the mailbox.
    pending: AtomicU32,
    /// Something was not put into the mailbox since the actor last looked.
    overflowed: AtomicBool,
    /// Sockets that its actor holds.
    sockets: AtomicUsize,
    aside: Mutex<Aside>,
}

/// What must reach an actor and does not go through its mailbox.
#[derive(Debug, Default)]
struct Aside {
    sockets: Vec<Attachment>,
    closed: Vec<SessionId>,
    /// The node is shutting down.
    close: bool,
}

/// What the run shares with those outside of it.
pub(crate) struct Shared {
    online: RwLock<HashMap<UserId, Arc<Entry>>>,
    /// Whom berths serve next.
    assigned: Mutex<HashMap<Addr, Arc<Entry>>>,
    free: Mutex<Vec<Addr>>,
    pub presence: Arc<Presence>,
    pub acknowledgements: Arc<Acknowledgements>,
    pub metrics: Metrics,
    pub limits: Limits,
    index: OnceLock<Index>,
}

/// The run, seen from outside.
pub(crate) struct Hub {
    shared: Arc<Shared>,
    orders: mpsc::Sender<Order>,
    run: Mutex<Option<JoinHandle<Result<Report, RunError>>>>,
}

/// The part of the hub that the index tells.
pub(crate) struct Deliverer {
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
    sessions: Arc<Sessions>,
}

/// The node is shutting down.
#[derive(Debug)]
pub(crate) struct Closed;

/// Makes the parts; [`Parts::start`] starts the run when there is an index to read from.
pub(crate) struct Parts {
    orders: mpsc::Sender<Order>,
    received: mpsc::Receiver<Order>,
    shared: Arc<Shared>,
}

impl Parts {
    pub fn new(
        presence: Arc<Presence>,
        acknowledgements: Arc<Acknowledgements>,
        metrics: Metrics,
        limits: Limits,
    ) -> Parts {
        let (orders, received) = mpsc::channel(ORDERS);
        let shared = Arc::new(Shared {
            online: RwLock::default(),
            assigned: Mutex::default(),
            free: Mutex::default(),
            presence,
            acknowledgements,
            metrics,
            limits,
            index: OnceLock::new(),
        });
        Parts {
            orders,
            received,
            shared,
        }
    }

    /// What the index is to tell.
    pub fn deliverer(&self, sessions: Arc<Sessions>) -> Deliverer {
        Deliverer {
            orders: self.orders.clone(),
            shared: self.shared.clone(),
            sessions,
        }
    }

    /// Starts the run.
    pub fn start(self, index: Index) -> Result<Hub, StartError> {
        let Parts {
            orders,
            received,
            shared,
        } = self;
        let _ = shared.index.set(index);
        // What waits in a mailbox is counted by its user's entry, which stays below the bound.
        let config = Config {
            mailbox: NonZeroUsize::new(2 * MAILBOX as usize).expect("it is not 0"),
            overflow: Overflow::DropNewest,
            ..Config::default()
        };
        // The actors share the runtime with the tasks that their sockets come from: who is woken by
        // a socket runs where the socket is polled.
        let runtime = Handle::current();
        let harbour = root::Harbour {
            orders: received,
            shared: shared.clone(),
        };
        let run = std::thread::Builder::new()
            .name("courier hub".to_owned())
            .spawn(move || corsair::run_on(&runtime, &config, harbour))
            .map_err(StartError::Thread)?;
        let run = Mutex::new(Some(run));
        Ok(Hub {
            shared,
            orders,
            run,
        })
    }
}

impl Hub {
    /// Asks the root to do something.
    pub async fn order(&self, order: Order) -> Result<(), Closed> {
        self.orders.send(order).await.map_err(|_| Closed)
    }

    /// Whether the run goes on.
    pub fn is_up(&self) -> bool {
        !self.orders.is_closed()
    }

    /// How many sockets a user has on this node.
    pub fn sockets_of(&self, user: UserId) -> usize {
        let entry = self.shared.online().get(&user).cloned();
        entry.map_or(0, |entry| {
            entry.sockets.load(Relaxed) + lock(&entry.aside).sockets.len()
        })
    }

    /// Closes all sockets and ends the run. What it has done, unless somebody else has asked.
    pub async fn close(&self) -> Option<Result<Report, RunError>> {
        let _ = self.order(Order::Close).await;
        let run = lock(&self.run).take()?;
        let ended = tokio::task::spawn_blocking(move || run.join()).await;
        ended.ok()?.ok()
    }
}

impl Effects for Deliverer {
    fn deliver(&mut self, deliveries: &mut Vec<Delivery>) {
        let mut parcels = Vec::new();
        let mut last: Option<Arc<Outgoing>> = None;
        let online = self.shared.online();
        for delivery in deliveries.drain(..) {
            let Some(entry) = online.get(&delivery.to) else {
                continue;
            };
            let message = match last.take() {
                Some(message) if message.is(&delivery.message) => message,
                _ => Arc::new(Outgoing::new(delivery.message)),
            };
            last = Some(message.clone());
            entry.latest(delivery.sequence);
            parcels.push(Parcel {
                entry: entry.clone(),
                sequence: delivery.sequence,
                message,
            });
        }
        drop(online);
        if !parcels.is_empty() {
            // Once the run is over nobody is online any more.
            let _ = self.orders.blocking_send(Order::Deliver(parcels));
        }
    }

    fn session_closed(&mut self, user: UserId, session: SessionId) {
        self.sessions.forget(session);
        let _ = self
            .orders
            .blocking_send(Order::CloseSession(user, session));
    }
}

impl Entry {
    /// This sequence is to be delivered.
    fn latest(&self, sequence: u64) {
        self.latest.fetch_max(sequence, AcqRel);
    }
}

impl Shared {
    fn online(&self) -> std::sync::RwLockReadGuard<'_, HashMap<UserId, Arc<Entry>>> {
        self.online.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn online_mut(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<UserId, Arc<Entry>>> {
        self.online.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> &Index {
        self.index.get().expect("set before the run starts")
    }

    /// Takes a user off the list.
    fn leave(&self, entry: &Entry) {
        let face = Face {
            id: entry.user,
            name: entry.name.clone(),
        };
        self.presence.left(face);
        self.metrics.online.dec();
    }
}

/// Locks what stays in order even if somebody panicked with it.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
