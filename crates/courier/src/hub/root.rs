//! The root of the run: assigns actors to online users, and forwards messages from outside.

use super::state::{
    Attachment, Dispatch, HubMessage, HubRequest, HubState, MAILBOX, OnlineUser, Requests,
};
use super::user::user_actor;
use crate::frame::UserInfo;
use crate::model::{SessionId, UserId};
use crate::presence::PresenceUpdate;
use corsair::{Addr, AsyncContext, Event, Scenario, Spawn};
use parking_lot::Mutex;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::yield_now;

/// The number of actors that are spawned at a time.
const SPAWNED: u32 = 64;
/// The time limit for closing connections at shutdown, and the interval of counting them.
const CLOSING: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);
/// The number of messages that are dispatched before other requests are handled. Each message wakes a task, and a new
/// POST has to wait until all of these tasks have run.
const TURN: usize = 16;
/// The bytes of text that count as one unit of the mailbox.
const UNIT: usize = 2 << 10;

/// The root. See the [module](self).
pub(super) struct Root {
    pub requests: mpsc::Receiver<HubRequest>,
    pub hub: Arc<HubState>,
}

/// The next action of the root.
enum RootInput {
    Request(Option<HubRequest>),
    Event(Event<HubMessage>),
}

impl Scenario<HubMessage> for Root {
    async fn root<C: AsyncContext<HubMessage>>(mut self, mut cx: C) {
        loop {
            match self.next(&mut cx).await {
                RootInput::Request(Some(HubRequest::Attach(socket))) => {
                    self.attach(&mut cx, socket).await;
                }
                RootInput::Request(Some(HubRequest::Deliver(messages))) => {
                    for (count, message) in (1..).zip(messages) {
                        self.deliver(&mut cx, message);
                        if count % TURN == 0 {
                            yield_now().await;
                        }
                    }
                }
                RootInput::Request(Some(HubRequest::CloseSession(user, session))) => {
                    self.close_session(&mut cx, user, session);
                }
                RootInput::Request(Some(HubRequest::Tell(update))) => self.tell(&mut cx, &update),
                RootInput::Request(Some(HubRequest::Hint(users, frame))) => {
                    for user in users {
                        let message = HubMessage::Hint {
                            user: user.info.id,
                            frame: frame.clone(),
                        };
                        self.post(&mut cx, &user, message, 1);
                    }
                }
                RootInput::Request(Some(HubRequest::Close) | None) => break,
                // An actor has panicked, and its connections have ended with it.
                RootInput::Event(Event::Down { who, .. }) => self.actor_ended(who),
                RootInput::Event(_) => {}
            }
        }
        self.close(&mut cx).await;
    }
}

impl Root {
    /// Waits for a request from outside, or an event.
    async fn next<C: AsyncContext<HubMessage>>(&mut self, cx: &mut C) -> RootInput {
        let mut event = pin!(cx.recv());
        poll_fn(|task| {
            if let Poll::Ready(event) = event.as_mut().poll(task) {
                return Poll::Ready(RootInput::Event(event));
            }
            self.requests.poll_recv(task).map(RootInput::Request)
        })
        .await
    }

    /// Passes a socket to its user's actor.
    async fn attach<C: AsyncContext<HubMessage>>(&mut self, cx: &mut C, socket: Box<Attachment>) {
        // Only the root takes actors from the list, so a free actor stays free until then.
        if self.hub.free.lock().is_empty() {
            let hub = self.hub.clone();
            let how = Spawn::many(SPAWNED, "user.", "");
            let made = cx
                .spawn(how, move |cx, _| user_actor(cx, hub.clone()))
                .await;
            self.hub.free.lock().extend(made.iter());
        }
        let actor = self.assign(socket);
        cx.send(actor, HubMessage::Look);
    }

