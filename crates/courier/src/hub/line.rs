//! One socket of a user.
//!
//! A line is *live* when it has been given every message there is: the next one is written as it
//! comes. Otherwise it is *behind*, and reads page after page from the user's durable queue until
//! it has caught up. A socket whose [`OUTBOX`] is full falls behind; one that has just come begins
//! so. Either way each sequence is given to the socket once, in order, without a gap.

use super::Shared;
use crate::acknowledgements::Acked;
use crate::frame::{MOST_LISTED, Notice, Outgoing, Said, message_frame};
use crate::index::{IndexError, Page, Queued};
use crate::metrics::Metrics;
use crate::model::{SessionId, UserId};
use axum::Error;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::{Sink, Stream};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;
use std::task::{Context, Poll, ready};
use tokio::sync::OwnedSemaphorePermit;

/// Frames that may wait for one socket, besides what its connection buffers.
pub(super) const OUTBOX: usize = 64;
/// Messages read from the durable queue at a time.
const PAGE: usize = 64;
/// Messages taken from a socket before others have their turn.
const TURN: usize = 16;
/// A client that says so many things that mean nothing is not listened to any more.
const MOST_FAULTS: u8 = 16;
/// Beats without a sign of life; at the next the peer is dead.
const MOST_SILENT: u8 = 2;

/// A socket that was accepted, on its way to its user's actor.
pub(crate) struct Attachment {
    pub user: UserId,
    pub name: Arc<str>,
    pub session: SessionId,
    /// The client has everything up to this sequence.
    pub after: u64,
    /// Whether to tell who comes and goes.
    pub presence: bool,
    pub socket: WebSocket,
    /// Counts the connection for as long as it is held.
    pub permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attachment")
            .field("user", &self.user)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

/// What a line may use beside itself.
pub(super) struct Around<'a> {
    pub user: UserId,
    /// The last sequence that was to be delivered to this user.
    pub latest: &'a AtomicU64,
    pub shared: &'a Shared,
}

type Reading = Pin<Box<dyn Future<Output = Result<Page<Queued>, IndexError>> + Send>>;

