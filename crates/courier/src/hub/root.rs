//! The root of the run: gives users berths, and brings what comes from outside to their actors.

use super::berth::berth;
use super::{Aside, Attachment, Entry, MAILBOX, Order, Parcel, Shared, Tidings, Word, lock};
use crate::frame::Face;
use crate::model::{SessionId, UserId};
use corsair::{Addr, AsyncContext, Event, Scenario, Spawn};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;

/// Berths are made so many at a time.
const BERTHS: u32 = 64;
/// How long sockets may take to close when the node shuts down, and how often that is looked at.
const CLOSING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

/// The root. See the [module](self).
pub(super) struct Harbour {
    pub orders: mpsc::Receiver<Order>,
    pub shared: Arc<Shared>,
}

/// What the root has to do next.
enum Next {
    Order(Option<Order>),
    Event(Event<Word>),
}

impl Scenario<Word> for Harbour {
    async fn root<C: AsyncContext<Word>>(mut self, mut cx: C) {
        loop {
            match self.next(&mut cx).await {
                Next::Order(Some(Order::Attach(socket))) => self.attach(&mut cx, socket).await,
                Next::Order(Some(Order::Deliver(parcels))) => {
                    for parcel in parcels {
                        self.deliver(&mut cx, parcel);
                    }
                }
                Next::Order(Some(Order::CloseSession(user, session))) => {
                    self.close_session(&mut cx, user, session);
                }
                Next::Order(Some(Order::Tell(tidings))) => self.tell(&mut cx, &tidings),
                Next::Order(Some(Order::Close) | None) => break,
                // A berth that panicked: its sockets went with it.
                Next::Event(Event::Down { who, .. }) => self.sunk(who),
                Next::Event(_) => {}
            }
        }
        self.close(&mut cx).await;
    }
}

impl Harbour {
    /// Waits for an order from outside, or an event.
    async fn next<C: AsyncContext<Word>>(&mut self, cx: &mut C) -> Next {
        let mut event = pin!(cx.recv());
        poll_fn(|task| {
            if let Poll::Ready(event) = event.as_mut().poll(task) {
                return Poll::Ready(Next::Event(event));
            }
            self.orders.poll_recv(task).map(Next::Order)
        })
        .await
    }

    /// Brings a socket to its user's actor.
    async fn attach<C: AsyncContext<Word>>(&mut self, cx: &mut C, socket: Box<Attachment>) {
        // Nobody else takes berths, so one that is free now stays free.
        if lock(&self.shared.free).is_empty() {
            let shared = self.shared.clone();
            let how = Spawn::many(BERTHS, "berth.", "");
            let made = cx.spawn(how, move |cx, _| berth(cx, shared.clone())).await;
            lock(&self.shared.free).extend(made.iter());
        }
        let at = self.assign(socket);
        cx.send(at, Word::Look);
    }

    /// Puts a socket where its user's actor finds it, and says who that is.
    fn assign(&self, socket: Box<Attachment>) -> Addr {
        let mut online = self.shared.online_mut();
        if let Some(entry) = online.get(&socket.user) {
            lock(&entry.aside).sockets.push(*socket);
            return entry.at;
        }
        let at = lock(&self.shared.free).pop();
        let at = at.expect("a berth was free");
        let (user, name) = (socket.user, socket.name.clone());
        let aside = Aside {
            sockets: vec![*socket],
            ..Aside::default()
        };
        let entry = Arc::new(Entry {
            user,
            name: name.clone(),
            at,
            latest: AtomicU64::new(0),
            pending: AtomicU32::new(0),
            overflowed: AtomicBool::new(false),
            sockets: AtomicUsize::new(0),
            aside: Mutex::new(aside),
        });
        lock(&self.shared.assigned).insert(at, entry.clone());
        online.insert(user, entry);
        self.shared.presence.came(Face { id: user, name });
        self.shared.metrics.online.inc();
        at
    }

    /// Puts a message into a mailbox, or leaves it to the durable queue.
    fn deliver<C: AsyncContext<Word>>(&self, cx: &mut C, parcel: Parcel) {
        let Parcel {
            entry,
            sequence,
            message,
        } = parcel;
        let user = entry.user;
        let word = Word::Message {
            user,
            sequence,
            message,
        };
        self.post(cx, &entry, word);
    }

    fn post<C: AsyncContext<Word>>(&self, cx: &mut C, entry: &Entry, word: Word) {
        if entry.pending.fetch_add(1, SeqCst) < MAILBOX {
            cx.send(entry.at, word);
            return;
        }
        entry.overflowed.store(true, SeqCst);
        self.shared.metrics.overflows.inc();
        // The actor may have looked just before it was said so, and have nothing more to wake it.
        if entry.pending.fetch_sub(1, SeqCst) <= 1 {
            cx.send(entry.at, Word::Look);
        }
    }

    fn close_session<C: AsyncContext<Word>>(&self, cx: &mut C, user: UserId, session: SessionId) {
        let entry = self.shared.online().get(&user).cloned();
        if let Some(entry) = entry {
            lock(&entry.aside).closed.push(session);
            cx.send(entry.at, Word::Look);
        }
    }

    fn tell<C: AsyncContext<Word>>(&self, cx: &mut C, tidings: &Arc<Tidings>) {
        let entries: Vec<_> = self.shared.online().values().cloned().collect();
        for entry in entries {
            let word = Word::Tidings {
                user: entry.user,
                tidings: tidings.clone(),
            };
            self.post(cx, &entry, word);
        }
    }

    /// An actor has ended, which only a panic can cause: its user is not online any more.
    fn sunk(&self, who: Addr) {
        let mut online = self.shared.online_mut();
        let entry = online.values().find(|entry| entry.at == who).cloned();
        if let Some(entry) = entry {
            online.remove(&entry.user);
            self.shared.leave(&entry);
        }
        lock(&self.shared.assigned).remove(&who);
        lock(&self.shared.free).retain(|&free| free != who);
    }

    /// Has all sockets closed, and waits for that a while.
    async fn close<C: AsyncContext<Word>>(&mut self, cx: &mut C) {
        self.orders.close();
        let mut waited = Duration::ZERO;
        loop {
            // Those that came while the order to close was on its way are closed, too.
            while let Ok(order) = self.orders.try_recv() {
                match order {
                    Order::Attach(socket) => drop(socket),
                    Order::Deliver(parcels) => {
                        for parcel in parcels {
                            self.deliver(cx, parcel);
                        }
                    }
                    _ => {}
                }
            }
            let entries: Vec<_> = self.shared.online().values().cloned().collect();
            if entries.is_empty() || waited >= CLOSING {
                return;
            }
            for entry in entries {
                if !std::mem::replace(&mut lock(&entry.aside).close, true) {
                    cx.send(entry.at, Word::Look);
                }
            }
            cx.sleep(LOOK).await;
            waited += LOOK;
        }
    }
}
