//! Reading the stream from a position on, for as long as the node runs.

use super::{Published, STREAM, Shared};
use crate::hub::lock;
use crate::log::{Entry, Feed};
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use crossbeam_channel::TrySendError;
use futures_util::{FutureExt, StreamExt};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::time::sleep;

/// At most so many entries are handed on together.
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
}

/// Hands on every entry after `last`, in order.
pub(super) async fn follow(shared: Arc<Shared>, mut last: u64, feed: Feed) {
    let mut closed = shared.closed.subscribe();
    loop {
        let followed = tokio::select! {
            end = attempt(&shared, &mut last, &feed) => end,
            _ = closed.wait_for(|&closed| closed) => End::Closed,
        };
        match followed {
            End::Broken => sleep(PAUSE).await,
            End::Closed => break,
            End::Wrong(what) => {
                tracing::error!(
                    "the stream {STREAM} cannot be followed: {what}; this node stops taking messages"
                );
                break;
            }
        }
    }
    shared.failed.store(true, SeqCst);
    // Their replies end with this, which says that it is not known what came of them.
    lock(&shared.waiting).clear();
}

/// Follows until something is in the way.
async fn attempt(shared: &Shared, last: &mut u64, feed: &Feed) -> End {
    let config = OrderedConfig {
        deliver_subject: shared.client.new_inbox(),
        deliver_policy: match *last {
            0 => DeliverPolicy::All,
            last => DeliverPolicy::ByStartSequence {
                start_sequence: last + 1,
            },
        },
        replay_policy: ReplayPolicy::Instant,
        ..OrderedConfig::default()
    };
    let Ok(consumer) = shared.stream.create_consumer(config).await else {
        return End::Broken;
    };
    let Ok(mut messages) = consumer.messages().await else {
        return End::Broken;
    };
    loop {
        match group(shared, &mut messages, last).await {
            Ok(entries) => {
                if let Err(end) = hand_on(feed, entries).await {
                    return end;
                }
            }
            Err(end) => return end,
        }
    }
}

/// Waits for an entry, and takes those that have come with it.
async fn group(shared: &Shared, messages: &mut Ordered, last: &mut u64) -> Result<Vec<Entry>, End> {
    let mut entries = Vec::new();
    let mut next = messages.next().await;
    loop {
        match next {
            Some(Ok(message)) => entries.extend(entry(shared, &message, last)?),
            Some(Err(_)) | None if entries.is_empty() => return Err(End::Broken),
            // It will be told again.
            Some(Err(_)) | None => return Ok(entries),
        }
        if entries.len() >= LARGEST_GROUP {
            return Ok(entries);
        }
        next = match messages.next().now_or_never() {
            Some(next) => next,
            None if entries.is_empty() => messages.next().await,
            None => return Ok(entries),
        };
    }
}

/// Reads a message of the stream; `None` if it has been read before.
fn entry(shared: &Shared, message: &Message, last: &mut u64) -> Result<Option<Entry>, End> {
    let info = message.info().map_err(|_| End::Broken)?;
    let position = info.stream_sequence;
    if position <= *last {
        return Ok(None);
    }
    if position != *last + 1 {
        return Err(End::Wrong(format!(
            "it goes on at {position} where {} was to come",
            *last + 1
        )));
    }
    let published: Published = postcard::from_bytes(&message.payload)
        .map_err(|error| End::Wrong(format!("its entry {position} is unreadable: {error}")))?;
    *last = position;
    let own = published.origin == shared.origin;
    let reply = own
        .then(|| lock(&shared.waiting).remove(&published.number))
        .flatten();
    Ok(Some(Entry {
        position,
        command: published.command,
        reply,
    }))
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