/// See the [module](self).
pub(super) struct Line {
    socket: WebSocket,
    session: SessionId,
    /// The last sequence given to the socket.
    sent: u64,
    outbox: VecDeque<Message>,
    behind: bool,
    reading: Option<Reading>,
    unflushed: bool,
    closing: bool,
    /// `Some` if it wants to know; `true` if it has to be told everything anew.
    presence: Option<bool>,
    silent: u8,
    faults: u8,
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl Line {
    pub fn new(attachment: Attachment) -> Line {
        Line {
            socket: attachment.socket,
            session: attachment.session,
            sent: attachment.after,
            outbox: VecDeque::new(),
            behind: true,
            reading: None,
            unflushed: false,
            closing: false,
            presence: attachment.presence.then_some(true),
            silent: 0,
            faults: 0,
            _permit: attachment.permit,
        }
    }

    pub fn session(&self) -> SessionId {
        self.session
    }

    /// A message has come for the user.
    pub fn offer(&mut self, sequence: u64, message: &Outgoing, metrics: &Metrics) {
        if self.behind || sequence <= self.sent {
            return;
        }
        if sequence == self.sent + 1 && self.outbox.len() < OUTBOX {
            self.outbox
                .push_back(Message::Text(message.frame(sequence)));
            self.sent = sequence;
            metrics.delivered.inc();
        } else {
            self.behind = true;
            metrics.overflows.inc();
        }
    }

    /// Messages up to `latest`, or news, may have been left out.
    pub fn missed(&mut self, latest: u64) {
        self.behind |= latest > self.sent;
        self.presence = self.presence.map(|_| true);
    }

    /// Who came and went.
    pub fn tell(&mut self, frames: &[Utf8Bytes]) {
        if self.presence == Some(false) {
            if self.outbox.len() + frames.len() <= OUTBOX {
                self.outbox
                    .extend(frames.iter().cloned().map(Message::Text));
            } else {
                self.presence = Some(true);
            }
        }
    }

    /// A heartbeat: whether the peer lives is asked, or, if it has not answered, decided.
    pub fn beat(&mut self, metrics: &Metrics) {
        if self.silent > MOST_SILENT {
            return;
        }
        self.silent += 1;
        if self.silent > MOST_SILENT {
            metrics.dead_peers.inc();
        } else if self.outbox.len() < OUTBOX {
            self.outbox.push_back(Message::Ping(Default::default()));
        }
    }

    /// Says good-bye, after what was to be written before.
    pub fn close(&mut self, code: u16, reason: &'static str) {
        if !std::mem::replace(&mut self.closing, true) {
            let frame = CloseFrame {
                code,
                reason: Utf8Bytes::from_static(reason),
            };
            self.outbox.push_back(Message::Close(Some(frame)));
        }
    }

    /// Reads and writes what can be. Ready when the line is over.
    pub fn poll(&mut self, task: &mut Context<'_>, around: &Around<'_>) -> Poll<()> {
        if self.silent > MOST_SILENT || self.poll_heard(task, around).is_ready() {
            return Poll::Ready(());
        }
        match self.poll_write(task, around) {
            Poll::Ready(Err(_)) => return Poll::Ready(()),
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        if self.unflushed {
            match Pin::new(&mut self.socket).poll_flush(task) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {}
            }
        }
        // The peer may answer the good-bye; nobody waits for that.
        if self.closing && self.outbox.is_empty() && !self.unflushed {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Takes what the client says. Ready when the socket has ended.
    fn poll_heard(&mut self, task: &mut Context<'_>, around: &Around<'_>) -> Poll<()> {
        for _ in 0..TURN {
            match ready!(Pin::new(&mut self.socket).poll_next(task)) {
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(()),
                Some(Ok(message)) => self.hear(&message, around),
                Some(Err(error)) => {
                    let (code, reason) = broken(&error);
                    around.shared.metrics.refuse("frame");
                    self.close(code, reason);
                    return Poll::Pending;
                }
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }

    fn hear(&mut self, message: &Message, around: &Around<'_>) {
        self.silent = 0;
        let said = match message {
            Message::Text(text) => serde_json::from_str(text),
            Message::Binary(bytes) => serde_json::from_slice(bytes),
            _ => return,
        };
        match said {
            Ok(Said::Ack { sequence }) if sequence > self.sent => {
                let sent = self.sent;
                let message = format!(
                    "sequence {sequence} was not sent yet, the last one was {sent}; acknowledge what you have got"
                );
                self.fault("ack_ahead", &message, &around.shared.metrics);
            }
            Ok(Said::Ack { sequence }) => {
                around.shared.metrics.acknowledged.inc();
                around.shared.acknowledgements.note(Acked {
                    user: around.user,
                    session: self.session,
                    sequence,
                });
            }
            Err(error) => {
                let message = format!(r#"{error}; send {{"type":"ack","sequence":NUMBER}}"#);
                self.fault("malformed_frame", &message, &around.shared.metrics);
            }
        }
    }

    /// Tells the client what was wrong, and closes if that was so too often.
    fn fault(&mut self, code: &'static str, message: &str, metrics: &Metrics) {
        metrics.refuse(code);
        self.faults += 1;
        let frame = Notice::Error { code, message }.frame();
        if self.outbox.len() < OUTBOX {
            self.outbox.push_back(Message::Text(frame));
        }
        if self.faults >= MOST_FAULTS {
            self.close(1008, "too many frames that mean nothing");
        }
    }

    /// Writes what waits; when nothing does, gets what was left out.
    fn poll_write(
        &mut self,
        task: &mut Context<'_>,
        around: &Around<'_>,
    ) -> Poll<Result<(), Error>> {
        loop {
            while !self.outbox.is_empty() {
                ready!(Pin::new(&mut self.socket).poll_ready(task))?;
                if let Some(message) = self.outbox.pop_front() {
                    Pin::new(&mut self.socket).start_send(message)?;
                    self.unflushed = true;
                }
            }
            if self.outbox.capacity() > OUTBOX {
                self.outbox = VecDeque::new();
            }
            if self.closing {
                return Poll::Ready(Ok(()));
            }
            if self.presence == Some(true) {
                self.presence = Some(false);
                let (total, users) = around.shared.presence.first(MOST_LISTED);
                let users = &users;
                let frame = Notice::Online { total, users }.frame();
                self.outbox.push_back(Message::Text(frame));
                continue;
            }
            if !self.behind {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_reading(task, around)) {
                Ok(page) => self.take(page, around),
                Err(_) => self.close(1011, "this node cannot read its index; connect again"),
            }
        }
    }

    fn poll_reading(
        &mut self,
        task: &mut Context<'_>,
        around: &Around<'_>,
    ) -> Poll<Result<Page<Queued>, IndexError>> {
        let (user, after) = (around.user, self.sent);
        let reading = self.reading.get_or_insert_with(|| {
            let index = around.shared.index().clone();
            Box::pin(async move { index.queue(user, after, PAGE).await })
        });
        let page = ready!(reading.as_mut().poll(task));
        self.reading = None;
        Poll::Ready(page)
    }

    fn take(&mut self, page: Page<Queued>, around: &Around<'_>) {
        let metrics = &around.shared.metrics;
        for queued in page.items {
            let frame = message_frame(queued.sequence, &queued.message);
            self.outbox.push_back(Message::Text(frame));
            self.sent = queued.sequence;
            metrics.delivered.inc();
            metrics.caught_up.inc();
        }
        // What was delivered since the page was read has been noted before it was sent here.
        self.behind = page.more || around.latest.load(Acquire) > self.sent;
    }
}

/// What to say to a client whose frames cannot be read.
fn broken(error: &Error) -> (u16, &'static str) {
    let text = error.to_string();
    if text.contains("too long") || text.contains("too large") || text.contains("too big") {
        (
            1009,
            "this message is too large; acknowledgements are short",
        )
    } else if text.to_ascii_lowercase().contains("utf") {
        (1007, "this text is not UTF-8")
    } else {
        (1002, "these bytes are no WebSocket frames")
    }
}
