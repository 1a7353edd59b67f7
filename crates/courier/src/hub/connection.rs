//! One WebSocket of a user.
//!
//! A connection is in one of two states. It is *live* if all messages so far were queued for it; further messages are
//! written as they arrive. Otherwise it is *behind*, and reads page after page from the user's durable queue until it
//! has caught up. A new connection is behind. A live connection becomes behind when its outbox is full, in frames or in
//! bytes. In both states each message is sent to the socket once, in order, without a gap.

use super::state::{Attachment, HubState};
use crate::command::Acknowledgement;
use crate::counts::Reservation;
use crate::frame::{ClientFrame, MOST_LISTED, Outgoing, ServerFrame, message_frame};
use crate::index::{IndexError, QueuePage};
use crate::json::object;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::model::{Millis, SessionId, UserId};
use axum::Error;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::{Sink, Stream};
use std::any::Any;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// The maximum number of frames that wait for one socket, in addition to the buffer of its connection.
pub(super) const OUTBOX: usize = 64;
/// The maximum number of messages read from the durable queue at a time.
const PAGE: usize = 64;
/// The number of frames that are read from one socket before the other sockets are read.
const TURN: usize = 16;
/// The number of invalid frames after which the socket is closed.
const MOST_FAULTS: u8 = 16;
/// The number of heartbeats without a sign of life after which the peer counts as dead.
const MOST_SILENT: u8 = 2;
/// The time limit for the client's answer to a close frame.
const FAREWELL: Duration = Duration::from_millis(500);

/// The data of a user that all connections of the user need.
pub(super) struct UserContext<'a> {
    pub user: UserId,
    /// The sequence number of the last message for this user.
    pub latest: &'a AtomicU64,
    pub hub: &'a HubState,
}

type Reading = Pin<Box<dyn Future<Output = Result<QueuePage, IndexError>> + Send>>;

/// An open socket of a user. See the [module](self).
pub(super) struct Connection {
    socket: WebSocket,
    session: SessionId,
    expires: Millis,
    /// The sequence number of the last message that was written to the socket.
    sent: u64,
    acknowledged: u64,
    outbox: VecDeque<Message>,
    /// The bytes of messages in the outbox, without frames that all connections share.
    outbox_bytes: usize,
    behind: bool,
    reading: Option<Reading>,
    unflushed: bool,
    closing: Closing,
    /// `Some` if the client receives presence frames. The value is true if the client needs a complete list again.
    presence: Option<bool>,
    silent: u8,
    faults: u8,
    heard: InboundRate,
    _counted: Reservation<UserId>,
    _connection: Option<Arc<dyn Any + Send + Sync>>,
}

/// The progress of closing a connection.
enum Closing {
    No,
    /// The close frame was written; the client has some time to answer.
    Ours(Option<Pin<Box<Sleep>>>),
    /// The client has sent a close frame, and gets an answer.
    Theirs,
}

/// The rate limit of a client's frames per second. When it is reached, the client is not read until the second has
/// passed.
struct InboundRate {
    rate: u32,
    since: Instant,
    frames: u32,
    pause: Option<Pin<Box<Sleep>>>,
}

impl InboundRate {
    fn new(rate: u32) -> InboundRate {
        InboundRate {
            rate,
            since: Instant::now(),
            frames: 0,
            pause: None,
        }
    }

    /// Polls the rate limit. Ready when the client's frames may be read again.
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(task));
            *self = InboundRate::new(self.rate);
        }
        Poll::Ready(())
    }

    /// Counts a frame.
    fn count(&mut self) {
        const SECOND: Duration = Duration::from_secs(1);
        self.frames += 1;
        if self.frames >= self.rate {
            match self.since.elapsed() < SECOND {
                true => self.pause = Some(Box::pin(sleep_until(self.since + SECOND))),
                false => *self = InboundRate::new(self.rate),
            }
        }
    }
}

impl Connection {
    pub fn new(attachment: Attachment, limits: &Limits) -> Connection {
        Connection {
            socket: attachment.socket,
            session: attachment.session,
            expires: attachment.expires,
            sent: attachment.after,
            acknowledged: attachment.acknowledged,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            behind: true,
            reading: None,
            unflushed: false,
            closing: Closing::No,
            presence: attachment.presence.then_some(true),
            silent: 0,
            faults: 0,
            heard: InboundRate::new(limits.rate.get()),
            _counted: attachment.counted,
            _connection: attachment.connection,
        }
    }

    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Handles a new message for the user.
    pub fn offer(&mut self, sequence: u64, message: &Outgoing, hub: &HubState) {
        if self.behind || sequence <= self.sent || self.is_closing() {
            return;
        }
        let fits = self.outbox.len() < OUTBOX
            && (self.outbox_bytes == 0
                || self.outbox_bytes + message.length() <= hub.limits.outbox);
        if sequence == self.sent + 1 && fits {
            self.push_message(sequence, message.frame(sequence), &hub.metrics);
        } else {
            self.behind = true;
            hub.metrics.overflows.inc();
        }
    }

