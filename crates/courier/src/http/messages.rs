//! Posting and reading messages.

use super::fanout;
use super::page::PageReservation;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, InPath, StrictJson, StrictQuery};
use super::users::limit;
use crate::command::{CommandResult, Posting};
use crate::frame::ENVELOPE;
use crate::inner::Failure;
use crate::limits::LONGEST_KEY;
use crate::model::{ConversationId, Message, Millis};
use crate::node::Node;
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use utoipa::{IntoParams, ToSchema};

/// A message to be posted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// The text of the message; at least one byte.
    #[schema(min_length = 1, max_length = 16384)]
    text: String,
}

/// The receipt of a stored message.
#[derive(Serialize, ToSchema)]
pub(crate) struct PostReceipt {
    /// The conversation.
    conversation: ConversationId,
    /// The number of the message in the conversation, from 1.
    number: u64,
    /// The time of the first post, in milliseconds since 1970.
    sent: Millis,
    /// True if the message had been stored before, under the same Idempotency-Key.
    repeated: bool,
}

/// Messages of a conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct Messages {
    /// The messages in ascending order; with `before` in descending order.
    messages: Vec<Message>,
    /// True if there are more messages after this page, in the requested direction.
    more: bool,
}

/// Posts a message. The answer is sent when the message is durable.
#[utoipa::path(
    post,
    path = "/conversations/{id}/messages",
    params(
        ("id" = u64, Path, description = "The conversation"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, description = "Chosen by the client, up to 255 bytes. Posts of one user with the same key store one message. Keys are remembered for at least a day"),
    ),
    request_body = NewMessage,
    security(("token" = [])),
    responses(
        (status = 201, body = PostReceipt),
        (status = 200, description = "Already stored, with the same key", body = PostReceipt),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(node): State<Node>,
    who: Authenticated,
    InPath(conversation): InPath,
    Key(key): Key,
    StrictJson(NewMessage { text }): StrictJson<NewMessage>,
) -> Result<(StatusCode, Json<PostReceipt>), Problem> {
    let begun = Instant::now();
    let node = &node.inner;
    let most = node.limits.text;
    if text.is_empty() {
        return Err(Problem::invalid("text", "a message needs a text"));
    }
    if text.len() > most {
        node.metrics.refuse("text");
        let message = format!(
            "a text has at most {most} bytes, this one has {}",
            text.len()
        );
        return Err(Problem::too_large("text", message));
    }
    // The permit is held until the outcome is known.
    let recipients = node.recipients.of(conversation, &node.index).await;
    let recipients = recipients.map_err(Failure::from)?;
    let _turn = fanout::admit(node, who.user, recipients).await?;
    let posting = Posting {
        sender: who.user,
        conversation,
        text,
        key,
        at: Millis::now(),
    };
    // If possible, the command is one that nodes of older versions can read.
    let command = posting.command(node.reads() >= 3);
    let CommandResult::Posted {
        number,
        sent,
        repeated,
    } = node.command(command).await?
    else {
        unreachable!("a message that was posted has a number");
    };
    let (counter, status) = match repeated {
        false => (&node.metrics.posted, StatusCode::CREATED),
        true => (&node.metrics.repeated, StatusCode::OK),
    };
    counter.inc();
    let seconds = begun.elapsed().as_secs_f64();
    node.metrics.post_seconds.observe(seconds);
    let posted = PostReceipt {
        conversation,
        number,
        sent,
        repeated,
    };
    Ok((status, Json(posted)))
}

/// The hash of the idempotency key, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(pub Option<[u8; 16]>);

impl FromRequestParts<Node> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Node) -> Result<Self, Problem> {
        let mut keys = parts.headers.get_all("idempotency-key").iter();
        let Some(key) = keys.next() else {
            return Ok(Key(None));
        };
        let length = key.as_bytes().len();
        if !(1..=LONGEST_KEY).contains(&length) || keys.next().is_some() {
            let message =
                format!("a request has at most one Idempotency-Key, of 1 to {LONGEST_KEY} bytes");
            return Err(Problem::invalid("idempotency_key", message));
        }
        let mut half = [0; 16];
        half.copy_from_slice(&blake3::hash(key.as_bytes()).as_bytes()[..16]);
        Ok(Key(Some(half)))
    }
}

/// A range of messages.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryRange {
    /// Returns messages after this number, the oldest first. Not together with `before`.
    after: Option<u64>,
    /// Returns messages before this number, the newest first. 18446744073709551615 starts with the last message.
    before: Option<u64>,
    /// The maximum number of messages; the node may return fewer.
    limit: Option<usize>,
}

/// Returns the messages of a conversation in pages. Use `after` to read forward and `before` to read backward.
#[utoipa::path(
    get,
    path = "/conversations/{id}/messages",
    params(("id" = u64, Path, description = "The conversation"), HistoryRange),
    security(("token" = [])),
    responses(
        (status = 200, body = Messages),
        (status = 401, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(node): State<Node>,
    who: Authenticated,
    InPath(id): InPath,
    StrictQuery(part): StrictQuery<HistoryRange>,
) -> Result<Response, Problem> {
    let node = &node.inner;
    if part.after.is_some() && part.before.is_some() {
        let message = "give `after` or `before`, not both";
        return Err(Problem::invalid("unexpected_query", message));
    }
    let room = PageReservation::take(node, who.user)?;
    let (_, current) = node.conversation_of(who.user, id).await?;
    let bytes = node.limits.page_bytes - ENVELOPE;
    let limit = limit(node, part.limit);
    let index = &node.index;
    let page = match part.before {
        Some(before) => index.messages_before(id, before, limit, bytes).await,
        None => {
            let after = part.after.unwrap_or(0);
            index.messages(id, after, limit, bytes).await
        }
    };
    let page = page.map_err(Failure::from)?;
    let page = Messages {
        messages: page.items,
        more: page.more,
    };
    room.answer(&page, current)
}