    /// Assigns a socket to its user's actor, and returns the actor.
    fn assign(&self, socket: Box<Attachment>) -> Addr {
        let mut online = self.hub.online_mut();
        if let Some(user) = online.get(&socket.user) {
            user.requests.lock().attached.push(*socket);
            return user.actor;
        }
        let actor = self.hub.free.lock().pop();
        let actor = actor.expect("an actor was free");
        let info = UserInfo {
            id: socket.user,
            name: socket.name.clone(),
        };
        let requests = Requests {
            attached: vec![*socket],
            ..Requests::default()
        };
        let user = Arc::new(OnlineUser {
            info: info.clone(),
            actor,
            latest: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            overflowed: AtomicBool::new(false),
            requests: Mutex::new(requests),
        });
        self.hub.assigned.lock().insert(actor, user.clone());
        online.insert(info.id, user);
        self.hub.presence.came(info);
        self.hub.metrics.online.inc();
        actor
    }

    /// Puts a message into a mailbox, or leaves it in the durable queue.
    fn deliver<C: AsyncContext<HubMessage>>(&self, cx: &mut C, dispatch: Dispatch) {
        let Dispatch {
            user,
            sequence,
            message,
        } = dispatch;
        let weight = 1 + (message.length() / UNIT) as u32;
        let id = user.info.id;
        let message = HubMessage::Message {
            user: id,
            sequence,
            message,
            weight,
        };
        self.post(cx, &user, message, weight);
    }

    fn post<C: AsyncContext<HubMessage>>(
        &self,
        cx: &mut C,
        user: &OnlineUser,
        message: HubMessage,
        weight: u32,
    ) {
        let before = user.waiting.fetch_add(weight, SeqCst);
        if before == 0 || before + weight <= MAILBOX {
            cx.send(user.actor, message);
            return;
        }
        user.overflowed.store(true, SeqCst);
        self.hub.metrics.overflows.inc();
        // The actor may have checked `overflowed` just before it was set, and no later message may wake the actor.
        if user.waiting.fetch_sub(weight, SeqCst) <= weight {
            cx.send(user.actor, HubMessage::Look);
        }
    }

    fn close_session<C: AsyncContext<HubMessage>>(
        &self,
        cx: &mut C,
        user: UserId,
        session: SessionId,
    ) {
        let user = self.hub.online().get(&user).cloned();
        if let Some(user) = user {
            user.requests.lock().closed_sessions.push(session);
            cx.send(user.actor, HubMessage::Look);
        }
    }

    fn tell<C: AsyncContext<HubMessage>>(&self, cx: &mut C, update: &Arc<PresenceUpdate>) {
        let users: Vec<_> = self.hub.online().values().cloned().collect();
        for user in users {
            let message = HubMessage::Presence {
                user: user.info.id,
                update: update.clone(),
            };
            self.post(cx, &user, message, 1);
        }
    }

    /// Handles the end of an actor, which only a panic can cause. The actor's user is then offline.
    fn actor_ended(&self, who: Addr) {
        let mut online = self.hub.online_mut();
        let user = online.values().find(|user| user.actor == who).cloned();
        if let Some(user) = user {
            online.remove(&user.info.id);
            self.hub.leave(&user);
        }
        self.hub.assigned.lock().remove(&who);
        self.hub.free.lock().retain(|&free| free != who);
    }

    /// Closes all connections, and waits for them up to a time limit.
    async fn close<C: AsyncContext<HubMessage>>(&mut self, cx: &mut C) {
        self.requests.close();
        let mut waited = Duration::ZERO;
        loop {
            // Requests that arrived before the channel was closed are handled, too.
            while let Ok(request) = self.requests.try_recv() {
                match request {
                    HubRequest::Attach(socket) => drop(socket),
                    HubRequest::Deliver(messages) => {
                        for message in messages {
                            self.deliver(cx, message);
                        }
                    }
                    _ => {}
                }
            }
            let users: Vec<_> = self.hub.online().values().cloned().collect();
            if users.is_empty() || waited >= CLOSING {
                return;
            }
            for user in users {
                if !std::mem::replace(&mut user.requests.lock().close, true) {
                    cx.send(user.actor, HubMessage::Look);
                }
            }
            cx.sleep(LOOK).await;
            waited += LOOK;
        }
    }
}
