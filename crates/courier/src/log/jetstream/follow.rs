//! Follows the stream from a given position until the node shuts down or can no longer follow the stream.

use super::{Applied, Attach, StreamCommand, StreamState, digest};
use crate::log::{Entry, Feed};
use crate::model::Millis;
use crate::seal::{NEWEST, UnsealResult};
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use crossbeam_channel::TrySendError;
use futures_util::{FutureExt, Stream, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// The maximum number of entries that are forwarded together.
const LARGEST_GROUP: usize = 512;
/// The pause before the stream is read again.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause while the index cannot accept more entries.
const FULL: Duration = Duration::from_millis(1);

/// The reasons why following the stream ended.
enum End {
    /// A temporary failure of the server or the connection.
    Broken,
    /// The node is shutting down.
    Closed,
    /// The contents of the stream are invalid.
    Wrong(String),
    /// Positions are missing.
    Gap(String),
    /// The stream was trimmed beyond the node's position.
    Behind(String),
}

/// Forwards every entry after the applied one, in order.
pub(super) async fn follow(state: Arc<StreamState>, mut applied: Applied, feed: Feed) {
    let mut closed = state.closed.subscribe();
    let mut connections = state.connections.clone();
    loop {
        connections.borrow_and_update();
        let followed = tokio::select! {
            end = attempt(&state, &mut applied, &feed) => end,
            // The client would recreate its consumer by itself, on whatever stream exists then. So the stream is
            // checked again.
            Ok(()) = connections.changed() => End::Broken,
            _ = closed.wait_for(|&closed| closed) => End::Closed,
        };
        match followed {
            End::Broken => sleep(PAUSE).await,
            End::Closed => break,
            // The node is restarted, and loads a snapshot.
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
    // Dropping the replies reports that the outcome of their commands is unknown.
    state.waiting.lock().clear();
}

/// Follows the stream until an error.
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
    let read = |message: Message| entry(state, &message, applied);
    match hand_on_all(&mut messages, read, feed).await {
        // The stream may have been trimmed since the last check.
        End::Gap(reason) => match state.check(applied).await {
            Ok(()) => End::Wrong(reason),
            Err(why) => why.into(),
        },
        end => end,
    }
}

/// Forwards the entries of messages until an error.
async fn hand_on_all<M, E>(
    messages: &mut (impl Stream<Item = Result<M, E>> + Unpin),
    mut read: impl FnMut(M) -> Result<Option<Entry>, End>,
    feed: &Feed,
) -> End {
    loop {
        let (entries, end) = group(messages, &mut read).await;
        // Entries before the end of the messages are forwarded.
        if !entries.is_empty()
            && let Err(end) = hand_on(feed, entries).await
        {
            return end;
        }
        if let Some(end) = end {
            return end;
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

/// Waits for an entry, and returns all available entries, with the error that follows them.
async fn group<M, E>(
    messages: &mut (impl Stream<Item = Result<M, E>> + Unpin),
    mut read: impl FnMut(M) -> Result<Option<Entry>, End>,
) -> (Vec<Entry>, Option<End>) {
    let mut entries = Vec::new();
    let mut next = messages.next().await;
    loop {
        let Some(Ok(message)) = next else {
            return (entries, Some(End::Broken));
        };
        match read(message) {
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

/// Reads a message of the stream; `None` if it was already read.
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
            "the stream {stream} continues at entry {position}; expected entry {expected}"
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
    match state.key.open::<StreamCommand>(&message.payload) {
        UnsealResult::Read(published) => {
            if published.origin == state.origin {
                entry.reply = state.waiting.lock().remove(&published.number);
            }
            entry.command = Some(published.command);
        }
        UnsealResult::Foreign => {
            state.metrics.refuse("foreign_entry");
            tracing::warn!(
                "entry {position} of the stream {stream} was not published by a node with this key; it is skipped"
            );
        }
        // No node can read the entry, because it does not match its own version.
        UnsealResult::Unreadable(reason) => {
            state.metrics.refuse("unreadable_entry");
            tracing::warn!(
                "entry {position} of the stream {stream} cannot be read by any node: {reason}; it is skipped"
            );
        }
        // Newer nodes apply the entry, so this node must not skip it.
        UnsealResult::Newer(version) => {
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

/// Sends entries to the index, waiting for capacity.
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    fn at(position: u64) -> Entry {
        Entry {
            position,
            command: None,
            taken: Millis(0),
            digest: [0; 16],
            reply: None,
        }
    }

    #[tokio::test]
    async fn entries_that_have_come_before_a_gap_are_handed_on() {
        let (feed, entries) = crossbeam_channel::bounded(64);
        let mut messages = stream::iter([1, 2, 3, 5].map(Ok::<u64, ()>));
        let mut last = 0;
        let read = |position| {
            if position != last + 1 {
                return Err(End::Gap("it continues later".to_owned()));
            }
            last = position;
            Ok(Some(at(position)))
        };
        let end = hand_on_all(&mut messages, read, &feed).await;
        assert!(matches!(end, End::Gap(_)));
        let handed_on = entries.try_iter().flatten().map(|entry| entry.position);
        assert_eq!(handed_on.collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn entries_that_have_come_before_the_stream_breaks_are_handed_on() {
        let (feed, entries) = crossbeam_channel::bounded(64);
        let mut messages = stream::iter([Ok(1), Ok(2), Err(()), Ok(3)]);
        let end = hand_on_all(&mut messages, |position| Ok(Some(at(position))), &feed).await;
        assert!(matches!(end, End::Broken));
        let handed_on = entries.try_iter().flatten().map(|entry| entry.position);
        assert_eq!(handed_on.collect::<Vec<_>>(), [1, 2]);
    }
}
