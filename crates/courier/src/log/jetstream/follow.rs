//! Reading the stream from a position on, for as long as the node runs.

use super::{Applied, Attach, Published, StreamState, digest};
use crate::guard::lock;
use crate::log::{Entry, Feed};
use crate::model::Millis;
use crate::seal::{NEWEST, Opened};
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use crossbeam_channel::TrySendError;
use futures_util::{FutureExt, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// At most this many entries are handed on together.
const LARGEST_GROUP: usize = 512;
/// Before the stream is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// While those who apply are behind.
const FULL: Duration = Duration::from_millis(1);

/// Why the stream is not followed any further.
enum End {
    /// For now: the server or the connection.
    Broken,
    /// The node is shutting down.
    Closed,
    /// What the stream holds is not what it should be.
    Wrong(String),
    /// It goes on later than it should.
    Gap(String),
    /// It was trimmed further than the node has come.
    Behind(String),
}

/// Hands on every entry after the one that was applied, in order.
pub(super) async fn follow(state: Arc<StreamState>, mut applied: Applied, feed: Feed) {
    let mut closed = state.closed.subscribe();
    let mut connections = state.connections.clone();
    loop {
        connections.borrow_and_update();
        let followed = tokio::select! {
            end = attempt(&state, &mut applied, &feed) => end,
            // The client makes its consumer anew by itself, at whatever stream is there now.
            Ok(()) = connections.changed() => End::Broken,
            _ = closed.wait_for(|&closed| closed) => End::Closed,
        };
        match followed {
            End::Broken => sleep(PAUSE).await,
            End::Closed => break,
            // The node is started anew, and takes a snapshot.
            End::Behind(reason) => {
                tracing::warn!("{reason}");
                break;
            }
            End::Wrong(reason) | End::Gap(reason) => {
                tracing::error!("this node has stopped: {reason}");
                let _ = state.stopped.set(reason);
                break;
            }
        }
    }
    // Dropping the replies says that it is not known what came of their commands.
    lock(&state.waiting).clear();
}

/// Follows until something is in the way.
async fn attempt(state: &StreamState, applied: &mut Applied, feed: &Feed) -> End {
    if let Err(why) = state.check(applied).await {
        return why.into();
    }
    let config = OrderedConfig {
        deliver_subject: state.client.new_inbox(),
        deliver_policy: match applied.position {
            0 => DeliverPolicy::All,
            last => DeliverPolicy::ByStartSequence {
                start_sequence: last + 1,
            },
        },
        replay_policy: ReplayPolicy::Instant,
        ..OrderedConfig::default()
    };
    let Ok(consumer) = state.stream.create_consumer(config).await else {
        return End::Broken;
    };
    let Ok(mut messages) = consumer.messages().await else {
        return End::Broken;
    };
    loop {
        let (entries, end) = group(state, &mut messages, applied).await;
        // What has come before the end counts as applied.
        if !entries.is_empty()
            && let Err(end) = hand_on(feed, entries).await
        {
            return end;
        }
        match end {
            None => {}
            // It may have been trimmed meanwhile.
            Some(End::Gap(reason)) => match state.check(applied).await {
                Ok(()) => return End::Wrong(reason),
                Err(why) => return why.into(),
            },
            Some(end) => return end,
        }
    }
}

impl From<Attach> for End {
    fn from(why: Attach) -> End {
        match why {
            Attach::Broken(_) => End::Broken,
            Attach::Wrong(reason) => End::Wrong(reason),
            Attach::Behind(reason) => End::Behind(reason),
        }
    }
}

/// Waits for an entry, and takes those that have come with it. If something is in the way, that too.
async fn group(
    state: &StreamState,
    messages: &mut Ordered,
    applied: &mut Applied,
) -> (Vec<Entry>, Option<End>) {
    let mut entries = Vec::new();
    let mut next = messages.next().await;
    loop {
        let Some(Ok(message)) = next else {
            return (entries, Some(End::Broken));
        };
        match entry(state, &message, applied) {
            Ok(entry) => entries.extend(entry),
            Err(end) => return (entries, Some(end)),
        }
        if entries.len() >= LARGEST_GROUP {
            return (entries, None);
        }
        next = match messages.next().now_or_never() {
            Some(next) => next,
            None if entries.is_empty() => messages.next().await,
            None => return (entries, None),
        };
    }
}

/// Reads a message of the stream; `None` if it has been read before.
fn entry(
    state: &StreamState,
    message: &Message,
    applied: &mut Applied,
) -> Result<Option<Entry>, End> {
    let stream = &state.names.stream;
    let info = message.info().map_err(|_| End::Broken)?;
    let position = info.stream_sequence;
    if position <= applied.position {
        return Ok(None);
    }
    let expected = applied.position + 1;
    if position != expected {
        return Err(End::Gap(format!(
            "the stream {stream} goes on at {position} where {expected} was to come"
        )));
    }
    let milliseconds = info.published.unix_timestamp_nanos() / 1_000_000;
    let mut entry = Entry {
        position,
        command: None,
        taken: Millis(u64::try_from(milliseconds).unwrap_or(0)),
        digest: digest(&message.payload),
        reply: None,
    };
    match state.key.open::<Published>(&message.payload) {
        Opened::Read(published) => {
            if published.origin == state.origin {
                entry.reply = lock(&state.waiting).remove(&published.number);
            }
            entry.command = Some(published.command);
        }
        Opened::Foreign => {
            state.metrics.refuse("foreign_entry");
            tracing::warn!(
                "entry {position} of the stream {stream} was not published by a node with this key; it is skipped"
            );
        }
        // No node can read it: its version is known, and says what may be in it.
        Opened::Unreadable(reason) => {
            state.metrics.refuse("unreadable_entry");
            tracing::warn!(
                "entry {position} of the stream {stream} cannot be read by any node: {reason}; it is skipped"
            );
        }
        // Others do something with it, and this node must do the same.
        Opened::Newer(version) => {
            return Err(End::Wrong(format!(
                "entry {position} of the stream {stream} was written by a node of version {version}, and this one reads up to {NEWEST}; upgrade this node"
            )));
        }
    }
    *applied = Applied {
        position,
        digest: entry.digest,
    };
    Ok(Some(entry))
}

/// Gives entries to those who apply them, waiting for room.
async fn hand_on(feed: &Feed, entries: Vec<Entry>) -> Result<(), End> {
    let mut entries = entries;
    loop {
        match feed.try_send(entries) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(End::Closed),
            Err(TrySendError::Full(back)) => entries = back,
        }
        sleep(FULL).await;
    }
}