    fn push_message(&mut self, sequence: u64, frame: Utf8Bytes, metrics: &Metrics) {
        self.outbox_bytes += frame.len();
        self.outbox.push_back(Message::Text(frame));
        self.sent = sequence;
        metrics.delivered.inc();
    }

    /// Records that messages up to `latest`, or a change of presence, may have been skipped.
    pub fn missed(&mut self, latest: u64) {
        self.behind |= latest > self.sent;
        self.presence = self.presence.map(|_| true);
    }

    /// Sends frames about users who came online and went offline.
    pub fn tell(&mut self, frames: &[Utf8Bytes]) {
        if self.presence == Some(false) && !self.is_closing() {
            if self.outbox.len() + frames.len() <= OUTBOX {
                self.outbox
                    .extend(frames.iter().cloned().map(Message::Text));
            } else {
                self.presence = Some(true);
            }
        }
    }

    /// Sends an optional frame, if the outbox has capacity.
    pub fn hint(&mut self, frame: &Utf8Bytes) {
        if self.outbox.len() < OUTBOX && !self.is_closing() {
            self.outbox.push_back(Message::Text(frame.clone()));
        }
    }

    /// Handles a heartbeat: pings the peer, or closes the connection if the peer was silent for too long. An expired
    /// token also closes its connections.
    pub fn heartbeat(&mut self, metrics: &Metrics) {
        if self.silent > MOST_SILENT {
            return;
        }
        if Millis::now() >= self.expires {
            self.close(1008, "this token has expired; log in again");
        }
        self.silent += 1;
        if self.silent > MOST_SILENT {
            metrics.dead_peers.inc();
        } else if self.outbox.len() < OUTBOX && !self.is_closing() {
            self.outbox.push_back(Message::Ping(Default::default()));
        }
    }

    /// Sends a close frame after the queued frames.
    pub fn close(&mut self, code: u16, reason: &'static str) {
        if !self.is_closing() {
            self.closing = Closing::Ours(None);
            let frame = CloseFrame {
                code,
                reason: Utf8Bytes::from_static(reason),
            };
            self.outbox.push_back(Message::Close(Some(frame)));
        }
    }

    fn is_closing(&self) -> bool {
        !matches!(self.closing, Closing::No)
    }

    fn is_written(&self) -> bool {
        self.outbox.is_empty() && !self.unflushed
    }

