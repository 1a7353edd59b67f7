//! The actor of an online user, with its connections.

use super::connection::{Connection, UserContext};
use super::state::{HubMessage, HubState, OnlineUser};
use corsair::{AsyncContext, Event, Token};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::task::{Context, Poll};

/// The body of an actor, which serves one user after another.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn would store the context twice for every open socket"
)]
pub(super) fn user_actor<C: AsyncContext<HubMessage>>(
    mut cx: C,
    hub: Arc<HubState>,
) -> impl Future<Output = ()> + Send {
    async move {
        let mut served = 0;
        loop {
            let user = hub.assigned.lock().remove(&cx.me());
            match user {
                Some(user) => {
                    served = (served + 1) % (1 << 30);
                    let mut user = ActiveUser::new(user, &hub, Token::new(served));
                    user.serve(&mut cx).await;
                    hub.free.lock().push(cx.me());
                }
                // A message that arrives while no user is assigned was for the previous user.
                None => drop(cx.recv().await),
            }
        }
    }
}

/// A user who is being served, from the first connection to the last.
struct ActiveUser<'s> {
    user: Arc<OnlineUser>,
    hub: &'s HubState,
    connections: Vec<Connection>,
    /// The token of this user's heartbeat timer; timers of earlier users may still fire.
    heartbeat: Token,
}

/// The reason why an actor was woken.
enum WakeReason {
    Event(Event<HubMessage>),
    /// A connection has ended.
    Connections,
}

impl<'s> ActiveUser<'s> {
    fn new(user: Arc<OnlineUser>, hub: &'s HubState, heartbeat: Token) -> ActiveUser<'s> {
        ActiveUser {
            user,
            hub,
            connections: Vec::new(),
            heartbeat,
        }
    }

    /// Serves the user until the last connection has closed.
    async fn serve<C: AsyncContext<HubMessage>>(&mut self, cx: &mut C) {
        cx.timer(self.hub.limits.heartbeat, self.heartbeat);
        loop {
            self.take_requests();
            if self.connections.is_empty() && self.leave() {
                return;
            }
            match self.next(cx).await {
                WakeReason::Event(event) => self.handle(event, cx),
                WakeReason::Connections => {}
            }
        }
    }

    /// Waits for an event. Connections are read and written during the wait. Connections are written only when no event
    /// is pending, so that a burst of messages is written at once.
    async fn next<C: AsyncContext<HubMessage>>(&mut self, cx: &mut C) -> WakeReason {
        let mut event = pin!(cx.recv());
        poll_fn(|task| {
            if let Poll::Ready(event) = event.as_mut().poll(task) {
                return Poll::Ready(WakeReason::Event(event));
            }
            // Before waiting, check for skipped messages that no later message would reveal.
            self.look_for_overflow();
            if self.poll_connections(task) {
                return Poll::Ready(WakeReason::Connections);
            }
            Poll::Pending
        })
        .await
    }

    /// Polls all connections. Returns true if one has ended.
    fn poll_connections(&mut self, task: &mut Context<'_>) -> bool {
        let context = UserContext {
            user: self.user.info.id,
            latest: &self.user.latest,
            hub: self.hub,
        };
        let before = self.connections.len();
        self.connections.retain_mut(|connection| {
            let over = connection.poll(task, &context).is_ready();
            if over {
                self.hub.metrics.sockets.dec();
            }
            !over
        });
        self.connections.len() < before
    }

    fn handle<C: AsyncContext<HubMessage>>(&mut self, event: Event<HubMessage>, cx: &mut C) {
        match event {
            Event::Message { body, .. } => match body {
                HubMessage::Message {
                    user,
                    sequence,
                    message,
                    weight,
                } if user == self.user.info.id => {
                    self.user.waiting.fetch_sub(weight, SeqCst);
                    for connection in &mut self.connections {
                        connection.offer(sequence, &message, self.hub);
                    }
                }
                HubMessage::Presence { user, update } if user == self.user.info.id => {
                    self.user.waiting.fetch_sub(1, SeqCst);
                    for connection in &mut self.connections {
                        connection.tell(&update.frames);
                    }
                }
                HubMessage::Hint { user, frame } if user == self.user.info.id => {
                    self.user.waiting.fetch_sub(1, SeqCst);
                    for connection in &mut self.connections {
                        connection.hint(&frame);
                    }
                }
                // Other messages were for the previous user.
                _ => {}
            },
            Event::Timer(token) if token == self.heartbeat => {
                cx.timer(self.hub.limits.heartbeat, self.heartbeat);
                for connection in &mut self.connections {
                    connection.heartbeat(&self.hub.metrics);
                }
            }
            _ => {}
        }
    }

    /// Takes the requests that bypass the mailbox.
    fn take_requests(&mut self) {
        let mut requests = self.user.requests.lock();
        let attached = std::mem::take(&mut requests.attached);
        let closed = std::mem::take(&mut requests.closed_sessions);
        let close = requests.close;
        drop(requests);
        // Most users have one connection, and a vector would reserve memory for four.
        self.connections.reserve_exact(attached.len());
        for attachment in attached {
            self.hub.metrics.sockets.inc();
            self.connections
                .push(Connection::new(attachment, &self.hub.limits));
        }
        for connection in &mut self.connections {
            if closed.contains(&connection.session()) {
                connection.close(1008, "this token is no longer valid; log in again");
            }
            if close {
                connection.close(1001, "this node is shutting down; connect to another node");
            }
        }
    }

    fn look_for_overflow(&mut self) {
        if self.user.overflowed.load(Relaxed) && self.user.overflowed.swap(false, AcqRel) {
            let latest = self.user.latest.load(Acquire);
            for connection in &mut self.connections {
                connection.missed(latest);
            }
        }
    }

    /// Removes the user from the list, unless a new connection was opened in the meantime.
    fn leave(&self) -> bool {
        let mut online = self.hub.online_mut();
        if !self.user.requests.lock().attached.is_empty() {
            return false;
        }
        online.remove(&self.user.info.id);
        self.hub.leave(&self.user);
        true
    }
}