    /// Reads and writes as much as possible. Ready when the connection has ended.
    pub fn poll(&mut self, task: &mut Context<'_>, context: &UserContext<'_>) -> Poll<()> {
        if self.silent > MOST_SILENT || self.poll_heard(task, context).is_ready() {
            return Poll::Ready(());
        }
        match self.poll_write(task, context) {
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
        if self.is_written() {
            return self.poll_farewell(task);
        }
        Poll::Pending
    }

    /// Continues the close handshake after everything was written. Ready when the handshake is complete.
    fn poll_farewell(&mut self, task: &mut Context<'_>) -> Poll<()> {
        match &mut self.closing {
            Closing::No => Poll::Pending,
            Closing::Theirs => Poll::Ready(()),
            // If a connection is closed with unread bytes, the system resets it, and the client may not receive the
            // close frame. So the client's answer is awaited.
            Closing::Ours(farewell) => {
                let farewell = farewell.get_or_insert_with(|| Box::pin(sleep(FAREWELL)));
                farewell.as_mut().poll(task)
            }
        }
    }

    /// Handles the client's frames. Ready when the socket has ended.
    fn poll_heard(&mut self, task: &mut Context<'_>, context: &UserContext<'_>) -> Poll<()> {
        for _ in 0..TURN {
            if matches!(self.closing, Closing::Theirs) {
                return Poll::Pending;
            }
            ready!(self.heard.poll(task));
            match ready!(Pin::new(&mut self.socket).poll_next(task)) {
                None => return Poll::Ready(()),
                // The next flush writes the answer to the close frame.
                Some(Ok(Message::Close(_))) => {
                    self.closing = Closing::Theirs;
                    self.outbox.clear();
                    self.unflushed = true;
                    return Poll::Pending;
                }
                Some(Ok(_)) if self.is_closing() => {}
                Some(Ok(message)) => {
                    self.heard.count();
                    self.hear(&message, context);
                }
                // Written frames may still be sent.
                Some(Err(_)) if self.is_closing() && self.is_written() => return Poll::Ready(()),
                Some(Err(_)) if self.is_closing() => return Poll::Pending,
                Some(Err(error)) => {
                    let (code, reason) = broken(&error);
                    context.hub.metrics.refuse("frame");
                    self.close(code, reason);
                    return Poll::Pending;
                }
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }

    fn hear(&mut self, message: &Message, context: &UserContext<'_>) {
        self.silent = 0;
        let frame = match message {
            Message::Text(text) => object(text.as_bytes()),
            Message::Binary(bytes) => object(bytes),
            _ => return,
        };
        let hub = context.hub;
        match frame {
            Ok(ClientFrame::Ack { sequence }) if sequence > self.sent => {
                let sent = self.sent;
                let message = format!(
                    "sequence {sequence} was not sent yet; acknowledge at most {sent}, the last one"
                );
                self.fault("ack_ahead", &message, &hub.metrics);
            }
            // An acknowledgement of earlier messages changes nothing.
            Ok(ClientFrame::Ack { sequence }) if sequence <= self.acknowledged => {}
            Ok(ClientFrame::Ack { sequence }) => {
                self.acknowledged = sequence;
                hub.metrics.acknowledged.inc();
                hub.acknowledgements.note(Acknowledgement {
                    user: context.user,
                    session: self.session,
                    sequence,
                });
            }
            Err(error) => {
                let message = format!(r#"{error}; send {{"type":"ack","sequence":NUMBER}}"#);
                self.fault("malformed_frame", &message, &hub.metrics);
            }
        }
    }

    /// Sends the error to the client, and closes the socket after too many errors.
    fn fault(&mut self, code: &'static str, message: &str, metrics: &Metrics) {
        metrics.refuse(code);
        self.faults += 1;
        let frame = ServerFrame::Error { code, message }.frame();
        if self.outbox.len() < OUTBOX {
            self.outbox.push_back(Message::Text(frame));
        }
        if self.faults >= MOST_FAULTS {
            self.close(1008, "too many invalid frames");
        }
    }

    /// Writes queued frames; when there are none, fetches frames that were skipped.
    fn poll_write(
        &mut self,
        task: &mut Context<'_>,
        context: &UserContext<'_>,
    ) -> Poll<Result<(), Error>> {
        loop {
            while !self.outbox.is_empty() {
                ready!(Pin::new(&mut self.socket).poll_ready(task))?;
                if let Some(message) = self.outbox.pop_front() {
                    Pin::new(&mut self.socket).start_send(message)?;
                    self.unflushed = true;
                }
            }
            self.outbox_bytes = 0;
            if self.outbox.capacity() > OUTBOX {
                self.outbox = VecDeque::new();
            }
            if self.is_closing() {
                return Poll::Ready(Ok(()));
            }
            if self.presence == Some(true) {
                self.presence = Some(false);
                let (total, users) = context.hub.presence.first(MOST_LISTED);
                let users = &users;
                let frame = ServerFrame::Online { total, users }.frame();
                self.outbox.push_back(Message::Text(frame));
                continue;
            }
            if !self.behind {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_reading(task, context)) {
                Ok(page) => self.take(page, context),
                Err(_) => self.close(1011, "this node cannot read its index; connect again"),
            }
        }
    }

    fn poll_reading(
        &mut self,
        task: &mut Context<'_>,
        context: &UserContext<'_>,
    ) -> Poll<Result<QueuePage, IndexError>> {
        let (user, after) = (context.user, self.sent);
        let reading = self.reading.get_or_insert_with(|| {
            let index = context.hub.index().clone();
            let bytes = context.hub.limits.outbox;
            Box::pin(async move { index.queue(user, after, PAGE, bytes).await })
        });
        let page = ready!(reading.as_mut().poll(task));
        self.reading = None;
        Poll::Ready(page)
    }

    fn take(&mut self, page: QueuePage, context: &UserContext<'_>) {
        let metrics = &context.hub.metrics;
        for queued in page.items {
            let frame = message_frame(queued.sequence, &queued.message);
            self.push_message(queued.sequence, frame, metrics);
            metrics.caught_up.inc();
        }
        // The other messages up to this sequence number were removed from the queue.
        self.sent = self.sent.max(page.reached);
        // Deliveries since the page was read have updated `latest`.
        self.behind = page.more || context.latest.load(Acquire) > self.sent;
    }
}

/// Returns the close code and reason for a client whose frames cannot be read.
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
        (1002, "the bytes are not WebSocket frames")
    }
}
